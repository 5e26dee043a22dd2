/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of one call, as two spans of OpenTelemetry: that of the gateway (SERVER), from its admission to its end, and
 * within it that of the time at the server's process (CLIENT), whose id the server gets as its parent. A span belongs to the
 * trace that its client has named, and is recorded if that is sampled; without one a trace begins here, if exporter_samples
 * says so. OTLP 1, W3C Trace Context
 */
#ifndef MCPGATED_TRACE_SPAN_H
#define MCPGATED_TRACE_SPAN_H

#include <stdbool.h>

#include "base/slice.h"
#include "mcp/trace_context.h"

/* Of names and values; longer ones are cut. */
#define SPAN_TEXT_BYTES_MAX 256

struct exporter;
struct span;

/* Which of the two spans something is said of. */
enum span_part { SPAN_GATEWAY, SPAN_PROCESS, SPAN_BOTH };

/*
 * Begins the first of them now. The exporter is borrowed, and outlives it.
 *
 * parent   the client's span, or NULL: it has named none
 * state    its tracestate, or empty
 *
 * Returns NULL if it is not to be recorded; else end it with span_end.
 */
struct span *span_new(struct exporter *exporter, const struct trace_parent *parent,
		      struct slice state);
/* `METHOD TARGET`, without a target METHOD. */
void span_set_name(struct span *span, struct slice method, struct slice target);
/* An attribute. key: a literal. The value is any text; without one, nothing is said. */
void span_say(struct span *span, enum span_part part, const char *key, struct slice value);

/* Of the trace, TRACE_ID_DIGITS. */
struct slice span_trace_id(const struct span *span);
/* The traceparent that the server is to get. */
void span_format_parent(const struct span *span, char text_r[TRACE_PARENT_DIGITS + 1]);
/* It has been sent to a process: the second begins, if it has not before. */
void span_note_sent(struct span *span);
/*
 * Somebody else sends what this is about, and may do so after its end: the second span is his. It has whatever was said of
 * both, or of the second, so far. The caller's.
 */
struct span *span_hand_on(struct span *span);

/*
 * Both end now, the second only if it has begun; what is still the caller's is exported. error: its type, which makes it a
 * failed one; or empty. Sets the caller's pointer to NULL, and accepts NULL.
 */
void span_end(struct span **span, struct slice error);

#endif
