/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace that the head of a request belongs to (W3C Trace Context): a server on stdio has no headers, so it is told in the
 * _meta of the request, where MCP has a place for it. What a client has written there itself stays as it is.
 */
#ifndef MCPGATED_ENDPOINT_TRACE_H
#define MCPGATED_ENDPOINT_TRACE_H

#include <stdbool.h>

#include "base/buf.h"
#include "http/parse.h"
#include "jsonrpc/scan.h"

/*
 * The members of _meta that the head stands for, as JSON text without braces: traceparent, and tracestate if that is valid,
 * too. NULL: there is no valid traceparent. The caller's.
 */
char *trace_of_head(const struct http_request *http);
/*
 * Appends the message with these members in its _meta. False, and nothing is appended: it is no request, or initialize, or
 * names a trace itself, or its params have no place for one.
 */
bool trace_add(struct buf *out, const struct envelope *env, const char *members);

#endif
