/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only ASCII is written, so that what a server has put into a text does nothing to the terminal
 * that shows it; bytes that are not UTF-8 become U+FFFD. No answer may be cached.
 */
#include "admin/json.h"

#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "auth/document.h"
#include "auth/grant.h"
#include "base/check.h"
#include "base/text.h"
#include "jsonrpc/write.h"

/*
 * ---- value ----
 *
 * Only ASCII is written, so that what a server has put into a text does nothing to the terminal
 * that shows it; bytes that are not UTF-8 become U+FFFD.
 */

struct json_t *value_object(void)
{
	return json_object();
}

struct json_t *value_array(void)
{
	return json_array();
}

struct json_t *value_pack(const char *format, ...)
{
	struct json_t *value;
	va_list args;

	va_start(args, format);
	value = json_vpack_ex(NULL, 0, format, args);
	va_end(args);
	CHECK(value != NULL);
	return value;
}

void value_set(struct json_t *object, const char *member, struct json_t *value)
{
	size_t size = json_object_size(object);

	CHECK(json_object_set_new(object, member, value != NULL ? value : json_null()) == 0);
	CHECK(json_object_size(object) == size + 1);
}

void value_set_flag(struct json_t *object, const char *member, bool flag)
{
	value_set(object, member, json_boolean(flag));
}

void value_set_number(struct json_t *object, const char *member, uint64_t number)
{
	CHECK(number <= INT64_MAX || number == VALUE_NONE);
	value_set(object, member, number != VALUE_NONE ? json_integer((json_int_t)number) : NULL);
}

struct json_t *value_number(uint64_t number)
{
	CHECK(number <= INT64_MAX);
	return json_integer((json_int_t)number);
}

struct json_t *value_text(struct slice text)
{
	struct json_t *value = text.n > 0 ? json_stringn(text.p, text.n) : NULL;
	struct buf mended = { 0 };

	if (value == NULL && text.n > 0) {
		buf_append_utf8(&mended, text);
		value = json_stringn_nocheck(mended.data, mended.len);
		buf_fini(&mended);
	}
	return value;
}

void value_set_text(struct json_t *object, const char *member, struct slice text)
{
	value_set(object, member, value_text(text));
}

void value_append(struct json_t *array, struct json_t *value)
{
	CHECK(json_array_append_new(array, value) == 0);
}

/* For json_dump_callback. */
static int append(const char *text, size_t size, void *arg)
{
	buf_append(arg, text, size);
	return 0;
}

void value_write(struct json_t *value, struct buf *out)
{
	CHECK(json_dump_callback(value, append, out, JSON_COMPACT | JSON_ENSURE_ASCII) == 0);
	json_decref(value);
}

void value_list_begin(struct buf *out, const char *member)
{
	CHECK(out->len == 0);
	buf_printf(out, "{\"%s\":[", member);
}

void value_list_add(struct buf *out, struct json_t *value)
{
	CHECK(out->len > 0);
	write_comma(out);
	value_write(value, out);
}

void value_list_next(struct buf *out, const char *member)
{
	CHECK(out->len > 0);
	buf_printf(out, "],\"%s\":[", member);
}

void value_list_end(struct buf *out)
{
	CHECK(out->len > 0);
	buf_append_str(out, "]}");
}

/*
 * ---- responses ----
 *
 * No answer may be cached. What is answered is decided by admin.c and deny.c.
 */

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
	at_end(buf_fini) struct buf body = { 0 };

	value_write(value, &body);
	admin_reply_json(conn, status, &body);
}

void admin_reply_number(struct http_conn *conn, const char *member, uint64_t number)
{
	admin_reply_value(conn, 200, value_pack("{s:I}", member, (json_int_t)number));
}

void admin_reply_error(struct http_conn *conn, int status, const char *why)
{
	admin_reply_value(conn, status, value_pack("{s:o?}", "error", value_text(slice_str(why))));
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

/* ---- the question of can ---- */

static int can_read_text(const json_t *value, const char *member, struct slice *text_r,
			 struct error *err)
{
	if (text_r->n > 0)
		return error_set(err, ERROR_INVALID, "'%s' is one too many", member);
	*text_r = slice_of(json_string_value(value), json_string_length(value));
	return text_r->n > 0 ? 0 :
			       error_set(err, ERROR_INVALID,
					 "'%s' must be a text, not an empty one", member);
}

static int can_read_member(const char *member, const json_t *value, struct can_request *request,
			   struct error *err)
{
	static const char *const members[] = { "tool",      "prompt", "resource",
					       "principal", "token",  "server" };
	size_t i = 0;

	while (i < ARRAY_LEN(members) && strcmp(member, members[i]) != 0)
		i++;
	if (i <= 2)
		request->kind = (enum permission_kind)i;
	else if (i <= 4)
		request->who = (enum can_who)(i - 3);
	if (i < ARRAY_LEN(members))
		return can_read_text(value, member,
				     i <= 2 ? &request->name :
				     i <= 4 ? &request->who_name :
					      &request->server,
				     err);
	if (strcmp(member, "claims") != 0)
		return error_set(err, ERROR_INVALID, "the member '%.40s' is not known", member);
	if (!json_is_object(value))
		return error_set(err, ERROR_INVALID, "'claims' must be an object");
	request->who = CAN_CLAIMS;
	return 0;
}

int can_request_read(struct slice body, struct can_request *request_r, struct error *err)
{
	json_t *document = document_parse(body, err);
	const char *member;
	json_t *value;
	bool has_claims;

	*request_r = (struct can_request){ .document = document };
	if (document == NULL)
		return -1;
	json_object_foreach(document, member, value)
	{
		if (can_read_member(member, value, request_r, err) < 0)
			goto failed;
	}
	has_claims = json_object_get(document, "claims") != NULL;
	if (request_r->server.n > 0 && request_r->name.n > 0 &&
	    has_claims == (request_r->who_name.n == 0))
		return 0;
	error_set(err, ERROR_INVALID,
		  "there must be server; one of tool, prompt and resource; and one of principal, "
		  "token and claims");
failed:
	can_request_fini(request_r);
	return -1;
}

void can_request_fini(struct can_request *request)
{
	json_decref(request->document);
	request->document = NULL;
}

struct grant *can_request_grant(const struct can_request *request, const struct roles *roles,
				struct error *err)
{
	CHECK(request->who == CAN_CLAIMS);
	return grant_imagine(json_object_get(request->document, "claims"), "", roles, err);
}

/*
 * ---- the order to deny a token ----
 *
 * A member that is not known is an error: an entry that denies less than the operator means is
 * worse than none.
 */

#define DENY_NAME_BYTES_MAX 2048 /* the longest accepted issuer, and name of a token */

/* As in tokens that are accepted: no other text could ever match one. */
static int deny_read_text(const json_t *value, const char *member, struct slice *text_r,
			  struct error *err)
{
	if (!json_is_string(value))
		return error_set(err, ERROR_INVALID, "'%s' must be a text", member);
	*text_r = slice_of(json_string_value(value), json_string_length(value));
	if (text_r->n == 0 || text_r->n > DENY_NAME_BYTES_MAX)
		return error_set(err, ERROR_INVALID, "'%s' must have 1 to %d bytes", member,
				 DENY_NAME_BYTES_MAX);
	for (size_t i = 0; i < text_r->n; i++)
		if ((unsigned char)text_r->p[i] < 0x20 || text_r->p[i] == 0x7F)
			return error_set(err, ERROR_INVALID, "'%s' has control characters", member);
	return 0;
}

static int deny_read_member(const char *member, const json_t *value, struct deny_request *request,
			    struct error *err)
{
	if (strcmp(member, "issuer") == 0)
		return deny_read_text(value, member, &request->issuer, err);
	for (enum denial_by by = 0; by < DENIAL_BY_COUNT; by++) {
		if (strcmp(member, denial_by_name(by)) != 0)
			continue;
		if (request->name.n > 0)
			return error_set(
				err, ERROR_INVALID,
				"only one of sub, client_id, jti and sid can be denied at a time");
		request->by = by;
		return deny_read_text(value, member, &request->name, err);
	}
	if (strcmp(member, "until_ms") != 0)
		return error_set(err, ERROR_INVALID, "the member '%.40s' is not known", member);
	if (!json_is_integer(value) || json_integer_value(value) <= 0)
		return error_set(err, ERROR_INVALID,
				 "'until_ms' must be milliseconds since 1970, as a whole number");
	request->until_ms = (uint64_t)json_integer_value(value);
	return 0;
}

int deny_request_read(struct slice body, struct deny_request *request_r, struct error *err)
{
	json_t *document = document_parse(body, err);
	const char *member;
	json_t *value;

	*request_r = (struct deny_request){ .document = document };
	if (document == NULL)
		return -1;
	json_object_foreach(document, member, value)
	{
		if (deny_read_member(member, value, request_r, err) < 0)
			goto failed;
	}
	CHECK(request_r->name.n <= DENY_NAME_BYTES_MAX);
	if (request_r->name.n > 0)
		return 0;
	error_set(err, ERROR_INVALID, "one of sub, client_id, jti and sid must be there");
failed:
	deny_request_fini(request_r);
	return -1;
}

void deny_request_fini(struct deny_request *request)
{
	json_decref(request->document);
	request->document = NULL;
}
