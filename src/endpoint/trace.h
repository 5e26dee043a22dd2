/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace that the head of a request belongs to (W3C Trace Context), as it is told in the _meta of the request
 * (trace/trace_message).
 */
#ifndef MCPGATED_ENDPOINT_TRACE_H
#define MCPGATED_ENDPOINT_TRACE_H

#include "http/parse.h"

/*
 * The members of _meta that the head stands for, as JSON text without braces: traceparent, and tracestate if that is valid,
 * too. NULL: there is no valid traceparent. The caller's.
 */
char *trace_of_head(const struct http_request *http);

#endif
