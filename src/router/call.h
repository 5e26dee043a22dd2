/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client request in flight. It is the seam between fronts, which know how to answer a client,
 * and the server side, which knows how to ask a server; both see only this. bridging.md §0, §1.1.
 *
 *	new -> waiting <-> sent        any -> ended
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/method.h"
#include "mcp/trace_context.h"
#include "obs/reason.h"
#include "policy/rights.h"
#include "policy/rule.h"
#include "process/call_stats.h"
#include "router/wait_queue.h"
#include "session/stream.h"
#include "upstream/upstream.h"

struct audit_call;
struct audit_origin;
struct call_refusal;
struct call_watcher;
struct caller;
struct denial_marks;
struct in_flight;
struct kept_digest;
struct principal;
struct span;
struct task_id;
struct tool_verdict;

/* A front's callbacks. Exactly one of the last three ends each call; only they may end the session */
struct call_ops {
	/*
	 * A message from the server for this call: progress, a log line, a request to the client.
	 * `key` as in stream_push. False: this client cannot receive it (any more).
	 */
	bool (*on_message)(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg);
	/* Whether somebody is currently reading what on_message delivers. NULL: always */
	bool (*is_reachable)(const struct call *call);
	/*
	 * Checks the request, a tools/call, against the tool's inputSchema (JSON text). NULL: this
	 * front needs no check. MOD-HDR-04
	 */
	struct tool_verdict (*check_tool)(struct call *call, const struct envelope *env,
					  struct slice input_schema);
	/* Whether it would be admitted now, with which rights. NULL: one of our own calls. */
	bool (*judge)(struct call *call, const struct envelope *env,
		      struct call_refusal *refusal_r);
	/*
	 * Who has sent it, as fronts know that (endpoint/caller.h): borrowed, perhaps in `room`;
	 * NULL: the client is away. Without this operation it is one of our own calls.
	 */
	const struct caller *(*who)(struct call *call, struct caller *room);
	/* What a deny list entry can name of its token; NULL: nothing outlives the request. */
	void (*show)(const struct call *call, struct denial_marks *marks_r);
	/* The response: the parts together, with the client's id; borrowed until this returns. */
	void (*on_response)(struct call *call, const struct slice *parts, size_t count);
	/* There will be no response; the client gets the error for this reason. */
	void (*on_failed)(struct call *call, enum reason reason);
	/* The client has cancelled the call and expects nothing more. CXL-02. */
	void (*on_cancelled)(struct call *call);
};

/* Callbacks for others that track a call. */
struct call_watcher_ops {
	/*
	 * The server's response, before the client gets it; NULL: not needed. Returns false if the
	 * watcher has answered the call in another way.
	 */
	bool (*on_response)(struct call_watcher *watcher, struct call *call,
			    const struct envelope *env);
	/* The client's connection has closed; NULL: not needed. */
	void (*on_unreachable)(struct call_watcher *watcher);
	/* The call ends, in whatever way; the watcher is already off the call's list. */
	void (*on_end)(struct call_watcher *watcher, struct call *call);
};

/* Embedded by whoever watches one call. */
struct call_watcher {
	const struct call_watcher_ops *ops;
	struct list link; /* of call->watchers */
};

enum call_state {
	CALL_NEW,
	CALL_WAITING, /* in its wait queue, if it has one */
	CALL_SENT,
	CALL_ENDED,
};

#define CALL_INLINE_BYTES 64

/* How the wait for a list has ended. LIST_OUTDATED: the server's rules have changed meanwhile. */
enum list_outcome { LIST_CAME, LIST_FAILED, LIST_LATE, LIST_OUTDATED };
/* Called when a call has passed its checks, with its request. */
typedef void call_checked_fn(struct call *call, const struct envelope *env);

/* Embedded by fronts, which keep the memory until one of the last three callbacks was called. */
struct call {
	const struct call_ops *ops;
	struct client *client;
	struct upstream_request request; /* to the server it was sent to */
	struct list link;                /* of the client's calls */
	struct list watchers;
	struct waiter waiter;
	enum call_state state;
	const struct method *method;
	struct slice id;        /* the client's, as written */
	struct slice token;     /* the client's progress token, as written; or empty */
	double progress;        /* the last value forwarded */
	struct rights rights;   /* of the sender */
	uint64_t configuration; /* the router's, when it was judged */
	/* What the server asked for and the client lacks: bits of enum asking_need. MOD-CAP-01 */
	unsigned int missing;
	struct kept_digest
		*digest;      /* of a modern request during which the server may ask; or NULL */
	struct task_id *task; /* the task a modern request is about; or NULL */
	/* Number of the child to ask, or that was asked on its behalf; 0: any. */
	uint64_t preferred_child;
	int http_status;    /* for a modern client's error response; 0: 200. FRONT-ERA-11 */
	size_t batch;       /* messages that arrived together; 1: it came alone */
	unsigned int asked; /* server requests that the client has not answered yet */
	struct in_flight *in_flight;        /* the limit it counts towards; NULL: none */
	uint64_t began_at_ms;               /* when it was admitted; 0: one of our own calls */
	struct call_series *series;         /* where it is counted; NULL: one of our own calls */
	char trace_id[TRACE_ID_DIGITS + 1]; /* for the log: the client's trace id, or "-" */
	uint64_t sent_at_ms;
	uint64_t timeout_ms; /* without a sign of life */
	struct timer silence;
	struct timer absolute;
	struct msg *body;              /* while it waits; longer if it may be needed again */
	struct audit_call *audit_call; /* for its audit record; NULL: none */
	struct span *span;             /* for its trace; NULL: none */
	enum rule_key refused_by;      /* the rule that refused it; RULE_NONE: none */
	const char *refused_as;        /* the reason in the audit record then */
	call_checked_fn *on_checked;   /* what follows its check (call_check.c) */
	bool is_error;                 /* the answer is an error */
	bool is_tool_error;            /* the answer is a result with isError */
	bool was_heard_of;             /* the server has mentioned it since it was sent */
	bool is_repeated;              /* its process was lost, and another one was asked */
	bool may_pause; /* whoever sends its response can do with it that anything happens meanwhile (io/aside) */
	bool needs_list;             /* it waits for a list to go on, not as its answer (lists.c) */
	unsigned char lists_awaited; /* for its check */
	uint64_t page;               /* of the list that it asks for: listing_kind_page */
	char *copied;                /* id and token, if too long for `inlined` */
	char inlined[CALL_INLINE_BYTES];
};

static inline struct call *call_of_waiter(struct waiter *waiter)
{
	return container_of(waiter, struct call, waiter);
}
/* Initializes a call. Copies the identifiers from `env`. */
void call_init(struct call *call, const struct call_ops *ops, const struct envelope *env);

/* Sets call->digest to the digest of the request, which is computed when it is needed. */
void call_keep_digest(struct call *call, const struct envelope *env);
/* Adds the call to the client's calls, in state waiting. */
void call_link(struct call *call, struct client *client);
bool call_is_stale(const struct call *call); /* it was judged under another configuration */
/* After `timeout_ms` (0: never) its wait queue is notified. */
void call_wait(struct call *call, uint64_t timeout_ms);
/* For the owner of its wait queue, on removal: stops the wait timeout. */
void call_stop_wait(struct call *call);
/* A wait_queue_ops.on_timeout for queues whose calls fail with REASON_TIMEOUT. */
void call_on_wait_timeout(struct wait_queue *queue, struct waiter *waiter);
/* The call has been sent under this id: starts its deadlines. */
void call_sent(struct call *call, struct upstream *upstream, uint64_t id);
bool call_was_sent(const struct call *call);
/* The server has sent something about the call. */
void call_note_heard(struct call *call);
/* A sign of life: restarts the silence timer, unless the client is being asked something. CXL-08 */
void call_renew(struct call *call);
/* The client is asked something, or has answered: the silence timer is suspended in between. */
void call_note_asked(struct call *call);
void call_note_answered(struct call *call);
/* Its process is lost but another may be asked: resets the call as if it had never been sent. */
void call_recall(struct call *call);

void call_watch(struct call *call, struct call_watcher *watcher);
/* Also allowed for a watcher that is already off the list. */
void call_unwatch(struct call_watcher *watcher);
/* Passes a response to the watchers. False: one of them has answered the call. */
bool call_tell_response(struct call *call, const struct envelope *env);
/*
 * The client's connection has closed: answers to server requests are not awaited much longer. Also
 * allowed for a call that has not begun or has ended.
 */
void call_note_unreachable(struct call *call);

/* If it was sent, tells the server that no answer is wanted; `why` is for its log. CXL-05 */
void call_give_up(struct call *call, const char *why);
/* Ends a call that could not even be linked, and tells its front. */
void call_refuse(struct call *call, struct loop *loop, enum reason reason);
/* The three endings: unlink the call, release what it holds, tell the front. At most 12 parts. */
void call_respond(struct call *call, const struct slice *parts, size_t count);
void call_fail(struct call *call, enum reason reason);
void call_cancel(struct call *call);

/* ---- call record ---- */

/*
 * The bookkeeping of client calls: counts how they end (process/call_stats) and, with an audit
 * configured, records the end, and the beginning before forwarding if that is required. SEC-63.
 */

/*
 * Starts counting and recording a call, before anything is done for it. principal: of a session
 * that has not begun yet. False: the call must not be forwarded; end it with REASON_UNRECORDED.
 */
bool call_record(struct call *call, const struct client *client, const struct principal *principal,
		 const struct envelope *env, const struct audit_origin *origin) must_check;
/* Records a notification that its server may take for a call. False: it must not be forwarded. */
bool call_record_notification(const struct client *client, const struct envelope *env,
			      const struct audit_origin *origin) must_check;

/* ---- call span ---- */

/*
 * The contents of a call's spans (trace/span): the client, the principal and the outcome, in the
 * terms of OpenTelemetry's conventions for MCP. Not called when nothing is exported. SEC-70
 */

/* A request as forwarded to the server. */
struct call_traced {
	struct buf text;
	struct envelope env;
};

/*
 * The request to forward in place of `env`, with the span of the server's process as its parent;
 * `env` itself if the call is not traced or the request has no place for it. Valid until
 * call_traced_fini, which must be called in both cases.
 */
const struct envelope *call_span_mark(const struct call *call, const struct envelope *env,
				      struct call_traced *traced);
void call_traced_fini(struct call_traced *traced);
