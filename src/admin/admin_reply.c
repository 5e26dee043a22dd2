/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing that the operator is told may be kept on the way to him. It decides nothing: admin.c and deny.c do. */
#include "admin/admin_reply.h"

#include "admin/emit.h"

static const char json_type[] = "application/json";

static void reply(struct http_conn *conn, int status, const char *type, const struct buf *body)
{
	struct slice part = buf_slice(body);

	http_reply(conn, &(struct http_reply){ .status = status,
					       .content_type = type,
					       .fields = SLICE("Cache-Control: no-store\r\n"),
					       .parts = &part,
					       .part_count = 1 });
}

void admin_reply_text(struct http_conn *conn, const char *type, const struct buf *body)
{
	reply(conn, 200, type, body);
}

void admin_reply_json(struct http_conn *conn, struct buf *body)
{
	buf_append_char(body, '\n');
	reply(conn, 200, json_type, body);
}

void admin_reply_number(struct http_conn *conn, const char *member, uint64_t value)
{
	struct buf body = { 0 };

	emit_open(&body, NULL, '{');
	emit_number(&body, member, value);
	emit_close(&body, '}');
	admin_reply_json(conn, &body);
	buf_fini(&body);
}

void admin_reply_error(struct http_conn *conn, int status, const char *why)
{
	struct buf body = { 0 };

	emit_open(&body, NULL, '{');
	emit_string(&body, "error", why);
	emit_close(&body, '}');
	buf_append_char(&body, '\n');
	reply(conn, status, json_type, &body);
	buf_fini(&body);
}
