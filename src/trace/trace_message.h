/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace that a request belongs to (W3C Trace Context), in its _meta: a server on stdio has no
 * headers, and MCP provides for it there. MCP 2026-07-28
 */
#ifndef MCPGATED_TRACE_TRACE_MESSAGE_H
#define MCPGATED_TRACE_TRACE_MESSAGE_H

#include <stdbool.h>

#include "base/buf.h"
#include "jsonrpc/scan.h"

/*
 * Appends the message with these members in its _meta. Returns false, and appends nothing, if it is
 * not a request, is initialize, names a trace itself, or its params have no place for one.
 */
bool trace_message_add(struct buf *out, const struct envelope *env, const char *members);
/*
 * Appends the message with this traceparent, replacing any that it names. Returns false as above,
 * except that it may name a trace.
 */
bool trace_message_set_parent(struct buf *out, const struct envelope *env, const char *parent);

#endif
