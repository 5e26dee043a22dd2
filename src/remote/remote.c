/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcpgated-remote: a server behind a URL, as a process like any other. Towards the gateway it is a
 * stdio server; away from it, a client over HTTP. What it is told stands in its arguments; its whole
 * environment is header fields to send, which may be secret.
 *
 *	stdin    a line is a message: take_line      an exchange: a POST, whose answer is one message
 *	                                             or a stream of events
 *	stdout   each message that comes in          the stream: a GET, for what concerns no request
 *	stderr   what went wrong                     the end of the session: a DELETE
 *
 * An exchange ends by itself (finish), or when the gateway cancels it. A request that got no answer
 * is answered here, with an error that says what happened:
 *
 *	QUEUED ----> RUNNING ----> its end
 *	(for room)    |   ^ |
 *	              v   | +----> POSTED (HTTP+SSE: the answer comes by the stream) ----> its end
 *	           DELAYED
 *	           (after a cut, to go on behind the last event; the stream, to be opened again)
 *
 * Which transport the server has is found with `initialize`, as the specification says: a POST; if
 * that is refused without a message, a GET, whose first event names where to post (HTTP+SSE). Modern
 * requests need neither: each is a POST by itself.
 *
 * A modern call mirrors some of its arguments in its head, as the tool's schema says: the lists that
 * come by are remembered. If the server finds the head wrong, the tools are listed once, and the call
 * is sent again: it has not been executed.
 *
 * Order: nothing is sent before `initialize` and `notifications/initialized` have been answered. All
 * else is sent at once, on connections of its own.
 *
 * One thread and one loop, libcurl's; whatever waits has a time (do_due), and what comes in waits
 * while the gateway does not read.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/curl_handle.h"
#include "auth/fetch.h"
#include "auth/url.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "config/listed_path.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/value.h"
#include "jsonrpc/write.h"
#include "keeper/confine.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "mcp/revision.h"
#include "obs/log.h"
#include "remote/event_reader.h"
#include "remote/message_headers.h"
#include "remote/tools.h"

#define CONNECT_MS 10000
#define SHORT_MS 30000 /* for what is answered without work: notifications, the end */
#define END_MS 2000    /* a DELETE, while the gateway waits for the end of this process */
#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 30000
#define RESUMES_MAX 5 /* in a row, without an event in between */
#define RUNNING_MAX 128
#define READ_BYTES (64 * 1024)
#define OUT_BYTES_MAX (1024 * 1024) /* more is not taken until the gateway has read */
#define CA_BYTES_MAX (4 * 1024 * 1024)
#define PAGES_MAX 64
#define TEXT_BYTES_MAX 300 /* of what a server says in an answer that is no message */

enum transport { TRANSPORT_UNKNOWN, TRANSPORT_STREAMABLE, TRANSPORT_HTTP_SSE };

struct remote {
	/* as told */
	const char *url;
	struct url parts;
	struct buf ca;
	struct address_filter address_filter;
	size_t most; /* bytes of one message */
	struct curl_slist *fields;

	CURLM *multi;
	struct list exchanges;
	struct tools tools;       /* those of the lists that came by */
	uint64_t lists;           /* asked for by this program */
	size_t running;           /* POSTs */
	struct exchange *barrier; /* nothing is taken from stdin until it has ended; NULL: none */
	struct exchange *stream;  /* the GET; NULL: none */
	enum transport transport;
	char *post_url;
	struct buf session_id;
	struct buf revision; /* what initialize has agreed on; empty: nothing yet */

	struct buf in, out;
	bool has_endpoint; /* HTTP+SSE: post_url is known */
	bool is_in_over;
	bool is_ending;
};

enum state { STATE_QUEUED, STATE_RUNNING, STATE_DELAYED, STATE_POSTED };

struct exchange {
	struct list link;
	struct remote *remote;
	enum state state;
	const char *verb; /* "POST", "GET", "DELETE" */
	struct buf sent;
	size_t sent_bytes;  /* of it, so far */
	struct buf id;      /* of a request, as written; empty: nobody waits for an answer */
	unsigned int page;  /* of a list of our own, from 1 */
	struct buf cursor;  /* of a list of our own: of its next page, as written */
	struct buf cancels; /* the id that a notifications/cancelled names */
	enum method_id method;
	bool is_modern;
	bool is_own;      /* a list that this program asked for */
	bool was_refused; /* for its head, and waits for that list or has been sent again */
	bool is_resumed;  /* goes on with a GET behind the last event */
	unsigned int resumes;

	uint64_t due_ms; /* if delayed */
	CURL *easy;      /* if running, else NULL. This and what follows: of one connection */
	struct curl_slist *fields;
	bool has_head, is_events, is_answered, is_refused, is_too_big, is_paused;
	struct event_reader events;
	struct buf body;
	char error[CURL_ERROR_SIZE];
};

/* ---- what the gateway reads ---- */

static void die(const char *text)
{
	dprintf(STDERR_FILENO, "mcpgated-remote: %s\n", text);
	_exit(1);
}

static void flush_out(struct remote *remote)
{
	while (remote->out.len > 0) {
		ssize_t n = write(STDOUT_FILENO, remote->out.data, remote->out.len);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			_exit(0); /* the gateway has gone */
		buf_consume(&remote->out, (size_t)n);
	}
}

/* A line break between tokens means as much as a space; within a string there is none. BACK-FRAME-01 */
static void write_line(struct remote *remote, struct slice message)
{
	char *at = buf_reserve(&remote->out, message.n + 1);

	for (size_t i = 0; i < message.n; i++)
		at[i] = message.p[i] == '\n' || message.p[i] == '\r' ? ' ' : message.p[i];
	at[message.n] = '\n';
	remote->out.len += message.n + 1;
}

/* What a peer wrote, in a form that can be shown. */
static void append_shown(struct buf *out, struct slice text)
{
	struct buf shown = { 0 };

	buf_append_utf8(&shown, text.n > TEXT_BYTES_MAX ? slice_of(text.p, TEXT_BYTES_MAX) : text);
	for (size_t i = 0; i < shown.len; i++)
		if ((unsigned char)shown.data[i] < 0x20 || shown.data[i] == 0x7f)
			shown.data[i] = ' ';
	buf_append_slice(out, buf_slice(&shown));
	buf_fini(&shown);
}

/* Answers the request, or tells the log if nobody waits. */
static void fail(struct exchange *exchange, struct slice what)
{
	struct remote *remote = exchange->remote;
	struct buf text = { 0 };

	buf_printf(&text, "the server at %.*s", SLICE_ARG(remote->parts.host));
	if (remote->parts.port.n > 0)
		buf_printf(&text, ":%.*s", SLICE_ARG(remote->parts.port));
	buf_append_char(&text, ' ');
	buf_append_slice(&text, what);
	/* Without it there is no server, and this process has failed its start. BACK-PROC-06 */
	if (exchange->method == METHOD_INITIALIZE || exchange->method == METHOD_DISCOVER)
		die(buf_terminate(&text));
	if (exchange->id.len == 0 || exchange->is_own) {
		dprintf(STDERR_FILENO, "%s: %s\n", exchange->verb, buf_terminate(&text));
	} else {
		struct buf message = { 0 };

		write_error(&message, buf_slice(&exchange->id), MCP_INTERNAL_ERROR,
			    buf_slice(&text), (struct slice){ NULL, 0 });
		write_line(remote, buf_slice(&message));
		buf_fini(&message);
	}
	exchange->is_answered = true;
	buf_fini(&text);
}

/* ---- an exchange ---- */

static void stop(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;

	if (exchange->easy == NULL)
		return;
	curl_multi_remove_handle(remote->multi, exchange->easy);
	curl_easy_cleanup(exchange->easy);
	exchange->easy = NULL;
	curl_slist_free_all(exchange->fields);
	exchange->fields = NULL;
	exchange->body.len = 0;
	event_reader_restart(&exchange->events);
	exchange->has_head = exchange->is_events = exchange->is_paused = false;
	exchange->error[0] = '\0';
	if (exchange->sent.len > 0)
		remote->running--;
}

static void end(struct exchange *exchange)
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

static struct exchange *new_exchange(struct remote *remote, const char *verb)
{
	struct exchange *exchange = mem_zalloc(sizeof(*exchange));

	exchange->remote = remote;
	exchange->verb = verb;
	exchange->events.most = remote->most;
	exchange->events.retry_ms = EVENT_RETRY_NONE;
	list_append(&remote->exchanges, &exchange->link);
	return exchange;
}

static struct exchange *find_request(struct remote *remote, struct slice id)
{
	LIST_FOREACH(node, &remote->exchanges) {
		struct exchange *exchange = container_of(node, struct exchange, link);

		if (exchange->id.len > 0 && value_is_same_id(buf_slice(&exchange->id), id))
			return exchange;
	}
	return NULL;
}

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

static void set_fields(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;
	bool is_post = strcmp(exchange->verb, "POST") == 0 && !exchange->is_resumed;
	struct envelope env;
	struct error err;

	for (struct curl_slist *field = remote->fields; field != NULL; field = field->next)
		exchange->fields = curl_slist_append(exchange->fields, field->data);
	add_field("Accept", is_post ? "application/json, text/event-stream" : "text/event-stream",
		  exchange);
	if (exchange->is_modern &&
	    scan_envelope(buf_slice(&exchange->sent), &scan_limits_none, 0, &env, &err) == 0)
		add_modern(exchange, &env);
	if (!exchange->is_modern && exchange->method != METHOD_INITIALIZE) {
		add_buf(exchange, "MCP-Protocol-Version", &remote->revision);
		add_buf(exchange, "Mcp-Session-Id", &remote->session_id);
	}
	if (!is_post)
		add_buf(exchange, "Last-Event-ID", &exchange->events.last_id);
	if (is_post)
		set_body(exchange);
	else if (strcmp(exchange->verb, "DELETE") == 0)
		curl_easy_setopt(exchange->easy, CURLOPT_CUSTOMREQUEST, "DELETE");
	curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->fields);
}

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct exchange *exchange = arg;

	(void)purpose;
	return curl_handle_open_socket(&exchange->remote->address_filter, address,
				       &exchange->is_refused);
}

static size_t on_body(char *data, size_t size, size_t count, void *arg);

/* How long all of it may take; 0: the gateway says when it has waited long enough. */
static long time_of(const struct exchange *exchange)
{
	if (strcmp(exchange->verb, "DELETE") == 0)
		return END_MS;
	return exchange->id.len > 0 || strcmp(exchange->verb, "GET") == 0 ? 0 : SHORT_MS;
}

static void start(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;
	const struct curl_handle_conf conf = {
		.agent = "mcpgated/" PACKAGE_VERSION,
		.connect_ms = CONNECT_MS,
		.total_ms = time_of(exchange),
		.allow_http = !url_is_https(&remote->parts),
		.ca = remote->ca.len > 0 ? buf_slice(&remote->ca) : fetch_system_ca(),
	};
	bool is_post = exchange->sent.len > 0 && !exchange->is_resumed;

	CHECK(exchange->easy == NULL);
	exchange->state = STATE_RUNNING;
	exchange->easy = curl_handle_new(&conf);
	curl_easy_setopt(exchange->easy, CURLOPT_URL, is_post ? remote->post_url : remote->url);
	curl_easy_setopt(exchange->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(exchange->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(exchange->easy, CURLOPT_PRIVATE, exchange);
	curl_easy_setopt(exchange->easy, CURLOPT_ERRORBUFFER, exchange->error);
	curl_easy_setopt(exchange->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(exchange->easy, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(exchange->easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	curl_easy_setopt(exchange->easy, CURLOPT_OPENSOCKETDATA, exchange);
	set_fields(exchange);
	if (exchange->sent.len > 0)
		remote->running++;
	CHECK(curl_multi_add_handle(remote->multi, exchange->easy) == CURLM_OK);
}

static void start_later(struct exchange *exchange, uint64_t wait_ms)
{
	stop(exchange);
	exchange->state = STATE_DELAYED;
	exchange->due_ms = clock_now_ms() + wait_ms;
}

/* Waits for an answer that comes another way. */
static void leave_posted(struct exchange *exchange)
{
	stop(exchange);
	exchange->state = STATE_POSTED;
}

/* ---- what comes in ---- */

static void learn_session(struct exchange *exchange, const struct envelope *env)
{
	struct remote *remote = exchange->remote;
	struct slice id = curl_handle_answer_field(exchange->easy, "Mcp-Session-Id");

	if (remote->transport == TRANSPORT_UNKNOWN)
		remote->transport = TRANSPORT_STREAMABLE;
	remote->session_id.len = 0;
	buf_append_slice(&remote->session_id, id);
	remote->revision.len = 0;
	buf_append_slice(&remote->revision,
			 scan_plain_string(
				 scan_member(env->result.text, SLICE_LIT("protocolVersion"))));
}

/* Keeps what the next page is asked for with. */
static void take_page(struct exchange *exchange, struct slice text)
{
	struct slice result = scan_member(text, SLICE_LIT("result")).text;
	struct slice cursor = scan_member(result, SLICE_LIT("nextCursor")).text;

	exchange->cursor.len = 0;
	if (cursor.n > 0 && cursor.p[0] == '"')
		buf_append_slice(&exchange->cursor, cursor);
}

/* Within libcurl's callbacks nothing that runs is started or ended. */
static void take_message(struct exchange *exchange, struct slice text)
{
	struct exchange *request = exchange;
	struct envelope env;
	struct error err;

	if (scan_envelope(text, &scan_limits_none, SCAN_LENIENT, &env, &err) == 0 &&
	    (env.kind == ENVELOPE_RESULT || env.kind == ENVELOPE_ERROR)) {
		if (exchange->remote->transport == TRANSPORT_HTTP_SSE)
			request = find_request(exchange->remote, env.id.text);
		if (request != NULL && request->id.len > 0 &&
		    value_is_same_id(env.id.text, buf_slice(&request->id))) {
			request->is_answered = true;
			if (request->method == METHOD_INITIALIZE && env.kind == ENVELOPE_RESULT)
				learn_session(exchange, &env);
			if (request->method == METHOD_TOOLS_LIST && request->is_modern)
				tools_learn(&exchange->remote->tools, env.result.text);
		}
	}
	exchange->resumes = 0;
	if (exchange->is_own)
		take_page(exchange, text);
	else
		write_line(exchange->remote, text);
	if (request != NULL && request->state == STATE_POSTED && request->is_answered)
		end(request);
}

/* `initialize` waits for the first event of the stream. */
static bool awaits_endpoint(const struct remote *remote)
{
	return remote->transport == TRANSPORT_HTTP_SSE && remote->barrier != NULL &&
	       remote->barrier->state == STATE_POSTED && !remote->has_endpoint;
}

static bool has_same_origin(struct slice one, struct slice other)
{
	struct url a, b;

	return url_parse(one, &a) == 0 && url_parse(other, &b) == 0 &&
	       slice_is_equal_nocase(a.scheme, b.scheme) && slice_is_equal_nocase(a.host, b.host) &&
	       slice_is_equal(a.port, b.port);
}

/* The first event of HTTP+SSE: where to post, which must be the same origin. */
static void take_endpoint(struct remote *remote, struct slice where)
{
	char *reference = mem_dup_slice(where);
	CURLU *resolved = curl_url();
	char *text = NULL;

	CHECK(resolved != NULL && awaits_endpoint(remote));
	if (curl_url_set(resolved, CURLUPART_URL, remote->url, 0) == CURLUE_OK &&
	    curl_url_set(resolved, CURLUPART_URL, reference, 0) == CURLUE_OK)
		curl_url_get(resolved, CURLUPART_URL, &text, 0);
	if (text != NULL && has_same_origin(slice_str(text), slice_str(remote->url))) {
		remote->has_endpoint = true;
		free(remote->post_url);
		remote->post_url = mem_strdup(text);
		start_later(remote->barrier, 0);
	} else {
		fail(remote->barrier, SLICE_LIT("names another host to send messages to"));
		end(remote->barrier);
	}
	curl_free(text);
	curl_url_cleanup(resolved);
	free(reference);
}

static void on_event(const struct server_event *event, void *arg)
{
	struct exchange *exchange = arg;
	struct remote *remote = exchange->remote;

	if (slice_is_equal(event->name, SLICE_LIT("message")))
		take_message(exchange, event->data);
	else if (exchange == remote->stream && remote->transport == TRANSPORT_HTTP_SSE &&
		 slice_is_equal(event->name, SLICE_LIT("endpoint")) && awaits_endpoint(remote))
		take_endpoint(remote, event->data);
}

static long status_of(const struct exchange *exchange)
{
	long status = 0;

	curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static bool is_success(long status)
{
	return status >= 200 && status <= 299;
}

static void look_at_head(struct exchange *exchange)
{
	struct slice type = curl_handle_answer_field(exchange->easy, "Content-Type");

	type = slice_trim(slice_cut(&type, ';'));
	exchange->has_head = true;
	exchange->is_events = is_success(status_of(exchange)) &&
			      slice_is_equal_nocase(type, SLICE_LIT("text/event-stream"));
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct exchange *exchange = arg;
	struct slice bytes = slice_of(data, size * count);

	if (exchange->remote->out.len > OUT_BYTES_MAX) {
		exchange->is_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (!exchange->has_head)
		look_at_head(exchange);
	if (!exchange->is_events)
		return curl_handle_take_body(&exchange->body, bytes.p, bytes.n,
					     exchange->remote->most, &exchange->is_too_big);
	exchange->is_too_big = event_reader_take(&exchange->events, bytes, on_event, exchange) < 0;
	return exchange->is_too_big ? 0 : bytes.n;
}

/* ---- how an exchange ends ---- */

/* The process cannot go on without its session; the gateway decides what follows. */
static void lose_session(struct remote *remote, const char *why)
{
	flush_out(remote);
	die(why);
}

static void append_status(struct exchange *exchange, long status, struct buf *text)
{
	struct slice challenge = curl_handle_answer_field(exchange->easy, "WWW-Authenticate");

	buf_printf(text, "answered with status %ld", status);
	if (status == 401)
		buf_append_str(text, ": it does not accept the credentials in `headers`");
	if (status == 403)
		buf_append_str(text, ": the credentials in `headers` are not enough");
	if ((status == 401 || status == 403) && challenge.n > 0) {
		buf_append_str(text, " (");
		append_shown(text, challenge);
		buf_append_char(text, ')');
	} else if (status >= 300 && status <= 399) {
		buf_append_str(text, ", a redirect, which is not followed, to ");
		append_shown(text, curl_handle_answer_field(exchange->easy, "Location"));
	} else if (status != 401 && status != 403 && exchange->body.len > 0) {
		buf_append_str(text, ": ");
		append_shown(text, buf_slice(&exchange->body));
	}
}

static void fail_by_status(struct exchange *exchange, long status)
{
	struct buf text = { 0 };

	append_status(exchange, status, &text);
	fail(exchange, buf_slice(&text));
	buf_fini(&text);
}

static void fail_by_code(struct exchange *exchange, CURLcode code)
{
	struct buf text = { 0 };

	if (exchange->is_too_big)
		buf_append_str(&text, "sent a message that is too large (limits.response)");
	else if (exchange->is_refused)
		buf_append_str(&text, "has an address that is not allowed: private addresses need "
				      "`allow_private: true`");
	else if (code == CURLE_OK || code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR ||
		 code == CURLE_SEND_FAIL_REWIND || status_of(exchange) != 0)
		buf_append_str(&text, "closed the connection before it answered; the request may "
				      "have been executed");
	else {
		buf_append_str(&text, "cannot be reached: ");
		append_shown(&text,
			     slice_str(exchange->error[0] != '\0' ? exchange->error :
								    curl_easy_strerror(code)));
	}
	fail(exchange, buf_slice(&text));
	buf_fini(&text);
}

static uint64_t retry_ms(const struct exchange *exchange)
{
	uint64_t least = exchange->events.retry_ms != EVENT_RETRY_NONE ? exchange->events.retry_ms :
									 RETRY_MIN_MS;
	unsigned int doublings = exchange->resumes < RESUMES_MAX ? exchange->resumes : RESUMES_MAX;
	uint64_t wait_ms;

	if (least > RETRY_MAX_MS)
		least = RETRY_MAX_MS;
	wait_ms = least << doublings;
	return wait_ms < RETRY_MAX_MS ? wait_ms : RETRY_MAX_MS;
}

/* An answer that is no success, but a message: of the modern era, and of servers that explain themselves. */
static bool take_refusal(struct exchange *exchange)
{
	struct envelope env;
	struct error err;

	if (exchange->id.len == 0 ||
	    scan_envelope(buf_slice(&exchange->body), &scan_limits_none, SCAN_LENIENT, &env, &err) <
		    0 ||
	    env.kind != ENVELOPE_ERROR)
		return false;
	if (env.id.type == JSON_ABSENT) {
		struct buf message = { 0 };

		/* It is the only request of this exchange. */
		buf_append_str(&message, "{\"jsonrpc\":\"2.0\",\"id\":");
		buf_append_slice(&message, buf_slice(&exchange->id));
		buf_append_str(&message, ",\"error\":");
		buf_append_slice(&message, env.error.text);
		buf_append_char(&message, '}');
		take_message(exchange, buf_slice(&message));
		buf_fini(&message);
	} else {
		take_message(exchange, buf_slice(&exchange->body));
	}
	return true;
}

static void open_stream(struct remote *remote)
{
	if (remote->stream != NULL || remote->is_ending)
		return;
	remote->stream = new_exchange(remote, "GET");
	start(remote->stream);
}

/* Returns whether the exchange stays. */
static bool try_http_sse(struct exchange *exchange, long status)
{
	struct remote *remote = exchange->remote;

	if (exchange->method != METHOD_INITIALIZE || remote->transport != TRANSPORT_UNKNOWN ||
	    (status != 400 && status != 404 && status != 405))
		return false;
	leave_posted(exchange);
	remote->transport = TRANSPORT_HTTP_SSE;
	open_stream(remote);
	return true;
}

/* Without its answer. Returns whether the exchange stays, to go on behind its last event. */
static bool go_on_after_cut(struct exchange *exchange)
{
	if (exchange->id.len == 0 || exchange->is_modern || exchange->is_too_big ||
	    exchange->events.last_id.len == 0 || exchange->resumes >= RESUMES_MAX)
		return false;
	exchange->is_resumed = true;
	start_later(exchange, retry_ms(exchange));
	exchange->resumes++;
	return true;
}

static void finish_success(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;

	if (exchange->body.len > 0 && exchange->id.len > 0) {
		take_message(exchange, buf_slice(&exchange->body));
		exchange->is_answered = true;
	}
	if (exchange->id.len > 0 && !exchange->is_answered)
		fail(exchange, SLICE_LIT("took the request, but did not answer it"));
	if (exchange->method == METHOD_INITIALIZED && remote->transport == TRANSPORT_STREAMABLE)
		open_stream(remote);
	if (exchange->cancels.len > 0) {
		struct exchange *request = find_request(remote, buf_slice(&exchange->cancels));

		if (request != NULL)
			end(request);
	}
}

/* Of a message that a modern request was sent with, its _meta. */
static struct slice meta_of(struct slice message)
{
	return scan_member(scan_member(message, SLICE_LIT("params")).text, SLICE_LIT("_meta")).text;
}

/* Asks for a page of the tools. cursor: as written, or empty. */
static void list_tools(struct remote *remote, struct slice meta, struct slice cursor,
		       unsigned int page)
{
	struct exchange *exchange = new_exchange(remote, "POST");

	exchange->is_own = exchange->is_modern = true;
	exchange->page = page;
	exchange->method = METHOD_TOOLS_LIST;
	buf_printf(&exchange->id, "\"mcpgated-remote-%llu\"", (unsigned long long)++remote->lists);
	buf_append_str(&exchange->sent, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_append_slice(&exchange->sent, buf_slice(&exchange->id));
	buf_append_str(&exchange->sent, ",\"method\":\"tools/list\",\"params\":{\"_meta\":");
	buf_append_slice(&exchange->sent, meta);
	if (cursor.n > 0) {
		buf_append_str(&exchange->sent, ",\"cursor\":");
		buf_append_slice(&exchange->sent, cursor);
	}
	buf_append_str(&exchange->sent, "}}");
	start(exchange);
}

static bool has_own_list(const struct remote *remote)
{
	LIST_FOREACH(node, &remote->exchanges)
		if (container_of(node, struct exchange, link)->is_own)
			return true;
	return false;
}

/*
 * The head lacked an argument that it has to mirror. The call waits for the tools, once. Returns
 * whether it does.
 */
static bool list_after_mismatch(struct exchange *exchange)
{
	struct envelope env;
	struct error err;
	long long code = 0;

	if (exchange->method != METHOD_TOOLS_CALL || !exchange->is_modern ||
	    exchange->was_refused ||
	    scan_envelope(buf_slice(&exchange->body), &scan_limits_none, SCAN_LENIENT, &env, &err) <
		    0 ||
	    env.kind != ENVELOPE_ERROR ||
	    scan_int(scan_member(env.error.text, SLICE_LIT("code")), &code) < 0 ||
	    code != MCP_HEADER_MISMATCH)
		return false;
	exchange->was_refused = true;
	leave_posted(exchange);
	if (!has_own_list(exchange->remote))
		list_tools(exchange->remote, meta_of(buf_slice(&exchange->sent)),
			   (struct slice){ NULL, 0 }, 1);
	return true;
}

/* A page has come, or not: after the last one the calls that waited for it are sent again. */
static void finish_own_list(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;

	if (exchange->cursor.len > 0 && exchange->page < PAGES_MAX) {
		list_tools(remote, meta_of(buf_slice(&exchange->sent)),
			   buf_slice(&exchange->cursor), exchange->page + 1);
		return;
	}
	LIST_FOREACH(node, &remote->exchanges) {
		struct exchange *call = container_of(node, struct exchange, link);

		if (call->was_refused && call->state == STATE_POSTED)
			start_later(call, 0);
	}
}

/* Returns whether the exchange stays. */
static bool finish_post(struct exchange *exchange, CURLcode code)
{
	struct remote *remote = exchange->remote;
	long status = status_of(exchange);

	if (exchange->is_answered)
		return false;
	if (exchange->is_events || (code != CURLE_OK && exchange->is_resumed)) {
		if (go_on_after_cut(exchange))
			return true;
		fail_by_code(exchange, code);
	} else if (code != CURLE_OK) {
		fail_by_code(exchange, code);
	} else if (is_success(status) && remote->transport == TRANSPORT_HTTP_SSE &&
		   exchange->id.len > 0) {
		leave_posted(exchange);
		return true;
	} else if (is_success(status)) {
		finish_success(exchange);
	} else if (status == 404 && remote->session_id.len > 0 && !exchange->is_modern) {
		lose_session(remote, "the server has ended the session (404)");
	} else if (status == 400 && list_after_mismatch(exchange)) {
		return true;
	} else if (!take_refusal(exchange)) {
		if (try_http_sse(exchange, status))
			return true;
		fail_by_status(exchange, status);
	}
	return false;
}

/* Returns whether the exchange stays. */
static bool finish_stream(struct exchange *exchange, CURLcode code)
{
	struct remote *remote = exchange->remote;
	long status = status_of(exchange);

	if (remote->transport == TRANSPORT_HTTP_SSE) {
		if (!awaits_endpoint(remote))
			lose_session(remote, "the server has closed the stream of the session");
		if (code != CURLE_OK)
			fail_by_code(remote->barrier, code);
		else
			fail(remote->barrier,
			     SLICE_LIT("has neither Streamable HTTP nor HTTP+SSE at this address"));
		end(remote->barrier);
		return false;
	}
	if (code == CURLE_OK && status == 404 && remote->session_id.len > 0)
		lose_session(remote, "the server has ended the session (404)");
	/* 405: it has no such stream. Another refusal will not change by asking again, either. */
	if (code == CURLE_OK && status >= 400 && status <= 499)
		return false;
	start_later(exchange, retry_ms(exchange));
	exchange->resumes++;
	return true;
}

static void finish(struct exchange *exchange, CURLcode code)
{
	struct remote *remote = exchange->remote;
	bool stays = false;

	if (!exchange->has_head)
		look_at_head(exchange);
	if (exchange == remote->stream)
		stays = finish_stream(exchange, code);
	else if (strcmp(exchange->verb, "POST") == 0)
		stays = finish_post(exchange, code);
	if (!stays && exchange->is_own)
		finish_own_list(exchange);
	if (!stays)
		end(exchange);
}

/* ---- what the gateway writes ---- */

static void take_cancelled(struct remote *remote, const struct envelope *env, struct slice line)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("requestId"));
	struct exchange *request = find_request(remote, id.text);
	struct exchange *exchange;

	if (request != NULL && (request->is_modern || request->state == STATE_QUEUED)) {
		/* Over HTTP, a modern request is cancelled by closing its stream. */
		end(request);
		return;
	}
	exchange = new_exchange(remote, "POST");
	buf_append_slice(&exchange->sent, line);
	buf_append_slice(&exchange->cancels, id.text);
	start(exchange);
}

static void take_line(struct remote *remote, struct slice line)
{
	struct exchange *exchange;
	struct envelope env;
	struct error err;

	if (line.n == 0)
		return;
	if (scan_envelope(line, &scan_limits_none, 0, &env, &err) < 0) {
		dprintf(STDERR_FILENO, "not a message: %s\n", err.text);
		return;
	}
	if (env.kind == ENVELOPE_NOTIFICATION && method_find(env.method)->id == METHOD_CANCELLED) {
		take_cancelled(remote, &env, line);
		return;
	}
	exchange = new_exchange(remote, "POST");
	buf_append_slice(&exchange->sent, line);
	if (env.kind == ENVELOPE_REQUEST)
		buf_append_slice(&exchange->id, env.id.text);
	if (env.kind == ENVELOPE_REQUEST || env.kind == ENVELOPE_NOTIFICATION)
		exchange->method = method_find(env.method)->id;
	exchange->is_modern = message_headers_revision(&env).n > 0;
	if (exchange->method == METHOD_INITIALIZE || exchange->method == METHOD_INITIALIZED)
		remote->barrier = exchange;
	/* Requests wait for room; what they may be waiting for themselves does not. */
	if (exchange->id.len == 0 || remote->running < RUNNING_MAX)
		start(exchange);
}

static void take_lines(struct remote *remote)
{
	size_t taken = 0;

	while (remote->barrier == NULL && taken < remote->in.len) {
		const char *begin = remote->in.data + taken;
		const char *at = memchr(begin, '\n', remote->in.len - taken);

		if (at == NULL)
			break;
		take_line(remote, slice_between(begin, at));
		taken += (size_t)(at - begin) + 1;
	}
	buf_consume(&remote->in, taken);
}

static void read_in(struct remote *remote)
{
	ssize_t n = read(STDIN_FILENO, buf_reserve(&remote->in, READ_BYTES), READ_BYTES);

	if (n > 0)
		remote->in.len += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		remote->is_in_over = true;
}

/* ---- the loop ---- */

static void begin_end(struct remote *remote)
{
	remote->is_ending = true;
	LIST_FOREACH_SAFE(node, &remote->exchanges)
		end(container_of(node, struct exchange, link));
	if (remote->session_id.len > 0)
		start(new_exchange(remote, "DELETE"));
}

/* Returns when the next one is due; those that wait for room start in their order. */
static uint64_t start_due(struct remote *remote)
{
	uint64_t next_ms = UINT64_MAX;

	LIST_FOREACH(node, &remote->exchanges) {
		struct exchange *exchange = container_of(node, struct exchange, link);
		bool is_delayed = exchange->state == STATE_DELAYED;

		if (exchange->state == STATE_QUEUED && remote->running < RUNNING_MAX)
			start(exchange);
		else if (is_delayed && exchange->due_ms <= clock_now_ms())
			start(exchange);
		else if (is_delayed && exchange->due_ms < next_ms)
			next_ms = exchange->due_ms;
	}
	return next_ms;
}

static void go_on_reading(struct remote *remote)
{
	LIST_FOREACH(node, &remote->exchanges) {
		struct exchange *exchange = container_of(node, struct exchange, link);

		if (!exchange->is_paused || remote->out.len > OUT_BYTES_MAX / 2)
			continue;
		exchange->is_paused = false;
		curl_easy_pause(exchange->easy, CURLPAUSE_CONT);
	}
}

static void transfer(struct remote *remote)
{
	CURLMsg *message;
	int running, left;

	curl_multi_perform(remote->multi, &running);
	while ((message = curl_multi_info_read(remote->multi, &left)) != NULL) {
		struct exchange *exchange = NULL;
		CURLcode code = message->data.result;

		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
		CHECK(exchange != NULL && message->msg == CURLMSG_DONE);
		finish(exchange, code);
	}
}

/* Something to start, to read or to write, or time is over. */
static void wait_for_more(struct remote *remote, uint64_t next_ms)
{
	uint64_t now_ms = clock_now_ms();
	uint64_t wait_ms = next_ms > now_ms ? next_ms - now_ms : 0;
	bool reads =
		!remote->is_in_over && (remote->barrier == NULL || remote->in.len < READ_BYTES);
	struct curl_waitfd fds[2] = {
		{ .fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN },
		{ .fd = STDOUT_FILENO, .events = CURL_WAIT_POLLOUT },
	};
	bool writes = remote->out.len > 0;

	if (wait_ms > RETRY_MAX_MS)
		wait_ms = RETRY_MAX_MS;
	curl_multi_poll(remote->multi, fds + !reads, (unsigned int)(reads + writes), (int)wait_ms,
			NULL);
	clock_update();
	if (reads)
		read_in(remote);
}

static void run(struct remote *remote)
{
	for (;;) {
		take_lines(remote);
		if (remote->is_in_over && !remote->is_ending)
			begin_end(remote);
		transfer(remote);
		flush_out(remote);
		go_on_reading(remote);
		if (remote->is_ending && list_is_empty(&remote->exchanges))
			return;
		wait_for_more(remote, start_due(remote));
	}
}

/* ---- the beginning ---- */

/* Everything in the environment is a field; what a sanitizer is told is not. */
static void take_fields(struct remote *remote)
{
	for (char **entry = environ; *entry != NULL; entry++) {
		char *value = strchr(*entry, '=');

		if (value == NULL || strstr(*entry, "SAN_OPTIONS=") != NULL)
			continue;
		*value++ = '\0';
		curl_handle_add_field(&remote->fields, *entry, value);
		explicit_bzero(value, strlen(value));
	}
	clearenv();
}

static void read_ca(struct remote *remote, const char *path)
{
	const struct listed_writers writers = { NULL };
	struct error err;

	if (file_read(path, &writers, CA_BYTES_MAX, &remote->ca, NULL, &err) < 0)
		die(err.text);
}

static void take_arguments(struct remote *remote, int argc, char **argv)
{
	static const struct option options[] = {
		{ "allow-private", no_argument, NULL, 'p' },
		{ "ca", required_argument, NULL, 'c' },
		{ "message-bytes", required_argument, NULL, 'm' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		uint64_t most = 0;

		if (option == 'p')
			remote->address_filter.private = true;
		else if (option == 'c')
			read_ca(remote, optarg);
		else if (option != 'm' || text_parse_u64(slice_str(optarg), &most) < 0)
			die("can only be started by mcpgated");
		else
			remote->most = (size_t)most;
	}
	if (optind != argc - 1 || url_parse(slice_str(argv[optind]), &remote->parts) < 0)
		die("can only be started by mcpgated");
	remote->url = argv[optind];
	remote->post_url = mem_strdup(remote->url);
	remote->address_filter.loopback = url_is_loopback(&remote->parts);
}

static uint16_t port_of(const struct url *url)
{
	uint64_t port = url_is_https(url) ? 443 : 80;

	if (url->port.n > 0 && (text_parse_u64(url->port, &port) < 0 || port == 0 || port > 65535))
		die("the port of the url is none");
	return (uint16_t)port;
}

int main(int argc, char **argv)
{
	struct remote remote = { .most = (size_t)16 << 20 };
	struct error err;

	list_init(&remote.exchanges);
	tools_init(&remote.tools);
	take_fields(&remote);
	take_arguments(&remote, argc, argv);
	if (fetch_prepare(&err) < 0)
		die(err.text);
	log_set(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	confine_apply(&(struct confinement){ .fetches = true, .port = port_of(&remote.parts) });
	remote.multi = curl_multi_init();
	CHECK(remote.multi != NULL);
	curl_multi_setopt(remote.multi, CURLMOPT_MAXCONNECTS, (long)RUNNING_MAX);
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
	clock_update();
	run(&remote);
	flush_out(&remote);
	/* What is left belongs to the process, and ends with it. */
	_exit(0);
}
