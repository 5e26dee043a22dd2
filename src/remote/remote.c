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
 * An exchange (exchange.h) ends by itself (finish), or when the gateway cancels it. A request that got
 * no answer is answered here, with an error that says what happened.
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
 * One thread and one loop, libcurl's; whatever waits has a time (start_due), and what comes in waits
 * while the gateway does not read.
 *
 * The end of stdin, or SIGTERM, ends the session; the second of them the process. For a client
 * (`mcpgatectl connect`), what it asked before its end of stdin is still answered, if that does not
 * take long; and a server that cannot be reached is waited for, as it may be about to start.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "auth/curl_handle.h"
#include "auth/fetch.h"
#include "auth/url.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "keeper/confine.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "obs/log.h"
#include "process/child.h"
#include "remote/arguments.h"
#include "remote/exchange.h"
#include "remote/message_headers.h"

#define RETRY_LEAST_MS 20
#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 30000
#define RESUMES_MAX 5   /* in a row, without an event in between */
#define UNASKED_MAX 256 /* notifications and answers under way; each has SHORT_MS */
#define BATCH_MAX 64
#define REDIRECTS_MAX 5
#define ENDPOINT_MS 10000  /* until the first event of HTTP+SSE */
#define LAST_WORDS_MS 2000 /* what has been answered, before this process gives up */
#define AWAY_MS 5000       /* for which a client waits for a server that cannot be reached */
#define AWAY_STEP_MS 250
#define LAST_ANSWERS_MS 10000 /* after the end of a client's stdin */
#define READ_BYTES (64 * 1024)
#define WRITES_PER_TURN 16
#define PAGES_MAX 64
#define SESSION_LINE_MAX 128 /* of a text that says that there is no such session */
#define SERVER_ERROR_FIRST (-32099)
#define SERVER_ERROR_LAST (-32000)
#define TEXT_BYTES_MAX 300 /* of what a server says in an answer that is no message */

/* ---- what the gateway reads ---- */

static void flush_out(struct remote *remote)
{
	size_t written = 0;

	for (int i = 0; i < WRITES_PER_TURN && written < remote->out.len; i++) {
		ssize_t n =
			write(STDOUT_FILENO, remote->out.data + written, remote->out.len - written);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			_exit(0); /* the gateway has gone */
		if (n < 0)
			break;
		written += (size_t)n;
	}
	buf_consume(&remote->out, written);
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
	at_end(buf_fini) struct buf shown = { 0 };

	buf_append_utf8(&shown, text.n > TEXT_BYTES_MAX ? slice_of(text.p, TEXT_BYTES_MAX) : text);
	for (size_t i = 0; i < shown.len; i++)
		if ((unsigned char)shown.data[i] < 0x20 || shown.data[i] == 0x7f)
			shown.data[i] = ' ';
	buf_append_slice(out, buf_slice(&shown));
}

static void append_server(const struct remote *remote, struct buf *out)
{
	struct slice place =
		remote->socket != NULL ? slice_str(remote->socket) : remote->parts.host;

	buf_printf(out, "the server at %.*s", SLICE_ARG(place));
	if (remote->parts.port.n > 0)
		buf_printf(out, ":%.*s", SLICE_ARG(remote->parts.port));
	buf_append_char(out, ' ');
}

/* Answers the request, or tells the log if nobody waits. */
static void fail(struct exchange *exchange, struct slice what)
{
	struct remote *remote = exchange->remote;
	at_end(buf_fini) struct buf text = { 0 };

	append_server(remote, &text);
	buf_append_slice(&text, what);
	/* Without it there is no server, and this process has failed its start. BACK-PROC-06 */
	if (!remote->has_served &&
	    (exchange->method == METHOD_INITIALIZE || exchange->method == METHOD_DISCOVER))
		die(buf_terminate(&text));
	if (exchange->id.len == 0 || exchange->is_own) {
		dprintf(STDERR_FILENO, "%s: %s\n", exchange->verb, buf_terminate(&text));
	} else {
		at_end(buf_fini) struct buf message = { 0 };

		write_error(&message, buf_slice(&exchange->id), MCP_INTERNAL_ERROR,
			    buf_slice(&text), (struct slice){ NULL, 0 });
		write_line(remote, buf_slice(&message));
	}
	exchange_set_answered(exchange);
}

/*
 * Nothing is sent without the credential that it needs: a request fails, and what nobody waits for is dropped. The exchange may be
 * gone then.
 */
static void start(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;
	at_end(buf_fini) struct buf text = { 0 };

	if (remote->no_credential.len == 0) {
		exchange_start(exchange);
		return;
	}
	remote->lacks_stream |= exchange == remote->stream;
	if (exchange->id.len > 0) {
		buf_append_str(&text, "needs a token (`auth`), and ");
		append_shown(&text, buf_slice(&remote->no_credential));
		fail(exchange, buf_slice(&text));
	}
	exchange_end(exchange);
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
static void take_page(struct exchange *exchange, struct slice result)
{
	struct json cursor = scan_member(result, SLICE_LIT("nextCursor"));

	exchange->cursor.len = 0;
	if (cursor.type == JSON_STRING)
		buf_append_slice(&exchange->cursor, cursor.text);
}

/*
 * Whom it answers; NULL: nobody. An error without an id, or with another one, is about the only request
 * of its exchange.
 */
static struct exchange *request_of(struct exchange *exchange, const struct envelope *env)
{
	bool is_alone = exchange->id.len > 0 && exchange->remote->transport != TRANSPORT_HTTP_SSE;

	if (is_alone && (env->kind == ENVELOPE_ERROR ||
			 value_is_same_id(env->id.text, buf_slice(&exchange->id))))
		return exchange;
	return env->id.type != JSON_ABSENT ? exchange_find(exchange->remote, env->id.text) : NULL;
}

/* Within libcurl's callbacks nothing that runs is started or ended. */
static void take_response(struct exchange *exchange, const struct envelope *env, struct slice text)
{
	struct exchange *request = request_of(exchange, env);
	at_end(buf_fini) struct buf message = { 0 };

	if (request == NULL || request->is_answered) {
		dprintf(STDERR_FILENO, "%s: the server sent an answer to no request\n",
			exchange->verb);
		return;
	}
	if (env->kind == ENVELOPE_ERROR &&
	    !value_is_same_id(env->id.text, buf_slice(&request->id))) {
		buf_append_str(&message, "{\"jsonrpc\":\"2.0\",\"id\":");
		buf_append_slice(&message, buf_slice(&request->id));
		buf_append_str(&message, ",\"error\":");
		buf_append_slice(&message, env->error.text);
		buf_append_char(&message, '}');
		text = buf_slice(&message);
	}
	if (request->method == METHOD_INITIALIZE && env->kind == ENVELOPE_RESULT)
		learn_session(exchange, env);
	if (request->method == METHOD_TOOLS_LIST && request->is_modern)
		tools_learn(&exchange->remote->tools, env->result.text);
	if (request->is_own)
		take_page(request, env->result.text);
	else
		write_line(exchange->remote, text);
	exchange->remote->has_served |= env->kind == ENVELOPE_RESULT;
	exchange_set_answered(request);
	if (request->state != STATE_RUNNING)
		exchange_end(request);
}

static int on_element(struct slice element, void *arg);

static void take_message(struct exchange *exchange, struct slice text)
{
	at_end(buf_fini) struct buf repaired = { 0 };
	struct envelope env;
	struct error err;

	exchange->resumes = 0;
	if (scan_type(text) == JSON_ARRAY) {
		(void)!scan_array(text, BATCH_MAX, on_element, exchange, &err);
		return;
	}
	/* BACK-FRAME-04 */
	if (!text_is_utf8(text)) {
		buf_append_utf8(&repaired, text);
		text = buf_slice(&repaired);
	}
	if (scan_envelope(text, &scan_limits_none, SCAN_LENIENT, &env, &err) < 0)
		dprintf(STDERR_FILENO, "%s: the server sent what is no message: %s\n",
			exchange->verb, err.text);
	else if (env.kind == ENVELOPE_RESULT || env.kind == ENVELOPE_ERROR)
		take_response(exchange, &env, text);
	else if (!exchange->is_own)
		write_line(exchange->remote, text);
}

static int on_element(struct slice element, void *arg)
{
	if (scan_type(element) == JSON_OBJECT)
		take_message(arg, element);
	return 0;
}

/* `initialize` waits for the first event of the stream. */
static bool awaits_endpoint(const struct remote *remote)
{
	return remote->transport == TRANSPORT_HTTP_SSE && remote->barrier != NULL &&
	       remote->barrier->state == STATE_POSTED && !remote->has_endpoint;
}

/* What it refers to, if that is of our origin, else NULL. The caller frees it. */
static char *resolve(const char *from, struct slice reference)
{
	at_end(mem_free) char *written = mem_dup_slice(reference);
	CURLU *url = curl_url();
	char *text = NULL, *copy = NULL;

	CHECK(url != NULL);
	if (curl_url_set(url, CURLUPART_URL, from, 0) == CURLUE_OK &&
	    curl_url_set(url, CURLUPART_URL, written, 0) == CURLUE_OK)
		curl_url_get(url, CURLUPART_URL, &text, 0);
	if (text != NULL && url_has_same_origin(slice_str(text), slice_str(from)))
		copy = mem_strdup(text);
	curl_free(text);
	curl_url_cleanup(url);
	return copy;
}

/* The first event of HTTP+SSE: where to post, which must be the same origin. */
static void take_endpoint(struct remote *remote, struct slice where)
{
	struct exchange *exchange = remote->barrier;
	char *url = resolve(remote->url, where);

	CHECK(awaits_endpoint(remote));
	if (url != NULL) {
		remote->has_endpoint = true;
		free(remote->post_url);
		remote->post_url = url;
		exchange_start_later(exchange, 0);
	} else {
		fail(exchange, SLICE_LIT("names another host to send messages to"));
		exchange_end(exchange);
	}
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

/* ---- how an exchange ends ---- */

/* The process cannot go on without its session; the gateway decides what follows. */
static void lose_session(struct remote *remote, const char *why)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	uint64_t end_ms = clock_now_ms() + LAST_WORDS_MS;

	while (remote->out.len > 0 && clock_now_ms() < end_ms) {
		flush_out(remote);
		poll(&out, 1, (int)(end_ms - clock_now_ms()));
		clock_update();
	}
	die(why);
}

/* What is not answered then has not been executed, or can be repeated. BACK-URL-05 */
static void forget_session(struct remote *remote)
{
	LIST_EACH(struct exchange, exchange, &remote->exchanges, link)
		if (exchange->id.len > 0 && exchange->sent_bytes > 0 && !exchange->is_answered &&
		    !exchange->is_safe)
			fail(exchange, SLICE_LIT("has lost the session; the request may have been "
						 "executed"));
	lose_session(remote, CHILD_FORGOTTEN);
}

static void append_status(const struct exchange *exchange, long status, struct buf *text)
{
	struct slice challenge = curl_handle_answer_field(exchange->easy, "WWW-Authenticate");

	buf_printf(text, "answered with status %ld", status);
	if (status == 401 || status == 403) {
		buf_append_str(
			text,
			exchange->remote->is_for_client ?
				": it wants a token that allows this (--token-file FILE)" :
			exchange->remote->gets_credential ?
				": the token that was got for it (`auth`) does not allow this" :
				": it wants credentials that allow this, in `headers`");
		buf_append_str(text, challenge.n > 0 ? "; it says: " : "");
		append_shown(text, challenge);
	} else if (status >= 300 && status <= 399) {
		buf_append_str(text,
			       ", a redirect that is not followed (only 307 and 308, to the same "
			       "host), to ");
		append_shown(text, curl_handle_answer_field(exchange->easy, "Location"));
	} else if (exchange->body.len > 0) {
		buf_append_str(text, ": ");
		append_shown(text, buf_slice(&exchange->body));
	}
}

static void fail_by_status(struct exchange *exchange, long status)
{
	at_end(buf_fini) struct buf text = { 0 };

	append_status(exchange, status, &text);
	if (exchange->is_resumed)
		buf_append_str(&text, "; the request may have been executed");
	fail(exchange, buf_slice(&text));
}

static void append_unreachable(const struct exchange *exchange, CURLcode code, struct buf *text)
{
	long number = 0;

	buf_append_str(text, "cannot be reached: ");
	append_shown(text, slice_str(exchange->error[0] != '\0' ? exchange->error :
								  curl_easy_strerror(code)));
	curl_easy_getinfo(exchange->easy, CURLINFO_OS_ERRNO, &number);
	if (code == CURLE_COULDNT_CONNECT && number != 0)
		buf_printf(text, " (%s)", strerror((int)number));
	if (code == CURLE_COULDNT_CONNECT && exchange->remote->is_for_client)
		buf_append_str(text, "; does it run? A daemon of your own is started by: systemctl "
				     "--user start mcpgated.socket, or mcpgated -c FILE");
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		buf_printf(text, "; %s names a certificate to trust",
			   exchange->remote->is_for_client ? "--ca FILE" : "`ca: FILE`");
}

/* TLS 1.3 says only here that our certificate is not good enough. */
static void append_cut(const struct exchange *exchange, struct buf *text)
{
	buf_append_str(text, "closed the connection before it answered");
	if (exchange->error[0] != '\0')
		buf_append_str(text, ": ");
	append_shown(text, slice_str(exchange->error));
	buf_append_str(text, "; the request may have been executed");
}

static void fail_by_code(struct exchange *exchange, CURLcode code)
{
	at_end(buf_fini) struct buf text = { 0 };

	if (exchange->is_too_big)
		buf_append_str(&text, "sent a message that is too large (limits.response)");
	else if (exchange->is_refused && exchange->sent_bytes == 0 && !exchange->is_resumed)
		buf_append_str(&text, "has an address that is not allowed: private addresses need "
				      "`allow_private: true`");
	else if (code == CURLE_OPERATION_TIMEDOUT && exchange->sent_bytes > 0)
		buf_append_str(&text, "did not answer in time");
	else if (exchange->sent_bytes > 0 || exchange->is_resumed)
		append_cut(exchange, &text);
	else
		append_unreachable(exchange, code, &text);
	fail(exchange, buf_slice(&text));
}

/* What the server asks for; longer if that has been in vain. */
static uint64_t retry_ms(const struct exchange *exchange)
{
	uint64_t asked_ms = exchange->events.retry_ms != EVENT_RETRY_NONE ?
				    exchange->events.retry_ms :
				    RETRY_MIN_MS;
	unsigned int doublings = exchange->resumes < RESUMES_MAX ? exchange->resumes : RESUMES_MAX;
	uint64_t least_ms =
		exchange->resumes > 0 ? (uint64_t)RETRY_MIN_MS << (doublings - 1) : RETRY_LEAST_MS;
	uint64_t wait_ms = asked_ms > least_ms ? asked_ms : least_ms;

	return wait_ms < RETRY_MAX_MS ? wait_ms : RETRY_MAX_MS;
}

/* An answer that is no success, but a message: of the modern era, and of servers that explain themselves. */
static bool take_refusal(struct exchange *exchange)
{
	struct envelope env;

	if (exchange->id.len == 0 ||
	    scan_envelope(buf_slice(&exchange->body), &scan_limits_none, SCAN_LENIENT, &env, NULL) <
		    0 ||
	    env.kind != ENVELOPE_ERROR)
		return false;
	take_response(exchange, &env, buf_slice(&exchange->body));
	return true;
}

static void open_stream(struct remote *remote)
{
	remote->wants_stream = false;
	if (remote->stream != NULL || remote->is_ending)
		return;
	remote->stream = exchange_new(remote, "GET");
	start(remote->stream);
}

/*
 * A redirect that keeps the method, to another path of the same origin, as many servers have from
 * `/mcp` to `/mcp/`. Whoever comes later goes there at once. Returns whether it is followed.
 */
static bool follow(struct exchange *exchange, long status)
{
	struct remote *remote = exchange->remote;
	bool is_to_endpoint = exchange->sent.len > 0 && remote->post_url != NULL;
	char **place = is_to_endpoint ? &remote->post_url : &remote->url;
	const char *from = NULL;
	char *url;

	if ((status != 307 && status != 308) || exchange->redirects >= REDIRECTS_MAX ||
	    curl_easy_getinfo(exchange->easy, CURLINFO_EFFECTIVE_URL, &from) != CURLE_OK)
		return false;
	url = resolve(from, curl_handle_answer_field(exchange->easy, "Location"));
	if (url == NULL)
		return false;
	exchange->redirects++;
	free(*place);
	*place = url;
	exchange_start_later(exchange, 0);
	return true;
}

/* Returns whether the exchange stays. */
static bool try_http_sse(struct exchange *exchange, long status)
{
	struct remote *remote = exchange->remote;

	if (exchange->method != METHOD_INITIALIZE || remote->transport != TRANSPORT_UNKNOWN ||
	    (status != 400 && status != 404 && status != 405))
		return false;
	append_status(exchange, status, &remote->refusal);
	exchange_leave_posted(exchange);
	exchange->due_ms = clock_now_ms() + ENDPOINT_MS;
	remote->transport = TRANSPORT_HTTP_SSE;
	open_stream(remote);
	return true;
}

static void note_progress(struct exchange *exchange)
{
	if (exchange->events.ids != exchange->ids)
		exchange->resumes = 0;
	exchange->ids = exchange->events.ids;
}

/* Without its answer. Returns whether the exchange stays, to go on behind its last event. */
static bool go_on_after_cut(struct exchange *exchange)
{
	note_progress(exchange);
	if (exchange->id.len == 0 || exchange->is_modern || exchange->is_too_big ||
	    exchange->events.last_id.len == 0 || exchange->resumes >= RESUMES_MAX)
		return false;
	exchange->is_resumed = true;
	exchange_start_later(exchange, retry_ms(exchange));
	exchange->resumes++;
	return true;
}

static void finish_success(struct exchange *exchange)
{
	if (exchange->body.len > 0 && exchange->id.len > 0)
		take_message(exchange, buf_slice(&exchange->body));
	if (exchange->id.len > 0 && !exchange->is_answered)
		fail(exchange, SLICE_LIT("took the request, but did not answer it with a message"));
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
	struct exchange *exchange = exchange_new(remote, "POST");

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
	LIST_EACH(struct exchange, exchange, &remote->exchanges, link)
		if (exchange->is_own)
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
	long long code = 0;

	if (exchange->method != METHOD_TOOLS_CALL || !exchange->is_modern ||
	    exchange->was_refused || exchange->remote->no_credential.len > 0 ||
	    scan_envelope(buf_slice(&exchange->body), &scan_limits_none, SCAN_LENIENT, &env, NULL) <
		    0 ||
	    env.kind != ENVELOPE_ERROR ||
	    scan_int(scan_member(env.error.text, SLICE_LIT("code")), &code) < 0 ||
	    code != MCP_HEADER_MISMATCH)
		return false;
	exchange->was_refused = true;
	exchange_leave_posted(exchange);
	if (!has_own_list(exchange->remote))
		list_tools(exchange->remote, meta_of(buf_slice(&exchange->sent)),
			   (struct slice){ NULL, 0 }, 1);
	return true;
}

/* A page has come, or not: after the last one the calls that waited for it are sent again. */
static void finish_own_list(struct exchange *exchange)
{
	struct remote *remote = exchange->remote;

	if (exchange->cursor.len > 0 && exchange->page < PAGES_MAX &&
	    remote->no_credential.len == 0) {
		list_tools(remote, meta_of(buf_slice(&exchange->sent)),
			   buf_slice(&exchange->cursor), exchange->page + 1);
		return;
	}
	LIST_EACH(struct exchange, call, &remote->exchanges, link)
		if (call->was_refused && call->state == STATE_POSTED)
			exchange_start_later(call, 0);
}

/*
 * Many servers have 400 for an id that they do not know, and say so in an error of JSON-RPC's range for
 * servers that answers no request, or in a line; "not initialized" if they have one session. BACK-URL-05
 */
static bool says_no_session(struct exchange *exchange)
{
	struct slice said = buf_slice(&exchange->body);
	char text[SESSION_LINE_MAX + 1];
	struct envelope env;
	long long code = 0;

	if (scan_envelope(said, &scan_limits_none, SCAN_LENIENT, &env, NULL) == 0) {
		if (env.kind != ENVELOPE_ERROR ||
		    (env.id.type != JSON_ABSENT &&
		     slice_is_equal(env.id.text, buf_slice(&exchange->id))) ||
		    scan_int(scan_member(env.error.text, SLICE_LIT("code")), &code) < 0 ||
		    code < SERVER_ERROR_FIRST || code > SERVER_ERROR_LAST)
			return false;
		said = scan_member(env.error.text, SLICE_LIT("message")).text;
	}
	if (said.n > SESSION_LINE_MAX)
		return false;
	snprintf(text, sizeof(text), "%.*s", SLICE_ARG(said));
	return strcasestr(text, "session") != NULL || strcasestr(text, "not initialized") != NULL;
}

/* A request that named the session is answered with this: it has not been executed. */
static bool has_lost_session(struct exchange *exchange, long status)
{
	return exchange->remote->session_id.len > 0 && !exchange->is_modern &&
	       !exchange->is_resumed &&
	       (status == 404 || (status == 400 && says_no_session(exchange)));
}

/* Nothing has been sent: it may be tried again until the server is there. Returns whether it is. */
static bool wait_while_away(struct exchange *exchange, CURLcode code)
{
	struct remote *remote = exchange->remote;

	if (code != CURLE_COULDNT_CONNECT) {
		remote->away_until_ms = 0;
		return false;
	}
	if (remote->away_until_ms == 0)
		remote->away_until_ms = clock_now_ms() + AWAY_MS;
	if (!remote->is_for_client || exchange->is_refused || remote->is_ending ||
	    clock_now_ms() >= remote->away_until_ms)
		return false;
	exchange_start_later(exchange, AWAY_STEP_MS);
	return true;
}

/* Returns whether the exchange stays. */
static bool finish_post(struct exchange *exchange, CURLcode code)
{
	struct remote *remote = exchange->remote;
	long status = exchange_status(exchange);

	if (exchange->is_answered)
		return false;
	if (wait_while_away(exchange, code))
		return true;
	if ((exchange->is_events && exchange->id.len > 0) ||
	    (code != CURLE_OK && exchange->is_resumed)) {
		if (go_on_after_cut(exchange))
			return true;
		fail_by_code(exchange, code);
	} else if (code != CURLE_OK) {
		fail_by_code(exchange, code);
	} else if (exchange_is_success(status) && remote->transport == TRANSPORT_HTTP_SSE &&
		   exchange->id.len > 0) {
		exchange_leave_posted(exchange);
		return true;
	} else if (exchange_is_success(status)) {
		finish_success(exchange);
	} else if (has_lost_session(exchange, status)) {
		exchange->sent_bytes = 0; /* of what counts */
		forget_session(remote);
	} else if (follow(exchange, status) || (status == 400 && list_after_mismatch(exchange))) {
		return true;
	} else if (!take_refusal(exchange)) {
		if (try_http_sse(exchange, status))
			return true;
		fail_by_status(exchange, status);
	}
	return false;
}

/* The first refusal says more than the second. */
static void give_up_http_sse(struct remote *remote)
{
	struct exchange *exchange = remote->barrier;

	buf_append_str(&remote->refusal, "; HTTP+SSE, of 2024-11-05, is not there either");
	fail(exchange, buf_slice(&remote->refusal));
	exchange_end(exchange);
}

/* Returns whether the exchange stays. */
static bool finish_stream(struct exchange *exchange, CURLcode code)
{
	struct remote *remote = exchange->remote;
	long status = exchange_status(exchange);

	if (code == CURLE_OK && follow(exchange, status))
		return true;
	if (remote->transport == TRANSPORT_HTTP_SSE) {
		if (!awaits_endpoint(remote))
			lose_session(remote, "the server has closed the stream of the session");
		give_up_http_sse(remote);
		return false;
	}
	/* At first it says that there is no such stream. */
	if (code == CURLE_OK && exchange->was_open && has_lost_session(exchange, status))
		forget_session(remote);
	/* The token is over, or not taken any more: the next one may be. */
	remote->lacks_stream = code == CURLE_OK && status == 401 && remote->gets_credential;
	/* 405: it has no such stream. Another refusal will not change by asking again, either. */
	if (code == CURLE_OK && status >= 400 && status <= 499 && !exchange_is_passing(status))
		return false;
	exchange->was_open |= exchange_is_success(status);
	if (exchange->is_too_big)
		dprintf(STDERR_FILENO,
			"GET: the server sent a message that is too large; it is lost\n");
	note_progress(exchange);
	exchange_start_later(exchange, retry_ms(exchange));
	exchange->resumes++;
	return true;
}

/* With what waited for its end. */
static void finish_at_last(struct exchange *exchange)
{
	struct exchange *cancelled = NULL;

	if (exchange->is_own)
		finish_own_list(exchange);
	/* Whether the server has taken that or not: nobody waits for the answer. */
	if (exchange->cancels.len > 0)
		cancelled = exchange_find(exchange->remote, buf_slice(&exchange->cancels));
	if (cancelled != NULL)
		exchange_end(cancelled);
	exchange_end(exchange);
}

/*
 * The gateway is told once, not by the end of this process: the session may still be there when the
 * server is back. Before anything has been answered, the failed start says it. BACK-URL-09
 */
static void tell_away(const struct exchange *exchange, CURLcode code)
{
	struct remote *remote = exchange->remote;
	long status = exchange_status(exchange);
	bool is_away = exchange_was_unreachable(exchange, code);
	/* A proxy may end a stream on which there was nothing to say. */
	bool is_refused = code == CURLE_OK && exchange_is_out_of_service(status) &&
			  exchange != remote->stream;
	bool *is_told = status == 401 ? &remote->is_unwelcome : &remote->is_away;
	at_end(buf_fini) struct buf text = { 0 };

	is_refused |= code == CURLE_OK && status == 401 && remote->gets_credential;
	if (!(is_away || is_refused) || remote->is_away || *is_told || remote->is_for_client ||
	    remote->is_ending || !(remote->has_served || status == 401))
		return;
	append_server(remote, &text);
	if (is_away)
		append_unreachable(exchange, code, &text);
	else
		append_status(exchange, status, &text);
	dprintf(STDERR_FILENO, "%s%s\n", status == 401 ? CHILD_REFUSED_MARK : CHILD_AWAY_MARK,
		buf_terminate(&text));
	*is_told = true;
	remote->was_reached = false;
}

static void tell_back(struct remote *remote)
{
	if (!(remote->is_away || remote->is_unwelcome) || !remote->was_reached)
		return;
	dprintf(STDERR_FILENO, CHILD_BACK_LINE "\n");
	remote->is_away = remote->is_unwelcome = false;
}

static void finish(struct exchange *exchange, CURLcode code)
{
	struct remote *remote = exchange->remote;
	bool stays = false;

	tell_away(exchange, code);
	if (!exchange->has_head)
		exchange_look_at_head(exchange);
	if (exchange == remote->stream)
		stays = finish_stream(exchange, code);
	else if (exchange->sent.len > 0)
		stays = finish_post(exchange, code);
	if (!stays)
		finish_at_last(exchange);
}

/* ---- what the gateway writes ---- */

static void take_cancelled(struct remote *remote, const struct envelope *env, struct slice line)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("requestId"));
	struct exchange *request = exchange_find(remote, id.text);
	struct exchange *exchange;

	if (request != NULL && (request->is_modern || request->state == STATE_QUEUED)) {
		/* Over HTTP, a modern request is cancelled by closing its stream. */
		exchange_end(request);
		return;
	}
	exchange = exchange_new(remote, "POST");
	buf_append_slice(&exchange->sent, line);
	buf_append_slice(&exchange->cancels, id.text);
	start(exchange);
}

/* Returns whether the line is about the credential from now on. A stream that was refused for the one before is opened again. */
static bool take_credential(struct remote *remote, struct slice line)
{
	const struct slice mark = SLICE_LIT(CHILD_CREDENTIAL_MARK),
			   name = SLICE_LIT("Authorization: "),
			   none = SLICE_LIT(CHILD_NO_CREDENTIAL_MARK);
	bool is_there = slice_has_prefix(line, mark);

	if (!remote->gets_credential || !(is_there || slice_has_prefix(line, none)))
		return false;
	buf_wipe(&remote->credential);
	remote->no_credential.len = 0;
	if (is_there)
		buf_append_slice(&remote->credential, slice_of(line.p + name.n, line.n - name.n));
	else
		buf_append_slice(&remote->no_credential,
				 slice_of(line.p + none.n, line.n - none.n));
	remote->wants_stream |= is_there && remote->lacks_stream;
	remote->lacks_stream &= !is_there;
	remote->is_unwelcome &= !is_there; /* if that one is refused as well, it is told */
	return true;
}

static void take_line(struct remote *remote, struct slice line)
{
	const struct method *method;
	struct exchange *exchange;
	struct envelope env;
	struct error err;

	if (line.n == 0 || take_credential(remote, line))
		return;
	if (scan_envelope(line, &scan_limits_none, 0, &env, &err) < 0) {
		dprintf(STDERR_FILENO, "not a message: %s\n", err.text);
		return;
	}
	method = method_find(env.method);
	if (env.kind == ENVELOPE_NOTIFICATION && method->id == METHOD_CANCELLED) {
		take_cancelled(remote, &env, line);
		return;
	}
	exchange = exchange_new(remote, "POST");
	buf_append_slice(&exchange->sent, line);
	if (env.kind == ENVELOPE_REQUEST)
		buf_append_slice(&exchange->id, env.id.text);
	exchange->method = method->id;
	exchange->is_safe = (method->flags & METHOD_SAFE) != 0;
	exchange->is_modern = message_headers_revision(&env).n > 0;
	if (exchange->method == METHOD_INITIALIZE || exchange->method == METHOD_INITIALIZED)
		remote->barrier = exchange;
	/* Requests wait for room; what they may be waiting for themselves does not. */
	if (exchange->id.len == 0 || remote->running < RUNNING_MAX)
		start(exchange);
}

static size_t count_unasked(const struct remote *remote)
{
	size_t count = 0;

	LIST_EACH(struct exchange, exchange, &remote->exchanges, link)
		count += exchange->id.len == 0;
	return count;
}

/* Lines wait behind the handshake, and behind too much that has not been taken. */
static bool is_held_up(const struct remote *remote)
{
	return remote->barrier != NULL || remote->is_ending || count_unasked(remote) >= UNASKED_MAX;
}

static void take_lines(struct remote *remote)
{
	size_t taken = 0;

	while (!is_held_up(remote) && taken < remote->in.len) {
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

/* Whether the client, which says no more, is still to get an answer. */
static bool owes_answers(const struct remote *remote)
{
	if (!remote->is_for_client || clock_now_ms() >= remote->over_ms + LAST_ANSWERS_MS)
		return false;
	LIST_EACH(const struct exchange, exchange, &remote->exchanges, link)
		if (exchange->id.len > 0 && !exchange->is_own && !exchange->is_answered)
			return true;
	return is_held_up(remote) && remote->in.len > 0;
}

static void begin_end(struct remote *remote)
{
	remote->is_ending = true;
	remote->in.len = 0; /* nobody waits for what it asks for */
	LIST_EACH_SAFE(struct exchange, exchange, &remote->exchanges, link)
		exchange_end(exchange);
	if (remote->session_id.len > 0)
		start(exchange_new(remote, "DELETE"));
}

/* An end may end others: after each it begins anew. */
static void end_lingering(struct remote *remote, uint64_t *next_ms)
{
	struct list *node = remote->exchanges.next;

	while (node != &remote->exchanges) {
		struct exchange *exchange = container_of(node, struct exchange, link);
		bool lingers = exchange->state == STATE_RUNNING && exchange->is_answered;

		node = node->next;
		if (lingers && exchange->due_ms <= clock_now_ms()) {
			finish_at_last(exchange);
			node = remote->exchanges.next;
		} else if (lingers && exchange->due_ms < *next_ms) {
			*next_ms = exchange->due_ms;
		}
	}
}

/* Returns when the next one is due; those that wait for room start in their order. */
static uint64_t start_due(struct remote *remote)
{
	uint64_t next_ms = UINT64_MAX;

	if (awaits_endpoint(remote) && remote->barrier->due_ms <= clock_now_ms())
		give_up_http_sse(remote);
	else if (awaits_endpoint(remote))
		next_ms = remote->barrier->due_ms;
	if (remote->is_in_over && !remote->is_ending && remote->over_ms + LAST_ANSWERS_MS < next_ms)
		next_ms = remote->over_ms + LAST_ANSWERS_MS;
	end_lingering(remote, &next_ms);
	LIST_EACH_SAFE(struct exchange, exchange, &remote->exchanges, link) {
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
	LIST_EACH(struct exchange, exchange, &remote->exchanges, link) {
		if (!exchange->is_paused || remote->out.len > OUT_BYTES_MAX / 2 ||
		    exchange_must_wait(exchange))
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
	tell_back(remote);
}

static bool take_signal(const struct remote *remote)
{
	struct signalfd_siginfo info;

	return read(remote->signals, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

static bool has_hung_up(int fd)
{
	struct pollfd poll_fd = { .fd = fd };

	return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLHUP) != 0;
}

/* Something to start, to read or to write, or time is over. */
static void wait_for_more(struct remote *remote, uint64_t next_ms)
{
	uint64_t now_ms = clock_now_ms();
	uint64_t wait_ms = next_ms > now_ms ? next_ms - now_ms : 0;
	bool listens = !remote->is_in_over;
	bool reads = listens && (!is_held_up(remote) || remote->in.len < READ_BYTES);
	struct curl_waitfd fds[3] = { { .fd = remote->signals, .events = CURL_WAIT_POLLIN } };
	unsigned int count = 1;

	/* Also with nothing to read for: that the gateway has closed it is always told. */
	if (listens)
		fds[count++] = (struct curl_waitfd){ .fd = STDIN_FILENO,
						     .events = reads ? CURL_WAIT_POLLIN : 0 };
	if (remote->out.len > 0)
		fds[count++] =
			(struct curl_waitfd){ .fd = STDOUT_FILENO, .events = CURL_WAIT_POLLOUT };
	if (wait_ms > RETRY_MAX_MS)
		wait_ms = RETRY_MAX_MS;
	curl_multi_poll(remote->multi, fds, count, (int)wait_ms, NULL);
	clock_update();
	if (reads)
		read_in(remote);
	else if (listens)
		remote->is_in_over = has_hung_up(STDIN_FILENO);
	if (listens)
		remote->over_ms = clock_now_ms();
}

static void run(struct remote *remote)
{
	for (;;) {
		uint64_t next_ms;

		transfer(remote);
		take_lines(remote);
		if (take_signal(remote)) {
			if (remote->is_in_over)
				return;
			remote->is_in_over = true;
			begin_end(remote);
		}
		if (remote->is_in_over && !remote->is_ending && !owes_answers(remote))
			begin_end(remote);
		if (remote->wants_stream)
			open_stream(remote);
		next_ms = start_due(remote);
		flush_out(remote);
		go_on_reading(remote);
		if (remote->is_ending && list_is_empty(&remote->exchanges))
			return;
		wait_for_more(remote, next_ms);
	}
}

/* ---- the beginning ---- */

/* From here on a signal is something to read. */
static int open_signals(void)
{
	sigset_t set;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		die("cannot take signals");
	return fd;
}

int main(int argc, char **argv)
{
	struct remote remote = { .most = (size_t)16 << 20, .on_event = on_event };
	struct error err;

	list_init(&remote.exchanges);
	tools_init(&remote.tools);
	arguments_take(&remote, argc, argv);
	if (fetch_prepare(&err) < 0)
		die(err.text);
	/* A client's file is for certificates that are trusted, too. */
	if (remote.is_for_client && remote.ca.len > 0)
		buf_append_slice(&remote.ca, fetch_system_ca());
	log_set(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	remote.signals = open_signals();
	confine_apply(&(struct confinement){
		.fetches = true, .port = remote.port, .unix_sockets = remote.socket != NULL });
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
