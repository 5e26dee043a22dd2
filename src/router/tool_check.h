/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before a tools/call of the modern era goes on, its front holds it against the schema of its tool: what that says is to be
 * mirrored in the head must be there. The schema is that of the list that is kept; if none is, the list is fetched
 * first. Where it cannot be had, or does not have the tool, the call goes on unchecked. MOD-HDR-04, -06, -07.
 */
#ifndef MCPGATED_ROUTER_TOOL_CHECK_H
#define MCPGATED_ROUTER_TOOL_CHECK_H

#include <stdbool.h>

#include "io/loop.h"
#include "jsonrpc/scan.h"
#include "router/call.h"
#include "router/wait_queue.h"

struct tool_check;

struct tool_check_ops {
	/* Nothing is wrong with its call, as far as is known: that goes on, with this request. */
	void (*on_passed)(struct tool_check *check, const struct envelope *env);
};

struct tool_check {
	const struct tool_check_ops *ops;
	struct call *call;         /* the tools/call; NULL: there is none */
	struct wait_queue waiting; /* that call, while the list is fetched */
	struct call listing;       /* tools/list, by a call of our own */
	bool is_listing;           /* its answer is awaited */
	struct task step;
};

/*
 * Checks the linked tools/call of a client that is a member of a pool that knows its servers, and whose front wants that. It goes
 * on, or ends, now or later.
 */
void tool_check_begin(struct tool_check *check, const struct tool_check_ops *ops, struct call *call,
		      const struct envelope *env);
/* Its call has ended. Also for one that has not begun, if it is all zeros. */
void tool_check_end(struct tool_check *check);

#endif
