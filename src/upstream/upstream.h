/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that requests are sent to, in either era and however it is reached: its state, our ids
 * in use there, and whether it still answers. An implementation transports the messages
 * (upstream_ops.h; stdio.h). Their meaning is the business of the owner, one at a time (struct
 * upstream_owner_ops), and of whoever has a request in flight (struct upstream_request).
 *
 *	delayed -> starting -> (warm ->) handshake -> ready <-> settling
 *	                                                |-> retiring <-|     any -> closed
 *
 * BACK-INIT-*, BACK-FRAME-05, -08, REL-25.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "obs/counters.h"
#include "obs/reason.h"
#include "process/server.h"
#include "upstream/credential.h"
#include "upstream/send.h"

struct call;
struct child;
struct client;
struct listen;
struct live_tasks;
struct pool;
struct upstream_ops;
struct upstream_request;
struct warm_set;

struct upstream_shared {
	struct loop *loop;
	struct scan_limits limits;
	struct buf scratch; /* the message being built */
	struct credentials credentials;
	/* A closed upstream is gone: there is room for another process. */
	void (*on_gone)(struct upstream *upstream);
};

/* What the owner is notified of; NULL for what it does not care about or cannot occur. */
struct upstream_owner_ops {
	/* `env`: the response to initialize, in either era; `raw`: its result, before intake. */
	void (*on_ready)(struct upstream *upstream, const struct envelope *env, struct slice raw);
	/* It answered the handshake with an error, or (NULL) is inherited and silent: close or refuse it. */
	void (*on_refused)(struct upstream *upstream, const struct envelope *response);
	void (*on_request)(struct upstream *upstream, const struct envelope *env);
	void (*on_notification)(struct upstream *upstream, const struct envelope *env);
	void (*on_request_end)(struct upstream *upstream, struct upstream_request *request,
			       bool is_answered);
	/* What kept it busy after its only request has ended; it accepts requests again. */
	void (*on_settled)(struct upstream *upstream);
	/* No request is in flight: the last one ended, the upstream settled, or it is to retire. */
	void (*on_rest)(struct upstream *upstream);
	/* It has no request; since when, the owner knows. See upstream_start_idle. */
	void (*on_idle)(struct upstream *upstream);
	/* It accepts no more requests: unlink it. Those in flight are still there. */
	void (*on_closed)(struct upstream *upstream);
	/* It was closed because it failed. The last callback to the owner. */
	void (*on_lost)(struct upstream *upstream, enum reason reason);
};

enum upstream_state {
	UPSTREAM_DELAYED,   /* waits for the back-off to pass */
	UPSTREAM_STARTING,  /* the process is being started */
	UPSTREAM_WARM,      /* running, and not needed yet */
	UPSTREAM_HANDSHAKE, /* initialize has been sent */
	UPSTREAM_READY,
	UPSTREAM_SETTLING, /* its only request was abandoned: it must show that it has ended */
	UPSTREAM_RETIRING, /* finishes its requests, and accepts no more */
	UPSTREAM_CLOSED,   /* no longer used; freed once its process is gone */
};

/* Embedded by an implementation. */
struct upstream {
	const struct upstream_ops *ops;
	struct upstream_shared *shared;
	struct server *server;
	struct child *child;                    /* its process; NULL: reached otherwise */
	const struct upstream_owner_ops *owner; /* NULL: closed */
	const struct upstream_setup *setup;     /* NULL: warm, or closed */
	const struct upstream_era *era;         /* NULL: nothing was sent yet */
	enum upstream_state state;
	struct map requests; /* in flight, by our id: struct upstream_request */
	size_t lasting;      /* subscriptions among them */
	uint64_t last_id;
	uint64_t handshake_id;
	uint64_t probe_id;          /* of the ping that checks whether it is alive; 0: none */
	uint64_t settling_id;       /* of the abandoned request */
	bool settles_by_answer;     /* by its answer, not by a ping */
	unsigned int notifications; /* that it may still answer, though it should not */
	uint64_t notified_after_id; /* our last id when the last of them was sent */
	bool writes_version;        /* it has written "jsonrpc" */
	struct timer start, slow, probe, idle;
	uint64_t ready_at_ms;
	const struct revision *revision; /* what the server agreed to; NULL: nothing yet */
	bool gives_way;     /* in the middle of its messages (io/aside), anything may happen */
	bool is_disposable; /* if it fails, that does not count as a failure of the server */
	bool is_inherited;  /* from the gateway before, and has not answered yet */
	bool was_used;      /* a request was sent: if it crashes, its client may be the cause */
	/* the owner's */
	struct list link;
	struct pool *pool;
	struct warm_set *warm_set;
	struct client *client; /* its only client; NULL: none, or several */
	struct call *lease;    /* the only call that it may work on */
	/* The one that what is being reported belongs to; NULL: the server does not say. */
	struct upstream_request *about;
	struct upstream_request *logged; /* modern: the only one of many whose log lines count */
	struct listen *listen; /* subscriptions to what changes; NULL: of the legacy era */
	struct list task_listeners,
		leftovers;        /* listeners to its tasks; requests that were given up */
	struct live_tasks *tasks; /* that it works on; NULL: none so far */
	int level;                /* the log level last sent to it, or -1 */
	uint64_t rested_at_ms;    /* when it last became free of work */
	uint64_t donated_at_ms;   /* when its place was promised to others (process_slots), or 0 */
	bool makes_room, is_awaited; /* stopped for another one; a session waits for its place */
};

/* For whoever has a request in flight. */
struct upstream_request_ops {
	/* The server's response, bearing our id; borrowed. The request is still in flight. */
	void (*on_response)(struct upstream_request *request, const struct envelope *env);
	/* Its answer is no response, or too long, and no better one will come. REL-23 */
	void (*on_malformed)(struct upstream_request *request, enum reason reason);
	/* The upstream was closed because it failed. Not of those that last: they end with it. */
	void (*on_lost)(struct upstream_request *request, enum reason reason);
};

/* Embedded by the sender. */
struct upstream_request {
	const struct upstream_request_ops *ops;
	struct upstream *upstream; /* the last one it was sent to; NULL: not sent */
	uint64_t id;               /* ours */
	bool is_lasting; /* a subscription: not work; its owner ends it when the upstream closes */
};

/* Starts it after wait_ms, with its first owner. `setup` NULL: it stays warm until adopted. */
void upstream_begin(struct upstream *upstream, const struct upstream_owner_ops *owner,
		    const struct upstream_setup *setup, uint64_t wait_ms);
/* Passes it to another owner; it must be warm, or about to be. */
void upstream_adopt(struct upstream *upstream, const struct upstream_owner_ops *owner,
		    const struct upstream_setup *setup);
/* The owner gives it up: on_closed is called, then it is stopped. */
void upstream_close(struct upstream *upstream, enum reason reason);
/* The handshake failed: stops it as failed. */
void upstream_refuse(struct upstream *upstream);
bool upstream_is_modern(const struct upstream *upstream);
/* Replaces its process; one that serves is stopped as failed. False: it is starting or stopping. */
bool upstream_restart(struct upstream *upstream);
/* Gives it no more requests. The owner closes it when it rests. */
void upstream_retire(struct upstream *upstream);
/*
 * Its only request, which had this id, was abandoned: before the next one it must answer that or,
 * unless `by_answer`, a ping. One that answers neither in time is lost; with `by_answer`, one that
 * answers only the ping retires. bridging.md §2.3.3
 */
void upstream_settle(struct upstream *upstream, uint64_t id, bool by_answer);
/* After a time-out: it must answer a ping soon, or it is lost. REL-25 */
void upstream_probe(struct upstream *upstream);
/*
 * on_idle follows after idle_ms at the latest if it has no request then. Requests leave the timer as it
 * is, so that none of them pays for it: the owner looks how long it has rested.
 */
void upstream_start_idle(struct upstream *upstream, uint64_t idle_ms);

/* The next id for a request to it. BACK-FRAME-08 */
uint64_t upstream_next_id(struct upstream *upstream);
/* Whether ids will run out soon: another process should take over. */
bool upstream_is_worn(const struct upstream *upstream);
/* Registers a request that was sent with this id. */
void upstream_add_request(struct upstream *upstream, struct upstream_request *request, uint64_t id);
/* The request continues under a new id; the one before was answered. */
void upstream_renumber_request(struct upstream_request *request, uint64_t id);
/* Ends the request: nothing more is reported for it. Its upstream and id stay readable. */
void upstream_end_request(struct upstream_request *request, bool is_answered);
/* Tells all requests in flight that the upstream is lost. */
void upstream_lose_requests(struct upstream *upstream, enum reason reason);
/* The request in flight with this id, even if the id is written as a string; NULL: none. */
struct upstream_request *upstream_find_request(const struct upstream *upstream, struct json id);
/* The only request in flight, of any client; NULL: there is none, or more than one. */
struct upstream_request *upstream_only_request(const struct upstream *upstream);
/* The number of requests in flight, without lasting ones. */
size_t upstream_load(const struct upstream *upstream);
/* Whether requests may be in flight on it in its state. */
bool upstream_is_serving(const struct upstream *upstream);
bool upstream_has_room(const struct upstream *upstream, size_t size);
const char *upstream_state_name(enum upstream_state state);
uint64_t upstream_child_number(const struct upstream *upstream); /* never used again */
int upstream_pid(const struct upstream *upstream);               /* or 0 */
/* Counts, and logs at debug, a message that belongs to nothing known. */
void upstream_note_stray(struct upstream *upstream, enum counter counter,
			 const struct envelope *env);

/* ---- upstream era ---- */

/*
 * What is sent to a server differs between the eras of MCP; this is what upstream.c has to know
 * about it.
 */

struct upstream_era {
	bool is_modern;
	struct slice handshake; /* method of the first request; its answer describes the server */
	struct slice ping;      /* method of a request that every server answers */
	bool may_ask;           /* servers may send requests */
	/* Sends the first request, with this id. Returns -1 if it cannot be built. */
	int (*send_handshake)(struct upstream *upstream, uint64_t id);
	/*
	 * Reads the result. Returns the revision spoken from now on; NULL if we do not know it, or
	 * the result is invalid. If the result is not an InitializeResult, an equivalent one is
	 * appended to `initialize_result`.
	 */
	const struct revision *(*read_result)(const struct upstream *upstream, struct slice result,
					      struct buf *initialize_result);
};

/* Uses initialize: up to 2025-11-25. */
extern const struct upstream_era upstream_era_legacy;
/*
 * The same with a process of the gateway before, which has been initialized: the owner has set the
 * revision. What answers to that gateway comes before the answer to our ping.
 */
extern const struct upstream_era upstream_era_inherited;
/* Each request is self-contained: from 2026-07-28. */
extern const struct upstream_era upstream_era_modern;

/* Reports to the operator that the server rejected the first request with this error. */
void upstream_era_note_refusal(struct upstream *upstream, const struct envelope *response);

/* ---- intake ---- */

/*
 * Where messages from servers enter: each is changed as its server's rules require (sanitize,
 * redact) before any of it is read, kept or passed on. So what is checked is what clients get, and
 * what is kept for many clients is scanned only once. SEC-52, SEC-53
 */

/* All zeros initially. */
struct intake {
	struct buf text; /* the changed message */
	struct envelope env;
};

/*
 * Returns the message to pass on: `env` itself if nothing changes, else one borrowed from `intake`.
 * Its id stays as written. All messages are sanitized. Results, errors and notifications are also
 * redacted, including any other members beside them, but not the members that make it a message
 * (jsonrpc, id, method).
 *
 * redacts   false: it belongs to the handshake, whose text must not be redacted
 *
 * Returns NULL if the redacted text is no longer a message (for example, because member names
 * became equal).
 */
const struct envelope *intake_take(struct intake *intake, struct server *server,
				   const struct scan_limits *limits, bool redacts,
				   const struct envelope *env);
/*
 * A message that is not redacted and was kept as the server wrote it, under the rules in use now.
 * NULL likewise.
 */
struct msg *intake_again(struct server *server, const struct scan_limits *limits,
			 struct slice text);
void intake_fini(struct intake *intake);

/* ---- leftover ---- */

/*
 * What a server may still work on although nobody waits for it: linked into the upstream's
 * leftovers until the server has answered the request after all, or its process is gone.
 */

/* Embedded by whoever wants to know. */
struct upstream_leftover {
	struct list link;
	uint64_t id; /* of the request; 0: of none */
	/* It is over; called once. */
	void (*on_over)(struct upstream_leftover *leftover);
};
