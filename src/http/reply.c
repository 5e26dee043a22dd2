/* SPDX-License-Identifier: Apache-2.0 */
/* Status lines and the few fields that every answer has. */
#include "http/reply.h"

#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "http/conn.h"

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

/* "Not Found" for 404; "Unknown" for a status that we never send. */
static const char *reply_status_text(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		if (statuses[i].status == status)
			return statuses[i].text;
	}
	return "Unknown";
}

/* How nearly every answer begins, up to its length. */
#define USUAL_TYPE "application/json"
#define USUAL_STATUS "HTTP/1.1 200 OK\r\n"
#define DATE_BYTES (sizeof("Date: Mon, 01 Jan 2024 00:00:00 GMT\r\n") - 1)

/* Made once a second; the Date field stands in it behind the status line. */
static struct slice reply_usual(void)
{
	static char text[160];
	static size_t length;
	static time_t made_for;
	time_t now = (time_t)(clock_wall_now_ms() / 1000);
	struct tm utc;

	if (now != made_for) {
		gmtime_r(&now, &utc);
		length = strftime(text, sizeof(text),
				  USUAL_STATUS "Date: %a, %d %b %Y %H:%M:%S GMT\r\n"
					       "Content-Type: " USUAL_TYPE "\r\nContent-Length: ",
				  &utc);
		CHECK(length > sizeof(USUAL_STATUS) + DATE_BYTES);
		made_for = now;
	}
	return slice_of(text, length);
}

static struct slice reply_date(void)
{
	return slice_of(reply_usual().p + sizeof(USUAL_STATUS) - 1, DATE_BYTES);
}

static bool is_usual(const struct http_reply *reply)
{
	return reply->status == 200 && reply->content_type != NULL &&
	       strcmp(reply->content_type, USUAL_TYPE) == 0;
}

/* All before the fields of its own. */
static void append_begin(struct buf *out, const struct http_reply *reply)
{
	buf_append_str(out, "HTTP/1.1 ");
	buf_append_u64(out, (uint64_t)reply->status);
	buf_append_char(out, ' ');
	buf_append_str(out, reply_status_text(reply->status));
	buf_append_str(out, "\r\n");
	buf_append_slice(out, reply_date());
	if (reply->content_type != NULL) {
		buf_append_str(out, "Content-Type: ");
		buf_append_str(out, reply->content_type);
		buf_append_str(out, "\r\n");
	}
}

void reply_append_head(struct buf *out, const struct http_reply *reply, enum reply_end end,
		       uint64_t length, bool is_last)
{
	CHECK(reply->status >= 100 && reply->status <= 599);
	if (end == REPLY_END_LENGTH && is_usual(reply)) {
		buf_append_slice(out, reply_usual());
	} else {
		append_begin(out, reply);
		if (end == REPLY_END_LENGTH)
			buf_append_str(out, "Content-Length: ");
	}
	if (end == REPLY_END_LENGTH) {
		buf_append_u64(out, length);
		buf_append_str(out, "\r\n");
	} else if (end == REPLY_END_CHUNK) {
		buf_append_str(out, "Transfer-Encoding: chunked\r\n");
	}
	if (is_last)
		buf_append_str(out, "Connection: close\r\n");
	for (size_t i = 0; i < reply->field_count; i++)
		buf_append_slice(out, reply->fields[i]);
	buf_append_str(out, "\r\n");
}

/* ---- events ---- */

/* Formatting only; whoever owns the stream decides what is sent, and when. */

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

/* Where a client goes on, and when. */
static void append_place(struct buf *out, struct slice id, uint64_t retry_ms)
{
	buf_append_str(out, "id: ");
	buf_append_slice(out, id);
	buf_append_str(out, "\nretry: ");
	buf_append_u64(out, retry_ms);
	buf_append_char(out, '\n');
}

void sse_append_priming(struct buf *out, struct slice id, uint64_t retry_ms)
{
	CHECK(id.n > 0);
	append_place(out, id, retry_ms);
	buf_append_str(out, "data: \n\n");
}

void sse_append_endpoint(struct buf *out, struct slice uri, struct slice id, uint64_t retry_ms)
{
	buf_append_str(out, "event: endpoint\n");
	if (id.n > 0)
		append_place(out, id, retry_ms);
	buf_append_str(out, "data: ");
	buf_append_slice(out, uri);
	buf_append_str(out, "\n\n");
}

void sse_append_comment(struct buf *out)
{
	buf_append_str(out, ": keep-alive\n\n");
}
