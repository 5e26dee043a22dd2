/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that waits for one of its server's lists, which the gateway requests with a call of its
 * own, through the client's list cache and process. Then the tools of a session that has its
 * server to itself (own_tools), and the check of pins before a call (pin_check).
 */
#ifndef MCPGATED_ROUTER_LIST_WAIT_H
#define MCPGATED_ROUTER_LIST_WAIT_H

#include <stdbool.h>

#include "base/buf.h"
#include "jsonrpc/scan.h"
#include "router/call.h"
#include "router/list_cache.h"

struct list_wait;

/*
 * The wait is over; list_wait->is_listed says whether the whole list has arrived. The call is in no
 * queue any more. `env` is its request, valid until this returns; NULL: the request cannot be read,
 * and the call must fail.
 */
typedef void list_wait_done_fn(struct list_wait *wait, const struct envelope *env);

/* Embedded by whoever needs the list; must live until list_wait_end. */
struct list_wait {
	list_wait_done_fn *on_done;
	struct call *call;
	struct wait_queue waiting; /* holds the call meanwhile */
	struct slice method;       /* of the list */
	struct call listing;
	bool forwards;  /* a list that is not cached is requested from the server, page by page */
	bool is_asking; /* the answer to a page request is pending */
	bool is_listed;
	bool has_timed_out;
	/* pool->list_changes before the request */
	uint64_t changes;
	struct list link;      /* of the client's waits that request, or of `followers` */
	struct list followers; /* of a wait that requests: others that want the same list */
	unsigned int pages;
	struct buf cursor; /* the server's for the next page, JSON text */
	struct task step;
};

/*
 * Begins to wait. `call` is linked and waits for nothing yet; `env` is its request; `method` is
 * borrowed. Fails with REASON_OVER_LIMIT if the client's waiting calls already keep too much. The
 * wait can be started again once it is over.
 */
void list_wait_begin(struct list_wait *wait, list_wait_done_fn *on_done, struct call *call,
		     const struct envelope *env);
/* The call has ended, or continues. */
void list_wait_end(struct list_wait *wait);

/* ---- own tools ---- */

/*
 * The tool list of a server process that serves one session, for the gateway's own use; the client
 * requests lists from the server as it likes. Fetched on demand, by a call of the session, and kept
 * until the server reports a change or the process is replaced; for 5 s if the server reports no
 * changes. Shared servers have list_cache.h.
 */

struct call;
struct client;
struct own_tools;

/* As list_cache_find_tool with is_strict. */
enum listed_tool own_tools_find(const struct client *client, struct json name,
				struct listed_entry *entry_r);
/* The session has ended, and its calls before it. Accepts a pointer to NULL; sets it to NULL. */
void own_tools_free(struct own_tools **tools);

/* ---- own call ---- */

/*
 * For struct call_ops of calls that the gateway makes itself: everything but their answer is
 * dropped.
 */

bool own_call_drop_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg);
bool own_call_has_no_reader(const struct call *call);

/* ---- pin check ---- */

/*
 * With `pin: enforce`, a call of a tool or prompt is forwarded only once the list of the process
 * that gets it is known, as of its start and of its last reported change. Otherwise the gateway
 * requests the list first, for a bounded time; without it the call is refused. SEC-66
 */

/* Called when the call may continue, with this request. */
typedef void pin_check_passed_fn(struct call *call, const struct envelope *env);

/*
 * Checks a linked call that waits for nothing: it continues or ends, now or when the list has
 * arrived.
 */
void pin_check_begin(pin_check_passed_fn *on_passed, struct call *call, const struct envelope *env);

#endif
