/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request of a client in flight: the seam between fronts, which know how a client is answered, and
 * the child's side, which knows how it is asked. Both see only this. bridging.md §0, §1.1.
 */
#ifndef MCPGATED_ROUTER_CALL_H
#define MCPGATED_ROUTER_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "obs/reason.h"
#include "session/stream.h"

struct call;
struct upstream;
struct fairness_key;
struct route;
struct subscription;

/* What a front does for its calls. Exactly one of the last three ends each call. */
struct call_ops {
	/*
	 * A message of the server that belongs to this call: progress, a log line, a request to the client.
	 * `key` as in stream_push. Returns false if this client cannot be given it (any more).
	 */
	bool (*on_message)(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg);
	/* Whether somebody reads what on_message gives, now. */
	bool (*is_reachable)(const struct call *call);
	/* The response: the concatenation of the parts, with the client's id in it; borrowed until the return. */
	void (*on_response)(struct call *call, const struct slice *parts, size_t count);
	/* No response will come; the client gets the error of this reason. */
	void (*on_failed)(struct call *call, enum reason reason);
	/* Its client has cancelled it and expects nothing more. CXL-02. */
	void (*on_cancelled)(struct call *call);
};

enum call_state {
	CALL_NEW,
	CALL_WAITING, /* for its child to be ready */
	CALL_SENT,
	CALL_ENDED,
};

#define CALL_INLINE_BYTES 64

/* Embedded by fronts; their memory, to be kept until one of the last three ops was called. */
struct call {
	const struct call_ops *ops;
	struct route *route;
	struct upstream *upstream; /* once sent */
	struct list link;          /* of the route's calls, oldest first */
	struct list place;         /* in a queue, or among those that wait for another's answer */
	struct fairness_key *fairness_key; /* whose turn is waited for; NULL: in no queue */
	struct subscription
		*subscription; /* a subscription that waits for this, or that this waits for */
	enum call_state state;
	const struct method *method;
	uint64_t upstream_id; /* our id at the child */
	struct slice id;      /* the client's, as it was written */
	struct slice token;   /* its progress token likewise, or empty */
	double progress;      /* the last that was forwarded */
	unsigned int asked;   /* requests of the server that this call's client has not answered */
	uint64_t sent_at_ms;
	uint64_t timeout_ms; /* without sign of life */
	struct timer silence;
	struct timer absolute;
	struct msg *body; /* while waiting; longer if it may be needed again */
	bool is_repeated; /* a child was lost over it, and another one was asked */
	char *copied;     /* id and token, if they are longer than the next */
	char inlined[CALL_INLINE_BYTES];
};

/* Prepares a call with the identifiers of `env`, which are copied. */
void call_init(struct call *call, const struct call_ops *ops, const struct envelope *env);

/* Puts it among the route's calls. */
void call_link(struct call *call, struct route *route);
/* It has to wait; after `timeout_ms`, unless 0, the pool is told. */
void call_wait(struct call *call, uint64_t timeout_ms);
/* It has been sent to its child: deadlines run. */
void call_sent(struct call *call, struct upstream *upstream, uint64_t upstream_id);
/* A sign of life: the silence begins anew, unless its client is being asked something. CXL-08. */
void call_renew(struct call *call);
/* Its client is asked something, or has answered: its silence does not count meanwhile. */
void call_note_asked(struct call *call);
void call_note_answered(struct call *call);

/* Ends a call that could not even be linked: its front is told. */
void call_refuse(struct call *call, struct loop *loop, enum reason reason);
/*
 * Its client's connection has gone: answers to what the client is asked are not waited for much longer.
 * Also on a call that was not begun or has ended.
 */
void call_note_unreachable(struct call *call);

/* Its child is lost, but another one may be asked: as if it had never been sent. */
void call_recall(struct call *call);

/* The three endings. Each unlinks the call, releases what it holds and tells the front. */
void call_respond(struct call *call, const struct slice *parts, size_t count);
void call_fail(struct call *call, enum reason reason);
void call_cancel(struct call *call);

#endif
