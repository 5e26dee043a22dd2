/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is sent to servers of the modern era, and what they say about themselves. The params of a
 * request state, in _meta, its revision, the client and the client's capabilities; a DiscoverResult
 * is converted to an InitializeResult. The requirements for requests of modern clients are in
 * endpoint/modern. bridging.md §2.2; BACK-MSG-01.
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

/* Changes to the params of a request. An empty slice means no change. */
struct modern_request {
	bool is_modern; /* from a modern client: _meta stays, except revision, level and token */
	struct slice capabilities;    /* of its client: JSON text; empty: those of the setup */
	struct slice token;           /* the new progress token; empty: none */
	int level;                    /* the level of log messages that its client wants, or -1 */
	struct slice cursor;          /* the new cursor: JSON text */
	struct slice task_id;         /* the new taskId: JSON text */
	struct slice input_responses; /* to the server's questions: JSON text */
	struct slice request_state;   /* that came with the server's questions: JSON text */
};

/* Whether this member of _meta has a meaning in the modern era. */
bool modern_is_reserved(struct slice name);
/*
 * Appends the params of a request. Members of `params` (JSON text of an object, or empty) stay as
 * they are, except those that `request` sets. BACK-MSG-04
 */
void modern_append_params(struct buf *out, const struct upstream_setup *setup, struct slice params,
			  const struct modern_request *request);
/*
 * Appends an InitializeResult equivalent to this DiscoverResult of the server called `name`. The
 * capability `tasks` is left out, as it does not belong to this era. Returns -1 if it is not a
 * DiscoverResult or names no revision we support.
 */
int modern_read_discovery(struct slice result, const char *name, struct buf *out) must_check;
/*
 * Whether an error (JSON text) says that the server does not support the requested revision, but
 * does support the modern one that we speak. BACK-ERA-02, -05
 */
bool modern_is_named(struct slice error);

#endif
