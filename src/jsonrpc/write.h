/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that the gateway itself authors. Each appends one compact JSON text, no line end. */
#ifndef MCPGATED_JSONRPC_WRITE_H
#define MCPGATED_JSONRPC_WRITE_H

#include "base/buf.h"
#include "base/slice.h"

/* A JSON string with its quotes. Invalid UTF-8 becomes U+FFFD; controls and U+2028/2029 escapes. */
void write_string(struct buf *out, struct slice text);

/*
 * An error response. `id` is the request's id as it was written; empty: the member is left out.
 * `data` is JSON text, or empty for none. requirements.md §0 ("omit id").
 */
void write_error(struct buf *out, struct slice id, int code, struct slice message,
		 struct slice data);

/* {"jsonrpc":"2.0","id":…,"result":…} with result as JSON text. */
void write_result(struct buf *out, struct slice id, struct slice result);

/* A notification or, with a non-empty id, a request; params as JSON text, or empty for none. */
void write_call(struct buf *out, struct slice id, struct slice method, struct slice params);

#endif
