/* SPDX-License-Identifier: Apache-2.0 */
/* Errors are JSON-RPC objects, even where there is no request to answer. */
#include "endpoint/answer.h"

#include "auth/dpop.h"
#include "auth/verifier.h"
#include "base/buf.h"
#include "base/random.h"
#include "base/text.h"
#include "endpoint/frontend.h"
#include "http/reply.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/revision.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "process/server.h"
#include "router/process_slots.h"
#include "session/principal.h"
#include "session/session.h"

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

static void answer_send(const struct answer *answer, int status, struct slice more_fields,
			const struct slice *parts, size_t count)
{
	struct slice fields[FIELD_PARTS_MAX + 1];
	struct http_reply reply = {
		.status = status,
		.content_type = count == 0           ? NULL :
				answer->type != NULL ? answer->type :
						       "application/json",
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
	at_end(buf_fini) struct buf fields = { 0 };

	log_payload("to_client", NULL, &body, 1);
	if (status == 503 || status == 429)
		buf_printf(&fields, "Retry-After: %u\r\n",
			   answer->retry_after_s > 0 ? answer->retry_after_s : RETRY_AFTER_S);
	answer_document(answer, status, buf_slice(&fields), body);
	buf_fini(text);
}

/* Sends a JSON-RPC error; `id` as written, or empty; `data` JSON text, or empty. */
static void answer_error(const struct answer *answer, int status, struct slice id, int code,
			 struct slice message, struct slice data)
{
	struct buf text = { 0 };

	write_error(&text, id, code, message, data);
	answer_send_text(answer, status, &text);
}

void answer_other_method(const struct answer *answer, enum http_method method, const char *methods,
			 const char *headers)
{
	at_end(buf_fini) struct buf fields = { 0 };

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
}

void answer_not_allowed(const struct answer *answer, const char *methods)
{
	const struct slice none = { NULL, 0 };
	at_end(buf_fini) struct buf fields = { 0 }, why = { 0 }, text = { 0 };

	buf_printf(&fields, "Allow: %s\r\n", methods);
	buf_printf(&why, "Method not allowed: this address takes %s", methods);
	write_error(&text, none, MCP_INVALID_REQUEST, buf_slice(&why), none);
	answer_document(answer, 405, buf_slice(&fields), buf_slice(&text));
}

void answer_append_reason(struct buf *out, struct slice id, enum reason reason, const char *server)
{
	const struct reason_row *row = reason_get(reason);
	const char *message = row->message[0] != '\0' ? row->message : "The request has failed";
	at_end(buf_fini) struct buf data = { 0 };

	buf_printf(&data, "{\"reason\":\"%s\",\"server\":\"%s\"}", row->data, server);
	write_error(out, id, row->rpc_code != 0 ? row->rpc_code : MCP_INTERNAL_ERROR,
		    slice_str(message), buf_slice(&data));
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

/* ---- refusals ---- */

/*
 * The only place where a refusal is logged and counted. Clients parse WWW-Authenticate with regular
 * expressions: there is one field, with its parameters always in the same order and all values
 * quoted, and nothing in them that would need an escape. AUTH-CH-05.
 */

/* ---- challenges ---- */

/* Appends nothing if no scopes are to be requested. */
static void append_scopes(struct buf *out, const char *lead, const struct authorization *auth,
			  const struct refusal *refusal)
{
	if (scope_set_is_empty(&refusal->scopes))
		return;
	buf_printf(out, "%s\"", lead);
	scope_table_append(auth->conf.scopes, &refusal->scopes, out);
	buf_append_char(out, '"');
}

static void append_challenge(struct buf *out, const struct authorization *auth,
			     const struct protected_resource *place, const struct refusal *refusal)
{
	if (auth->conf.mode == AUTHORIZATION_OAUTH)
		buf_printf(out, "Bearer resource_metadata=\"%.*s\"", SLICE_ARG(place->metadata));
	else
		buf_append_str(out, "Bearer realm=\"mcpgated\"");
	append_scopes(out, ", scope=", auth, refusal);
	if (refusal->error != NULL)
		buf_printf(out, ", error=\"%s\", error_description=\"%s\"", refusal->error,
			   refusal->description);
	if (auth->conf.dpop == AUTHORIZATION_DPOP_OFF)
		return;
	buf_append_str(out, ", DPoP algs=\""); /* RFC 9449 §7.1 */
	for (size_t i = 0; dpop_algorithms[i] != NULL; i++)
		buf_printf(out, "%s%s", i > 0 ? " " : "", dpop_algorithms[i]);
	buf_append_char(out, '"');
}

/* The answer contains nothing of the request but an allowed origin. AUTH-CH-01 … -07, -10 */
static void send_challenge(const struct authorization *auth, const struct protected_resource *place,
			   const struct answer *answer, const struct refusal *refusal)
{
	const char *error = refusal->error != NULL ? refusal->error : "unauthorized";
	at_end(buf_fini) struct buf fields = { 0 }, body = { 0 };

	CHECK((refusal->status == 429) == (refusal->retry_after_s > 0));
	buf_append_str(&fields, "Cache-Control: no-store\r\n");
	if (refusal->status == 503) { /* the token may well be good: no reason to discard it */
		buf_printf(&fields, "Retry-After: %d\r\n", VERIFIER_RETRY_AFTER_S);
	} else if (refusal->status == 429) {
		buf_printf(&fields, "Retry-After: %u\r\n", refusal->retry_after_s);
	} else if (!refusal->is_final) {
		buf_append_str(&fields, "WWW-Authenticate: ");
		append_challenge(&fields, auth, place, refusal);
		buf_append_str(&fields, "\r\n");
	}
	buf_printf(&body, "{\"error\":\"%s\",\"error_description\":\"%s\"", error,
		   refusal->description);
	append_scopes(&body, ",\"scope\":", auth, refusal); /* many clients show only the body */
	buf_append_char(&body, '}');
	answer_document(answer, refusal->status, buf_slice(&fields), buf_slice(&body));
}

/*
 * Puts the challenge into the result of the refused call, for clients that look for it only there.
 * AUTH-SCP-11
 */
static void send_result(const struct authorization *auth, const struct protected_resource *place,
			const struct answer *answer, const struct refusal *refusal)
{
	at_end(buf_fini) struct buf challenge = { 0 }, result = { 0 }, text = { 0 };

	CHECK(refusal->id.n > 0 && !refusal->is_final);
	append_challenge(&challenge, auth, place, refusal);
	buf_append_str(&result, refusal->is_for_modern ? "{\"resultType\":\"complete\"," : "{");
	buf_append_str(&result, "\"content\":[{\"type\":\"text\",\"text\":");
	write_string(&result, slice_str(refusal->description));
	buf_append_str(&result, "}],\"isError\":true,\"_meta\":{\"mcp/www_authenticate\":[");
	write_string(&result, buf_slice(&challenge));
	buf_append_str(&result, "]}}");
	write_result(&text, refusal->id, buf_slice(&result));
	egress_send(answer, 200, (struct slice[]){ buf_slice(&text) }, 1);
}

/* ---- refusals ---- */

#define VALUE_LOGGED 100

static bool is_about_caller(int status)
{
	return status == 401 || status == 403 || status == 429;
}

/* Tells the operator who is refused, and why. */
static void tell_operator(const struct http_conn *conn, int status, const char *server,
			  const struct principal *who, const char *why, struct slice cause)
{
	char client[PEER_TEXT_BYTES];

	peer_format(http_conn_client(conn), client);
	LOG_BY(CALLER_REFUSED, holder_number(who, http_conn_client(conn)),
	       LOG_INT("status", status), LOG_STR("server", server), LOG_STR("client", client),
	       LOG_SLICE("principal", who != NULL ? who->identity.subject : slice_of(NULL, 0)),
	       LOG_STR("reason", why), LOG_SLICE("cause", cause));
}

/* If there is no other cause, it is the rule that refuses. */
static void tell_of_refusal(const struct http_conn *conn, const char *server,
			    const struct refusal *refusal)
{
	at_end(buf_fini) struct buf cause = { 0 };

	buf_append_str(&cause, refusal->cause);
	if (cause.len == 0)
		rule_append(&refusal->rule, slice_str(server), &cause);
	tell_operator(conn, refusal->status, server, refusal->who, refusal->description,
		      buf_slice(&cause));
}

static void answer_note(const struct refusal *refusal, const struct endpoint *endpoint)
{
	if (refusal->form == REFUSAL_CHALLENGE)
		counter_add(COUNTER_REQUESTS_UNAUTHORIZED);
	LOG(REQUEST_REFUSED, LOG_INT("status", refusal->status),
	    LOG_STR("server", endpoint->server->conf.name),
	    LOG_STR("reason", refusal->description));
}

static void send_error(const struct refusal *refusal, const struct answer *answer)
{
	at_end(buf_fini) struct buf quoted = { 0 }, data = { 0 };

	if (refusal->data != NULL)
		buf_append_str(&data, refusal->data);
	if (refusal->version.n > 0) { /* FRONT-VER-02, FRONT-ERA-05, -08 */
		write_string(&quoted, refusal->version);
		revision_append_supported(&data, buf_slice(&quoted), refusal->is_legacy_claim);
	}
	answer_error(answer, refusal->status, refusal->id, refusal->code,
		     slice_str(refusal->description), buf_slice(&data));
}

const char *refusal_word(const struct refusal *refusal, const char *otherwise)
{
	switch (refusal->form) {
	case REFUSAL_CHALLENGE:
		return refusal->error != NULL ? refusal->error : "no_token";
	case REFUSAL_REASON:
		return reason_get(refusal->reason)->text;
	case REFUSAL_ERROR:
		break;
	}
	return otherwise;
}

void refusal_send(const struct refusal *refusal, const struct frontend *frontend,
		  const struct endpoint *endpoint, const struct answer *answer)
{
	const struct authorization *auth = &frontend->authorization;
	struct answer timed = *answer;

	CHECK(refusal->status >= 200 && refusal->description != NULL);
	answer_note(refusal, endpoint);
	if (is_about_caller(refusal->status) ||
	    (refusal->form == REFUSAL_CHALLENGE && refusal->status == 400))
		tell_of_refusal(answer->conn, endpoint->server->conf.name, refusal);
	switch (refusal->form) {
	case REFUSAL_CHALLENGE:
		if (refusal->is_for_result)
			send_result(auth, &endpoint->place, answer, refusal);
		else
			send_challenge(auth, &endpoint->place, answer, refusal);
		break;
	case REFUSAL_ERROR:
		send_error(refusal, answer);
		break;
	case REFUSAL_REASON:
		timed.retry_after_s = refusal->retry_after_s > 0 ?
					      refusal->retry_after_s :
					      retry_after_s(frontend->router, endpoint->server,
							    NULL, refusal->reason);
		answer_reason(&timed, refusal->id, refusal->reason, endpoint->server->conf.name);
		break;
	}
}

void refusal_append(const struct refusal *refusal, const struct endpoint *endpoint, struct slice id,
		    struct buf *out)
{
	CHECK(refusal->is_in_band && refusal->form != REFUSAL_CHALLENGE);
	answer_note(refusal, endpoint);
	if (refusal->form == REFUSAL_REASON)
		answer_append_reason(out, id, refusal->reason, endpoint->server->conf.name);
	else
		write_error(out, id, refusal->code, slice_str(refusal->description),
			    slice_of(NULL, 0));
}

struct http_exchange *refusal_send_field(const struct answer *answer, int status, const char *why,
					 struct slice value)
{
	LOG(REQUEST_REFUSED, LOG_INT("status", status), LOG_STR("reason", why));
	value.n = value.n < VALUE_LOGGED ? value.n : VALUE_LOGGED;
	if (is_about_caller(status))
		tell_operator(answer->conn, status, "", NULL, why, value);
	answer_error(answer, status, slice_of(NULL, 0), MCP_INVALID_REQUEST, slice_str(why),
		     slice_of(NULL, 0));
	return NULL;
}

struct http_exchange *refusal_send_head(const struct answer *answer, int status, const char *why)
{
	return refusal_send_field(answer, status, why, slice_of(NULL, 0));
}

/* ---- event streams ---- */

/* All events of a turn leave in one write. */

/* How much is gathered before it is handed to the connection. */
#define BATCH_BYTES (64 * 1024)

static void writer_renew_keepalive(struct event_writer *writer)
{
	timer_start(http_conn_loop(writer->exchange->conn), &writer->keepalive,
		    writer->keepalive_ms);
}

/* epoch-stream-number, in hexadecimal. */
struct slice event_id_format(uint32_t epoch, uint64_t stream, uint64_t number, char *out)
{
	size_t n = text_format_hex(epoch, 8, out);

	out[n++] = '-';
	n += text_format_hex(stream, 1, out + n);
	out[n++] = '-';
	n += text_format_hex(number, 1, out + n);
	return slice_of(out, n);
}

struct slice event_id_of_client(struct slice client, uint64_t number, char *out)
{
	size_t n = client.n;

	CHECK(n + 1 + 16 <= EVENT_ID_BYTES);
	memcpy(out, client.p, n);
	out[n++] = '-';
	n += text_format_hex(number, 1, out + n);
	return slice_of(out, n);
}

static struct slice event_id(const struct event_writer *writer, uint64_t number, char *out)
{
	if (writer->source.has_no_ids)
		return slice_of(NULL, 0);
	if (writer->source.client.n > 0)
		return event_id_of_client(writer->source.client, number, out);
	return event_id_format(writer->source.epoch, writer->source.number, number, out);
}

static int parse_hex(struct slice digits, size_t max, uint64_t *value_r)
{
	static const char hex[] = "0123456789abcdef";
	uint64_t value = 0;

	if (digits.n == 0 || digits.n > max)
		return -1;
	for (size_t i = 0; i < digits.n; i++) {
		const char *at = memchr(hex, digits.p[i], 16);

		if (at == NULL)
			return -1;
		value = value << 4 | (uint64_t)(at - hex);
	}
	*value_r = value;
	return 0;
}

int event_id_parse(struct slice id, struct event_source *source_r)
{
	struct slice epoch = slice_cut(&id, '-');
	struct slice number = slice_cut(&id, '-');
	uint64_t value;

	if (epoch.n != 8 || parse_hex(epoch, 8, &value) < 0)
		return -1;
	source_r->epoch = (uint32_t)value;
	if (parse_hex(number, 15, &source_r->number) < 0 || parse_hex(id, 15, &source_r->after) < 0)
		return -1;
	return 0;
}

int event_id_parse_of_client(struct slice id, char *client_r, uint64_t *number_r)
{
	if (id.n < SESSION_ID_LENGTH + 2 || id.p[SESSION_ID_LENGTH] != '-')
		return -1;
	memcpy(client_r, id.p, SESSION_ID_LENGTH);
	return parse_hex(slice_of(id.p + SESSION_ID_LENGTH + 1, id.n - SESSION_ID_LENGTH - 1), 15,
			 number_r);
}

/* A client that can resume the stream is told when to do so. FRONT-SSE-03, -05, FRONT-GET-05 */
static void writer_append_priming(const struct event_writer *writer, uint64_t retry_ms,
				  struct buf *out)
{
	char id[EVENT_ID_BYTES];

	if (writer->source.is_primed)
		sse_append_priming(out, event_id(writer, writer->reader.position, id), retry_ms);
}

/*
 * Ends the stream on this connection. If many end at once, their clients are not to come back at
 * once. REL-51
 */
static void writer_finish(struct event_writer *writer, enum reason reason)
{
	at_end(buf_fini) struct buf text = { 0 };

	CHECK(writer->reader.stream != NULL && writer->exchange->conn != NULL);
	if (reason == REASON_CONNECTION_AGE || reason == REASON_DRAINING)
		writer_append_priming(writer,
				      writer->source.retry_ms +
					      random_below(writer->source.retry_ms + 1),
				      &text);
	http_stream_write(writer->exchange->conn, buf_slice(&text));
	event_writer_stop(writer);
	http_stream_end(writer->exchange->conn);
	writer->on_end(writer, reason);
}

static void writer_pull(struct event_writer *writer)
{
	at_end(buf_fini) struct buf batch = { 0 };
	char id[EVENT_ID_BYTES];
	uint64_t number;
	struct msg *msg;

	CHECK(writer->reader.stream != NULL && writer->exchange->conn != NULL);
	while (http_conn_has_room(writer->exchange->conn)) {
		while (batch.len < BATCH_BYTES &&
		       (msg = stream_take(&writer->reader, &number)) != NULL) {
			egress_append_event(&batch, event_id(writer, number, id), msg->text);
			msg_unref(&msg);
			writer->is_known = true;
		}
		if (batch.len == 0)
			break;
		http_stream_write(writer->exchange->conn, buf_slice(&batch));
		writer_renew_keepalive(writer);
		batch.len = 0;
	}
	if (stream_is_drained(writer->reader.stream, writer->reader.position))
		writer_finish(writer, writer->reader.stream->end_reason);
	else if (writer->is_old && writer->is_known)
		writer_finish(writer, REASON_CONNECTION_AGE);
}

/*
 * Not while draining: a client that comes back then may find nobody, because a socket of the
 * service manager waits for the next daemon.
 */
static void writer_on_age(struct timer *timer)
{
	struct event_writer *writer = container_of(timer, struct event_writer, age);

	writer->is_old = !http_conn_is_draining(writer->exchange->conn);
	writer_pull(writer);
}

static void writer_on_wake(struct stream_reader *reader)
{
	writer_pull(container_of(reader, struct event_writer, reader));
}

static void writer_on_detached(struct stream_reader *reader, enum reason reason)
{
	struct event_writer *writer = container_of(reader, struct event_writer, reader);

	timer_stop(&writer->keepalive);
	timer_stop(&writer->age);
	if (reason == REASON_SLOW_READER) {
		http_conn_end(writer->exchange->conn, reason); /* tells the exchange by on_gone */
		return;
	}
	http_stream_end(writer->exchange->conn);
	writer->on_end(writer, reason);
}

static void writer_on_keepalive(struct timer *timer)
{
	struct event_writer *writer = container_of(timer, struct event_writer, keepalive);
	at_end(buf_fini) struct buf comment = { 0 };

	CHECK(writer->exchange->conn != NULL);
	if (http_conn_has_room(writer->exchange->conn)) {
		sse_append_comment(&comment);
		http_stream_write(writer->exchange->conn, buf_slice(&comment));
	}
	writer_renew_keepalive(writer);
}

static const struct stream_reader_ops writer_reader_ops = {
	.on_wake = writer_on_wake,
	.on_detached = writer_on_detached,
};

void event_writer_init(struct event_writer *writer)
{
	timer_init(&writer->keepalive, writer_on_keepalive);
	timer_init(&writer->age, writer_on_age);
	writer->reader.stream = NULL;
}

void event_writer_begin(struct event_writer *writer, struct http_exchange *exchange,
			uint64_t keepalive_ms, struct slice fields)
{
	at_end(buf_fini) struct buf text = { 0 };

	CHECK(exchange->conn != NULL);
	writer->exchange = exchange;
	writer->keepalive_ms = keepalive_ms;
	buf_append_slice(&text, sse_fields);
	buf_append_slice(&text, fields);
	http_stream_begin(exchange->conn, buf_slice(&text));
	writer_renew_keepalive(writer);
}

bool event_writer_attach(struct event_writer *writer, const struct event_source *source)
{
	CHECK(writer->reader.stream == NULL);
	if (!stream_attach(source->stream, &writer->reader, &writer_reader_ops, source->after))
		return false;
	writer->source = *source;
	writer->is_known = source->is_known || source->is_primed;
	writer->is_old = false;
	return true;
}

bool event_writer_start(struct event_writer *writer, struct http_exchange *exchange,
			const struct event_source *source, struct slice fields)
{
	at_end(buf_fini) struct buf text = { 0 };

	event_writer_init(writer);
	if (!event_writer_attach(writer, source))
		return false;
	event_writer_begin(writer, exchange, source->keepalive_ms, fields);
	writer_append_priming(writer, writer->source.retry_ms, &text);
	http_stream_write(exchange->conn, buf_slice(&text));
	if (source->max_age_ms > 0)
		timer_start(http_conn_loop(exchange->conn), &writer->age, source->max_age_ms);
	return true;
}

void event_writer_on_room(struct event_writer *writer)
{
	if (writer->reader.stream != NULL)
		writer_pull(writer);
}

void event_writer_stop(struct event_writer *writer)
{
	timer_stop(&writer->keepalive);
	timer_stop(&writer->age);
	stream_detach(&writer->reader);
}
