/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A modern client's call at a legacy server, which may ask while it works. The client cannot be asked at once: it is
 * answered with what the server asks, the call is parked, and the client tries again with the answers. bridging.md §2.3.3
 *
 *	RUNNING -> GATHERING -> PARKED -> RUNNING …       the server asks; the client tries again
 *	                        PARKED -> SETTLED, LOST   the server has answered, or is gone, while nobody was there
 *	any -> ENDED
 *
 * Knows states, input keys, rounds and limits. Sends nothing and has no timer: what is to be done it says through
 * struct parked_call_ops. That a retry is the caller's own, for this server and request, is judged before (seal.h).
 */
#ifndef MCPGATED_ROUTER_PARKED_CALL_H
#define MCPGATED_ROUTER_PARKED_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "obs/reason.h"
#include "router/seal.h"

struct call;
struct method;
struct msg;
struct parked_call;
struct server;

enum parked_state {
	PARKED_RUNNING,   /* the server works; a request of the client waits for it */
	PARKED_GATHERING, /* the same, and the server has asked: it may ask more */
	PARKED_PARKED,    /* the client has been answered; the server waits */
	PARKED_SETTLED,   /* the server has answered meanwhile */
	PARKED_LOST,      /* the server has gone meanwhile */
	PARKED_ENDED,
};
#define PARKED_STATES 6

/* A request of the server that nobody has answered. */
struct parked_request {
	struct list link;
	uint64_t key;                /* the client's name for it is "r" and this number */
	const struct method *method; /* elicitation, sampling, roots */
	struct msg *msg;             /* the request */
	struct slice id;             /* the server's; a slice into msg */
	struct slice answer;         /* while a retry is read: what it has for this key */
};

/* None of them may lead to another event of the same call before it returns. */
struct parked_call_ops {
	/* Answer this request of the client with input_required: what is outstanding, the round. */
	void (*ask)(struct parked_call *parked, struct call *call);
	/* Give it the final response. */
	void (*deliver)(struct parked_call *parked, struct call *call, struct msg *response);
	/* Answer it with an error. */
	void (*fail)(struct parked_call *parked, struct call *call, enum reason reason);
	/* Answer the server; an absent result: nobody will, which elicitations hear as cancel, others as an error. */
	void (*answer)(struct parked_call *parked, const struct parked_request *request,
		       struct slice result);
	/* The server is to stop working: tell it, and see that it does before others get it (T_settle). */
	void (*cancel)(struct parked_call *parked);
	/* The server has answered: it is free for others. */
	void (*release)(struct parked_call *parked);
	/* Call parked_call_on_deadline at that time; 0: not at all. */
	void (*set_deadline)(struct parked_call *parked, uint64_t deadline_ms);
	/* It has ended and is in no table: the last word of it. The owner frees it, not at once. */
	void (*on_end)(struct parked_call *parked);
};

struct parked_calls_conf {
	uint64_t gather_ms;   /* T_gather */
	uint64_t park_ttl_ms; /* how long a parked call waits for its client */
	uint64_t call_max_ms; /* since it began, while parked */
	size_t per_owner;     /* parked, settled and lost, of all servers */
	size_t per_server;
	uint32_t rounds_max; /* so often it asks */
};

/* All of a gateway. */
struct parked_calls {
	struct parked_calls_conf conf;
	struct map by_id; /* those that have not ended, by the first bytes of their ids */
	struct list kept; /* parked, settled, lost: the one that was parked first comes first */
};

struct parked_call {
	struct parked_calls *table;
	const struct parked_call_ops *ops;
	const struct server *server; /* compared alone */
	const void *owner;           /* whose it is; compared alone */
	/* The owner may be many callers that nobody can tell apart: only the bound of the server holds, not per_owner. */
	bool is_of_crowd;
	size_t server_max; /* of its server at most so many are kept, and no more than per_server */
	unsigned char id[SEAL_CALL_BYTES];
	enum parked_state state;
	struct call *call;    /* RUNNING, GATHERING: what waits; else NULL */
	struct list requests; /* outstanding, in the order of their keys; none while RUNNING */
	size_t request_count;
	size_t request_bytes;
	uint64_t last_key;
	uint32_t round;       /* of the last state that was given out; 0: none was */
	struct msg *response; /* SETTLED */
	uint64_t call_until_ms;
	uint64_t deadline_ms; /* what set_deadline was told last */
	struct list kept;     /* link: of table->kept */
};

void parked_calls_init(struct parked_calls *table, const struct parked_calls_conf *conf);
/* They have all ended. */
void parked_calls_fini(struct parked_calls *table);
/* By the id in the seal; NULL: there is none, or no longer. */
struct parked_call *parked_calls_find(const struct parked_calls *table,
				      const unsigned char id[SEAL_CALL_BYTES]);

/* RUNNING, for `call`. server, server_max, owner, is_of_crowd and ops are set by the caller; all else is zero. */
void parked_call_init(struct parked_call *parked, struct parked_calls *table, struct call *call,
		      uint64_t now_ms);

/* ---- the server ---- */

/* It asks what this call's client may be asked. False: there are too many; the caller answers it. */
bool parked_call_on_request(struct parked_call *parked, const struct method *method,
			    struct msg *msg, struct slice id, uint64_t now_ms);
/* It takes a request back, which needs no answer then. */
void parked_call_on_request_cancelled(struct parked_call *parked, struct slice id, uint64_t now_ms);
/* It has answered. */
void parked_call_on_response(struct parked_call *parked, struct msg *response, uint64_t now_ms);
/* It is gone for this reason, and with it all that it asked. */
void parked_call_on_exit(struct parked_call *parked, enum reason reason, uint64_t now_ms);

/* ---- the client ---- */

/* A request of the client has gone away unanswered. One that is no longer waiting does not count. */
void parked_call_on_disconnect(struct parked_call *parked, const struct call *call,
			       uint64_t now_ms);
/* It has waited for too long. */
void parked_call_on_timeout(struct parked_call *parked, const struct call *call, uint64_t now_ms);

enum parked_retry {
	PARKED_RETRY_TAKEN, /* `call` is answered, or waits */
	PARKED_RETRY_STALE, /* of another round, or one that was taken before: nothing has changed */
	PARKED_RETRY_MALFORMED, /* an answer that is none: nothing has changed */
};
/*
 * It tries again. `round` is what was sealed; `responses` the member inputResponses, JSON_ABSENT if there is none. The
 * client's are answers to outstanding keys; others are ignored.
 */
enum parked_retry parked_call_on_retry(struct parked_call *parked, struct call *call,
				       uint32_t round, struct json responses, uint64_t now_ms);

/* ---- the gateway ---- */

void parked_call_on_deadline(struct parked_call *parked, uint64_t now_ms);
/* It is to end: the gateway drains, or its place is needed. */
void parked_call_abandon(struct parked_call *parked, enum reason reason, uint64_t now_ms);

/* The key as clients write it: writes at most 21 bytes, returns how many. */
size_t parked_request_key(const struct parked_request *request, char *out);

#endif
