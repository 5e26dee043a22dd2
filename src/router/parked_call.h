/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A modern client's call to a legacy server that may ask while it works. The client cannot be asked
 * directly: it is answered with the server's questions, the call is parked, and the client retries
 * with the answers. bridging.md §2.3.3
 *
 *  RUNNING -> GATHERING -> PARKED -> RUNNING …       the server asks; the client retries
 *                          PARKED -> SETTLED, LOST   the server answers or exits while parked
 *  any -> ENDED
 *
 * Implements states, input keys, rounds and limits. Sends nothing and runs no timer: it acts
 * through struct parked_call_ops. That a retry comes from the same caller, for this server and
 * request, is checked before (seal.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "obs/reason.h"
#include "router/seal.h"

struct method;
struct msg;
struct parked_call;
struct server;

enum parked_state {
	PARKED_RUNNING,   /* the server works; a client request waits for it */
	PARKED_GATHERING, /* as RUNNING, and the server has asked; it may ask more */
	PARKED_PARKED,    /* the client has been answered; the server waits */
	PARKED_SETTLED,   /* the server has answered meanwhile */
	PARKED_LOST,      /* the server is gone meanwhile */
	PARKED_ENDED,
};
#define PARKED_STATES 6

/* An unanswered request from the server. */
struct parked_request {
	struct list link;
	uint64_t key;                /* the client knows it as "r" followed by this number */
	const struct method *method; /* elicitation, sampling, roots */
	struct msg *msg;             /* the request */
	struct slice id;             /* the server's; a slice into msg */
	struct slice answer;         /* while a retry is processed: its answer for this key */
};

/* No callback may cause another event of the same call before it returns. */
struct parked_call_ops {
	/*
	 * Answer this client request with input_required: the outstanding requests and the round.
	 */
	void (*ask)(struct parked_call *parked, struct call *call);
	/* Give it the final response. */
	void (*deliver)(struct parked_call *parked, struct call *call, struct msg *response);
	/* Answer it with an error. */
	void (*fail)(struct parked_call *parked, struct call *call, enum reason reason);
	/*
	 * Answer the server. An absent result: nobody will; sent as cancel for elicitations, else
	 * as an error.
	 */
	void (*answer)(struct parked_call *parked, const struct parked_request *request,
		       struct slice result);
	/* Tell the server to stop, and make sure that it has before others get it (T_settle). */
	void (*cancel)(struct parked_call *parked);
	/* The server has answered: it is free for others. */
	void (*release)(struct parked_call *parked);
	/* Call parked_call_on_deadline at that time; 0: never. */
	void (*set_deadline)(struct parked_call *parked, uint64_t deadline_ms);
	/*
	 * It has ended and is in no table; the last callback. The owner frees it, but not
	 * immediately.
	 */
	void (*on_end)(struct parked_call *parked);
};

struct parked_calls_conf {
	uint64_t gather_ms;   /* T_gather */
	uint64_t park_ttl_ms; /* how long a parked call waits for its client */
	uint64_t call_max_ms; /* since its start, while parked */
	size_t per_owner;     /* parked, settled and lost, over all servers */
	size_t per_server;
	uint32_t rounds_max; /* how often it may ask */
};

/* All parked calls of a gateway. */
struct parked_calls {
	struct parked_calls_conf conf;
	struct map by_id; /* those that have not ended, by the first bytes of their ids */
	struct list kept; /* parked, settled, lost: the one parked first comes first */
};

struct parked_call {
	struct parked_calls *table;
	const struct parked_call_ops *ops;
	const struct server *server; /* only compared */
	const void *owner;           /* the caller; only compared */
	/*
	 * The owner may be many indistinguishable callers: only the server's bound applies, not
	 * per_owner.
	 */
	bool is_of_crowd;
	size_t server_max; /* bound for its server, in addition to per_server */
	unsigned char id[SEAL_CALL_BYTES];
	enum parked_state state;
	struct call *call;    /* RUNNING, GATHERING: the one that waits; else NULL */
	struct list requests; /* outstanding, by key; none while RUNNING */
	size_t request_count;
	size_t request_bytes;
	uint64_t last_key;
	uint32_t round;       /* of the last state handed out; 0: none yet */
	struct msg *response; /* SETTLED */
	uint64_t call_until_ms;
	uint64_t deadline_ms; /* last value given to set_deadline */
	struct list kept;     /* link: of table->kept */
};

void parked_calls_init(struct parked_calls *table, const struct parked_calls_conf *conf);
/* Finds a call by the id in the seal; NULL: none, or no longer. */
struct parked_call *parked_calls_find(const struct parked_calls *table,
				      const unsigned char id[SEAL_CALL_BYTES]);

/*
 * Starts in RUNNING, for `call`. The caller has set server, server_max, owner, is_of_crowd and ops;
 * all else is zero.
 */
void parked_call_init(struct parked_call *parked, struct parked_calls *table, struct call *call,
		      uint64_t now_ms);

/* ---- the server ---- */

/* It asks what this call's client may be asked. False: too many; the caller answers the server. */
bool parked_call_on_request(struct parked_call *parked, const struct method *method,
			    struct msg *msg, struct slice id, uint64_t now_ms);
/* It withdraws a request, which then needs no answer. */
void parked_call_on_request_cancelled(struct parked_call *parked, struct slice id, uint64_t now_ms);
/* It has answered. */
void parked_call_on_response(struct parked_call *parked, struct msg *response, uint64_t now_ms);
/* It is gone for this reason, and all that it asked with it. */
void parked_call_on_exit(struct parked_call *parked, enum reason reason, uint64_t now_ms);

/* ---- the client ---- */

/* A client request was dropped unanswered. Ignored if it is no longer the one that waits. */
void parked_call_on_disconnect(struct parked_call *parked, const struct call *call,
			       uint64_t now_ms);

enum parked_retry {
	PARKED_RETRY_TAKEN,     /* `call` has been answered, or waits */
	PARKED_RETRY_STALE,     /* of another round, or already processed: nothing changed */
	PARKED_RETRY_MALFORMED, /* an invalid answer: nothing changed */
};
/*
 * The client retries. `round`: as sealed; `responses`: the member inputResponses, or JSON_ABSENT.
 * Only answers to outstanding keys count; others are ignored.
 */
enum parked_retry parked_call_on_retry(struct parked_call *parked, struct call *call,
				       uint32_t round, struct json responses, uint64_t now_ms);

/* ---- the gateway ---- */

void parked_call_on_deadline(struct parked_call *parked, uint64_t now_ms);
/* Must end: the gateway drains, or its place is needed. */
void parked_call_abandon(struct parked_call *parked, enum reason reason, uint64_t now_ms);

/* Writes the key as clients write it: at most 21 bytes. Returns the length. */
size_t parked_request_key(const struct parked_request *request, char *out);
