/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What servers of the modern era are sent, and what they say of themselves. The params of a request say, in _meta, which
 * revision it is in, who asks and what that client can do; a DiscoverResult becomes an InitializeResult. What requests of
 * modern clients must be is endpoint/modern. bridging.md §2.2; BACK-MSG-01.
 */
#ifndef MCPGATED_UPSTREAM_MODERN_H
#define MCPGATED_UPSTREAM_MODERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

struct upstream_setup;

#define MODERN_META "io.modelcontextprotocol/"

/* What becomes of the params of a request. Empty slices: nothing. */
struct modern_request {
	bool is_modern; /* its client: of its _meta all but revision, level and token stays */
	struct slice capabilities;    /* of its client: JSON text; empty: those of the setup */
	struct slice token;           /* what its progress token becomes; empty: it has none */
	int level;                    /* of the log messages that its client wants, or -1 */
	struct slice cursor;          /* what its cursor becomes: JSON text */
	struct slice task_id;         /* what its taskId becomes: JSON text */
	struct slice input_responses; /* to what the server wants to know: JSON text */
	struct slice request_state;   /* that came with its question: JSON text */
};

/* Whether this member of _meta means something in the modern era. */
bool modern_is_reserved(struct slice name);
/*
 * Appends the params of a request. Members of `params` (JSON text of an object, or empty) stay as they are, but for those
 * that `request` is about. BACK-MSG-04
 */
void modern_append_params(struct buf *out, const struct upstream_setup *setup, struct slice params,
			  const struct modern_request *request);
/*
 * Appends the InitializeResult that says what this DiscoverResult does, of the server with this name; the capability
 * `tasks`, which is not one of this era, is left out. -1: it is no such result, or names no revision of ours.
 */
int modern_read_discovery(struct slice result, const char *name, struct buf *out) must_check;
/* Whether an error (JSON text) says that the server does not speak the revision it was asked in, but the modern one that we
   do. BACK-ERA-02, -05 */
bool modern_is_named(struct slice error);

#endif
