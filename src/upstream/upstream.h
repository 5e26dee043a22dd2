/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that requests are sent to, whatever its era and however it is reached: the states of its life, the
 * ids of ours that are in use there, whether it still answers. How messages get there and back is the
 * implementation's (upstream_ops.h; stdio.h). What they mean is known above: to the owner, of whom there is one at
 * a time (struct upstream_owner_ops), and to whoever has a request in flight (struct upstream_request).
 *
 *	delayed -> starting -> (warm ->) handshake -> ready <-> settling
 *	                                                |-> retiring <-|     any -> closed
 *
 * BACK-INIT-*, BACK-FRAME-05, -08, REL-25.
 */
#ifndef MCPGATED_UPSTREAM_UPSTREAM_H
#define MCPGATED_UPSTREAM_UPSTREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "obs/counters.h"
#include "obs/reason.h"
#include "process/server.h"
#include "upstream/setup.h"

struct call;
struct child;
struct client;
struct listen;
struct live_tasks;
struct pool;
struct revision;
struct upstream;
struct upstream_era;
struct upstream_ops;
struct upstream_request;
struct warm_set;

/* What all upstreams have in common. */
struct upstream_shared {
	struct loop *loop;
	struct scan_limits limits;
	struct buf scratch; /* the message that is being put together now */
	/* A closed upstream is over: there is room for another process. */
	void (*on_gone)(struct upstream *upstream);
};

/* What the owner hears. */
struct upstream_owner_ops {
	/* The handshake succeeded; upstream->revision is agreed. `response` is to initialize, whatever was asked. */
	void (*on_ready)(struct upstream *upstream, const struct envelope *response);
	/* The server answered the handshake with an error. The owner closes or refuses it. */
	void (*on_refused)(struct upstream *upstream, const struct envelope *response);
	/* The server asks, or tells, something. */
	void (*on_request)(struct upstream *upstream, const struct envelope *env);
	void (*on_notification)(struct upstream *upstream, const struct envelope *env);
	/* A request has left it. */
	void (*on_request_end)(struct upstream *upstream, struct upstream_request *request,
			       bool is_answered);
	/* What kept it busy after its only request has ended: it may take requests again. */
	void (*on_settled)(struct upstream *upstream);
	/* No request is in flight: when the last has ended, when it has settled, when it is to retire. */
	void (*on_rest)(struct upstream *upstream);
	/* It has had no request for as long as was asked for. */
	void (*on_idle)(struct upstream *upstream);
	/* It takes no requests any more: to be unlinked. Those in flight are still there. */
	void (*on_closed)(struct upstream *upstream);
	/* It was closed because it failed. The last that the owner hears. */
	void (*on_lost)(struct upstream *upstream, enum reason reason);
};

enum upstream_state {
	UPSTREAM_DELAYED,   /* waits for the back-off to pass */
	UPSTREAM_STARTING,  /* the process is being started */
	UPSTREAM_WARM,      /* it runs, and nobody needs it yet */
	UPSTREAM_HANDSHAKE, /* initialize is on its way */
	UPSTREAM_READY,
	UPSTREAM_SETTLING, /* its only request was given up: it must show that it is over */
	UPSTREAM_RETIRING, /* finishes its requests, and gets no more */
	UPSTREAM_CLOSED,   /* no longer used; goes when its process has gone */
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
	size_t lasting;      /* of them, subscriptions */
	uint64_t last_id;
	uint64_t handshake_id;
	uint64_t probe_id;      /* of the ping that tells whether it still lives; 0: none */
	uint64_t settling_id;   /* of the request that was given up */
	bool settles_by_answer; /* to that, and not to a ping */
	struct timer start, slow, probe, idle;
	uint64_t ready_at_ms;
	const struct revision *revision; /* what the server agreed to; NULL: nothing yet */
	bool is_disposable;              /* if it fails, that is no failure of the server */
	bool was_used; /* it was sent a request: if it crashes, that may be its client's doing */
	/* the owner's */
	struct list link;
	struct pool *pool;
	struct warm_set *warm_set;
	struct client *client;           /* the only one it serves now; NULL: none, or many */
	struct call *lease;              /* the only call that it may work on */
	struct upstream_request *logged; /* modern: the only one of many whose log lines count */
	struct listen *listen;      /* subscriptions to what changes; NULL: of the legacy era */
	struct list task_listeners; /* who hears of its tasks */
	struct live_tasks *tasks;   /* that it works on; NULL: none so far */
	int level;                  /* the log level that it was told last, or -1 */
	uint64_t rested_at_ms;      /* when it last had nothing more to do */
	uint64_t donated_at_ms; /* when its place was promised to others (process_slots), or 0 */
	bool makes_room, is_awaited; /* stopped for another one; a session waits for its place */
};

/* Who has a request in flight. */
struct upstream_request_ops {
	/* The server's response, with our id in it; borrowed. The request is still in flight. */
	void (*on_response)(struct upstream_request *request, const struct envelope *env);
	/* What the server wrote under its id is no response, and no better one will come. REL-23 */
	void (*on_malformed)(struct upstream_request *request);
	/* The upstream was closed because it failed. */
	void (*on_lost)(struct upstream_request *request, enum reason reason);
};

/* Embedded by who sends it. */
struct upstream_request {
	const struct upstream_request_ops *ops;
	struct upstream *upstream; /* that it was sent to last; NULL: it was not sent */
	uint64_t id;               /* ours */
	bool is_lasting; /* a subscription: no work, and its owner ends it when the upstream closes */
};

/* Its first owner: starts it after wait_ms. `setup` NULL: it stays warm until adopted. */
void upstream_begin(struct upstream *upstream, const struct upstream_owner_ops *owner,
		    const struct upstream_setup *setup, uint64_t wait_ms);
/* Another owner takes it over; it is warm, or on its way to be. */
void upstream_adopt(struct upstream *upstream, const struct upstream_owner_ops *owner,
		    const struct upstream_setup *setup);
/* The owner lets go of it: on_closed, then it is stopped. */
void upstream_close(struct upstream *upstream, enum reason reason);
/* The handshake failed: it is ended as failed. */
void upstream_refuse(struct upstream *upstream);
bool upstream_is_modern(const struct upstream *upstream);
/*
 * The operator wants a fresh process: one that serves is stopped as if it had failed, one that is warm is replaced.
 * False: it is on its way, in either direction.
 */
bool upstream_restart(struct upstream *upstream);
/* It gets no more requests. The owner closes it when it rests. */
void upstream_retire(struct upstream *upstream);
/* Its only request, which had this id, was given up: it must answer that before the next one or, unless `by_answer`, a ping.
   One that answers neither in time is lost; if that was not enough, it retires. bridging.md §2.3.3 */
void upstream_settle(struct upstream *upstream, uint64_t id, bool by_answer);
/* After a time-out: it must answer a ping soon, or it is lost. REL-25 */
void upstream_probe(struct upstream *upstream);
/* on_idle follows after idle_ms, unless a request comes first. */
void upstream_start_idle(struct upstream *upstream, uint64_t idle_ms);

/* The next id for a request to it. BACK-FRAME-08 */
uint64_t upstream_next_id(struct upstream *upstream);
/* Ids are used up soon: another process had better take over. */
bool upstream_is_worn(const struct upstream *upstream);
/* The request was sent under this id. */
void upstream_add_request(struct upstream *upstream, struct upstream_request *request, uint64_t id);
/* It goes on as another request, under this id: the one before was answered. */
void upstream_renumber_request(struct upstream_request *request, uint64_t id);
/* Nothing more comes of it. Its upstream and id stay readable. */
void upstream_end_request(struct upstream_request *request, bool is_answered);
/* Tells all requests in flight that the upstream is lost. */
void upstream_lose_requests(struct upstream *upstream, enum reason reason);
/* The request in flight that this id stands for, which may be written as a string; NULL: none. */
struct upstream_request *upstream_find_request(const struct upstream *upstream, struct json id);
/* The only request in flight, whoever its client is; NULL: there is none, or there are several. */
struct upstream_request *upstream_only_request(const struct upstream *upstream);
/* Requests in flight, but for those that last. */
size_t upstream_load(const struct upstream *upstream);
/* Whether requests may be in flight on it. */
bool upstream_is_serving(const struct upstream *upstream);
bool upstream_has_room(const struct upstream *upstream, size_t size);
const char *upstream_state_name(enum upstream_state state);
uint64_t upstream_child_number(const struct upstream *upstream); /* never used again */
int upstream_pid(const struct upstream *upstream);               /* or 0 */
/* Counts, and logs at debug, a message that belongs to nothing that is known. */
void upstream_note_stray(struct upstream *upstream, enum counter counter,
			 const struct envelope *env);

#endif
