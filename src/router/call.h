/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request of a client in flight: the seam between fronts, which know how a client is answered, and
 * the server's side, which knows how it is asked. Both see only this. bridging.md §0, §1.1.
 *
 *	new -> waiting <-> sent        any -> ended
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
#include "mcp/trace_context.h"
#include "obs/reason.h"
#include "policy/rights.h"
#include "policy/rule.h"
#include "router/wait_queue.h"
#include "session/stream.h"
#include "upstream/upstream.h"

struct audit_call;
struct audit_origin;
struct call;
struct call_series;
struct call_watcher;
struct client;
struct digest;
struct in_flight;
struct principal;
struct span;
struct task_id;

/* What a front finds when it holds a tools/call against the schema of its tool. */
struct tool_verdict {
	const char *broken;  /* why the schema's annotations do not count; or NULL */
	const char *refusal; /* why the call is refused; or NULL. Both are literals */
	int code;            /* of the refusal: of enum mcp_error */
};

/* What a front does for its calls. Exactly one of the last three ends each call; these may end the session as well, those
   before must not. */
struct call_ops {
	/*
	 * A message of the server that belongs to this call: progress, a log line, a request to the client.
	 * `key` as in stream_push. Returns false if this client cannot be given it (any more).
	 */
	bool (*on_message)(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg);
	/* Whether somebody reads what on_message gives, now. */
	bool (*is_reachable)(const struct call *call);
	/*
	 * Holds its request, a tools/call, against the inputSchema of the tool, JSON text. NULL: this front does not ask for
	 * that. MOD-HDR-04
	 */
	struct tool_verdict (*check_tool)(struct call *call, const struct envelope *env,
					  struct slice input_schema);
	/* The response: the concatenation of the parts, with the client's id in it; borrowed until the return. */
	void (*on_response)(struct call *call, const struct slice *parts, size_t count);
	/* No response will come; the client gets the error of this reason. */
	void (*on_failed)(struct call *call, enum reason reason);
	/* Its client has cancelled it and expects nothing more. CXL-02. */
	void (*on_cancelled)(struct call *call);
};

/* Who else has to know what becomes of a call. */
struct call_watcher_ops {
	/*
	 * The server's response, before the client gets it; NULL: of no interest. Returns false if the call has been
	 * answered otherwise.
	 */
	bool (*on_response)(struct call_watcher *watcher, struct call *call,
			    const struct envelope *env);
	/* The connection of its client has gone; NULL likewise. */
	void (*on_unreachable)(struct call_watcher *watcher);
	/* It ends, in whatever way; the watcher is off its list already. */
	void (*on_end)(struct call_watcher *watcher, struct call *call);
};

/* Embedded by who watches one call. */
struct call_watcher {
	const struct call_watcher_ops *ops;
	struct list link; /* of the call's */
};

enum call_state {
	CALL_NEW,
	CALL_WAITING, /* in its wait queue, if it has one */
	CALL_SENT,
	CALL_ENDED,
};

#define CALL_INLINE_BYTES 64

/* Embedded by fronts; their memory, to be kept until one of the last three ops was called. */
struct call {
	const struct call_ops *ops;
	struct client *client;
	struct upstream_request request; /* to the server that it was sent to */
	struct list link;                /* of the client's calls */
	struct list watchers;
	struct waiter waiter;
	enum call_state state;
	const struct method *method;
	struct slice id;      /* the client's, as it was written */
	struct slice token;   /* its progress token likewise, or empty */
	double progress;      /* the last that was forwarded */
	struct rights rights; /* of who has sent it */
	/* What its server asked for in vain: bits of enum asking_need. MOD-CAP-01 */
	unsigned int missing;
	struct digest *digest;    /* of a modern request during which its server may ask; or NULL */
	struct task_id *task;     /* that a modern request is about; or NULL */
	uint64_t preferred_child; /* the one that is best asked, or was asked by another call in its
				     place, by its number; 0: any */
	int http_status; /* of a response that is an error, for a modern client; 0: 200. FRONT-ERA-11 */
	size_t batch;       /* so many messages came together; 1: it came alone */
	unsigned int asked; /* requests of the server that this call's client has not answered */
	struct in_flight *in_flight;        /* what it counts for; NULL: nothing */
	uint64_t began_at_ms;               /* that it was let in; of calls of our own 0 */
	struct call_series *series;         /* what it is counted in; NULL: it is one of our own */
	char trace_id[TRACE_ID_DIGITS + 1]; /* for the log: that its client has named, or "-" */
	uint64_t sent_at_ms;
	uint64_t timeout_ms; /* without sign of life */
	struct timer silence;
	struct timer absolute;
	struct msg *body;              /* while it waits; longer if it may be needed again */
	struct audit_call *audit_call; /* what its record will say; NULL: there is none */
	struct span *span;             /* what its trace will have of it; NULL: nothing */
	enum rule_key refused_by;      /* the rule that it is answered for; RULE_NONE: none */
	const char *refused_as;        /* the reason of its record then */
	bool is_error;                 /* what it is answered with */
	bool is_tool_error;            /* the same: a result that says isError */
	bool was_heard_of;             /* since it was sent */
	bool is_repeated;              /* a process was lost over it, and another one was asked */
	uint64_t page;                 /* of a list, that it asks for: listing_kind_page */
	char *copied;                  /* id and token, if they are longer than the next */
	char inlined[CALL_INLINE_BYTES];
};

static inline struct call *call_of_waiter(struct waiter *waiter)
{
	return container_of(waiter, struct call, waiter);
}
/* Prepares a call with the identifiers of `env`, which are copied. */
void call_init(struct call *call, const struct call_ops *ops, const struct envelope *env);

/* Computes call->digest of its request. */
void call_keep_digest(struct call *call, const struct envelope *env);
/* Puts it among the client's calls: it waits. */
void call_link(struct call *call, struct client *client);
/* After `timeout_ms`, unless 0, its wait queue is told. */
void call_wait(struct call *call, uint64_t timeout_ms);
/* Whoever owns its wait queue takes it out: it waits for no time any more. */
void call_stop_wait(struct call *call);
/* For queues whose calls fail with REASON_TIMEOUT then; of struct wait_queue_ops. */
void call_on_wait_timeout(struct wait_queue *queue, struct waiter *waiter);
/* It has been sent, under this id: deadlines run. */
void call_sent(struct call *call, struct upstream *upstream, uint64_t id);
/* Whether a server has been sent it. */
bool call_was_sent(const struct call *call);
/* The server has sent something about it. */
void call_note_heard(struct call *call);
/* A sign of life: the silence begins anew, unless its client is being asked something. CXL-08. */
void call_renew(struct call *call);
/* Its client is asked something, or has answered: its silence does not count meanwhile. */
void call_note_asked(struct call *call);
void call_note_answered(struct call *call);
/* Its process is lost, but another one may be asked: as if it had never been sent. */
void call_recall(struct call *call);

void call_watch(struct call *call, struct call_watcher *watcher);
/* Also of a watcher that is off the list already. */
void call_unwatch(struct call_watcher *watcher);
/* Tells the watchers of a response. False: one of them has answered the call. */
bool call_tell_response(struct call *call, const struct envelope *env);
/*
 * Its client's connection has gone: answers to what the client is asked are not waited for much longer.
 * Also on a call that was not begun or has ended.
 */
void call_note_unreachable(struct call *call);

/* Tells the server that nobody wants the answer any more, if it was sent; `why` for the server's log. CXL-05. */
void call_give_up(struct call *call, const char *why);
/* Ends a call that could not even be linked: its front is told. */
void call_refuse(struct call *call, struct loop *loop, enum reason reason);
/* The three endings. Each unlinks the call, releases what it holds and tells the front. A front takes up to 12 parts. */
void call_respond(struct call *call, const struct slice *parts, size_t count);
void call_fail(struct call *call, enum reason reason);
void call_cancel(struct call *call);

#endif
