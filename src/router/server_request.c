/* SPDX-License-Identifier: Apache-2.0 */
/* Every request of a server ends: it is answered by the client or by us, or the server is gone. */
#include "router/server_request.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "router/client.h"
#include "router/process_slots.h"
#include "router/router.h"
#include "session/stream.h"
#include "upstream/send.h"

#define SERVER_REQUESTS_MAX 256
#define HELD_BYTES_MAX (1024 * 1024) /* of requests for a client that is not ready */
#define HOLD_MS (60 * 1000)

static const char *const too_many = "too many requests are unanswered";

/* ---- the life ---- */

static void start_hold(struct server_request *request)
{
	timer_start(request->client->router->loop, &request->hold, HOLD_MS);
}

/* The call's connection is gone: the client may come back for the request, but not for long. */
static void on_call_unreachable(struct call_watcher *watcher)
{
	start_hold(container_of(watcher, struct server_request, watcher));
}

/* The client may have seen the request, and may still answer. */
static void on_call_end(struct call_watcher *watcher, struct call *call)
{
	struct server_request *request = container_of(watcher, struct server_request, watcher);

	CHECK(request->call == call);
	request->call = NULL;
	start_hold(request);
}

static const struct call_watcher_ops watcher_ops = {
	.on_unreachable = on_call_unreachable,
	.on_end = on_call_end,
};

static void set_call(struct server_request *request, struct call *call)
{
	CHECK(request->call == NULL);
	request->call = call;
	call_watch(call, &request->watcher);
	call_note_asked(call);
}

static struct msg *take_held(struct server_request *request)
{
	struct msg *msg = request->held;

	request->held = NULL;
	if (msg != NULL)
		request->client->server_requests.held_bytes -= msg->text.n;
	return msg;
}

void server_request_close(struct server_request *request)
{
	struct server_requests *all = &request->client->server_requests;
	struct msg *held = take_held(request);

	CHECK(map_find(&all->by_id, request->downstream_id) == request);
	msg_unref(&held);
	if (request->asker != NULL)
		request->asker->request = NULL;
	list_remove(&request->link);
	map_remove(&all->by_id, request->downstream_id);
	timer_stop(&request->hold);
	call_unwatch(&request->watcher);
	if (request->call != NULL)
		call_note_answered(request->call);
	process_slots_note_idle(&request->client->router->slots);
	loop_defer_free(request->client->router->loop, request);
}

/* Returns false if the server itself asked. */
static bool refuse_asker(struct server_request *request, const char *why)
{
	struct asker *asker = request->asker;

	if (asker == NULL)
		return false;
	server_request_close(request);
	asker->ops->on_refused(asker, why);
	return true;
}

/* The request could not even be sent to the client. */
static void refuse_unasked(struct server_request *request, const char *why)
{
	if (refuse_asker(request, why))
		return;
	send_error(request->upstream, request->id, MCP_INTERNAL_ERROR, slice_str(why));
	server_request_close(request);
}

/*
 * Nobody will answer the request: the server is told `why`; elicitations are answered with cancel.
 * bridging.md §2.1 (6)
 */
static void refuse(struct server_request *request, const char *why)
{
	if (refuse_asker(request, why))
		return;
	CHECK(request->upstream->state != UPSTREAM_CLOSED);
	if (request->method->id == METHOD_ELICITATION)
		send_result(request->upstream, request->id, SLICE_LIT("{\"action\":\"cancel\"}"));
	else
		send_error(request->upstream, request->id, MCP_INTERNAL_ERROR, slice_str(why));
	server_request_close(request);
}

/*
 * Goes the way that the request took; if that is still in the stream, it is dropped there instead.
 * CXL-09
 */
static void tell_cancelled(struct server_request *request, struct msg *msg)
{
	struct stream *standalone = client_stream(request->client);

	if (request->is_standalone && stream_drop(standalone, request->downstream_id))
		return;
	if (!request->is_standalone && request->call != NULL &&
	    request->call->ops->on_message(request->call, STREAM_REQUEST, 0, msg))
		return;
	if (standalone != NULL)
		stream_push(standalone, STREAM_REQUEST, 0, msg);
}

static void tell_withdrawn(struct server_request *request)
{
	struct buf text = { 0 };
	at_end(msg_unref) struct msg *msg = NULL;

	if (request->held != NULL)
		return;
	buf_printf(
		&text,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%llu}}",
		(unsigned long long)request->downstream_id);
	msg = msg_new_take(&text);
	tell_cancelled(request, msg);
}

void server_request_withdraw_all(struct client *client, const struct upstream *upstream,
				 const char *why)
{
	LIST_EACH_SAFE(struct server_request, request, &client->server_requests.all, link) {
		if (request->upstream != upstream)
			continue;
		tell_withdrawn(request);
		refuse(request, why);
	}
}

void server_request_cancel(struct server_request *request, const struct envelope *env,
			   struct slice id)
{
	char digits[20];
	struct splice_edit edit = { id, { digits, 0 } };

	edit.with.n = text_format_u64(request->downstream_id, digits);
	if (request->held == NULL) {
		at_end(msg_unref) struct msg *msg = client_copy_message(env, &edit, 1);

		tell_cancelled(request, msg);
	}
	server_request_close(request);
}

void server_request_end_all(struct client *client, const char *why)
{
	LIST_DRAIN(struct server_request, request, &client->server_requests.all, link) {
		if (why != NULL) {
			refuse(request, why);
		} else {
			tell_withdrawn(request);
			server_request_close(request);
		}
	}
}

/* ---- waiting for the answer ---- */

/* There is a reader to take the request: from now on its answer is awaited. */
static void offer(struct server_request *request)
{
	request->is_offered = true;
	request->until_ms = clock_now_ms() + request->client->server->conf.request_timeout_max_ms;
}

static bool is_reachable(const struct call *call)
{
	return call->ops->is_reachable == NULL || call->ops->is_reachable(call);
}

/* People take their time; and a client that polls may be away at one check, but not at two. */
static void on_hold(struct timer *timer)
{
	struct server_request *request = container_of(timer, struct server_request, hold);
	const struct call *call = request->call;
	bool is_read = request->is_standalone ? stream_has_reader(client_stream(request->client)) :
						call != NULL && is_reachable(call);
	bool is_gone = !is_read && (!request->is_offered || request->is_missed);

	if (is_read && !request->is_offered)
		offer(request);
	request->is_missed = !is_read;
	if (!is_gone && clock_now_ms() < request->until_ms) {
		start_hold(request);
		return;
	}
	tell_withdrawn(request);
	if (request->is_offered) {
		refuse(request, "the client did not answer in time");
	} else {
		refuse_unasked(request, "no client is there to be asked");
	}
}

/* ---- the way to the client ---- */

/* If an asker asks, the call is known. */
static struct call *find_own_call(const struct server_request *request, struct msg *msg)
{
	struct call *call = request->own_call;

	if (call == NULL)
		return NULL;
	CHECK(call->state == CALL_SENT);
	return msg == NULL || call->ops->on_message(call, STREAM_REQUEST, request->downstream_id,
						    msg) ?
		       call :
		       NULL;
}

/*
 * The call that the request most likely belongs to: the latest that takes it, calls of
 * METHOD_ASKING before others. With msg == NULL it need not take it. NULL: there is none.
 * bridging.md §1.6 (5)
 */
static struct call *find_call(const struct server_request *request, struct msg *msg)
{
	const struct client *client = request->client;
	struct upstream_request *about;

	if (request->asker != NULL)
		return find_own_call(request, msg);
	about = request->upstream->about;
	if (about != NULL) {
		struct call *call = container_of(about, struct call, request);

		/* Of another client's call, which shares the upstream, nothing is to be seen. */
		if (call->client == client &&
		    (msg == NULL ||
		     call->ops->on_message(call, STREAM_REQUEST, request->downstream_id, msg)))
			return call;
	}
	for (unsigned int wanted = METHOD_ASKING;; wanted = 0) {
		for (struct list *node = client->calls.prev; node != &client->calls;
		     node = node->prev) {
			struct call *call = container_of(node, struct call, link);
			bool may_be = call->state == CALL_SENT &&
				      call->request.upstream == request->upstream &&
				      (call->method->flags & METHOD_ASKING) == wanted;

			if (may_be &&
			    (msg == NULL || call->ops->on_message(call, STREAM_REQUEST,
								  request->downstream_id, msg)))
				return call;
		}
		if (wanted == 0)
			return NULL;
	}
}

static void ask_on_own_stream(struct server_request *request, struct msg *msg)
{
	struct stream *standalone = client_stream(request->client);
	struct call *call;

	if (standalone == NULL) {
		refuse_unasked(request, "no client can be asked now");
		return;
	}
	if (stream_is_full(standalone)) {
		refuse_unasked(request, "no client takes the requests that wait already");
		return;
	}
	request->is_standalone = true;
	call = find_call(request, NULL);
	if (call != NULL)
		set_call(request, call); /* its client is asked all the same. CXL-08 */
	if (stream_has_reader(standalone))
		offer(request);
	stream_push(standalone, STREAM_REQUEST, request->downstream_id, msg);
}

/* Sends the request by whatever can carry it; if nothing can, the server is told. */
static void ask(struct server_request *request, struct msg *msg)
{
	struct call *call = find_call(request, msg);

	CHECK(request->held == NULL && request->client->is_ready_to_be_asked);
	if (call == NULL) {
		ask_on_own_stream(request, msg);
		return;
	}
	if (is_reachable(call))
		timer_stop(&request->hold);
	set_call(request, call);
}

void server_request_release_held(struct client *client)
{
	CHECK(client->is_ready_to_be_asked);
	LIST_EACH_SAFE(struct server_request, request, &client->server_requests.all, link) {
		at_end(msg_unref) struct msg *msg = take_held(request);

		if (msg != NULL)
			ask(request, msg);
	}
}

/* ---- the beginning ---- */

static struct server_request *request_new(struct client *client, struct upstream *upstream,
					  const struct envelope *env, const struct method *method)
{
	struct server_requests *all = &client->server_requests;
	struct slice id = env->id.text;
	struct slice token = env->progress_token.text;
	struct server_request *request = mem_alloc(sizeof(*request) + id.n + token.n);

	*request = (struct server_request){ .client = client,
					    .upstream = upstream,
					    .downstream_id = ++all->last_id,
					    .method = method,
					    .watcher = { .ops = &watcher_ops } };
	list_init(&request->watcher.link);
	timer_init(&request->hold, on_hold);
	memcpy(request->text, id.p, id.n);
	if (token.n > 0)
		memcpy(request->text + id.n, token.p, token.n);
	request->id = slice_of(request->text, id.n);
	request->token = slice_of(request->text + id.n, token.n);
	list_append(&all->all, &request->link);
	map_insert(&all->by_id, request->downstream_id, request);
	start_hold(request);
	return request;
}

static struct msg *make_msg(const struct envelope *env, const struct server_request *request)
{
	char digits[20];
	struct slice id = slice_of(digits, text_format_u64(request->downstream_id, digits));
	struct splice_edit edits[2] = { { env->id.text, id }, { env->progress_token.text, id } };

	if (request->token.n == 0)
		return client_copy_message(env, edits, 1);
	if (edits[0].span.p > edits[1].span.p) {
		struct splice_edit first = edits[0];

		edits[0] = edits[1];
		edits[1] = first;
	}
	return client_copy_message(env, edits, 2);
}

/* Sends the request to the client, or holds it until the client is ready. */
static void begin(struct server_request *request, const struct envelope *env)
{
	struct server_requests *all = &request->client->server_requests;
	at_end(msg_unref) struct msg *msg = make_msg(env, request);

	if (request->client->is_ready_to_be_asked) {
		ask(request, msg);
	} else if (all->held_bytes + msg->text.n > HELD_BYTES_MAX) {
		refuse_unasked(request, too_many);
	} else {
		all->held_bytes += msg->text.n;
		request->held = msg_ref(msg);
	}
}

static bool has_room(const struct client *client, struct upstream *upstream,
		     const struct envelope *env)
{
	CHECK(client->pool == upstream->pool);
	if (client->server_requests.by_id.count < SERVER_REQUESTS_MAX)
		return true;
	send_error(upstream, env->id.text, MCP_INTERNAL_ERROR, slice_str(too_many));
	return false;
}

bool server_request_open(struct client *client, struct upstream *upstream,
			 const struct envelope *env, const struct method *method)
{
	CHECK(upstream->client == client);
	if (!has_room(client, upstream, env))
		return false;
	begin(request_new(client, upstream, env, method), env);
	return true;
}

bool server_request_open_for(struct call *call, struct asker *asker, const struct envelope *env,
			     const struct method *method)
{
	struct server_request *request;

	CHECK(asker->request == NULL && call->state == CALL_SENT);
	if (call->client->server_requests.by_id.count >= SERVER_REQUESTS_MAX)
		return false;
	request = request_new(call->client, call->request.upstream, env, method);
	request->own_call = call;
	request->asker = asker;
	asker->request = request;
	begin(request, env);
	return true;
}

void server_request_give(struct server_request *request, const struct envelope *env)
{
	struct asker *asker = request->asker;

	server_request_close(request);
	asker->ops->on_answer(asker, env);
}

void server_request_withdraw(struct server_request *request)
{
	CHECK(request->asker != NULL);
	tell_withdrawn(request);
	server_request_close(request);
}

/* ---- looking up ---- */

struct server_request *server_request_find(const struct client *client, struct json downstream_id)
{
	return map_find(&client->server_requests.by_id, value_own_id(downstream_id));
}

struct server_request *server_request_find_of_server(const struct client *client,
						     const struct upstream *upstream,
						     struct slice id)
{
	LIST_EACH(struct server_request, request, &client->server_requests.all, link)
		if (request->upstream == upstream && value_is_same_id(request->id, id))
			return request;
	return NULL;
}

/* ---- asking ---- */

static bool is_told(struct slice capabilities, const char *capability, const char *member)
{
	const char *const path[] = { capability, member };
	enum json_type type = scan_path(capabilities, path, member != NULL ? 2 : 1).type;

	return type != JSON_ABSENT && type != JSON_NULL && type != JSON_FALSE;
}

bool asking_is_declared(struct slice capabilities, const struct method *method)
{
	return method->capability != NULL && method->id != METHOD_LIST_CHANGED &&
	       is_told(capabilities, method->capability, NULL);
}

bool asking_can_open_urls(struct slice capabilities)
{
	return is_told(capabilities, "elicitation", "url");
}

bool asking_is_possible(struct slice capabilities, const struct method *method, struct slice params)
{
	bool has_mode = false, has_tools = false;
	struct json mode;
	struct slice name;

	if (method->id != METHOD_SAMPLING && method->id != METHOD_ELICITATION)
		return true;
	SCAN_MEMBERS(member, params) {
		bool is_mode = slice_is_equal(member.name, SLICE_LIT("mode"));
		bool is_tools = slice_is_equal(member.name, SLICE_LIT("tools"));
		bool is_like = slice_is_equal_nocase(member.name, SLICE_LIT("mode")) ||
			       slice_is_equal_nocase(member.name, SLICE_LIT("tools"));

		/* The client may read one of those that decide differently. */
		if ((is_mode && has_mode) || (is_tools && has_tools) ||
		    (is_like && !is_mode && !is_tools) ||
		    memchr(member.name.p, '\\', member.name.n) != NULL)
			return false;
		has_mode |= is_mode;
		has_tools |= is_tools;
	}
	if (method->id == METHOD_SAMPLING)
		return !has_tools || is_told(capabilities, "sampling", "tools");
	mode = scan_member(params, SLICE_LIT("mode"));
	name = scan_plain_string(mode);
	if (slice_is_equal(name, SLICE_LIT("url")))
		return asking_can_open_urls(capabilities);
	/* If the mode is absent or null, it is a form. */
	if (mode.type != JSON_ABSENT && mode.type != JSON_NULL &&
	    !slice_is_equal(name, SLICE_LIT("form")))
		return false;
	return is_told(capabilities, "elicitation", "form") || !asking_can_open_urls(capabilities);
}

unsigned int asking_needs(const struct method *method, struct slice params)
{
	struct json mode = scan_member(params, SLICE_LIT("mode"));

	if (method->id == METHOD_ROOTS_LIST)
		return ASKING_ROOTS;
	if (method->id == METHOD_SAMPLING)
		return scan_member(params, SLICE_LIT("tools")).type == JSON_ABSENT ?
			       ASKING_SAMPLING :
			       ASKING_SAMPLING_TOOLS;
	if (method->id != METHOD_ELICITATION)
		return 0;
	return slice_is_equal(scan_plain_string(mode), SLICE_LIT("url")) ? ASKING_URLS :
									   ASKING_FORMS;
}

void asking_append_needs(struct buf *out, unsigned int needs)
{
	unsigned int modes = needs & (ASKING_FORMS | ASKING_URLS);

	buf_append_char(out, '{');
	if (needs & ASKING_ROOTS)
		write_member(out, SLICE_LIT("roots"), SLICE_LIT("{}"));
	if (needs & (ASKING_SAMPLING | ASKING_SAMPLING_TOOLS))
		write_member(out, SLICE_LIT("sampling"),
			     needs & ASKING_SAMPLING_TOOLS ? SLICE_LIT("{\"tools\":{}}") :
							     SLICE_LIT("{}"));
	if (modes != 0)
		write_member(out, SLICE_LIT("elicitation"),
			     modes == ASKING_FORMS ? SLICE_LIT("{\"form\":{}}") :
			     modes == ASKING_URLS  ? SLICE_LIT("{\"url\":{}}") :
						     SLICE_LIT("{\"form\":{},\"url\":{}}"));
	buf_append_char(out, '}');
}

const struct method *asking_method(struct slice question)
{
	struct json written = scan_member(question, SLICE_LIT("method"));
	at_end(buf_fini) struct buf room = { 0 };
	struct slice name;

	(void)!scan_read_string(written, &room, &name);
	return method_find(name);
}

size_t server_requests_of_calls(const struct client *client)
{
	size_t count = 0;

	LIST_EACH(const struct server_request, request, &client->server_requests.all, link) {
		CHECK(request->client == client);
		count += request->call != NULL;
	}
	return count;
}
