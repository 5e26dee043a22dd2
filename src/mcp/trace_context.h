/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace context, which joins the work of several programs into one trace: the headers traceparent
 * and tracestate, and the members of _meta with the same names. W3C Trace Context; MCP 2026-07-28.
 */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

#define TRACE_ID_DIGITS 32
#define TRACE_SPAN_DIGITS 16
#define TRACE_PARENT_DIGITS 55     /* as we write it */
#define TRACE_PARENT_BYTES_MAX 256 /* for later versions */
#define TRACE_STATE_BYTES_MAX 512

/* The slices point into the parsed text. */
struct trace_parent {
	struct slice trace_id; /* TRACE_ID_DIGITS hexadecimal digits; the next: TRACE_SPAN_DIGITS */
	struct slice span_id;
	bool is_sampled;
};

/* Parses a traceparent. Returns false if it is invalid. Later versions may be longer. §3.2 */
bool trace_parent_read(struct slice text, struct trace_parent *parent_r);
/*
 * Whether it is a valid tracestate: at most 32 members and TRACE_STATE_BYTES_MAX bytes, no
 * duplicate key. §3.3
 */
bool trace_state_is_valid(struct slice text);
