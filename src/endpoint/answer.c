/* SPDX-License-Identifier: Apache-2.0 */
/* Errors are JSON-RPC objects, even where there is no request to answer. */
#include "endpoint/answer.h"

#include "http/sse.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "obs/log.h"

#define RETRY_AFTER_S 2 /* if nothing better is known */

#define FIELD_PARTS_MAX 6

/* The header lines that every answer has, in parts. Returns the number of parts. */
static size_t list_fields(const struct answer *answer, struct slice parts_r[FIELD_PARTS_MAX])
{
	size_t n = 0;

	if (answer->session.n > 0) {
		parts_r[n++] = SLICE_LIT("Mcp-Session-Id: ");
		parts_r[n++] = answer->session;
		parts_r[n++] = SLICE_LIT("\r\n");
	}
	if (answer->origin.n > 0) {
		parts_r[n++] = SLICE_LIT("Access-Control-Allow-Origin: ");
		parts_r[n++] = answer->origin;
		parts_r[n++] = SLICE_LIT(
			"\r\nVary: Origin\r\nAccess-Control-Expose-Headers: "
			"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After\r\n");
	}
	CHECK(n <= FIELD_PARTS_MAX);
	return n;
}

void answer_append_fields(struct buf *out, const struct answer *answer)
{
	struct slice parts[FIELD_PARTS_MAX];
	size_t count = list_fields(answer, parts);

	for (size_t i = 0; i < count; i++)
		buf_append_slice(out, parts[i]);
}

void answer_ignore_room(struct http_exchange *exchange)
{
	(void)exchange;
}

static void answer_send(const struct answer *answer, int status, struct slice more_fields,
			const struct slice *parts, size_t count)
{
	struct slice fields[FIELD_PARTS_MAX + 1];
	struct http_reply reply = {
		.status = status,
		.content_type = count > 0 ? "application/json" : NULL,
		.fields = fields,
		.parts = parts,
		.part_count = count,
	};

	CHECK(answer->conn != NULL && status >= 200);
	reply.field_count = list_fields(answer, fields);
	fields[reply.field_count++] = more_fields;
	http_reply(answer->conn, &reply);
}

/* Sends a JSON body, given in parts. */
static void answer_json(const struct answer *answer, int status, const struct slice *parts,
			size_t count)
{
	CHECK(count > 0);
	answer_send(answer, status, slice_of(NULL, 0), parts, count);
}

void answer_empty(const struct answer *answer, int status, struct slice fields)
{
	answer_send(answer, status, fields, NULL, 0);
}

void answer_document(const struct answer *answer, int status, struct slice fields,
		     struct slice body)
{
	answer_send(answer, status, fields, &body, 1);
}

/* Frees `text`. */
static void answer_send_text(const struct answer *answer, int status, struct buf *text)
{
	const struct slice body = buf_slice(text);
	struct buf fields = { 0 };

	log_payload("to_client", NULL, &body, 1);
	if (status == 503 || status == 429)
		buf_printf(&fields, "Retry-After: %u\r\n",
			   answer->retry_after_s > 0 ? answer->retry_after_s : RETRY_AFTER_S);
	answer_document(answer, status, buf_slice(&fields), body);
	buf_fini(&fields);
	buf_fini(text);
}

void answer_error(const struct answer *answer, int status, struct slice id, int code,
		  struct slice message, struct slice data)
{
	struct buf text = { 0 };

	write_error(&text, id, code, message, data);
	answer_send_text(answer, status, &text);
}

void answer_other_method(const struct answer *answer, enum http_method method, const char *methods,
			 const char *headers)
{
	struct buf fields = { 0 };

	buf_append_str(&fields, ANSWER_CORS);
	if (method == HTTP_OPTIONS) {
		buf_printf(&fields,
			   "Access-Control-Allow-Methods: %s\r\n"
			   "Access-Control-Allow-Headers: %s\r\n"
			   "Access-Control-Max-Age: 600\r\n",
			   methods, headers);
		answer_empty(answer, 204, buf_slice(&fields));
	} else {
		buf_printf(&fields, "Allow: %s\r\n", methods);
		answer_document(answer, 405, buf_slice(&fields),
				SLICE_LIT("{\"error\":\"method_not_allowed\"}"));
	}
	buf_fini(&fields);
}

void answer_not_allowed(const struct answer *answer, const char *methods)
{
	const struct slice none = { NULL, 0 };
	struct buf fields = { 0 };
	struct buf why = { 0 };
	struct buf text = { 0 };

	buf_printf(&fields, "Allow: %s\r\n", methods);
	buf_printf(&why, "Method not allowed: this address takes %s", methods);
	write_error(&text, none, MCP_INVALID_REQUEST, buf_slice(&why), none);
	answer_document(answer, 405, buf_slice(&fields), buf_slice(&text));
	buf_fini(&fields);
	buf_fini(&why);
	buf_fini(&text);
}

void answer_append_reason(struct buf *out, struct slice id, enum reason reason, const char *server)
{
	const struct reason_row *row = reason_get(reason);
	const char *message = row->message[0] != '\0' ? row->message : "The request has failed";
	struct buf data = { 0 };

	buf_printf(&data, "{\"reason\":\"%s\",\"server\":\"%s\"}", row->data, server);
	write_error(out, id, row->rpc_code != 0 ? row->rpc_code : MCP_INTERNAL_ERROR,
		    slice_str(message), buf_slice(&data));
	buf_fini(&data);
}

void answer_reason(const struct answer *answer, struct slice id, enum reason reason,
		   const char *server)
{
	int status = reason_get(reason)->http_status;
	struct buf text = { 0 };

	answer_append_reason(&text, id, reason, server);
	answer_send_text(answer, status != 0 ? status : 200, &text);
}

void answer_append_expired(struct buf *out, struct slice id)
{
	write_error(out, id, MCP_INTERNAL_ERROR,
		    SLICE_LIT("The events after this one are no longer kept"),
		    SLICE_LIT("{\"reason\":\"stream_expired\"}"));
}

/* ---- egress ---- */

/* Three forms of one message: a body, an element of an array, an event. */

void egress_send(const struct answer *answer, int status, const struct slice *parts, size_t count)
{
	CHECK(count > 0);
	log_payload("to_client", NULL, parts, count);
	answer_json(answer, status, parts, count);
}

void egress_append_element(struct buf *array, struct slice message)
{
	CHECK(message.n > 0);
	log_payload("to_client", NULL, &message, 1);
	buf_append_char(array, array->len > 0 ? ',' : '[');
	buf_append_slice(array, message);
}

void egress_send_array(const struct answer *answer, struct buf *array)
{
	CHECK(array->len > 0);
	buf_append_char(array, ']');
	answer_json(answer, 200, (struct slice[]){ buf_slice(array) }, 1);
}

void egress_append_event(struct buf *out, struct slice id, struct slice message)
{
	CHECK(message.n > 0);
	log_payload("to_client", NULL, &message, 1);
	sse_append_message(out, id, message);
}

struct msg *egress_join(const struct slice *parts, size_t count)
{
	struct buf text = { 0 };

	CHECK(count > 0);
	for (size_t i = 0; i < count; i++)
		buf_append_slice(&text, parts[i]);
	return msg_new_take(&text);
}
