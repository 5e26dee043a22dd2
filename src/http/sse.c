/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting only; whoever owns the stream decides what is sent, and when. */
#include "http/sse.h"

const struct slice sse_fields = SLICE("Cache-Control: no-cache, no-transform\r\n"
				      "X-Accel-Buffering: no\r\n");

void sse_append_message(struct buf *out, struct slice id, struct slice data)
{
	buf_append_str(out, "event: message\n");
	if (id.n > 0) {
		buf_append_str(out, "id: ");
		buf_append_slice(out, id);
		buf_append_char(out, '\n');
	}
	buf_append_str(out, "data: ");
	buf_append_slice(out, data);
	buf_append_str(out, "\n\n");
}

void sse_append_priming(struct buf *out, struct slice id, uint64_t retry_ms)
{
	CHECK(id.n > 0);
	buf_printf(out, "id: %.*s\nretry: %llu\ndata: \n\n", SLICE_ARG(id),
		   (unsigned long long)retry_ms);
}

void sse_append_endpoint(struct buf *out, struct slice uri, struct slice id, uint64_t retry_ms)
{
	buf_append_str(out, "event: endpoint\n");
	if (id.n > 0)
		buf_printf(out, "id: %.*s\nretry: %llu\n", SLICE_ARG(id),
			   (unsigned long long)retry_ms);
	buf_printf(out, "data: %.*s\n\n", SLICE_ARG(uri));
}

void sse_append_comment(struct buf *out)
{
	buf_append_str(out, ": keep-alive\n\n");
}
