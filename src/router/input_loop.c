/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round begins when the server requires input, and ends when the request is sent to it again,
 * under another id. In between, the server has nothing of the call, but the call stays among the
 * requests of its process: so the process is kept for it, as it may have remembered something. What
 * the server sends under the old id meanwhile is ignored.
 *
 * All that the server requires is examined before the client is asked anything: either everything
 * can be asked, or the call fails.
 */
#include "router/input_loop.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/level.h"
#include "router/call.h"
#include "router/client.h"
#include "router/convert.h"
#include "router/modern_tasks.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"
#include "router/server_request.h"
#include "upstream/send.h"

#define ROUNDS_MAX 10
#define QUESTIONS_MAX 32
#define ANSWER_BYTES_MAX (4 * 1024 * 1024) /* of a round in all; a single one may be larger */
/* The pause before a request is repeated although nothing was asked; doubled each time. */
#define PAUSE_MS 250
#define PAUSE_MAX_MS 5000
#define URLS_PAUSE_MS 2000 /* the pause before a request is repeated whose URLs were accepted */
#define URLS_MAX_MS (10 * 60 * 1000)

struct question {
	struct list link;
	struct asker asker;
	struct input_loop *loop;
	const struct method *method;
	struct msg *text;  /* as a request of a server */
	struct buf answer; /* JSON text; empty: none yet */
	size_t length;
	char key[]; /* the server's, as it was written */
};

struct input_loop {
	struct call *call;
	struct call_watcher watcher;
	struct list questions; /* of this round */
	size_t unanswered;
	size_t answer_bytes;
	struct buf state; /* the server's, as it was written; empty: none */
	/* What the last round sent the client to; empty: it was asked something else. */
	struct buf urls;
	uint64_t urls_since_ms;
	bool is_accepted; /* the client has accepted all of the last round */
	unsigned int rounds;
	unsigned int pauses;
	struct timer pause;
	bool is_asking; /* in a round: the request is not at the server */
};

/* ---- the life of a loop ---- */

static void question_free(struct question *question)
{
	if (question->asker.request != NULL)
		server_request_withdraw(question->asker.request);
	list_remove(&question->link);
	msg_unref(&question->text);
	buf_fini(&question->answer);
	loop_defer_free(question->loop->call->client->router->loop, question);
}

static void forget_questions(struct input_loop *loop)
{
	LIST_DRAIN(struct question, question, &loop->questions, link)
		question_free(question);
	loop->unanswered = 0;
	loop->answer_bytes = 0;
}

static void on_call_end(struct call_watcher *watcher, struct call *call)
{
	struct input_loop *loop = container_of(watcher, struct input_loop, watcher);

	timer_stop(&loop->pause);
	forget_questions(loop);
	buf_fini(&loop->state);
	buf_fini(&loop->urls);
	loop->is_asking = false;
	loop_defer_free(call->client->router->loop, loop);
}

static const struct call_watcher_ops watcher_ops = { .on_end = on_call_end };

static struct input_loop *find_loop(const struct call *call)
{
	LIST_EACH(struct call_watcher, watcher, &call->watchers, link)
		if (watcher->ops == &watcher_ops)
			return container_of(watcher, struct input_loop, watcher);
	return NULL;
}

static void on_pause(struct timer *timer);

static struct input_loop *loop_new_for(struct call *call)
{
	struct input_loop *loop = mem_zalloc(sizeof(*loop));

	loop->call = call;
	loop->watcher.ops = &watcher_ops;
	list_init(&loop->questions);
	timer_init(&loop->pause, on_pause);
	call_watch(call, &loop->watcher);
	return loop;
}

/* ---- failing the call ---- */

/* The failure of a tool is said in its result, for a model to read. */
static void fail(struct call *call, const char *why)
{
	at_end(buf_fini) struct buf result = { 0 };

	if (call->method->id != METHOD_TOOLS_CALL) {
		result_send_error(call, MCP_INTERNAL_ERROR, slice_str(why));
		return;
	}
	buf_append_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
	write_string(&result, slice_str(why));
	buf_append_str(&result, "}],\"isError\":true}");
	result_send_own(call, buf_slice(&result));
}

static void fail_malformed(struct call *call)
{
	call_fail(call, REASON_CHILD_PROTOCOL_ERROR);
}

/* ---- to the server ---- */

/*
 * Whether the call may have log lines. They do not say whose they are, so only one of many calls
 * may have them. bridging.md §6 row 9
 */
static bool may_log(struct call *call, struct upstream *upstream)
{
	const struct pool *pool = upstream->pool;
	bool is_wanted = call->client->level >= 0 && call->client->level != LEVEL_NONE;

	if (!is_wanted || !pool_is_shared(pool))
		return is_wanted;
	if (upstream->logged == NULL && pool->capabilities.offers & OFFER_LOGGING)
		upstream->logged = &call->request;
	return upstream->logged == &call->request;
}

static struct modern_request request_of(struct call *call, struct upstream *upstream)
{
	const struct client *client = call->client;
	struct modern_request request = { .is_modern = client->revision->is_modern, .level = -1 };

	if (may_log(call, upstream))
		request.level = client->level;
	if (!request.is_modern)
		request.capabilities = client_capabilities(client);
	return request;
}

bool input_loop_may_begin(const struct call *call, const struct upstream *upstream)
{
	return upstream_is_modern(upstream) && !call->client->revision->is_modern &&
	       (call->method->flags & METHOD_ASKING) != 0;
}

/*
 * The state that the server itself gave the modern client for this request; empty: none.
 * BACK-MSG-04
 */
static struct slice own_state(const struct envelope *env)
{
	return env->request_state.type == JSON_STRING ? env->request_state.text : slice_of(NULL, 0);
}

void input_loop_send(struct upstream *upstream, struct call *call, const struct envelope *env,
		     uint64_t id, struct slice cursor)
{
	struct modern_request request = request_of(call, upstream);
	char digits[20];

	request.cursor = cursor;
	if (call->task != NULL)
		request.task_id = call->task->own;
	if (request.is_modern) {
		request.input_responses = env->input_responses.text;
		if (call->task == NULL)
			request.request_state = own_state(env);
	}
	if (call->token.n > 0)
		request.token = slice_of(digits, text_format_u64(id, digits));
	send_passed_request(upstream, id, env, &request);
}

static void append_responses(struct buf *out, const struct input_loop *loop)
{
	LIST_EACH(const struct question, question, &loop->questions, link) {
		buf_append_str(out, out->len == 0 ? "{\"" : ",\"");
		buf_append_slice(out, slice_of(question->key, question->length));
		buf_append_str(out, "\":");
		buf_append_slice(out, buf_slice(&question->answer));
	}
	if (out->len > 0)
		buf_append_char(out, '}');
}

static void send_again(struct input_loop *loop, const struct envelope *env)
{
	struct call *call = loop->call;
	struct upstream *upstream = call->request.upstream;
	struct modern_request request = request_of(call, upstream);
	uint64_t id = upstream_next_id(upstream);
	at_end(buf_fini) struct buf responses = { 0 };
	char digits[20];

	append_responses(&responses, loop);
	request.input_responses = buf_slice(&responses);
	request.request_state = buf_slice(&loop->state);
	if (call->token.n > 0)
		request.token = slice_of(digits, text_format_u64(id, digits));
	send_modern_request(upstream, id, env->method, env->params.text, &request);
	upstream_renumber_request(&call->request, id);
}

static void end_round(struct input_loop *loop)
{
	struct call *call = loop->call;

	CHECK(loop->is_asking && loop->unanswered == 0 && call->body != NULL);
	if (!upstream_has_room(call->request.upstream, call->body->text.n + loop->answer_bytes)) {
		call_fail(call, REASON_OVER_LIMIT);
	} else {
		send_again(loop, call->body->env);
		loop->is_asking = false;
		forget_questions(loop);
		call_renew(call);
	}
}

static void on_pause(struct timer *timer)
{
	end_round(container_of(timer, struct input_loop, pause));
}

/* ---- answers of the client ---- */

static void take_answer(struct question *question, struct slice result)
{
	struct input_loop *loop = question->loop;
	struct slice action = scan_plain_string(scan_member(result, SLICE_LIT("action")));

	CHECK(question->answer.len == 0 && loop->unanswered > 0);
	if (loop->answer_bytes > 0 && loop->answer_bytes + result.n > ANSWER_BYTES_MAX) {
		fail(loop->call, "The answers to what the server asked are too large");
		return;
	}
	loop->answer_bytes += result.n;
	loop->is_accepted &= slice_is_equal(action, SLICE_LIT("accept"));
	buf_append_slice(&question->answer, result);
	if (--loop->unanswered == 0)
		end_round(loop);
}

/* Only an elicitation can be answered with a failure. */
static void on_refused(struct asker *asker, not_used const char *why)
{
	struct question *question = container_of(asker, struct question, asker);

	if (question->method->id == METHOD_ELICITATION)
		take_answer(question, SLICE_LIT("{\"action\":\"cancel\"}"));
	else
		fail(question->loop->call, "The client did not answer what the server asked it");
}

static void on_answer(struct asker *asker, const struct envelope *env)
{
	if (env->kind == ENVELOPE_RESULT)
		take_answer(container_of(asker, struct question, asker), env->result.text);
	else
		on_refused(asker, "the client answered with an error");
}

static const struct asker_ops asker_ops = { .on_answer = on_answer, .on_refused = on_refused };

/* ---- questions of the server ---- */

struct reading {
	struct input_loop *loop;
	struct buf urls;
	bool has_others; /* there are not only URLs */
	size_t count;
	const char *problem; /* for the client; NULL: none */
	bool is_malformed;
};

static bool is_url(const struct method *method, struct json params)
{
	struct json mode = scan_member(params.text, SLICE_LIT("mode"));

	return method->id == METHOD_ELICITATION &&
	       slice_is_equal(scan_plain_string(mode), SLICE_LIT("url"));
}

static void note_url(struct reading *reading, const struct method *method, struct json params)
{
	if (!is_url(method, params)) {
		reading->has_others = true;
		return;
	}
	buf_append_slice(&reading->urls, scan_member(params.text, SLICE_LIT("url")).text);
	buf_append_slice(&reading->urls, scan_member(params.text, SLICE_LIT("message")).text);
	buf_append_char(&reading->urls, '\n');
}

/* In 2025-11-25 a URL elicitation has an id: adds one if it is missing. */
static void append_params(struct buf *out, const struct method *method, struct json params)
{
	bool has_id = scan_member(params.text, SLICE_LIT("elicitationId")).type != JSON_ABSENT;
	uint64_t number[2];

	if (params.type == JSON_ABSENT) {
		buf_append_str(out, "{}");
		return;
	}
	if (has_id || !is_url(method, params)) {
		splice_append(out, params.text, NULL, 0, SPLICE_ONE_LINE);
		return;
	}
	random_bytes(number, sizeof(number));
	buf_printf(out, "{\"elicitationId\":\"%016llx%016llx\",", (unsigned long long)number[0],
		   (unsigned long long)number[1]);
	splice_append(out, slice_of(params.text.p + 1, params.text.n - 1), NULL, 0,
		      SPLICE_ONE_LINE);
}

/* Returns the request in the form of the client's revision; NULL if it cannot be expressed. */
static struct msg *make_request(const struct call *call, const struct method *method,
				struct json params)
{
	unsigned int lost = client_lacks(call->client, call->request.upstream);
	at_end(convert_fini) struct convert convert = { .text = { 0 } };
	at_end(buf_fini) struct buf written = { 0 }, text = { 0 };
	const struct envelope *converted = NULL;
	struct msg *msg = NULL;
	struct envelope env;

	append_params(&written, method, params);
	write_call(&text, SLICE_LIT("0"), method->name, buf_slice(&written));
	if (scan_envelope(buf_slice(&text), &call->client->router->limits, SCAN_LENIENT, &env,
			  NULL) == 0)
		converted = convert_server_request(&convert, lost, method, &env);
	if (converted != NULL)
		msg = msg_new_scanned(converted);
	return msg;
}

static void add_question(struct input_loop *loop, struct slice key, const struct method *method,
			 struct msg *text)
{
	struct question *question = mem_zalloc(sizeof(*question) + key.n);

	question->loop = loop;
	question->asker.ops = &asker_ops;
	question->method = method;
	question->text = text;
	question->length = key.n;
	memcpy(question->key, key.p, key.n);
	list_init(&question->link);
	list_append(&loop->questions, &question->link);
	loop->unanswered++;
}

static int read_question(struct slice key, struct json value, void *arg)
{
	struct reading *reading = arg;
	const struct call *call = reading->loop->call;
	struct json params = scan_member(value.text, SLICE_LIT("params"));
	const struct method *method = asking_method(value.text);
	struct slice capabilities = client_capabilities(call->client);
	struct msg *text = NULL;

	reading->is_malformed = (method->id != METHOD_ROOTS_LIST && method->id != METHOD_SAMPLING &&
				 method->id != METHOD_ELICITATION) ||
				(params.type != JSON_ABSENT && params.type != JSON_OBJECT) ||
				++reading->count > QUESTIONS_MAX;
	if (reading->is_malformed)
		return -1;
	if (asking_is_declared(capabilities, method) &&
	    asking_is_possible(capabilities, method, params.text))
		text = make_request(call, method, params);
	if (text == NULL) {
		reading->problem = "The server needs what this client cannot be asked";
		return -1;
	}
	add_question(reading->loop, key, method, text);
	note_url(reading, method, params);
	return 0;
}

/* A question may be answered, and the round or the call may end, before the next one is asked. */
static void ask(struct input_loop *loop)
{
	struct call *call = loop->call;
	struct list *node = loop->questions.next;

	for (size_t left = loop->unanswered; left > 0; left--) {
		struct question *question = container_of(node, struct question, link);

		node = node->next;
		if (!server_request_open_for(call, &question->asker, question->text->env,
					     question->method))
			fail(call, "The client has too many questions to answer");
		if (!loop->is_asking)
			return; /* the round is over, or the call */
	}
}

static void pause_round(struct input_loop *loop, uint64_t pause_ms)
{
	timer_start(loop->call->client->router->loop, &loop->pause, pause_ms);
}

/*
 * A client that accepts a URL visits it. The server finds out itself whether that was successful,
 * and asks the same until then. Returns whether this is so: the client is not asked twice.
 */
static bool repeat_urls(struct input_loop *loop, struct reading *reading)
{
	uint64_t now_ms = clock_now_ms();

	if (reading->has_others)
		reading->urls.len = 0;
	if (reading->urls.len == 0 || !loop->is_accepted ||
	    !slice_is_equal(buf_slice(&reading->urls), buf_slice(&loop->urls))) {
		buf_fini(&loop->urls);
		loop->urls = reading->urls;
		reading->urls = (struct buf){ 0 };
		loop->urls_since_ms = now_ms;
		loop->is_accepted = true;
		return false;
	}
	LIST_EACH(struct question, question, &loop->questions, link)
		buf_append_str(&question->answer, "{\"action\":\"accept\"}");
	loop->unanswered = 0;
	loop->rounds--; /* it does not count as a new one */
	if (now_ms - loop->urls_since_ms < URLS_MAX_MS)
		pause_round(loop, URLS_PAUSE_MS);
	else
		fail(loop->call, "What the client was sent to was not done in time");
	return true;
}

static void begin_round(struct input_loop *loop, struct slice result)
{
	struct json requests = scan_member(result, SLICE_LIT("inputRequests"));
	struct json state = scan_member(result, SLICE_LIT("requestState"));
	struct reading reading = { .loop = loop };
	struct call *call = loop->call;

	if ((requests.type != JSON_ABSENT && requests.type != JSON_OBJECT) ||
	    (state.type != JSON_ABSENT && state.type != JSON_STRING) ||
	    (requests.type == JSON_ABSENT && state.type == JSON_ABSENT)) {
		fail_malformed(call);
		return;
	}
	loop->is_asking = true;
	loop->state.len = 0;
	if (state.type == JSON_STRING)
		buf_append_slice(&loop->state, state.text);
	scan_members(requests.text, read_question, &reading);
	if (reading.is_malformed) {
		fail_malformed(call);
	} else if (reading.problem != NULL) {
		fail(call, reading.problem);
	} else if (loop->unanswered == 0) {
		uint64_t pause_ms = (uint64_t)PAUSE_MS << loop->pauses++;

		pause_round(loop, pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS);
	} else if (!repeat_urls(loop, &reading)) {
		ask(loop);
	}
	buf_fini(&reading.urls);
}

/* ---- responses ---- */

/* The client lacks a capability: for a tool, its result says so. */
static bool take_error(struct call *call, const struct envelope *env)
{
	long long code;

	if (call->method->id != METHOD_TOOLS_CALL ||
	    value_read_integer(scan_member(env->error.text, SLICE_LIT("code")), &code) < 0 ||
	    code != MCP_MISSING_CAPABILITY)
		return false;
	fail(call, "The server needs a client that can do more than this one");
	return true;
}

bool input_loop_take(struct call *call, const struct envelope *env)
{
	struct input_loop *loop = find_loop(call);
	enum modern_result kind;

	if (call->client->revision->is_modern)
		return false;
	if (loop != NULL && loop->is_asking) {
		upstream_note_stray(call->request.upstream, COUNTER_CHILD_STRAY_RESPONSES, env);
		return true;
	}
	if (env->kind == ENVELOPE_ERROR)
		return take_error(call, env);
	/* The result may be long. */
	kind = modern_server_kind(env->is_odd_result ?
					  scan_member(env->result.text, SLICE_LIT("resultType")) :
					  env->result_type);
	if (kind == MODERN_COMPLETE)
		return false;
	if (kind != MODERN_INPUT_REQUIRED || !input_loop_may_begin(call, call->request.upstream)) {
		fail_malformed(call);
		return true;
	}
	if (loop == NULL)
		loop = loop_new_for(call);
	if (++loop->rounds > ROUNDS_MAX)
		fail(call, "The server keeps asking");
	else
		begin_round(loop, env->result.text);
	return true;
}
