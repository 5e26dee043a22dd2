/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages that the gateway itself creates. Each function appends one compact JSON text without
 * a line end.
 */
#ifndef MCPGATED_JSONRPC_WRITE_H
#define MCPGATED_JSONRPC_WRITE_H

#include "base/buf.h"
#include "base/slice.h"

/*
 * A JSON string with its quotes. Invalid UTF-8 becomes U+FFFD; controls and U+2028/2029 are
 * escaped.
 */
void write_string(struct buf *out, struct slice text);

/*
 * An error response. `id` is the id of the request as written; if empty, the member is omitted.
 * `data` is JSON text, or empty for none. requirements.md §0 ("omit id").
 */
void write_error(struct buf *out, struct slice id, int code, struct slice message,
		 struct slice data);

/* {"jsonrpc":"2.0","id":…,"result":…}; result is JSON text. */
void write_result(struct buf *out, struct slice id, struct slice result);

/* A notification or, with a nonempty id, a request. params is JSON text, or empty for none. */
void write_call(struct buf *out, struct slice id, struct slice method, struct slice params);

#endif
