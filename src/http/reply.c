/* SPDX-License-Identifier: Apache-2.0 */
/* Status lines and the few fields that every answer has. */
#include "http/reply.h"

#include <time.h>

#include "base/check.h"
#include "base/clock.h"

static const struct {
	int status;
	const char *text;
} statuses[] = {
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 417, "Expectation Failed" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 503, "Service Unavailable" },
	{ 505, "HTTP Version Not Supported" },
};

const char *reply_status_text(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		if (statuses[i].status == status)
			return statuses[i].text;
	}
	return "Unknown";
}

/* The field line of the current second, made once per second. */
static struct slice reply_date(void)
{
	static char line[48];
	static time_t made_for;
	time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm utc;

	if (now != made_for) {
		gmtime_r(&now, &utc);
		strftime(line, sizeof(line), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
		made_for = now;
	}
	return slice_str(line);
}

void reply_append_head(struct buf *out, const struct reply_head *head)
{
	CHECK(head->status >= 100 && head->status <= 599);
	CHECK(!head->has_length || !head->is_chunked);
	buf_append_str(out, "HTTP/1.1 ");
	buf_append_u64(out, (uint64_t)head->status);
	buf_append_char(out, ' ');
	buf_append_str(out, reply_status_text(head->status));
	buf_append_str(out, "\r\n");
	buf_append_slice(out, reply_date());
	if (head->content_type != NULL) {
		buf_append_str(out, "Content-Type: ");
		buf_append_str(out, head->content_type);
		buf_append_str(out, "\r\n");
	}
	if (head->has_length) {
		buf_append_str(out, "Content-Length: ");
		buf_append_u64(out, head->length);
		buf_append_str(out, "\r\n");
	}
	if (head->is_chunked)
		buf_append_str(out, "Transfer-Encoding: chunked\r\n");
	if (head->is_last)
		buf_append_str(out, "Connection: close\r\n");
	buf_append_slice(out, head->fields);
	buf_append_str(out, "\r\n");
}
