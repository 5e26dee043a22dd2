/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a call's spans (trace/span): the client, the principal and the outcome, in the
 * terms of OpenTelemetry's conventions for MCP. Not called when nothing is exported. SEC-70
 */
#ifndef MCPGATED_ROUTER_CALL_SPAN_H
#define MCPGATED_ROUTER_CALL_SPAN_H

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "obs/reason.h"
#include "process/call_stats.h"

struct audit_origin;
struct call;
struct client;

/* A request as forwarded to the server. */
struct call_traced {
	struct buf text;
	struct envelope env;
};

/* Begins the spans of a call, which has none yet, if it is to be traced. */
void call_span_begin(struct call *call, const struct client *client, const struct envelope *env,
		     const struct audit_origin *origin);
/*
 * The request to forward in place of `env`, with the span of the server's process as its parent;
 * `env` itself if the call is not traced or the request has no place for it. Valid until
 * call_traced_fini, which must be called in both cases.
 */
const struct envelope *call_span_mark(const struct call *call, const struct envelope *env,
				      struct call_traced *traced);
void call_traced_fini(struct call_traced *traced);
/* The call, which has spans, has ended; parameters as for call_record_end. */
void call_span_end(struct call *call, enum call_status status, enum reason reason,
		   const struct slice *parts, size_t count);

#endif
