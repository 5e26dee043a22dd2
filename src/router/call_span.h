/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spans of a call say (trace/span): by what client it was made, of whom, and what became of it, in the words of
 * OpenTelemetry's conventions for MCP. Where nothing is exported, nothing of this is called. SEC-70
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

/* A request as the server gets it. */
struct call_traced {
	struct buf text;
	struct envelope env;
};

/* Begins the spans of a call that is to be recorded, and has none else. */
void call_span_begin(struct call *call, const struct client *client, const struct envelope *env,
		     const struct audit_origin *origin);
/*
 * The request that is to be handed on in place of `env`: with the span of the server's process for its parent. `env` itself
 * where nothing is recorded, or the request has no place for that. Valid until call_traced_fini, which is to be called in
 * both cases.
 */
const struct envelope *call_span_mark(const struct call *call, const struct envelope *env,
				      struct call_traced *traced);
void call_traced_fini(struct call_traced *traced);
/* The call has ended, as of call_record_end; it has spans. */
void call_span_end(struct call *call, enum call_status status, enum reason reason,
		   const struct slice *parts, size_t count);

#endif
