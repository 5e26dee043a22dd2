/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URL elicitations of a pool's servers that clients were given (url_elicitation.h), and that no server has said to be
 * complete: a client that tries again waits for that, for a while. What was forgotten counts as complete: a client that
 * would wait for it is served at once. UTIL-ELIC-01, bridging.md §2.3.7
 */
#ifndef MCPGATED_ROUTER_URL_PENDING_H
#define MCPGATED_ROUTER_URL_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

#define URL_PENDING_MAX 256 /* of a pool; the oldest are forgotten */

struct url_pending {
	struct list items; /* oldest first */
	size_t count;
	struct list waiters;
};

/* Embedded by who waits. */
struct url_waiter {
	/* Nothing that it waits for is pending any more; it is off the list. It must not wait again at once. */
	void (*on_over)(struct url_waiter *waiter);
	struct list link;
	uint64_t child;      /* the process that wants them */
	struct slice wanted; /* as of url_elicitation.h; its owner's */
};

void url_pending_init(struct url_pending *pending);
/* Nobody waits. */
void url_pending_fini(struct url_pending *pending);
/* A client was given what this process wants. */
void url_pending_add(struct url_pending *pending, uint64_t child, struct slice wanted);
/* The process says that the one with this id, JSON text, is complete. False: none such is pending. */
bool url_pending_end(struct url_pending *pending, uint64_t child, struct slice id);
/* The process is gone. */
void url_pending_forget(struct url_pending *pending, uint64_t child);

/* child, wanted and on_over are set. False: there is nothing to wait for. */
bool url_pending_wait(struct url_pending *pending, struct url_waiter *waiter);
/* Also of a waiter that is on no list, if its link was initialised. */
void url_waiter_leave(struct url_waiter *waiter);

#endif
