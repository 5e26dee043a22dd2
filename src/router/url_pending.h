/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URL elicitations of a pool's servers that were given to clients (url_elicitation.h) and that no
 * server has reported as complete: a client that retries waits for that for a while. A forgotten
 * elicitation counts as complete, so a client that would wait for it is served at once.
 * UTIL-ELIC-01, bridging.md §2.3.7
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

#define URL_PENDING_MAX 256 /* per pool; beyond that, the oldest are forgotten */

struct url_pending {
	struct list items; /* oldest first */
	size_t count;
	struct list waiters;
};

/* Embedded by whoever waits. */
struct url_waiter {
	/*
	 * Nothing it waits for is pending any more; it is off the list. It must not wait again at
	 * once.
	 */
	void (*on_over)(struct url_waiter *waiter);
	struct list link;
	uint64_t child;      /* the process that wants them */
	struct slice wanted; /* as in url_elicitation.h; owned by the waiter's owner */
};

void url_pending_init(struct url_pending *pending);
/* A client was given what this process wants. */
void url_pending_add(struct url_pending *pending, uint64_t child, struct slice wanted);
/*
 * The process reports the elicitation with this id (JSON text) as complete. False: no such one is
 * pending.
 */
bool url_pending_end(struct url_pending *pending, uint64_t child, struct slice id);
/* The process is gone. */
void url_pending_forget(struct url_pending *pending, uint64_t child);

/* Begins to wait; child, wanted and on_over are set. False: there is nothing to wait for. */
bool url_pending_wait(struct url_pending *pending, struct url_waiter *waiter);
/* Also allowed for a waiter that is on no list, if its link was initialized. */
void url_waiter_leave(struct url_waiter *waiter);

/* ---- url elicitation ---- */

/*
 * URLs that a legacy server wants opened before it does what was asked: it answers -32042, and the
 * error names them. Reads such an error, writes the questions for a modern client, and reads that
 * client's answers.
 *
 * What is wanted is kept as JSON text of our own: an array of objects with `id`, `message` and
 * `url`; an accepted one has only its `id`. The client knows the first one as "e1". bridging.md
 * §2.3.7
 */

#define URL_ELICITATIONS_MAX 32     /* in one error */
#define URL_ELICITATION_ID_MAX 1024 /* bytes of an elicitationId */
#define URL_ELICITATIONS_BYTES_MAX \
	(512 * 1024) /* of all that is wanted, which goes into a requestState */

/*
 * Appends what a server's error wants. False, and nothing is appended: it is another error, or not
 * in the form of 2025-11-25 (an elicitation is malformed or not by URL, or there is none), or it
 * exceeds the bounds above.
 */
bool url_elicitation_read(struct slice error, struct buf *wanted);
/* Appends the members of inputRequests for what was not accepted yet. MOD-MRTR-02 */
void url_elicitation_append_requests(struct buf *out, struct slice wanted);

enum url_answers {
	URL_ANSWERS_ACCEPTED, /* everything that was wanted */
	URL_ANSWERS_PARTIAL,  /* some are missing; none is declined */
	URL_ANSWERS_DECLINED, /* at least one is declined or cancelled */
	URL_ANSWERS_MALFORMED,
};
/*
 * Reads the answers in `responses`, the member inputResponses; other keys are ignored. For PARTIAL,
 * appends what is still wanted to `left`. MOD-MRTR-05
 */
enum url_answers url_elicitation_read_answers(struct slice wanted, struct json responses,
					      struct buf *left);
