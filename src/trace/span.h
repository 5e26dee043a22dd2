/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of one call as two OpenTelemetry spans: that of the gateway (SERVER), from
 * admission to the end, and within it that of the time at the server's process (CLIENT), whose
 * id is sent to the server as the parent. A span belongs to the trace that its client named, and
 * is recorded if that is sampled; if the client named none, a trace begins here if
 * exporter_samples says so. OTLP 1, W3C Trace Context
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "mcp/trace_context.h"

/* Limit for names and values; longer ones are truncated. */
#define SPAN_TEXT_BYTES_MAX 256

struct envelope;
struct exporter;
struct span;

/* Which of the two spans an attribute belongs to. */
enum span_part { SPAN_GATEWAY, SPAN_PROCESS, SPAN_BOTH };

/*
 * Begins the first span now. The exporter is borrowed, and must outlive it.
 *
 *	parent   the client's span, or NULL: it named none
 *	state    its tracestate, or empty
 *
 * Returns NULL if nothing is to be recorded; otherwise end it with span_end.
 */
struct span *span_new(struct exporter *exporter, const struct trace_parent *parent,
		      struct slice state);
/* Sets `METHOD TARGET`, or METHOD if there is no target. */
void span_set_name(struct span *span, struct slice method, struct slice target);
/* Adds an attribute. key: a literal. The value may be any text; if empty, nothing is added. */
void span_say(struct span *span, enum span_part part, const char *key, struct slice value);

/* The id of the trace, TRACE_ID_DIGITS. */
struct slice span_trace_id(const struct span *span);
/* The traceparent to send to the server. */
void span_format_parent(const struct span *span, char text_r[TRACE_PARENT_DIGITS + 1]);
/* The call was sent to a process: begins the second span, unless it has begun. */
void span_note_sent(struct span *span);
/*
 * Somebody else sends the call, possibly after the end of this record: passes the second span on to
 * them. It has the attributes added so far to both spans or to the second. The caller owns the
 * result.
 */
struct span *span_hand_on(struct span *span);

/*
 * Ends both spans, the second only if it has begun, and exports those that are still the caller's.
 * error: the error type, which marks the span as failed; or empty. Sets the caller's pointer to
 * NULL; accepts NULL.
 */
void span_end(struct span **span, struct slice error);

/*
 * ---- trace message ----
 *
 * The trace that a request belongs to (W3C Trace Context), in its _meta: a server on stdio has
 * no headers, and MCP provides for it there. MCP 2026-07-28
 */

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
