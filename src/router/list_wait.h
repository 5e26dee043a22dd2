/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that waits for one of its server's lists, which the gateway asks for by a call of its own: with the client's, its
 * list cache, its process. What comes of that is looked for where lists are kept, or looked at; here it is only waited for.
 */
#ifndef MCPGATED_ROUTER_LIST_WAIT_H
#define MCPGATED_ROUTER_LIST_WAIT_H

#include "base/buf.h"
#include "router/call.h"

struct list_wait;

/*
 * The wait is over; list_wait->is_listed says whether all of the list has come. The call waits for nothing any more; `env` is
 * its request, until the return. NULL: the call is to fail, its request cannot be read.
 */
typedef void list_wait_done_fn(struct list_wait *wait, const struct envelope *env);

/* Embedded by who needs the list, for as long as list_wait_end says. */
struct list_wait {
	list_wait_done_fn *on_done;
	struct call *call;
	struct wait_queue waiting; /* that call, meanwhile */
	struct slice method;       /* of the list */
	struct call listing;
	bool forwards;  /* a list that is not kept is asked of the server, page by page */
	bool is_asking; /* for a page: its answer is awaited */
	bool is_listed;
	bool has_timed_out;
	uint64_t changes;      /* of the pool's lists, before it was asked for */
	struct list link;      /* of those that ask for their client, or of who asks for this one */
	struct list followers; /* of one that asks: they want the same */
	unsigned int pages;
	struct buf cursor; /* JSON text of the server's, of the next page */
	struct task step;
};

/*
 * `call` is linked and waits for nothing yet; `env` is its request; `method` is borrowed. It fails with REASON_OVER_LIMIT if
 * calls of its client that wait keep too much already. When a wait is over, the same may begin again.
 */
void list_wait_begin(struct list_wait *wait, list_wait_done_fn *on_done, struct call *call,
		     const struct envelope *env);
/* Its call has ended, or goes on. */
void list_wait_end(struct list_wait *wait);

#endif
