/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace in a request's header (W3C Trace Context), in the form for _meta (trace/trace_message).
 */
#ifndef MCPGATED_ENDPOINT_TRACE_H
#define MCPGATED_ENDPOINT_TRACE_H

#include "http/parse.h"

/*
 * The members of _meta for the header, as JSON text without braces: traceparent, and tracestate if
 * that is valid too. The caller frees the result. NULL: there is no valid traceparent.
 */
char *trace_of_head(const struct http_request *http);

#endif
