/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What joins the work of several programs to one trace, as the headers traceparent and tracestate, and the members of _meta
 * with the same names, have it. W3C Trace Context; MCP 2026-07-28.
 */
#ifndef MCPGATED_MCP_TRACE_CONTEXT_H
#define MCPGATED_MCP_TRACE_CONTEXT_H

#include <stdbool.h>

#include "base/slice.h"

#define TRACE_ID_DIGITS 32
#define TRACE_PARENT_BYTES_MAX 256 /* of a version to come */
#define TRACE_STATE_BYTES_MAX 512

/* Whether it is a valid traceparent; *trace_id_r is the trace within it. Versions to come may be longer. §3.2 */
bool trace_parent_read(struct slice text, struct slice *trace_id_r);
/* Whether it is a valid tracestate, of 32 members and TRACE_STATE_BYTES_MAX at most, with no key twice. §3.3 */
bool trace_state_is_valid(struct slice text);

#endif
