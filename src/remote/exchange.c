/* SPDX-License-Identifier: Apache-2.0 */
/* A handle of libcurl's for each connection of an exchange; what is written here is what a request is. */
#include "remote/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "auth/fetch.h"
#include "base/clock.h"
#include "base/mem.h"
#include "jsonrpc/scan.h"
#include "remote/message_headers.h"

#define CONNECT_MS 10000
#define SHORT_MS 30000 /* for what is answered without work: notifications, lists of our own */
#define END_MS 2000    /* a DELETE, while the gateway waits for the end of this process */
#define SMALL_BYTES ((size_t)64 << 10) /* what is no larger never waits */
#define SAID_BYTES 1024                /* of an answer to what asks for none */
#define HELD_MESSAGES 4                /* of the largest size, in part */

static void release_room(struct exchange *exchange)
{
	exchange->remote->running -= exchange->has_room;
	exchange->has_room = false;
}

static void stop(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;

	if (exchange->easy == NULL)
		return;
	curl_multi_remove_handle(remote->multi, exchange->easy);
	curl_easy_cleanup(exchange->easy);
	exchange->easy = NULL;
	curl_handle_free_fields(&exchange->fields);
	buf_fini(&exchange->body);
	event_reader_restart(&exchange->events);
	exchange->has_head = exchange->is_events = exchange->is_paused = false;
	exchange->error[0] = '\0';
	release_room(exchange);
}

void exchange_end(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;

	stop(exchange);
	if (remote->barrier == exchange)
		remote->barrier = NULL;
	if (remote->stream == exchange)
		remote->stream = NULL;
	list_remove(&exchange->link);
	buf_fini(&exchange->sent);
	buf_fini(&exchange->id);
	buf_fini(&exchange->cursor);
	buf_fini(&exchange->cancels);
	buf_fini(&exchange->body);
	event_reader_fini(&exchange->events);
	free(exchange);
}

struct exchange *exchange_new(struct remote *remote, const char *verb)
{
	struct exchange *exchange = mem_zalloc(sizeof(*exchange));

	exchange->remote = remote;
	exchange->verb = verb;
	exchange->events.most = remote->most;
	exchange->events.retry_ms = EVENT_RETRY_NONE;
	list_append(&remote->exchanges, &exchange->link);
	return exchange;
}

struct exchange *exchange_find(struct remote *remote, struct slice id)
{
	LIST_EACH(struct exchange, exchange, &remote->exchanges, link)
		if (exchange->id.len > 0 && value_is_same_id(buf_slice(&exchange->id), id))
			return exchange;
	return NULL;
}

void exchange_set_answered(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;

	if (exchange->is_answered)
		return;
	exchange->is_answered = true;
	exchange->due_ms = clock_now_ms() + LINGER_MS;
	release_room(exchange);
	if (remote->barrier == exchange)
		remote->barrier = NULL;
	if (exchange->method == METHOD_INITIALIZED && remote->transport == TRANSPORT_STREAMABLE)
		remote->wants_stream = true;
}

/* ---- what comes in ---- */

long exchange_status(const struct exchange *exchange)
{
	long status = 0;

	curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

bool exchange_is_success(long status)
{
	return status >= 200 && status <= 299;
}

bool exchange_is_out_of_service(long status)
{
	return status == 401 || (status >= 502 && status <= 504);
}

bool exchange_is_passing(long status)
{
	return status == 408 || status == 409 || status == 425 || status == 429;
}

bool exchange_was_unreachable(const struct exchange *exchange, CURLcode code)
{
	curl_off_t begun_us = 0;

	curl_easy_getinfo(exchange->easy, CURLINFO_PRETRANSFER_TIME_T, &begun_us);
	return code != CURLE_OK && begun_us == 0 && exchange->sent_bytes == 0;
}

void exchange_look_at_head(struct exchange *exchange)
{
	struct slice type = curl_handle_answer_field(exchange->easy, "Content-Type");

	type = slice_trim(slice_cut(&type, ';'));
	exchange->has_head = true;
	exchange->is_events = exchange_is_success(exchange_status(exchange)) &&
			      slice_is_equal_nocase(type, SLICE_LIT("text/event-stream"));
}

static size_t held_by(const struct exchange *exchange)
{
	return exchange->body.len + exchange->events.line.len + exchange->events.data.len;
}

/* Of answers that are incomplete, so much is held; then the largest goes on alone until it is whole. */
bool exchange_must_wait(const struct exchange *exchange)
{
	size_t sum = 0, most = 0;

	LIST_EACH(struct exchange, each, &exchange->remote->exchanges, link) {
		size_t held = held_by(each);

		sum += held;
		most = held > most ? held : most;
	}
	return sum > HELD_MESSAGES * exchange->remote->most && held_by(exchange) < most &&
	       held_by(exchange) > SMALL_BYTES;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct exchange *exchange = arg;
	struct slice bytes = slice_of(data, size * count);

	if (exchange->remote->out.len > OUT_BYTES_MAX || exchange_must_wait(exchange)) {
		exchange->is_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (!exchange->has_head)
		exchange_look_at_head(exchange);
	if (!exchange->is_events && exchange->id.len == 0 &&
	    exchange->body.len + bytes.n > SAID_BYTES)
		return bytes.n;
	if (!exchange->is_events)
		return curl_handle_take_body(&exchange->body, bytes.p, bytes.n,
					     exchange->remote->most, &exchange->is_too_big);
	exchange->is_too_big = event_reader_take(&exchange->events, bytes,
						 exchange->remote->on_event, exchange) < 0;
	return exchange->is_too_big ? 0 : bytes.n;
}

/* The head is whole: what asks for no answer has been taken. */
static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
	struct exchange *exchange = arg;
	bool is_end = size * count <= 2 && data[0] != ' ';

	if (!is_end || exchange_status(exchange) < 200)
		return size * count;
	exchange->remote->was_reached |= !exchange_is_out_of_service(exchange_status(exchange));
	exchange_look_at_head(exchange);
	if (exchange->id.len == 0 && exchange->sent.len > 0 &&
	    exchange_is_success(exchange_status(exchange)))
		exchange_set_answered(exchange);
	return size * count;
}

/* ---- what goes out ---- */

static void add_field(const char *name, const char *value, void *arg)
{
	struct exchange *exchange = arg;

	curl_handle_add_field(&exchange->fields, name, value);
}

static void add_buf(struct exchange *exchange, const char *name, struct buf *value)
{
	if (value->len > 0)
		add_field(name, buf_terminate(value), exchange);
}

static size_t on_read(char *at, size_t size, size_t count, void *arg)
{
	struct exchange *exchange = arg;
	size_t n = exchange->sent.len - exchange->sent_bytes;

	if (n > size * count)
		n = size * count;
	memcpy(at, exchange->sent.data + exchange->sent_bytes, n);
	exchange->sent_bytes += n;
	return n;
}

/*
 * libcurl would send a request again, if a connection that was used before ends without an answer.
 * But who has got some of it may have executed it. BACK-URL-04
 */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
	const struct exchange *exchange = arg;

	return exchange->sent_bytes == 0 && offset == 0 && origin == SEEK_SET ? CURL_SEEKFUNC_OK :
										CURL_SEEKFUNC_FAIL;
}

static void set_body(struct exchange *exchange)
{
	CURL *easy = exchange->easy;

	exchange->sent_bytes = 0;
	add_field("Content-Type", "application/json", exchange);
	add_field("Expect", "", exchange); /* no 100 Continue is waited for */
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->sent.len);
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(easy, CURLOPT_READDATA, exchange);
	curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
	curl_easy_setopt(easy, CURLOPT_SEEKDATA, exchange);
}

static void add_modern(struct exchange *exchange, const struct envelope *env)
{
	message_headers_add(env, add_field, exchange);
	if (exchange->method == METHOD_TOOLS_CALL)
		message_headers_add_params(env, tools_schema(&exchange->remote->tools, env->name),
					   add_field, exchange);
}

/* Else it is a GET, or the DELETE. */
static bool is_post(const struct exchange *exchange)
{
	return exchange->sent.len > 0 && !exchange->is_resumed;
}

static void set_fields(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;
	struct envelope env;

	for (struct curl_slist *field = remote->fields; field != NULL; field = field->next)
		exchange->fields = curl_slist_append(exchange->fields, field->data);
	add_buf(exchange, "Authorization", &remote->credential);
	add_field("Accept",
		  is_post(exchange) ? "application/json, text/event-stream" : "text/event-stream",
		  exchange);
	if (exchange->is_modern &&
	    scan_envelope(buf_slice(&exchange->sent), &scan_limits_none, 0, &env, NULL) == 0)
		add_modern(exchange, &env);
	if (!exchange->is_modern && exchange->method != METHOD_INITIALIZE) {
		add_buf(exchange, "MCP-Protocol-Version", &remote->revision);
		add_buf(exchange, "Mcp-Session-Id", &remote->session_id);
	}
	if (!is_post(exchange))
		add_buf(exchange, "Last-Event-ID", &exchange->events.last_id);
	if (is_post(exchange))
		set_body(exchange);
	else if (strcmp(exchange->verb, "DELETE") == 0)
		curl_easy_setopt(exchange->easy, CURLOPT_CUSTOMREQUEST, "DELETE");
	curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->fields);
}

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct exchange *exchange = arg;

	(void)purpose;
	if (exchange->remote->socket != NULL && address->family == AF_UNIX)
		return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return curl_handle_open_socket(&exchange->remote->address_filter, address,
				       &exchange->is_refused);
}

/* How long all of it may take; 0: the gateway says when it has waited long enough. */
static long time_of(const struct exchange *exchange)
{
	if (strcmp(exchange->verb, "DELETE") == 0)
		return END_MS;
	if (strcmp(exchange->verb, "GET") == 0 || exchange->is_resumed)
		return 0;
	return exchange->id.len > 0 && !exchange->is_own ? 0 : SHORT_MS;
}

static void set_certificate(CURL *easy, const struct remote *remote)
{
	struct curl_blob certificate = { remote->certificate.data, remote->certificate.len,
					 CURL_BLOB_NOCOPY };
	struct curl_blob key = { remote->key.data, remote->key.len, CURL_BLOB_NOCOPY };

	if (certificate.len == 0)
		return;
	curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
	curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
	curl_easy_setopt(easy, CURLOPT_KEYPASSWD, ""); /* libcurl would look for one at NULL */
}

void exchange_start(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;
	const struct curl_handle_conf conf = {
		.agent = "mcpgated/" PACKAGE_VERSION,
		.connect_ms = CONNECT_MS,
		.total_ms = time_of(exchange),
		.allow_http = !url_is_https(&remote->parts),
		.ca = remote->ca.len > 0 ? buf_slice(&remote->ca) : fetch_system_ca(),
	};

	CHECK(exchange->easy == NULL);
	exchange->state = STATE_RUNNING;
	exchange->easy = curl_handle_new(&conf);
	curl_easy_setopt(exchange->easy, CURLOPT_URL,
			 is_post(exchange) && remote->post_url != NULL ? remote->post_url :
									 remote->url);
	if (remote->socket != NULL)
		curl_easy_setopt(exchange->easy, CURLOPT_UNIX_SOCKET_PATH, remote->socket);
	if (remote->proxy != NULL) {
		curl_easy_setopt(exchange->easy, CURLOPT_PROXY, remote->proxy);
		curl_easy_setopt(exchange->easy, CURLOPT_NOPROXY, "");
		curl_easy_setopt(exchange->easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
		curl_easy_setopt(exchange->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	}
	set_certificate(exchange->easy, remote);
	curl_easy_setopt(exchange->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(exchange->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(exchange->easy, CURLOPT_PRIVATE, exchange);
	curl_easy_setopt(exchange->easy, CURLOPT_ERRORBUFFER, exchange->error);
	curl_easy_setopt(exchange->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(exchange->easy, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(exchange->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(exchange->easy, CURLOPT_HEADERDATA, exchange);
	curl_easy_setopt(exchange->easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	curl_easy_setopt(exchange->easy, CURLOPT_OPENSOCKETDATA, exchange);
	set_fields(exchange);
	exchange->has_room = exchange->id.len > 0;
	remote->running += exchange->has_room;
	CHECK(curl_multi_add_handle(remote->multi, exchange->easy) == CURLM_OK);
}

void exchange_start_later(struct exchange *exchange, uint64_t wait_ms)
{
	stop(exchange);
	exchange->state = STATE_DELAYED;
	exchange->due_ms = clock_now_ms() + wait_ms;
}

/* Waits for an answer that comes another way. */
void exchange_leave_posted(struct exchange *exchange)
{
	stop(exchange);
	exchange->state = STATE_POSTED;
}
