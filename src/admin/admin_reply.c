/* SPDX-License-Identifier: Apache-2.0 */
/* No answer may be cached. What is answered is decided by admin.c and deny.c. */
#include "admin/admin_reply.h"

#include "base/text.h"

void admin_reply(struct http_conn *conn, int status, const char *type, const struct buf *body)
{
	static const struct slice no_store = SLICE("Cache-Control: no-store\r\n"
						   "X-Content-Type-Options: nosniff\r\n"
						   "Cross-Origin-Resource-Policy: same-origin\r\n");
	struct slice part = buf_slice(body);

	CHECK(status >= 200 && status < 600);
	http_reply(conn, &(struct http_reply){ .status = status,
					       .content_type = type,
					       .fields = &no_store,
					       .field_count = 1,
					       .parts = &part,
					       .part_count = 1 });
}

void admin_reply_json(struct http_conn *conn, int status, struct buf *body)
{
	CHECK(body->len > 0);
	buf_append_char(body, '\n');
	admin_reply(conn, status, "application/json", body);
}

void admin_reply_value(struct http_conn *conn, int status, struct json_t *value)
{
	struct buf body = { 0 };

	value_write(value, &body);
	admin_reply_json(conn, status, &body);
	buf_fini(&body);
}

void admin_reply_number(struct http_conn *conn, const char *member, uint64_t number)
{
	struct json_t *value = value_object();

	value_set_number(value, member, number);
	admin_reply_value(conn, 200, value);
}

struct json_t *admin_reply_make_error(const char *why)
{
	struct json_t *value = value_object();

	value_set_text(value, "error", slice_str(why));
	return value;
}

void admin_reply_error(struct http_conn *conn, int status, const char *why)
{
	admin_reply_value(conn, status, admin_reply_make_error(why));
}

void admin_reply_no_server(struct http_conn *conn, const struct server *servers, size_t count,
			   struct slice name)
{
	static const char unknown[] = "there is no server of this name";
	const char *nearest = NULL;
	size_t distance = SIZE_MAX;
	struct error err;

	for (size_t i = 0; i < count; i++)
		if (servers[i].conf.name != NULL && !servers[i].is_retired &&
		    text_is_nearer(name, slice_str(servers[i].conf.name), &distance))
			nearest = servers[i].conf.name;
	if (nearest != NULL)
		error_set(&err, ERROR_INVALID, "%s; did you mean '%s'?", unknown, nearest);
	else
		error_set(&err, ERROR_INVALID, "%s; mcpgatectl servers lists them", unknown);
	admin_reply_error(conn, 404, err.text);
}
