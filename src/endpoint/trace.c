/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint/trace.h"

#include "base/mem.h"
#include "jsonrpc/write.h"
#include "mcp/trace_context.h"

static bool has_once(const struct http_request *http, enum http_field field)
{
	return http_has(http, field) && (http->repeated & 1u << field) == 0;
}

char *trace_of_head(const struct http_request *http)
{
	struct slice parent = http->fields[HTTP_TRACEPARENT], state = http->fields[HTTP_TRACESTATE];
	struct buf members = { 0 };
	struct trace_parent read;
	char *text;

	if (!has_once(http, HTTP_TRACEPARENT) || !trace_parent_read(parent, &read))
		return NULL;
	buf_append_str(&members, "\"traceparent\":");
	write_string(&members, parent);
	if (has_once(http, HTTP_TRACESTATE) && trace_state_is_valid(state)) {
		buf_append_str(&members, ",\"tracestate\":");
		write_string(&members, state);
	}
	text = mem_strdup(buf_terminate(&members));
	buf_fini(&members);
	return text;
}
