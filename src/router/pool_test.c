/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many sessions on few children: the router between fronts that write into buffers and servers that are played
 * line by line. Time stands still between steps. Messages are written here with ' for ".
 */
#include "router/partition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "backend/fake_keeper.h"
#include "base/clock.h"
#include "base/text.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "router/forward.h"
#include "router/lane.h"
#include "router/route.h"
#include "router/spares.h"

#define MEMBERS_MAX 64
#define FRONTS_MAX 8192
#define IDLE_MS 300000
#define QUEUE_TIMEOUT_MS 10000

enum ending { ENDING_NONE, ENDING_RESPONSE, ENDING_FAILED, ENDING_CANCELLED };

struct front {
	struct call call;
	struct buf messages; /* each followed by a bar */
	struct buf response;
	enum ending ending;
	enum reason reason;
	unsigned int endings;
	unsigned long mark; /* what random calls carry */
};

/* A session and who reads its own stream. */
struct member {
	struct route *route;
	struct stream_reader reader;
	struct buf got;
};

static struct loop *loop;
static struct fake_keeper keeper;
static struct backend backend;
static struct router router;
static struct front *fronts;
static size_t front_count;
static struct member members[MEMBERS_MAX];
static size_t member_count;
static uint64_t now_ms;
static int log_fd;

/* ---- fronts and readers ---- */

static void front_end(struct front *front, enum ending ending)
{
	front->ending = ending;
	front->endings++;
	assert_int_equal(front->endings, 1); /* bridging I3 */
}

static bool on_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg)
{
	struct front *front = container_of(call, struct front, call);

	(void)kind;
	(void)key;
	assert_int_equal(front->endings, 0);
	if (call->method->id == METHOD_INITIALIZE)
		return false;
	buf_append_slice(&front->messages, msg->text);
	buf_append_char(&front->messages, '|');
	return true;
}

static void on_response(struct call *call, const struct slice *parts, size_t count)
{
	struct front *front = container_of(call, struct front, call);

	for (size_t i = 0; i < count; i++)
		buf_append_slice(&front->response, parts[i]);
	front_end(front, ENDING_RESPONSE);
}

static void on_failed(struct call *call, enum reason reason)
{
	struct front *front = container_of(call, struct front, call);

	front->reason = reason;
	front_end(front, ENDING_FAILED);
}

static void on_cancelled(struct call *call)
{
	front_end(container_of(call, struct front, call), ENDING_CANCELLED);
}

static bool is_reachable(const struct call *call)
{
	(void)call;
	return true;
}

static const struct call_ops front_ops = {
	.on_message = on_message,
	.is_reachable = is_reachable,
	.on_response = on_response,
	.on_failed = on_failed,
	.on_cancelled = on_cancelled,
};

static void on_wake(struct stream_reader *reader)
{
	struct member *member = container_of(reader, struct member, reader);
	uint64_t number;
	struct msg *msg;

	while ((msg = stream_take(reader, &number)) != NULL) {
		buf_append_slice(&member->got, msg->text);
		buf_append_char(&member->got, '|');
		msg_unref(&msg);
	}
}

static void on_detached(struct stream_reader *reader, enum reason reason)
{
	(void)reader;
	(void)reason;
}

static const struct stream_reader_ops reader_ops = { on_wake, on_detached };

/* ---- words for the stories ---- */

static const char *q(const char *text)
{
	static char texts[8][10000];
	static unsigned int next;
	char *to = texts[next++ % 8];

	assert_true(strlen(text) < sizeof(texts[0]));
	strcpy(to, text);
	for (char *at = to; (at = strchr(at, '\'')) != NULL;)
		*at = '"';
	return to;
}

static void pass(uint64_t ms)
{
	now_ms += ms;
	clock_freeze(now_ms);
	fake_keeper_settle(&keeper);
}

static struct envelope scan(const char *text)
{
	struct envelope env;
	struct error err;

	if (scan_envelope(slice_str(text), &router.limits, 0, &env, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return env;
}

static struct front *front_new(const struct envelope *env)
{
	struct front *front = &fronts[front_count++];

	assert_true(front_count < FRONTS_MAX);
	call_init(&front->call, &front_ops, env);
	return front;
}

static struct front *open_session_as(struct principal *principal, const char *text)
{
	struct envelope env = scan(q(text));
	struct front *front = front_new(&env);

	route_open(&router, &backend, principal, &front->call, &env);
	fake_keeper_settle(&keeper);
	return front;
}

static struct front *open_session(const char *text)
{
	return open_session_as(&router.sessions.principals.anonymous, text);
}

static struct front *request(struct route *route, const char *text)
{
	struct envelope env = scan(q(text));
	struct front *front = front_new(&env);

	forward_request(route, &front->call, &env);
	fake_keeper_settle(&keeper);
	return front;
}

static void notify(struct route *route, const char *text)
{
	struct envelope env = scan(q(text));

	forward_notification(route, &env);
	fake_keeper_settle(&keeper);
}

static void says(struct fake_process *p, const char *text)
{
	fake_process_write(p, q(text));
	fake_process_write(p, "\n");
	fake_keeper_settle(&keeper);
}

static void hears(struct fake_process *p, const char *text)
{
	const char *line = fake_process_read(p);

	if (line == NULL)
		fail_msg("nothing came instead of %s", text);
	assert_string_equal(line, q(text));
}

static void hears_nothing(struct fake_process *p)
{
	const char *line = fake_process_read(p);

	if (line != NULL)
		fail_msg("nothing was to come, but %s", line);
}

static void is_answered(struct front *front, const char *text)
{
	assert_int_equal(front->ending, ENDING_RESPONSE);
	assert_string_equal(buf_terminate(&front->response), q(text));
}

static void is_failed(const struct front *front, enum reason reason)
{
	assert_int_equal(front->ending, ENDING_FAILED);
	assert_string_equal(reason_get(front->reason)->text, reason_get(reason)->text);
}

static void is_open(const struct front *front)
{
	assert_int_equal(front->ending, ENDING_NONE);
}

static void was_told(struct front *front, const char *text)
{
	assert_string_equal(buf_terminate(&front->messages), q(text));
	front->messages.len = 0;
}

/* What came on the session's own stream since the last look. */
static void heard(struct member *member, const char *text)
{
	assert_string_equal(buf_terminate(&member->got), q(text));
	member->got.len = 0;
}

static struct fake_process *process(size_t i)
{
	assert_true(i < keeper.count);
	return &keeper.processes[i];
}

#define INITIALIZE                                                                                \
	"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'2025-06-18'," \
	"'capabilities':{'roots':{},'sampling':{}},'clientInfo':{'name':'c','version':'1'}}}"
#define INITIALIZE_WITH(caps)                                                                     \
	"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'2025-11-25'," \
	"'capabilities':{" caps "},'clientInfo':{'name':'c','version':'1'}}}"
#define OFFERS                                                        \
	"'tools':{'listChanged':true},'resources':{'subscribe':true," \
	"'listChanged':true},'prompts':{}"
#define WELCOME                                                                             \
	"{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25','capabilities':{" \
	"'logging':{}," OFFERS ",'tasks':{'list':{}}},'serverInfo':{'name':'s','version':'1'}}}"
#define WELCOMED                                                                                   \
	"{'jsonrpc':'2.0','id':0,'result':{'protocolVersion':'2025-06-18','capabilities':{" OFFERS \
	"},'serverInfo':{'name':'s','version':'1'}}}"
#define INITIALIZED "{'jsonrpc':'2.0','method':'notifications/initialized'}"
#define CALL(id) "{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':'t'}}"
#define RESULT(id) "{'jsonrpc':'2.0','id':" id ",'result':{'ok':1}}"
#define LIST(id) "{'jsonrpc':'2.0','id':" id ",'method':'tools/list'}"
#define TOOLS(id, names) "{'jsonrpc':'2.0','id':" id ",'result':{'tools':[" names "]}}"
#define SUBSCRIBE(id) \
	"{'jsonrpc':'2.0','id':" id ",'method':'resources/subscribe','params':{'uri':'r:a'}}"
#define UNSUBSCRIBE(id) \
	"{'jsonrpc':'2.0','id':" id ",'method':'resources/unsubscribe','params':{'uri':'r:a'}}"
#define EMPTY(id) "{'jsonrpc':'2.0','id':" id ",'result':{}}"
#define CANCELLED(id) \
	"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':" id "}}"

static struct member *join(struct front *front)
{
	struct member *member = &members[member_count++];

	assert_true(member_count < MEMBERS_MAX);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	member->route = front->call.route;
	assert_true(stream_attach(&member->route->session.standalone, &member->reader, &reader_ops,
				  STREAM_FROM_HERE));
	notify(member->route, INITIALIZED);
	return member;
}

/* The process does what is usual at its beginning. */
static void get_ready(size_t i)
{
	assert_non_null(fake_process_read(process(i)));
	says(process(i), WELCOME);
	hears(process(i), INITIALIZED);
}

/* Some session; the first one makes process 0 ready. */
static struct member *begin(void)
{
	struct front *front = open_session(INITIALIZE);

	if (front->ending == ENDING_NONE)
		get_ready(0);
	return join(front);
}

/* ---- before and after ---- */

static int setup(void **state)
{
	static const struct session_conf sessions = {
		.max_sessions = MEMBERS_MAX,
		.max_per_principal = MEMBERS_MAX,
		.idle_ms = 3600000,
		.max_age_ms = 86400000,
		.store = { .stream = { .max_bytes = 1 << 20, .replay_age_ms = 600000 },
			   .session_bytes = 64 << 20,
			   .total_bytes = 256 << 20 },
	};
	static const struct backend_conf conf = {
		.name = "test",
		.isolation = ISOLATION_SHARED,
		.pool_max = 2,
		.calls_per_process = 2,
		.sessions_per_process = MEMBERS_MAX,
		.queue_calls = 4,
		.queue_timeout_ms = QUEUE_TIMEOUT_MS,
		.idle_ms = IDLE_MS,
		.line_max = 1 << 20,
		.queue_max = 1 << 20,
		.start_timeout_ms = 20000,
		.backoff_min_ms = 1000,
		.backoff_max_ms = 8000,
		.give_up_after = 3,
		.stop_grace_ms = 5000,
		.stop_term_ms = 3000,
		.stall_ms = 30000,
		.request_timeout_ms = 60000,
		.request_timeout_max_ms = 600000,
	};
	struct error err;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	now_ms = 1000000;
	clock_freeze(now_ms);
	log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	log_set(log_fd, LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	loop = loop_new(&err);
	fake_keeper_init(&keeper, loop);
	backend_init(&backend, loop, keeper.spawner, &conf);
	router = (struct router){ .loop = loop, .limits = { 64, 200 } };
	list_init(&router.pools);
	listings_store_init(&router.lists);
	list_init(&router.spares);
	session_set_init(&router.sessions, loop, &sessions);
	fronts = calloc(FRONTS_MAX, sizeof(*fronts));
	front_count = member_count = 0;
	memset(members, 0, sizeof(members));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	session_set_fini(&router.sessions);
	spares_end_all(&router, REASON_DRAINING);
	partition_end_all(&router, REASON_DRAINING);
	fake_keeper_settle(&keeper);
	for (size_t i = 0; i < keeper.count; i++) {
		if (!keeper.processes[i].is_started)
			fake_keeper_start(&keeper, &keeper.processes[i]);
		if (!keeper.processes[i].is_exited)
			fake_process_exit(&keeper, &keeper.processes[i], 0);
	}
	fake_keeper_settle(&keeper);
	assert_int_equal(backend.count + backend.reserved, 0);
	assert_int_equal(router.calls, 0);
	assert_int_equal(router.sessions.count + router.sessions.reserved, 0);
	for (size_t i = 0; i < front_count; i++) {
		assert_int_equal(fronts[i].endings, 1);
		buf_fini(&fronts[i].messages);
		buf_fini(&fronts[i].response);
	}
	for (size_t i = 0; i < member_count; i++)
		buf_fini(&members[i].got);
	free(fronts);
	buf_fini(&router.scratch);
	fake_keeper_fini(&keeper);
	loop_free(&loop);
	close(log_fd);
	return 0;
}

/* ---- sessions ---- */

/* bridging.md §1.2, §1.3, §2.1 (2): one start for all; the child is told nothing of any client. */
static void sessions_share_a_child(void **state)
{
	struct front *first = open_session(INITIALIZE);
	struct front *second = open_session(INITIALIZE);
	struct front *third;

	(void)state;
	assert_int_equal(keeper.count, 1);
	hears(process(0),
	      "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':"
	      "'2025-11-25','capabilities':{},'clientInfo':{'name':'mcpgated','version':"
	      "'" PACKAGE_VERSION "'}}}");
	is_open(first);
	says(process(0), WELCOME);
	is_answered(first, WELCOMED);
	is_answered(second, WELCOMED);
	hears(process(0), INITIALIZED);
	third = open_session(INITIALIZE);
	is_answered(third, WELCOMED);
	session_end(&first->call.route->session, REASON_DELETED);
	fake_keeper_settle(&keeper);
	hears_nothing(process(0));
	assert_false(process(0)->is_eof);
}

/* All who wait hear of a start that fails; the next one tries anew. */
static void start_can_fail(void **state)
{
	struct front *first = open_session(INITIALIZE);
	struct front *second = open_session(INITIALIZE);

	(void)state;
	fake_process_exit(&keeper, process(0), 1 << 8);
	fake_keeper_settle(&keeper);
	is_failed(first, REASON_START_FAILED);
	is_failed(second, REASON_START_FAILED);
	assert_int_equal(router.sessions.count + router.sessions.reserved, 0);
	first = open_session(INITIALIZE);
	is_open(first);
	pass(1000); /* the back-off */
	get_ready(1);
	is_answered(first, WELCOMED);
}

static void server_may_refuse(void **state)
{
	struct front *first = open_session(INITIALIZE);
	struct front *second = open_session(INITIALIZE);

	(void)state;
	says(process(0), "{'jsonrpc':'2.0','id':1,'error':{'code':-32602,'message':'no'}}");
	is_answered(first, "{'jsonrpc':'2.0','id':0,'error':{'code':-32602,'message':'no'}}");
	is_answered(second, "{'jsonrpc':'2.0','id':0,'error':{'code':-32602,'message':'no'}}");
	hears(process(0),
	      "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':"
	      "'2025-11-25','capabilities':{},'clientInfo':{'name':'mcpgated','version':"
	      "'" PACKAGE_VERSION "'}}}");
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
	assert_int_equal(router.sessions.count, 0);
}

/* ---- answers ---- */

#define TOKEN_CALL(id, token)                                                  \
	"{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':" \
	"'t','_meta':{'progressToken':" token "}}}"
#define PROGRESS(token, n)                                                   \
	"{'jsonrpc':'2.0','method':'notifications/progress','params':{'prog" \
	"ressToken':" token ",'progress':" n "}}"

/* SEC-06; bridging.md §8 (1), (2): the same id and token from two clients at once. */
static void ids_and_tokens_do_not_cross(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->route, TOKEN_CALL("1", "1"));
	struct front *two = request(b->route, TOKEN_CALL("1", "1"));

	(void)state;
	hears(process(0), TOKEN_CALL("2", "2"));
	hears(process(0), TOKEN_CALL("3", "3"));
	says(process(0), PROGRESS("3", "5"));
	was_told(two, PROGRESS("1", "5") "|");
	was_told(one, "");
	says(process(0), PROGRESS("3", "4")); /* less than before */
	says(process(0), PROGRESS("1", "4")); /* the client's token: not ours */
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'two':1}}");
	says(process(0), PROGRESS("3", "6")); /* too late */
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'again':1}}");
	says(process(0), "{'jsonrpc':'2.0','id':99,'result':{'what':1}}");
	is_answered(two, "{'jsonrpc':'2.0','id':1,'result':{'two':1}}");
	was_told(two, "");
	is_open(one);
	was_told(one, "");
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'one':1}}");
	is_answered(one, "{'jsonrpc':'2.0','id':1,'result':{'one':1}}");
	heard(a, "");
	heard(b, "");
}

/* CXL-02, bridging.md §1.1 (6): a client cancels its own call alone, and what still comes of it reaches nobody. */
static void cancelled_calls_stay_silent(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->route, CALL("1"));
	struct front *two = request(b->route, CALL("1"));

	(void)state;
	hears(process(0), CALL("2"));
	hears(process(0), CALL("3"));
	notify(a->route, CANCELLED("1"));
	assert_int_equal(one->ending, ENDING_CANCELLED);
	is_open(two);
	hears(process(0), CANCELLED("2"));
	says(process(0), RESULT("2"));
	says(process(0), "{'jsonrpc':'2.0','error':{'code':1,'message':'of the cancelled one'}}");
	is_open(two);
	says(process(0), RESULT("3"));
	is_answered(two, RESULT("1"));
}

/* bridging.md §1.3, §1.6, §8 (3): a shared child cannot ask. */
static void child_cannot_ask(void **state)
{
	struct member *a = begin();
	struct front *call = request(a->route, CALL("1"));

	(void)state;
	hears(process(0), CALL("2"));
	says(process(0), "{'jsonrpc':'2.0','id':7,'method':'sampling/createMessage','params':{}}");
	hears(process(0),
	      "{'jsonrpc':'2.0','id':7,'error':{'code':-32601,'message':'Method not found: "
	      "the client did not declare this capability'}}");
	says(process(0), "{'jsonrpc':'2.0','id':'p','method':'ping'}");
	hears(process(0), "{'jsonrpc':'2.0','id':'p','result':{}}");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/message','params':{"
			 "'level':'error','data':'x'}}");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/vendor','params':{}}");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
			 "'requestId':7}}");
	was_told(call, "");
	heard(a, "");
	notify(a->route, "{'jsonrpc':'2.0','method':'notifications/roots/list_changed'}");
	notify(a->route, "{'jsonrpc':'2.0','method':'notifications/vendor'}");
	hears_nothing(process(0));
}

/* bridging.md §2.1 (3): what is not offered is unknown, without the child being asked. */
static void what_is_not_offered_is_unknown(void **state)
{
	static const char *const methods[] = { "logging/setLevel", "tasks/list",
					       "completion/complete" };
	struct member *a = begin();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		char text[200];

		snprintf(text, sizeof(text),
			 "{'jsonrpc':'2.0','id':1,'method':'%s','params':{'level':'info'}}",
			 methods[i]);
		assert_non_null(strstr(buf_terminate(&request(a->route, text)->response),
				       "\"code\":-32601"));
	}
	hears_nothing(process(0));
	request(a->route, "{'jsonrpc':'2.0','id':1,'method':'vendor/thing'}");
	hears(process(0), "{'jsonrpc':'2.0','id':2,'method':'vendor/thing'}");
}

/* A list that is nobody else's: the server is told something beside what is asked for. */
#define LIST_OF(id) "{'jsonrpc':'2.0','id':" id ",'method':'tools/list','params':{'of':'x'}}"
#define PAGE(id, cursor)                                              \
	"{'jsonrpc':'2.0','id':" id ",'method':'tools/list','params'" \
	":{'cursor':" cursor "}}"

/* bridging.md §1.1 (7): a cursor leads back to its child; another one, or a made-up one, is refused. */
static void cursors_name_their_child(void **state)
{
	struct member *a = begin();
	struct front *first;
	struct json cursor;
	char page[300];

	(void)state;
	request(a->route, CALL("1"));
	request(a->route, CALL("2"));
	first = request(a->route, LIST_OF("3")); /* by another process: 0 has enough */
	get_ready(1);
	hears(process(1), LIST_OF("2"));
	says(process(1), "{'jsonrpc':'2.0','id':2,'result':{'tools':[],'nextCursor':'a\\u0022b'}}");
	cursor = scan_path(buf_slice(&first->response),
			   (const char *const[]){ "result", "nextCursor" }, 2);
	assert_null(memmem(cursor.text.p, cursor.text.n, "u0022", 5));
	says(process(0), RESULT("2"));
	snprintf(page, sizeof(page), PAGE("4", "%.*s"), SLICE_ARG(cursor.text));
	first = request(a->route, page);
	hears(process(1), PAGE("3", "'a\\u0022b'"));
	says(process(1), "{'jsonrpc':'2.0','id':3,'result':{'tools':[]}}");
	is_answered(first, "{'jsonrpc':'2.0','id':4,'result':{'tools':[]}}");
	first = request(a->route, PAGE("5", "'bmV4dA'"));
	assert_non_null(strstr(buf_terminate(&first->response), "\"code\":-32602"));
	first = request(a->route, PAGE("5", "7"));
	assert_non_null(strstr(buf_terminate(&first->response), "\"code\":-32602"));
	fake_process_exit(&keeper, process(1), 0);
	fake_keeper_settle(&keeper);
	first = request(a->route, page);
	assert_non_null(strstr(buf_terminate(&first->response), "\"code\":-32602"));
}

/* product.md §4 requests_per_process: the rest of a list is a request like others. */
static void cursors_respect_the_limit(void **state)
{
	struct member *a = begin();
	struct front *front = request(a->route, LIST_OF("1"));
	struct json cursor;
	char page[300];

	(void)state;
	hears(process(0), LIST_OF("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[],'nextCursor':'n'}}");
	cursor = scan_path(buf_slice(&front->response),
			   (const char *const[]){ "result", "nextCursor" }, 2);
	snprintf(page, sizeof(page), PAGE("2", "%.*s"), SLICE_ARG(cursor.text));
	request(a->route, CALL("1"));
	request(a->route, page);
	hears(process(0), CALL("3"));
	hears(process(0), PAGE("4", "'n'"));
	is_failed(request(a->route, page), REASON_OVER_LIMIT);
	hears_nothing(process(0));
	says(process(0), RESULT("3"));
	request(a->route, page);
	hears(process(0), PAGE("5", "'n'"));
}

/* bridging.md §1.3, §2.5: pools offer no tasks, so there is no word of them. */
static void tasks_are_hidden(void **state)
{
	struct front *front = open_session(INITIALIZE_WITH(""));
	struct member *a;

	(void)state;
	get_ready(0);
	a = join(front);
	request(a->route, "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'t',"
			  "'task':{'ttl':1},'x':2}}");
	hears(process(0),
	      "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'t','x':2}}");
	front = request(a->route, LIST_OF("2"));
	hears(process(0), LIST_OF("3"));
	says(process(0),
	     TOOLS("3", "{'name':'a','execution':{'taskSupport':'required'}},{'name':'b',"
			"'execution':{}}"));
	is_answered(front, TOOLS("2", "{'name':'b'}"));
}

/* Nor is another child asked for the rest of a list when the one that knows it is lost over it. */
static void lost_cursors_are_not_tried_elsewhere(void **state)
{
	struct member *a = begin();
	struct front *front;
	struct json cursor;
	char page[300];

	(void)state;
	front = request(a->route, LIST_OF("1"));
	hears(process(0), LIST_OF("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[],'nextCursor':'n'}}");
	cursor = scan_path(buf_slice(&front->response),
			   (const char *const[]){ "result", "nextCursor" }, 2);
	snprintf(page, sizeof(page), PAGE("2", "%.*s"), SLICE_ARG(cursor.text));
	front = request(a->route, page);
	hears(process(0), PAGE("3", "'n'"));
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	is_failed(front, REASON_CHILD_EXITED);
	assert_int_equal(keeper.count, 1);
}

/* What a client makes up does not get out of its string. */
static void made_up_cursors_stay_strings(void **state)
{
	struct member *a = begin();
	const char plain[] = "\1\0\0\0\0\0\0\0\1x\",\"y\":\"z";
	char text[64] = { 0 };
	char page[300];
	struct front *front;

	(void)state;
	text_base64url(plain, sizeof(plain) - 1, text);
	snprintf(page, sizeof(page), PAGE("1", "'%s'"), text);
	front = request(a->route, page);
	assert_non_null(strstr(buf_terminate(&front->response), "\"code\":-32602"));
	hears_nothing(process(0));
}

/* ---- dispatch ---- */

/* bridging.md §1.4: the least loaded; another process when all are full; then waiting, one party after the other. */
static void calls_are_spread(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *calls[8];

	(void)state;
	calls[0] = request(a->route, CALL("10"));
	calls[1] = request(a->route, CALL("11"));
	assert_int_equal(keeper.count, 1);
	calls[2] = request(a->route, CALL("12"));
	assert_int_equal(keeper.count, 2);
	get_ready(1);
	hears(process(0), CALL("2"));
	hears(process(0), CALL("3"));
	hears(process(1), CALL("2"));
	calls[3] = request(a->route, CALL("13"));
	hears(process(1), CALL("3"));
	for (size_t i = 4; i < 7; i++)
		calls[i] = request(a->route, CALL("14"));
	calls[7] = request(b->route, CALL("20"));
	assert_int_equal(keeper.count, 2);                           /* pool.max */
	is_failed(request(a->route, CALL("15")), REASON_OVER_LIMIT); /* queue_calls */
	says(process(0), RESULT("2"));
	is_answered(calls[0], RESULT("10"));
	hears(process(0), CALL("4"));
	says(process(0), RESULT("3"));
	hears(process(0), CALL("5"));
	says(process(0), RESULT("5"));
	is_answered(calls[7], RESULT("20")); /* b has had its turn, although a waits for longer */
	is_open(calls[5]);
	is_open(calls[6]);
	hears(process(0), CALL("6"));
	notify(a->route, CANCELLED("14"));
	hears(process(0), CANCELLED("4"));
	hears(process(0), CANCELLED("6"));
	hears_nothing(process(0));
}

/* bridging.md §1.4: nobody keeps others from waiting; who has most gives way, in calls or in bytes. */
static void queue_is_shared_fairly(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *many[6];
	struct front *few[3];
	char text[5000] = "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'";

	(void)state;
	backend.conf.pool_max = 1;
	for (size_t i = 0; i < 6; i++)
		many[i] = request(a->route, CALL("1"));
	for (size_t i = 0; i < 3; i++)
		few[i] = request(b->route, CALL("1"));
	is_failed(many[5], REASON_OVER_LIMIT);
	is_failed(many[4], REASON_OVER_LIMIT);
	is_open(many[3]);
	is_open(few[1]);
	is_failed(few[2], REASON_OVER_LIMIT); /* as many as a has */
	notify(a->route, CANCELLED("1"));
	memset(text + strlen(text), 'x', 4000);
	strcpy(text + 4000, "'}}");
	backend.conf.queue_max = 7000;
	many[0] = request(a->route, text);
	is_open(many[0]);
	is_failed(request(a->route, text), REASON_OVER_LIMIT);
	backend.conf.queue_max = 4050;
	is_open(request(b->route, CALL("2")));
	is_failed(many[0], REASON_OVER_LIMIT);
}

/* Who comes later does not overtake those who wait; who waits too long is told so. */
static void waiting_is_limited(void **state)
{
	struct member *a = begin();
	struct front *calls[6];

	(void)state;
	backend.conf.pool_max = 1;
	for (size_t i = 0; i < 4; i++)
		calls[i] = request(a->route, CALL("1"));
	pass(QUEUE_TIMEOUT_MS - 1);
	is_open(calls[2]);
	pass(1);
	is_failed(calls[2], REASON_OVER_LIMIT);
	is_failed(calls[3], REASON_OVER_LIMIT);
	is_open(calls[0]);
	calls[4] = request(a->route, CALL("4"));
	says(process(0), RESULT("2"));
	is_open(calls[4]);
	says(process(0), RESULT("4"));
	is_answered(calls[4], RESULT("4"));
}

/* Also when there is none just now: not one for each call. */
static void one_start_serves_all_who_wait(void **state)
{
	struct member *a = begin();
	struct front *calls[2];

	(void)state;
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	for (size_t i = 0; i < 2; i++)
		calls[i] = request(a->route, CALL("1"));
	assert_int_equal(keeper.count, 2);
	pass(QUEUE_TIMEOUT_MS); /* the start may take longer than that */
	is_open(calls[0]);
	get_ready(1);
	hears(process(1), CALL("2"));
	hears(process(1), CALL("3"));
}

/* bridging.md §4: only what was on that child fails; what is safe is asked again, once. */
static void lost_child_takes_only_its_calls(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *call = request(a->route, CALL("1"));
	struct front *list = request(b->route, LIST("1"));
	struct front *other;

	(void)state;
	other = request(b->route, CALL("2"));
	get_ready(1);
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	is_failed(call, REASON_CHILD_EXITED);
	is_open(other);
	is_open(list);
	assert_int_equal(router.sessions.count, 2);
	hears(process(1), CALL("2"));
	hears(process(1), LIST("3"));
	fake_process_exit(&keeper, process(1), 0);
	fake_keeper_settle(&keeper);
	is_failed(list, REASON_CHILD_EXITED);
	is_failed(other, REASON_CHILD_EXITED);
	assert_int_equal(router.sessions.count, 2);
	heard(a, "");
	call = request(a->route, CALL("5"));
	get_ready(2);
	hears(process(2), CALL("2"));
}

/* A child that comes back with other offers: everybody may want to look again. */
static void other_offers_are_told(void **state)
{
	struct member *a = begin();

	(void)state;
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	request(a->route, CALL("1"));
	assert_non_null(fake_process_read(process(1)));
	says(process(1), "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25',"
			 "'capabilities':{'tools':{'listChanged':true}},'serverInfo':{}}}");
	heard(a, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}|");
}

/* A time-out costs the others nothing as long as the child lives. REL-25 */
static void timeout_asks_whether_it_lives(void **state)
{
	struct member *a = begin();
	struct front *first = request(a->route, CALL("1"));
	struct front *second;

	(void)state;
	hears(process(0), CALL("2"));
	pass(30000);
	second = request(a->route, CALL("2"));
	pass(30000);
	is_failed(first, REASON_TIMEOUT);
	is_open(second);
	hears(process(0), CALL("3"));
	hears(process(0), "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
			  "'requestId':2,'reason':'no answer in time'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':4,'method':'ping'}");
	pass(5000);
	is_failed(second, REASON_CHILD_HUNG);
	assert_int_equal(process(0)->last_signal, SIGKILL);
}

static void idle_children_go(void **state)
{
	struct member *a = begin();
	struct front *call;

	(void)state;
	pass(IDLE_MS - 1);
	call = request(a->route, CALL("1"));
	pass(1);
	assert_false(process(0)->is_eof);
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	pass(IDLE_MS);
	hears(process(0), CALL("2"));
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	assert_int_equal(router.sessions.count, 1);
	request(a->route, CALL("1"));
	get_ready(1);
	hears(process(1), CALL("2"));
}

static void session_end_cancels_its_calls(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->route, CALL("1"));
	struct front *two = request(b->route, CALL("1"));

	(void)state;
	hears(process(0), CALL("2"));
	hears(process(0), CALL("3"));
	session_end(&a->route->session, REASON_DELETED);
	fake_keeper_settle(&keeper);
	is_failed(one, REASON_DELETED);
	is_open(two);
	hears(process(0), "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
			  "'requestId':2,'reason':'the session has ended'}}");
	says(process(0), RESULT("2"));
	says(process(0), RESULT("3"));
	is_answered(two, RESULT("1"));
}

/* ---- what is merged ---- */

/* UTIL-LIST-01; bridging.md §1.7: once for all that happens within a tenth of a second, to everybody. */
static void list_changes_reach_all_once(void **state)
{
	struct member *a = begin();
	struct member *b = begin();

	(void)state;
	for (int i = 0; i < 5; i++)
		says(process(0), "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/prompts/list_changed'}");
	heard(a, "");
	pass(100);
	heard(a, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}|");
	heard(b, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}|");
	pass(100);
	heard(a, "");
}

#define UPDATED(uri)                                                         \
	"{'jsonrpc':'2.0','method':'notifications/resources/updated','param" \
	"s':{'uri':'" uri "'}}"

/* UTIL-SUBS-01; bridging.md §8 (7): fifty sessions, one subscribe, one unsubscribe. */
static void subscriptions_are_merged(void **state)
{
	struct member *all[50];
	struct front *subscribed[50];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i] = begin();
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		subscribed[i] = request(all[i]->route, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	hears_nothing(process(0));
	is_open(subscribed[49]);
	says(process(0), EMPTY("2"));
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		is_answered(subscribed[i], EMPTY("1"));
	is_answered(request(all[3]->route, SUBSCRIBE("9")), EMPTY("9")); /* it is already */
	says(process(0), UPDATED("r:a"));
	says(process(0), UPDATED("r:b"));
	pass(100);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		heard(all[i], UPDATED("r:a") "|");
	for (size_t i = 0; i + 1 < ARRAY_LEN(all); i++)
		is_answered(request(all[i]->route, UNSUBSCRIBE("1")), EMPTY("1"));
	hears_nothing(process(0));
	says(process(0), UPDATED("r:a"));
	pass(100);
	heard(all[0], "");
	heard(all[49], UPDATED("r:a") "|");
	session_end(&all[49]->route->session, REASON_DELETED);
	fake_keeper_settle(&keeper);
	hears(process(0), UNSUBSCRIBE("3"));
}

/* Its refusal is everybody's, and leaves nothing. */
static void refused_subscriptions_leave_nothing(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->route, SUBSCRIBE("1"));
	struct front *two = request(b->route, SUBSCRIBE("'x'"));

	(void)state;
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'error':{'code':-32002,'message':'none'}}");
	is_answered(one, "{'jsonrpc':'2.0','id':1,'error':{'code':-32002,'message':'none'}}");
	is_answered(two, "{'jsonrpc':'2.0','id':'x','error':{'code':-32002,'message':'none'}}");
	request(b->route, SUBSCRIBE("3"));
	hears(process(0), SUBSCRIBE("3"));
}

/* Whoever asked leaves: the next one of those who wait asks. */
static void subscribing_is_handed_on(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct member *c = begin();
	struct front *one = request(a->route, SUBSCRIBE("1"));
	struct front *two = request(b->route, SUBSCRIBE("2"));
	struct front *three = request(c->route, SUBSCRIBE("3"));

	(void)state;
	hears(process(0), SUBSCRIBE("2"));
	notify(c->route, CANCELLED("3"));
	assert_int_equal(three->ending, ENDING_CANCELLED);
	hears_nothing(process(0));
	notify(a->route, CANCELLED("1"));
	assert_int_equal(one->ending, ENDING_CANCELLED);
	hears(process(0), CANCELLED("2"));
	hears(process(0), SUBSCRIBE("3"));
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	is_failed(two, REASON_CHILD_EXITED);
	two = request(b->route, SUBSCRIBE("4"));
	get_ready(1);
	hears(process(1), SUBSCRIBE("2"));
	says(process(1), EMPTY("2"));
	is_answered(two, EMPTY("4"));
}

/* bridging.md §1.5, §8 (6): every child knows before its first call, and one is always there. */
static void subscriptions_outlive_children(void **state)
{
	struct member *a = begin();

	(void)state;
	request(a->route, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	for (size_t i = 0; i < 3; i++)
		request(a->route, CALL("1"));
	get_ready(1);
	hears(process(1), SUBSCRIBE("2"));
	hears(process(1), CALL("3"));
	request(a->route, UNSUBSCRIBE("1"));
	hears(process(1), UNSUBSCRIBE("4"));
	request(a->route, SUBSCRIBE("1"));
	hears(process(1), SUBSCRIBE("5"));
	says(process(1), EMPTY("5"));
	fake_process_exit(&keeper, process(0), 0);
	fake_process_exit(&keeper, process(1), 0);
	fake_keeper_settle(&keeper);
	assert_int_equal(keeper.count, 3); /* though nobody calls */
	get_ready(2);
	hears(process(2), SUBSCRIBE("2"));
	hears_nothing(process(2));
	pass(2 * IDLE_MS);
	assert_false(process(2)->is_eof);
	says(process(2), UPDATED("r:a"));
	pass(100);
	heard(a, UPDATED("r:a") "|");
}

/* REL-24: each update is told to many, so those that say the same are told once; of resources that nobody wants, none. */
static void updates_are_joined(void **state)
{
	struct member *a = begin();
	uint64_t dropped = counter_get(COUNTER_CHILD_DROPPED);
	char text[200];
	size_t told = 0;

	(void)state;
	request(a->route, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	for (int i = 0; i < 100; i++) {
		says(process(0), UPDATED("r:a"));
		says(process(0), UPDATED("r:other"));
	}
	says(process(0), UPDATED("r:a/b"));
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/resources/updated'}");
	assert_int_equal(counter_get(COUNTER_CHILD_DROPPED) - dropped, 101);
	heard(a, "");
	pass(100);
	heard(a, UPDATED("r:a") "|" UPDATED("r:a/b") "|");
	pass(100);
	heard(a, "");
	for (int i = 0; i < 2000; i++) {
		snprintf(text, sizeof(text), UPDATED("r:a/%d"), i);
		says(process(0), text);
	}
	for (const char *at = buf_terminate(&a->got); (at = strchr(at, '|')) != NULL; at++)
		told++;
	assert_int_equal(told, 2000 - 1024); /* the others still may be joined */
	pass(100);
	for (const char *at = buf_terminate(&a->got); (at = strchr(at, '|')) != NULL; at++)
		told++;
	assert_int_equal(told, 2000 - 1024 + 2000); /* all, counted from the first again */
	a->got.len = 0;
	says(process(0), UPDATED("r:a"));
	session_end(&a->route->session, REASON_DELETED);
	pass(100); /* for nobody */
}

/* CXL-08: who waits for the answer to another one's subscription does not wait for all before him to time out. */
static void subscriptions_are_not_waited_for_for_ever(void **state)
{
	struct member *m[3] = { begin(), begin(), begin() };
	struct front *calls[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		calls[i] = request(m[i]->route, SUBSCRIBE("1"));
		pass(1000);
	}
	hears(process(0), SUBSCRIBE("2"));
	pass(57000);
	is_failed(calls[0], REASON_TIMEOUT);
	hears(process(0), "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
			  "'requestId':2,'reason':'no answer in time'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':3,'method':'ping'}");
	hears(process(0), SUBSCRIBE("4"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{}}");
	pass(2000);
	is_open(calls[1]);
	is_failed(calls[2], REASON_TIMEOUT);
	says(process(0), EMPTY("4"));
	is_answered(calls[1], EMPTY("1"));
}

/* DEF-11: what a session subscribes to is bounded, and it is told so. */
static void subscriptions_are_bounded(void **state)
{
	struct member *a = begin();
	char text[9000] =
		"{'jsonrpc':'2.0','id':1,'method':'resources/subscribe','params':{'uri':'";
	struct front *front;

	(void)state;
	memset(text + strlen(text), 'x', 8500);
	strcpy(text + 8500, "'}}");
	front = request(a->route, text);
	assert_non_null(strstr(buf_terminate(&front->response), "longer than 8 KiB"));
	for (unsigned int i = 0; i < TEXT_SET_MAX; i++) {
		char digits[20];

		text_set_add(&a->route->subscriptions,
			     slice_of(digits, text_format_u64(i, digits)));
	}
	front = request(a->route, SUBSCRIBE("1"));
	assert_non_null(strstr(buf_terminate(&front->response), "too many subscriptions"));
	text_set_fini(&a->route->subscriptions);
	a->route->partition->topics.bytes += 1 << 20;
	front = request(a->route, SUBSCRIBE("1"));
	assert_non_null(strstr(buf_terminate(&front->response), "too many subscriptions"));
	a->route->partition->topics.bytes -= 1 << 20;
	hears_nothing(process(0));
}

static void subscribe_to(struct member *member, const char *uri)
{
	struct front *front;
	const char *line;
	char text[256];

	snprintf(text, sizeof(text),
		 "{'jsonrpc':'2.0','id':1,'method':'resources/subscribe','params':{'uri':'%s'}}",
		 uri);
	front = request(member->route, text);
	line = fake_process_read(process(0));
	if (line != NULL) {
		snprintf(text, sizeof(text), EMPTY("%ld"), atol(strstr(line, "id") + 4));
		says(process(0), text);
	}
	is_answered(front, EMPTY("1"));
}

static void update(const char *text)
{
	says(process(0), text);
	pass(100);
}

/* UTIL-SUBS-01: whoever subscribed to the resource, to one above it, or to one that may be any, and nobody else. */
static void updates_reach_those_whom_they_concern(void **state)
{
	struct member *above = begin();
	struct member *below = begin();
	struct member *deep = begin();
	struct member *escaped = begin();
	char uri[64] = "r:a/b";

	(void)state;
	subscribe_to(above, "r:a");
	subscribe_to(below, "r:a/b");
	for (int i = 0; i < 20; i++)
		subscribe_to(deep, strcat(uri, "/"));
	subscribe_to(escaped, "r:\\/x");
	update(UPDATED("r:a/b////////////////////c"));
	heard(above, UPDATED("r:a/b////////////////////c") "|");
	heard(below, UPDATED("r:a/b////////////////////c") "|");
	heard(deep, UPDATED("r:a/b////////////////////c") "|");
	heard(escaped, UPDATED("r:a/b////////////////////c") "|");
	update(UPDATED("r:a/b//c"));
	heard(above, UPDATED("r:a/b//c") "|");
	heard(below, UPDATED("r:a/b//c") "|");
	heard(deep, UPDATED("r:a/b//c") "|");
	heard(escaped, UPDATED("r:a/b//c") "|");
	update(UPDATED("r:a/bc"));
	heard(above, UPDATED("r:a/bc") "|");
	heard(below, "");
	heard(deep, "");
	heard(escaped, UPDATED("r:a/bc") "|");
	update(UPDATED("r:\\/a"));
	heard(above, UPDATED("r:\\/a") "|");
	heard(below, UPDATED("r:\\/a") "|");
	escaped->got.len = 0;
	update("{'jsonrpc':'2.0','method':'notifications/resources/updated'}");
	heard(above, "");
}

/* DEF-11: also when there was room while it was asked for. */
static void subscriptions_at_once_are_bounded(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *first, *second, *others;

	(void)state;
	for (unsigned int i = 0; i + 1 < TEXT_SET_MAX; i++) {
		char digits[20];

		text_set_add(&a->route->subscriptions,
			     slice_of(digits, text_format_u64(i, digits)));
	}
	first = request(a->route, "{'jsonrpc':'2.0','id':1,'method':'resources/subscribe',"
				  "'params':{'uri':'r:x'}}");
	others = request(b->route, SUBSCRIBE("1"));
	second = request(a->route, SUBSCRIBE("2"));
	hears(process(0), "{'jsonrpc':'2.0','id':2,'method':'resources/subscribe',"
			  "'params':{'uri':'r:x'}}");
	hears(process(0), SUBSCRIBE("3"));
	says(process(0), EMPTY("2"));
	is_answered(first, EMPTY("1"));
	says(process(0), EMPTY("3"));
	is_answered(others, EMPTY("1"));
	assert_non_null(strstr(buf_terminate(&second->response), "too many subscriptions"));
	first = request(a->route, "{'jsonrpc':'2.0','id':1,'method':'resources/unsubscribe',"
				  "'params':{'uri':'r:x'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':4,'method':'resources/unsubscribe',"
			  "'params':{'uri':'r:x'}}");
	first = request(a->route, "{'jsonrpc':'2.0','id':1,'method':'resources/subscribe',"
				  "'params':{'uri':'r:y'}}");
	text_set_add(&a->route->subscriptions, SLICE_LIT("meanwhile"));
	hears(process(0), "{'jsonrpc':'2.0','id':5,'method':'resources/subscribe',"
			  "'params':{'uri':'r:y'}}");
	says(process(0), EMPTY("5"));
	assert_non_null(strstr(buf_terminate(&first->response), "too many subscriptions"));
	hears(process(0), "{'jsonrpc':'2.0','id':6,'method':'resources/unsubscribe',"
			  "'params':{'uri':'r:y'}}");
}

/* Waiting for an answer that others wait for is waiting, too: a session may only have so many calls. */
static void waiting_together_is_bounded(void **state)
{
	struct member *a = begin();
	struct member *b = begin();

	(void)state;
	request(a->route, SUBSCRIBE("1"));
	request(a->route, LIST("2"));
	while (a->route->call_count < 4096) {
		struct envelope env =
			scan(q(a->route->call_count % 2 ? SUBSCRIBE("1") : LIST("2")));
		struct front *front = front_new(&env);

		forward_request(a->route, &front->call, &env);
	}
	is_failed(request(a->route, SUBSCRIBE("3")), REASON_OVER_LIMIT);
	is_failed(request(a->route, LIST("4")), REASON_OVER_LIMIT);
	is_open(request(b->route, SUBSCRIBE("3")));
	is_open(request(b->route, LIST("4")));
	hears(process(0), SUBSCRIBE("2"));
	hears(process(0), LIST("3"));
	says(process(0), TOOLS("3", ""));
	says(process(0), EMPTY("2"));
	assert_int_equal(a->route->call_count, 0);
}

/* ---- principals and leases ---- */

#define HANDSHAKE(caps)                                                                          \
	"{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':'2025-11-25'" \
	",'capabilities':{" caps "},'clientInfo':{'name':'mcpgated','version':'" PACKAGE_VERSION \
	"'}}}"
#define ASK(id) \
	"{'jsonrpc':'2.0','id':" id ",'method':'elicitation/create','params':{'message':'m'}}"

static struct principal *alice, *bob;

static int setup_principals(void **state)
{
	static const struct identity a = { SLICE("i"), SLICE("alice"), SLICE("c") };
	static const struct identity b = { SLICE("i"), SLICE("bob"), SLICE("c") };

	setup(state);
	backend.conf.isolation = ISOLATION_PRINCIPAL;
	alice = principal_get(&router.sessions.principals, &a);
	bob = principal_get(&router.sessions.principals, &b);
	return 0;
}

static int teardown_principals(void **state)
{
	int result = teardown(state);

	principal_unref(&alice);
	principal_unref(&bob);
	return result;
}

/* A session of one who can be asked; its process, the i-th, is ready. */
static struct member *begin_asking(struct principal *principal, size_t i)
{
	struct front *front = open_session_as(principal, INITIALIZE_WITH("'elicitation':{}"));

	if (front->ending == ENDING_NONE) {
		hears(process(i), HANDSHAKE("'elicitation':{'form':{}}"));
		says(process(i), WELCOME);
		hears(process(i), INITIALIZED);
	}
	return join(front);
}

static struct member *begin_plain(struct principal *principal)
{
	struct front *front = open_session_as(principal, INITIALIZE_WITH(""));

	get_ready(0);
	return join(front);
}

static void answer(struct route *route, const char *text)
{
	struct envelope env = scan(q(text));

	forward_answer(route, &env);
	fake_keeper_settle(&keeper);
}

/* SEC-07; bridging.md §1.2: a process for each principal and class; the class is told in one form. */
static void principals_do_not_share(void **state)
{
	struct front *first = open_session_as(
		alice, INITIALIZE_WITH("'roots':{'listChanged':true},'sampling':{'tools':{},'x':1},"
				       "'tasks':{},'experimental':{'y':{}}"));
	struct front *second;
	struct front *third;

	(void)state;
	hears(process(0), HANDSHAKE("'roots':{},'sampling':{'tools':{}},'experimental':{'y':{}}"));
	says(process(0), WELCOME);
	assert_non_null(strstr(buf_terminate(&first->response), "\"logging\":{}"));
	assert_null(strstr(buf_terminate(&first->response), "tasks"));
	second = open_session_as(
		alice,
		INITIALIZE_WITH("'experimental':{'y':{}},'roots':{},'sampling':{'tools':{}}"));
	assert_int_equal(second->ending, ENDING_RESPONSE);
	assert_int_equal(keeper.count, 1);
	third = open_session_as(bob, INITIALIZE_WITH("'roots':{},'sampling':{'tools':{}},"
						     "'experimental':{'y':{}}"));
	is_open(third);
	assert_int_equal(keeper.count, 2);
	hears(process(1), HANDSHAKE("'roots':{},'sampling':{'tools':{}},'experimental':{'y':{}}"));
}

/* Who can be asked nothing shares processes with many calls at a time. */
static void plain_classes_are_multiplexed(void **state)
{
	struct member *a = begin_plain(alice);
	struct front *one = request(a->route, CALL("1"));
	struct front *two = request(a->route, CALL("2"));

	(void)state;
	assert_int_equal(keeper.count, 1);
	hears(process(0), CALL("2"));
	hears(process(0), CALL("3"));
	says(process(0), ASK("9"));
	assert_non_null(strstr(fake_process_read(process(0)), "-32601"));
	says(process(0), RESULT("3"));
	is_answered(two, RESULT("2"));
	is_open(one);
}

static void servers_may_be_known_not_to_ask(void **state)
{
	(void)state;
	backend.conf.never_asks = true;
	open_session_as(alice, INITIALIZE_WITH("'elicitation':{}"));
	hears(process(0), HANDSHAKE(""));
}

/* bridging.md §1.4: a subscription that is asked for again, since its first asker has gone, waits in its turn. */
static void heirs_take_turns(void **state)
{
	struct member *a, *a2, *b;

	(void)state;
	backend.conf.isolation = ISOLATION_SHARED;
	backend.conf.pool_max = 1;
	a = begin_plain(alice);
	a2 = join(open_session_as(alice, INITIALIZE));
	b = join(open_session_as(bob, INITIALIZE));
	request(a->route, SUBSCRIBE("1"));
	request(a2->route, SUBSCRIBE("2"));
	request(a->route, CALL("3"));
	request(a->route, CALL("4")); /* the first of alice's that waits */
	request(a->route, CALL("5"));
	request(b->route, CALL("6"));
	hears(process(0), SUBSCRIBE("2"));
	hears(process(0), CALL("3"));
	hears_nothing(process(0));
	notify(a->route, CANCELLED("1"));
	hears(process(0), CANCELLED("2"));
	hears(process(0), CALL("4"));
	says(process(0), RESULT("3"));
	hears(process(0), CALL("5")); /* bob's */
	says(process(0), RESULT("4"));
	says(process(0), RESULT("5"));
	hears(process(0), CALL("6")); /* and alice's, as they came */
	hears(process(0), SUBSCRIBE("7"));
}

/* bridging.md §1.6 (5): one call at a time, and what the child asks is asked in that call. */
static void leased_child_asks_its_caller(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct member *b = begin_asking(alice, 0);
	struct front *one = request(a->route, CALL("1"));
	struct front *two = request(b->route, CALL("1"));

	(void)state;
	hears(process(0), CALL("2"));
	hears_nothing(process(0));
	get_ready(1); /* another one for the other call */
	hears(process(1), CALL("2"));
	says(process(1), ASK("7"));
	says(process(0), ASK("7"));
	was_told(one, ASK("1000001") "|");
	was_told(two, ASK("1000001") "|");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
			 "'error','data':'x'}}");
	was_told(one, "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
		      "'error','data':'x'}}|");
	answer(b->route, "{'jsonrpc':'2.0','id':1000001,'result':{'of':'b'}}");
	hears(process(1), "{'jsonrpc':'2.0','id':7,'result':{'of':'b'}}");
	hears_nothing(process(0));
	answer(b->route, "{'jsonrpc':'2.0','id':1000001,'result':{'of':'b'}}");
	answer(a->route, "{'jsonrpc':'2.0','id':1000001,'result':{'of':'a'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':7,'result':{'of':'a'}}");
	says(process(0), RESULT("2"));
	is_answered(one, RESULT("1"));
	heard(a, "");
	heard(b, "");
}

/* bridging.md §8 (3): between calls it asks nobody; what it asked in a call is over with that. */
static void unleased_child_asks_nobody(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *call;

	(void)state;
	says(process(0), ASK("5"));
	hears(process(0),
	      "{'jsonrpc':'2.0','id':5,'error':{'code':-32602,'message':'Invalid params: "
	      "it is not related to a request of a client'}}");
	call = request(a->route, CALL("1"));
	hears(process(0), CALL("2"));
	says(process(0), ASK("6"));
	says(process(0), RESULT("2"));
	hears(process(0), "{'jsonrpc':'2.0','id':6,'result':{'action':'cancel'}}");
	was_told(call, ASK("1000001") "|{'jsonrpc':'2.0','method':'notifications/cancelled',"
				      "'params':{'requestId':1000001}}|");
	is_answered(call, RESULT("1"));
	answer(a->route, "{'jsonrpc':'2.0','id':1000001,'result':{'late':1}}");
	hears_nothing(process(0));
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
			 "'error','data':'x'}}");
	heard(a, "");
}

/* bridging.md §2.3.3: after a cancellation the child is not used before it shows that it has come to rest. */
static void given_up_children_settle(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *call;

	(void)state;
	backend.conf.pool_max = 1;
	request(a->route, CALL("1"));
	hears(process(0), CALL("2"));
	notify(a->route, CANCELLED("1"));
	hears(process(0), CANCELLED("2"));
	hears(process(0), "{'jsonrpc':'2.0','id':3,'method':'ping'}");
	says(process(0), ASK("5"));
	assert_non_null(strstr(fake_process_read(process(0)), "-32602"));
	call = request(a->route, CALL("2"));
	hears_nothing(process(0));
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{}}");
	hears(process(0), CALL("4"));
	notify(a->route, CANCELLED("2"));
	assert_int_equal(call->ending, ENDING_CANCELLED);
	hears(process(0), CANCELLED("4"));
	call = request(a->route, CALL("3"));
	says(process(0), RESULT("4")); /* its late answer is as good a sign */
	hears(process(0), "{'jsonrpc':'2.0','id':5,'method':'ping'}");
	hears(process(0), CALL("6"));
	notify(a->route, CANCELLED("3"));
	pass(5000);
	assert_int_equal(process(0)->last_signal, SIGKILL);
	assert_int_equal(call->ending, ENDING_CANCELLED);
}

static void levels_go_with_the_lease(void **state)
{
	struct member *a = begin_asking(alice, 0);

	(void)state;
	is_answered(request(a->route,
			    "{'jsonrpc':'2.0','id':1,'method':'logging/setLevel','params':"
			    "{'level':'warning'}}"),
		    EMPTY("1"));
	hears_nothing(process(0));
	for (int i = 0; i < 2; i++) {
		struct front *call = request(a->route, CALL("1"));

		if (i == 0)
			hears(process(0), "{'jsonrpc':'2.0','id':2,'method':'logging/setLevel',"
					  "'params':{'level':'warning'}}");
		hears(process(0), i == 0 ? CALL("3") : CALL("4"));
		says(process(0), "{'jsonrpc':'2.0','method':'notifications/message','params':{"
				 "'level':'info','data':'x'}}");
		was_told(call, "");
		says(process(0), i == 0 ? RESULT("3") : RESULT("4"));
		is_answered(call, RESULT("1"));
	}
}

/* The level of one is not that of the next; who never asked for one gets what the server likes to say. */
static void levels_end_with_the_lease(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct member *b = begin_asking(alice, 0);
	struct front *call = request(b->route, CALL("1"));

	(void)state;
	hears(process(0), CALL("2")); /* nobody has said anything */
	says(process(0), RESULT("2"));
	request(a->route, "{'jsonrpc':'2.0','id':1,'method':'logging/setLevel','params':{'level':"
			  "'error'}}");
	request(a->route, CALL("2"));
	hears(process(0), "{'jsonrpc':'2.0','id':3,'method':'logging/setLevel','params':{'level':"
			  "'error'}}");
	hears(process(0), CALL("4"));
	says(process(0), RESULT("4"));
	call = request(b->route, CALL("2"));
	hears(process(0), "{'jsonrpc':'2.0','id':5,'method':'logging/setLevel','params':{'level':"
			  "'debug'}}");
	hears(process(0), CALL("6"));
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
			 "'debug','data':'x'}}");
	was_told(call, "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
		       "'debug','data':'x'}}|");
	says(process(0), RESULT("6"));
	request(b->route, CALL("3"));
	hears(process(0), CALL("7")); /* it knows */
}

/* A leased child that dies: its client is told that the question is void, and the call fails. */
static void lost_lease_ends_its_asks(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *call = request(a->route, CALL("1"));

	(void)state;
	says(process(0), ASK("6"));
	was_told(call, ASK("1000001") "|");
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	is_failed(call, REASON_CHILD_EXITED);
	was_told(call, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':"
		       "1000001}}|");
	answer(a->route, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
}

/* bridging.md §1.2: not even the rest of a list is asked of a child that works on a call. */
static void leases_hold_against_cursors(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct member *b = begin_asking(alice, 0);
	struct front *call;
	struct front *rest;
	struct json cursor;
	char page[300];

	(void)state;
	call = request(b->route, LIST_OF("1"));
	hears(process(0), LIST_OF("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[],'nextCursor':'n'}}");
	cursor = scan_path(buf_slice(&call->response),
			   (const char *const[]){ "result", "nextCursor" }, 2);
	snprintf(page, sizeof(page), PAGE("2", "%.*s"), SLICE_ARG(cursor.text));
	call = request(a->route, CALL("1"));
	hears(process(0), CALL("3"));
	says(process(0), ASK("6"));
	was_told(call, ASK("1000001") "|");
	rest = request(b->route, page);
	is_failed(rest, REASON_OVER_LIMIT);
	says(process(0), RESULT("3"));
	is_answered(call, RESULT("1"));
	hears(process(0), "{'jsonrpc':'2.0','id':6,'result':{'action':'cancel'}}");
	request(b->route, page);
	hears(process(0), PAGE("4", "'n'"));
}

/* ---- lists ---- */

#define CHANGED(list) "{'jsonrpc':'2.0','method':'notifications/" list "/list_changed'}"
#define PROMPTS_LIST(id) "{'jsonrpc':'2.0','id':" id ",'method':'prompts/list'}"

static bool is_error(struct front *front, const char *code)
{
	assert_int_equal(front->ending, ENDING_RESPONSE);
	return strstr(buf_terminate(&front->response), code) != NULL;
}

/* bridging.md §1.8: one fetch for all who ask; another one after a change. */
static void lists_are_fetched_once(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->route, LIST("1"));
	struct front *two = request(b->route, LIST("'x'"));
	struct front *late;

	(void)state;
	hears(process(0), LIST("2"));
	says(process(0), TOOLS("2", "{'name':'t','execution':{'taskSupport':'optional'}}"));
	is_answered(one, TOOLS("1", "{'name':'t'}"));
	is_answered(two, TOOLS("'x'", "{'name':'t'}"));
	late = request(a->route, "{'jsonrpc':'2.0','id':3,'method':'tools/list','params':{'_meta':{"
				 "'progressToken':1,'traceparent':'00-1','io.modelcontextprotocol/"
				 "clientInfo':{}}}}");
	is_answered(late, TOOLS("3", "{'name':'t'}"));
	hears_nothing(process(0));
	pass(IDLE_MS - 1);
	is_answered(request(b->route, LIST("4")), TOOLS("4", "{'name':'t'}"));
	says(process(0), CHANGED("resources")); /* another one */
	is_answered(request(b->route, LIST("5")), TOOLS("5", "{'name':'t'}"));
	hears_nothing(process(0));
	says(process(0), CHANGED("tools"));
	one = request(a->route, LIST("6"));
	two = request(b->route, LIST("7"));
	hears(process(0), LIST("3"));
	hears_nothing(process(0));
	says(process(0), TOOLS("3", ""));
	is_answered(one, TOOLS("6", ""));
	is_answered(two, TOOLS("7", ""));
}

/* A change while the list is on its way: who asked before gets what comes, who asks later gets the new one. */
static void changes_outdate_what_is_on_its_way(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *before = request(a->route, LIST("1"));
	struct front *after;

	(void)state;
	hears(process(0), LIST("2"));
	says(process(0), CHANGED("tools"));
	after = request(b->route, LIST("1"));
	hears(process(0), LIST("3"));
	says(process(0), TOOLS("2", "'old'"));
	is_answered(before, TOOLS("1", "'old'"));
	is_open(after);
	says(process(0), TOOLS("3", "'new'"));
	is_answered(after, TOOLS("1", "'new'"));
	is_answered(request(a->route, LIST("2")), TOOLS("2", "'new'"));
	hears_nothing(process(0));
}

/* UTIL-PAGE-01: all pages, as one; what stands around the items is that of the first. */
static void pages_become_one(void **state)
{
	struct member *a = begin();
	struct front *list = request(a->route, LIST("1"));

	(void)state;
	hears(process(0), LIST("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'x':1,'tools':[ 1 , 2 ],'nextCursor':"
			 "'a\\u0022','y':2}}");
	hears(process(0), PAGE("3", "'a\\u0022'"));
	is_open(list);
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'tools':[],'nextCursor':''}}");
	hears(process(0), PAGE("4", "''"));
	says(process(0), "{'jsonrpc':'2.0','id':4,'result':{'z':1,'tools':[3]}}");
	is_answered(list, "{'jsonrpc':'2.0','id':1,'result':{'x':1,'tools':[1 , 2,3],'y':2}}");
	is_answered(request(a->route, LIST("2")),
		    "{'jsonrpc':'2.0','id':2,'result':{'x':1,'tools':[1 , 2,3],'y':2}}");
	hears_nothing(process(0));
}

/* AUTH-SES-10: what one principal is shown is neither kept nor fetched for another one. */
static void lists_are_of_one_principal(void **state)
{
	struct member *a, *a2, *b;
	struct front *of_alice, *of_alice_too, *of_bob;

	(void)state;
	backend.conf.isolation = ISOLATION_SHARED;
	a = begin_plain(alice);
	a2 = join(open_session_as(alice, INITIALIZE));
	b = join(open_session_as(bob, INITIALIZE));
	of_alice = request(a->route, LIST("1"));
	of_bob = request(b->route, LIST("1"));
	of_alice_too = request(a2->route, LIST("1"));
	hears(process(0), LIST("2"));
	hears(process(0), LIST("3"));
	hears_nothing(process(0));
	says(process(0), TOOLS("2", "'for alice'"));
	is_open(of_bob);
	is_answered(of_alice, TOOLS("1", "'for alice'"));
	is_answered(of_alice_too, TOOLS("1", "'for alice'"));
	says(process(0), TOOLS("3", "'for bob'"));
	is_answered(of_bob, TOOLS("1", "'for bob'"));
	is_answered(request(b->route, LIST("2")), TOOLS("2", "'for bob'"));
	is_answered(request(a2->route, LIST("2")), TOOLS("2", "'for alice'"));
	is_open(request(begin()->route, LIST("1"))); /* of nobody in particular */
	hears(process(0), LIST("4"));
}

/* An error is for all who wait, and for nobody later. */
static void errors_are_not_kept(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->route, LIST("1"));
	struct front *two = request(b->route, LIST("2"));

	(void)state;
	hears(process(0), LIST("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'error':{'code':-32042,'message':'m'}}");
	is_answered(one, "{'jsonrpc':'2.0','id':1,'error':{'code':-32603,'message':'m'}}");
	is_answered(two, "{'jsonrpc':'2.0','id':2,'error':{'code':-32603,'message':'m'}}");
	one = request(a->route, LIST("3"));
	hears(process(0), LIST("3"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'tools':[],'nextCursor':'n'}}");
	hears(process(0), PAGE("4", "'n'"));
	says(process(0), "{'jsonrpc':'2.0','id':4,'error':{'code':-32602,'message':'m'}}");
	hears(process(0), LIST("5")); /* the error was not about what the client has asked */
	says(process(0), "{'jsonrpc':'2.0','id':5,'result':{'tools':[1],'nextCursor':'n'}}");
	assert_true(is_error(one, "\"tools\":[1],\"nextCursor\""));
	one = request(a->route, LIST("4"));
	hears(process(0), LIST("6"));
	says(process(0), "{'jsonrpc':'2.0','id':6,'result':7,'error':8}");
	is_failed(one, REASON_CHILD_PROTOCOL_ERROR);
}

/* What has no end, or is no list that we know, is forwarded; after a while it is tried again. */
static void endless_lists_are_passed_on(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->route, LIST("1"));
	struct front *two = request(b->route, LIST("1"));

	(void)state;
	backend.conf.idle_ms = 24 * IDLE_MS;
	hears(process(0), LIST("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[],'nextCursor':'n'}}");
	hears(process(0), PAGE("3", "'n'"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'tools':[],'nextCursor':'n'}}");
	hears(process(0), LIST("4"));
	hears(process(0), LIST("5"));
	says(process(0), "{'jsonrpc':'2.0','id':5,'result':{'tools':[5],'nextCursor':'n'}}");
	says(process(0), TOOLS("4", "4"));
	is_answered(one, TOOLS("1", "4"));
	assert_true(is_error(two, "\"tools\":[5],\"nextCursor\""));
	says(process(0), CHANGED("tools"));
	one = request(a->route, LIST("2"));
	hears(process(0), LIST("6"));
	says(process(0), "{'jsonrpc':'2.0','id':6,'result':{'tools':[],'nextCursor':'n'}}");
	assert_int_equal(one->ending, ENDING_RESPONSE);
	pass(5 * 60 * 1000);
	one = request(a->route, LIST("3"));
	hears(process(0), LIST("7"));
	says(process(0), "{'jsonrpc':'2.0','id':7,'result':{'tools':{}}}");
	hears(process(0), LIST("8"));
	says(process(0), "{'jsonrpc':'2.0','id':8,'result':{'tools':{}}}");
	is_answered(one, "{'jsonrpc':'2.0','id':3,'result':{'tools':{}}}");
}

/* Without listChanged it is fresh for five seconds; and no longer than its process lives. */
static void kept_lists_grow_old(void **state)
{
	struct member *a = begin();
	struct front *list = request(a->route, PROMPTS_LIST("1"));

	(void)state;
	hears(process(0), PROMPTS_LIST("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'prompts':[1]}}");
	pass(4999);
	list = request(a->route, PROMPTS_LIST("2"));
	is_answered(list, "{'jsonrpc':'2.0','id':2,'result':{'prompts':[1]}}");
	pass(1);
	list = request(a->route, PROMPTS_LIST("3"));
	hears(process(0), PROMPTS_LIST("3"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'prompts':[2]}}");
	is_answered(list, "{'jsonrpc':'2.0','id':3,'result':{'prompts':[2]}}");
	says(process(0), CHANGED("prompts")); /* although it did not say that it would */
	list = request(a->route, PROMPTS_LIST("4"));
	hears(process(0), PROMPTS_LIST("4"));
	says(process(0), "{'jsonrpc':'2.0','id':4,'result':{'prompts':[3]}}");
	list = request(a->route, LIST("5"));
	hears(process(0), LIST("5"));
	says(process(0), TOOLS("5", "1"));
	is_answered(list, TOOLS("5", "1"));
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	list = request(a->route, LIST("6"));
	get_ready(1);
	hears(process(1), LIST("2"));
	says(process(1), TOOLS("2", "2"));
	is_answered(list, TOOLS("6", "2"));
}

/* Who says more than what he wants to see is forwarded with it. */
static void own_words_reach_the_server(void **state)
{
	static const char *const params[] = {
		"{'of':1}",
		"{'_meta':{'vendor/x':1}}",
		"{'_meta':{'traceparent':'1','x':2}}",
		"[]",
	};
	struct member *a = begin();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(params); i++) {
		char text[200];
		char line[200];
		struct front *list;

		snprintf(text, sizeof(text),
			 "{'jsonrpc':'2.0','id':1,'method':'tools/list','params':%s}", params[i]);
		list = request(a->route, text);
		snprintf(line, sizeof(line),
			 "{'jsonrpc':'2.0','id':%zu,'method':'tools/list','params':%s}", i + 2,
			 params[i]);
		hears(process(0), line);
		snprintf(line, sizeof(line), TOOLS("%zu", "%zu"), i + 2, i);
		says(process(0), line);
		snprintf(line, sizeof(line), TOOLS("1", "%zu"), i);
		is_answered(list, line);
	}
	request(a->route, LIST("1"));
	hears(process(0), LIST("6"));
}

/* bridging.md §4: asked again once; who waits fails when that is in vain, too. */
static void lost_fetches_are_repeated(void **state)
{
	struct member *a = begin();
	struct front *list = request(a->route, LIST("1"));

	(void)state;
	hears(process(0), LIST("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[1],'nextCursor':'n'}}");
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	is_open(list);
	get_ready(1);
	hears(process(1), LIST("2"));
	fake_process_exit(&keeper, process(1), 0);
	fake_keeper_settle(&keeper);
	is_failed(list, REASON_CHILD_EXITED);
	backend.conf.pool_max = 0; /* there may be no other */
	list = request(a->route, LIST("2"));
	is_open(list);
	pass(QUEUE_TIMEOUT_MS);
	is_failed(list, REASON_OVER_LIMIT);
	backend.conf.pool_max = 1;
	keeper.refuses = ENOENT;
	list = request(a->route, LIST("3"));
	pass(1000);
	is_failed(list, REASON_START_FAILED);
}

/* Who has gone is not answered; when all have, nothing more is asked. */
static void nobody_is_waited_for(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->route, LIST("1"));
	struct front *two = request(b->route, LIST("1"));

	(void)state;
	hears(process(0), LIST("2"));
	notify(a->route, CANCELLED("1"));
	assert_int_equal(one->ending, ENDING_CANCELLED);
	hears_nothing(process(0));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[1],'nextCursor':'n'}}");
	hears(process(0), PAGE("3", "'n'"));
	session_end(&b->route->session, REASON_DELETED);
	is_failed(two, REASON_DELETED);
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'tools':[2],'nextCursor':'o'}}");
	hears_nothing(process(0));
	one = request(a->route, LIST("2"));
	hears(process(0), LIST("4"));
	says(process(0), TOOLS("4", "5"));
	is_answered(one, TOOLS("2", "5"));
	pass(IDLE_MS);
	hears_nothing(process(0));
	assert_true(process(0)->is_eof); /* it counts as idle again */
}

/* REL-25: a page that does not come. Each that comes is a sign of life, but no request lasts for ever. */
static void fetches_have_deadlines(void **state)
{
	struct member *a = begin();
	struct front *list = request(a->route, LIST("1"));
	char text[200];

	(void)state;
	hears(process(0), LIST("2"));
	pass(60000);
	is_failed(list, REASON_TIMEOUT);
	hears(process(0), "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
			  "'requestId':2,'reason':'no answer in time'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':3,'method':'ping'}");
	says(process(0), TOOLS("2", "1")); /* too late */
	says(process(0), EMPTY("3"));
	list = request(a->route, LIST("2"));
	hears(process(0), LIST("4"));
	for (size_t i = 0; i < 10; i++) {
		pass(59000);
		is_open(list);
		snprintf(text, sizeof(text),
			 "{'jsonrpc':'2.0','id':%zu,'result':{'tools':[],'nextCursor':'%zu'}}",
			 i + 4, i);
		says(process(0), text);
		assert_non_null(fake_process_read(process(0)));
	}
	pass(59000);
	is_failed(list, REASON_TIMEOUT);
}

/* bridging.md §1.8: a child that works on a call alone is asked for a list all the same; not if it may do one thing only. */
static void lists_need_no_lease(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct member *b = begin_asking(alice, 0);
	struct front *call = request(a->route, CALL("1"));
	struct front *list = request(b->route, LIST("1"));

	(void)state;
	hears(process(0), CALL("2"));
	hears(process(0), LIST("3"));
	says(process(0), ASK("7"));
	was_told(call, ASK("1000001") "|");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
			 "'error','data':'x'}}");
	was_told(call, "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
		       "'error','data':'x'}}|");
	says(process(0), TOOLS("3", ""));
	is_answered(list, TOOLS("1", ""));
	assert_int_equal(keeper.count, 1);
	backend.conf.calls_per_process = 1;
	backend.conf.pool_max = 1;
	says(process(0), CHANGED("tools"));
	list = request(b->route, LIST("2"));
	hears_nothing(process(0));
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	hears(process(0), "{'jsonrpc':'2.0','id':7,'result':{'action':'cancel'}}");
	hears(process(0), LIST("4"));
	call = request(a->route, CALL("2"));
	hears_nothing(process(0));
	says(process(0), TOOLS("4", ""));
	is_answered(list, TOOLS("2", ""));
	hears(process(0), CALL("5"));
	says(process(0), RESULT("5"));
	is_answered(call, RESULT("2"));
}

/* Neither calls nor lists keep the others from a lane. */
static void lists_and_calls_take_turns(void **state)
{
	struct member *a = begin();
	struct front *first;

	(void)state;
	backend.conf.pool_max = 1;
	backend.conf.calls_per_process = 1;
	first = request(a->route, CALL("1"));
	request(a->route, CALL("2"));
	request(a->route, CALL("3"));
	request(a->route, LIST("4"));
	request(a->route, PROMPTS_LIST("5"));
	hears(process(0), CALL("2"));
	says(process(0), RESULT("2"));
	is_answered(first, RESULT("1"));
	hears(process(0), CALL("3"));
	says(process(0), RESULT("3"));
	hears(process(0), LIST("4"));
	says(process(0), TOOLS("4", ""));
	hears(process(0), CALL("5"));
	says(process(0), RESULT("5"));
	hears(process(0), PROMPTS_LIST("6"));
	hears_nothing(process(0));
}

/* A result of a little less than a mebibyte. */
static void says_much(size_t i, const char *begin, const char *end)
{
	char text[10001];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	fake_process_write(process(i), q(begin));
	for (size_t n = 0; n < 100; n++) {
		fake_process_write(process(i), text);
		fake_keeper_settle(&keeper);
	}
	says(process(i), end);
}

/* What waits to be told is bounded in bytes, too. */
static void large_updates_do_not_wait(void **state)
{
	struct member *a = begin();

	(void)state;
	request(a->route, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	for (size_t i = 0; i < 2; i++) {
		heard(a, "");
		says_much(0,
			  "{'jsonrpc':'2.0','method':'notifications/resources/updated','params':"
			  "{'x':'",
			  i == 0 ? "','uri':'r:a'}}" : "','uri':'r:a/b'}}");
	}
	assert_in_range(a->got.len, 1000000, 1001000);
	pass(100);
	assert_in_range(a->got.len, 2000000, 2002000);
	assert_int_equal(a->route->partition->update_bytes, 0);
}

static void ask_for_much(struct member *member, size_t first_bid, size_t pages)
{
	char begin[200];
	char end[200];

	request(member->route, LIST("1"));
	for (size_t i = 0; i < pages; i++) {
		snprintf(begin, sizeof(begin), "{'jsonrpc':'2.0','id':%zu,'result':{'tools':['",
			 first_bid + i);
		snprintf(end, sizeof(end), "']%s%zu'}}",
			 i + 1 < pages ? ",'nextCursor':'" : ",'end':'", i);
		says_much(0, begin, end);
	}
}

/* Above 4 MiB there are pages of ours; above 16 MiB nothing is kept. */
static void long_lists_have_pages(void **state)
{
	struct member *a = begin();
	struct front *list;
	struct front *rest;
	struct json cursor;
	char page[300];

	(void)state;
	ask_for_much(a, 2, 6);
	list = &fronts[front_count - 1];
	assert_int_equal(list->ending, ENDING_RESPONSE);
	assert_in_range(list->response.len, 4000000, 4 << 20);
	cursor = scan_path(buf_slice(&list->response),
			   (const char *const[]){ "result", "nextCursor" }, 2);
	assert_int_equal(cursor.type, JSON_STRING);
	snprintf(page, sizeof(page), PAGE("2", "%.*s"), SLICE_ARG(cursor.text));
	rest = request(a->route, page);
	assert_in_range(rest->response.len, 2000000, 2100000);
	assert_int_equal(scan_path(buf_slice(&rest->response),
				   (const char *const[]){ "result", "nextCursor" }, 2)
				 .type,
			 JSON_ABSENT);
	page[strlen(page) - 5] ^= 1; /* of another list */
	assert_true(is_error(request(a->route, page), "\"code\":-32602"));
	page[strlen(page) - 5] ^= 1;
	assert_true(is_error(request(begin()->route, page), "\"result\""));
	for (size_t i = 0; i < 6; i++)
		assert_non_null(fake_process_read(process(0)));
	hears_nothing(process(0));
	assert_in_range(router.lists.bytes, 6000000, 6200000);
	says(process(0), CHANGED("tools"));
	assert_true(is_error(request(a->route, page), "\"result\"")); /* it holds together */
	ask_for_much(a, 8, 17);
	is_open(&fronts[front_count - 1]); /* it was forwarded */
	assert_true(is_error(request(a->route, page), "\"code\":-32602"));
	assert_in_range(router.lists.bytes, 1, 10000);
}

/* All that is kept is bounded: what was asked for last stays. */
static void kept_lists_are_bounded(void **state)
{
	struct member *a = begin();
	size_t all = 64 << 20;
	size_t small;

	(void)state;
	request(a->route, LIST("1"));
	hears(process(0), LIST("2"));
	says(process(0), TOOLS("2", "1"));
	small = router.lists.bytes;
	request(a->route, PROMPTS_LIST("2"));
	hears(process(0), PROMPTS_LIST("3"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'prompts':[]}}");
	request(a->route, LIST("3"));
	assert_in_range(small, 1, 4000);
	router.lists.bytes += all - 2 * small - 100; /* as if others were there */
	request(a->route, "{'jsonrpc':'2.0','id':4,'method':'resources/list'}");
	hears(process(0), "{'jsonrpc':'2.0','id':4,'method':'resources/list'}");
	says(process(0), "{'jsonrpc':'2.0','id':4,'result':{'resources':[]}}");
	is_answered(request(a->route, LIST("5")), TOOLS("5", "1"));
	hears_nothing(process(0));
	request(a->route, PROMPTS_LIST("6")); /* it had to give way */
	hears(process(0), PROMPTS_LIST("5"));
	router.lists.bytes += all; /* no room at all */
	says(process(0), "{'jsonrpc':'2.0','id':5,'result':{'prompts':[]}}");
	hears(process(0), PROMPTS_LIST("6"));
	says(process(0), "{'jsonrpc':'2.0','id':6,'result':{'prompts':[]}}");
	router.lists.bytes -= 2 * all - 2 * small - 100;
}

/* pool.max holds for all principals together: who needs a place gets that of one who does not. */
static void idle_children_make_room(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *front;
	struct front *call;

	(void)state;
	backend.conf.pool_max = 1;
	front = open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	is_open(front);
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	assert_int_equal(keeper.count, 2);
	get_ready(1);
	join(front);
	request(front->call.route, CALL("1"));
	call = request(a->route, CALL("1")); /* bob's is busy */
	is_open(call);
	front = open_session_as(alice, INITIALIZE_WITH("'sampling':{}"));
	pass(QUEUE_TIMEOUT_MS);
	is_failed(call, REASON_OVER_LIMIT);
	is_failed(front, REASON_OVER_LIMIT);
}

/* Who waits for a place need not ask again: the one that comes to rest makes it. */
static void children_that_come_to_rest_make_room(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *call = request(a->route, CALL("1"));
	struct front *front;

	(void)state;
	backend.conf.pool_max = 1;
	front = open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	is_open(front);
	assert_false(process(0)->is_eof);
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	while (fake_process_read(process(0)) != NULL)
		;
	assert_true(process(0)->is_eof);
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	assert_int_equal(keeper.count, 2);
	get_ready(1);
	join(front);
	assert_int_equal(router.leaving, 0);
}

/* Not more of them are stopped than are waited for. */
static void only_one_makes_room(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *calls[2];

	(void)state;
	calls[0] = request(a->route, CALL("1"));
	calls[1] = request(a->route, CALL("2"));
	get_ready(1);
	says(process(0), RESULT("2"));
	says(process(1), RESULT("2"));
	is_answered(calls[1], RESULT("2"));
	open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	assert_int_equal(router.leaving, 1);
	while (fake_process_read(process(0)) != NULL)
		;
	fake_process_exit(&keeper, process(process(0)->is_eof ? 0 : 1), 0);
	fake_keeper_settle(&keeper);
	assert_int_equal(router.leaving, 0);
	assert_int_equal(keeper.count, 3);
}

/* Nobody's partition is kept. */
static void unused_pools_go(void **state)
{
	struct member *a = begin_asking(alice, 0);

	(void)state;
	session_end(&a->route->session, REASON_DELETED);
	fake_keeper_settle(&keeper);
	assert_false(list_is_empty(&router.pools));
	pass(IDLE_MS);
	assert_true(list_is_empty(&router.pools));
}

/* ---- how many processes there are ---- */

static void start_warm(size_t count)
{
	backend.conf.isolation = ISOLATION_SESSION;
	backend.conf.warm = count;
	spares_start(&router, &backend);
	fake_keeper_settle(&keeper);
}

/* product.md §4 pool.warm: the process is there before its session, and has heard nothing. */
static void spares_are_taken(void **state)
{
	struct front *front;

	(void)state;
	backend.conf.pool_max = 5;
	start_warm(1);
	assert_int_equal(keeper.count, 1);
	hears_nothing(process(0));
	says(process(0), "a banner");
	front = open_session(INITIALIZE);
	assert_non_null(strstr(fake_process_read(process(0)), "initialize"));
	assert_int_equal(keeper.count, 2);
	says(process(0), WELCOME);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	pass(60000); /* a spare has no handshake to be late with */
	assert_false(process(1)->is_eof);
	keeper.holds = true;
	open_session(INITIALIZE);
	assert_non_null(fake_process_read(process(1)));
	front = open_session(INITIALIZE); /* the next spare, although it is not there yet */
	keeper.holds = false;
	fake_keeper_start(&keeper, process(2));
	fake_keeper_settle(&keeper);
	assert_non_null(fake_process_read(process(2)));
}

static void lost_spares_are_replaced(void **state)
{
	(void)state;
	start_warm(2);
	assert_int_equal(keeper.count, 2);
	fake_process_exit(&keeper, process(0), 1 << 8);
	fake_keeper_settle(&keeper);
	assert_int_equal(keeper.count, 2);
	assert_int_equal(backend.reserved, 1);
	pass(1000); /* the back-off */
	assert_int_equal(keeper.count, 3);
	backend.conf.pool_max = 3;
	open_session(INITIALIZE);
	assert_int_equal(keeper.count, 4);
	open_session(INITIALIZE);
	open_session(INITIALIZE);
	assert_int_equal(keeper.count, 4); /* pool.max: sessions come before spares */
	is_failed(open_session(INITIALIZE), REASON_OVER_LIMIT);
}

/* product.md §4 pool.min */
static void some_are_kept(void **state)
{
	(void)state;
	backend.conf.pool_min = 1;
	partition_prepare(&router, &backend);
	fake_keeper_settle(&keeper);
	get_ready(0);
	pass(2 * IDLE_MS);
	assert_false(process(0)->is_eof);
	is_answered(open_session(INITIALIZE), WELCOMED);
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	assert_int_equal(keeper.count, 2);
	fake_process_exit(&keeper, process(1), 0); /* fails to start: the back-off */
	fake_keeper_settle(&keeper);
	pass(1000);
	assert_int_equal(keeper.count, 3);
	get_ready(2);
}

static void old_ones_are_replaced(void **state)
{
	struct member *a = begin();
	struct front *call;

	(void)state;
	backend.conf.max_age_ms = 1000;
	call = request(a->route, CALL("1"));
	pass(1000);
	request(a->route, CALL("2"));
	get_ready(1);
	hears(process(1), CALL("2"));
	hears(process(0), CALL("2"));
	hears_nothing(process(0));
	assert_false(process(0)->is_eof);
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
}

static void many_sessions_get_more(void **state)
{
	(void)state;
	backend.conf.sessions_per_process = 2;
	begin();
	begin();
	assert_int_equal(keeper.count, 1);
	begin();
	assert_int_equal(keeper.count, 2);
	begin();
	begin();
	assert_int_equal(keeper.count, 2); /* pool.max */
}

/* product.md §4 limits.processes */
static void all_servers_have_a_limit(void **state)
{
	struct fleet fleet = { .max = 1 };

	(void)state;
	backend.conf.fleet = &fleet;
	backend.conf.isolation = ISOLATION_SESSION;
	open_session(INITIALIZE);
	assert_int_equal(fleet.count, 1);
	is_failed(open_session(INITIALIZE), REASON_OVER_LIMIT);
	fake_process_exit(&keeper, process(0), 0);
	fake_keeper_settle(&keeper);
	assert_int_equal(fleet.count, 0);
	open_session(INITIALIZE);
	assert_int_equal(fleet.count, 1); /* delayed by the back-off, but with its place */
	fleet.max = 0;
	session_set_fini(&router.sessions);
	fake_keeper_settle(&keeper);
	assert_int_equal(fleet.count, 0);
	backend.conf.fleet = NULL;
}

/* SEC-16; bridging.md §1.4: a burst of sessions is no burst of starts. */
static void starts_have_a_rate(void **state)
{
	(void)state;
	backend.conf.isolation = ISOLATION_SESSION;
	backend.conf.pool_max = 30;
	backend.conf.start_rate = 10;
	for (int i = 0; i < 15; i++)
		open_session(INITIALIZE);
	assert_in_range(keeper.count, 10, 11);
	pass(200);
	assert_in_range(keeper.count, 12, 13);
	pass(500);
	assert_int_equal(keeper.count, 15);
}

/* REL-29, DEF-19: crashes right after a good handshake are a crash loop, too. */
static void crash_loops_are_broken(void **state)
{
	struct front *front = NULL;

	(void)state;
	backend.conf.isolation = ISOLATION_SESSION;
	for (size_t i = 0; i < 4; i++) {
		front = open_session(INITIALIZE);
		get_ready(i);
		assert_int_equal(front->ending, ENDING_RESPONSE);
		fake_process_exit(&keeper, process(i), 1 << 8);
		fake_keeper_settle(&keeper);
	}
	front = open_session(INITIALIZE);
	assert_int_equal(keeper.count, 4);
	pass(1000);
	get_ready(4);
	fake_process_exit(&keeper, process(4), 1 << 8);
	fake_keeper_settle(&keeper);
	open_session(INITIALIZE);
	pass(2000);
	get_ready(5);
	fake_process_exit(&keeper, process(5), 1 << 8);
	fake_keeper_settle(&keeper);
	is_failed(open_session(INITIALIZE), REASON_BACKEND_DOWN);
	pass(60000);
	front = open_session(INITIALIZE);
	get_ready(6);
	assert_int_equal(backend.failures, 0);
	/* Nobody must be able to keep the server from others by calls that it does not survive. */
	for (size_t i = 0; i < 6; i++) {
		struct front *call = request(front->call.route, CALL("1"));

		if (i < 3)
			says(process(6 + i), RESULT("2"));
		assert_int_equal(call->ending, i < 3 ? ENDING_RESPONSE : ENDING_NONE);
		fake_process_exit(&keeper, process(6 + i), 1 << 8);
		fake_keeper_settle(&keeper);
		front = open_session(INITIALIZE);
		get_ready(7 + i);
	}
	assert_int_equal(backend.failures, 0);
}

/* ---- anything in any order ---- */

static uint64_t random_state;

static uint64_t any(uint64_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % below;
}

/* A server's side of a call: what it heard. */
struct heard {
	unsigned long id;
	unsigned long mark;
};

struct random_server {
	struct heard calls[64]; /* the last ones */
	size_t count;
};

static struct random_server servers[FAKE_PROCESSES_MAX];

static void server_listen(size_t i)
{
	struct random_server *server = &servers[i];
	const char *line;

	while ((line = fake_process_read(process(i))) != NULL) {
		if (strstr(line, "\"initialize\"") != NULL) {
			fake_process_write(process(i), q(WELCOME));
			fake_process_write(process(i), "\n");
		}
		struct heard *heard = &server->calls[server->count % ARRAY_LEN(server->calls)];
		const char *mark = strstr(line, "\"mark\":");

		if (mark == NULL)
			continue;
		assert_int_equal(sscanf(line, "{\"jsonrpc\":\"2.0\",\"id\":%lu,", &heard->id), 1);
		heard->mark = strtoul(mark + 7, NULL, 10);
		server->count++;
	}
}

/* It answers one of its calls: the right one, one again, one that was cancelled, or none at all. */
static void server_answer(size_t i)
{
	struct random_server *server = &servers[i];
	size_t kept =
		server->count < ARRAY_LEN(server->calls) ? server->count : ARRAY_LEN(server->calls);
	const struct heard *heard;
	char text[300];

	if (kept == 0)
		return;
	heard = &server->calls[any(kept)];
	if (any(8) == 0)
		snprintf(text, sizeof(text), PROGRESS("%lu", "%lu"), heard->id, heard->mark);
	else if (any(16) == 0)
		snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':%lu,'result':{'mark':666}}",
			 heard->id + 100000);
	else
		snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':%lu,'result':{'mark':%lu}}",
			 heard->id, heard->mark);
	fake_process_write(process(i), q(text));
	fake_process_write(process(i), "\n");
}

static void client_act(struct member *member)
{
	static unsigned long mark = 1000;
	char text[300];
	struct envelope env;
	struct front *front;

	if (front_count + MEMBERS_MAX >= FRONTS_MAX)
		return;
	if (any(8) == 0) {
		snprintf(text, sizeof(text), CANCELLED("%lu"), (unsigned long)any(4));
		env = scan(q(text));
		forward_notification(member->route, &env);
		return;
	}
	mark++;
	snprintf(text, sizeof(text),
		 "{'jsonrpc':'2.0','id':%lu,'method':'%s','params':{'mark':%lu,'_meta':{"
		 "'progressToken':%lu}}}",
		 (unsigned long)any(4), any(4) == 0 ? "tools/list" : "tools/call", mark, mark);
	env = scan(q(text));
	front = front_new(&env);
	front->mark = mark;
	forward_request(member->route, &front->call, &env);
}

/* Each call has had what belongs to it, or nothing. */
static void check_marks(void)
{
	size_t answered = 0, told = 0;
	char expected[64];

	for (size_t i = 0; i < front_count; i++) {
		struct front *front = &fronts[i];

		if (front->mark == 0)
			continue;
		snprintf(expected, sizeof(expected), "\"mark\":%lu}}", front->mark);
		answered += front->ending == ENDING_RESPONSE;
		told += front->messages.len > 0;
		if (front->ending == ENDING_RESPONSE)
			assert_non_null(strstr(buf_terminate(&front->response), expected));
		snprintf(expected, sizeof(expected), "\"progress\":%lu}}", front->mark);
		if (front->messages.len > 0)
			assert_non_null(strstr(buf_terminate(&front->messages), expected));
	}
	print_message("# %zu calls, %zu answered, %zu with progress\n", front_count, answered,
		      told);
	assert_true(answered > 1000 && told > 50);
}

/* SEC-06, I1, I2: fifty clients with the same few ids; answers late, twice, unknown, after cancellation; crashes. */
static void nothing_crosses(void **state)
{
	struct member *all[50];
	size_t dead = 0;

	(void)state;
	random_state = 20251125;
	memset(servers, 0, sizeof(servers));
	backend.conf.pool_max = 4;
	backend.conf.calls_per_process = 8;
	backend.conf.queue_calls = 64;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i] = begin();
	for (size_t step = 0; step < 12000; step++) {
		size_t i = any(keeper.count);

		if (any(2) == 0)
			client_act(all[any(ARRAY_LEN(all))]);
		if (!process(i)->is_started || process(i)->is_exited)
			continue;
		if (any(500) == 0 && dead < 20) {
			dead++;
			fake_process_exit(&keeper, process(i), 0);
			fake_keeper_settle(&keeper);
			continue;
		}
		server_listen(i);
		for (uint64_t n = any(8); n > 0; n--)
			server_answer(i);
		if (step % 4 == 0)
			fake_keeper_settle(&keeper);
	}
	check_marks();
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		heard(all[i], "");
}

/* A server's side of lists: what each process was asked for, and the number of changes that there were. */
struct random_lists {
	struct {
		unsigned long id;
		bool is_list;
	} asked[64];
	size_t count;
};

static struct random_lists lists[FAKE_PROCESSES_MAX];
static unsigned long version;

static void lists_listen(size_t i)
{
	const char *line;

	while ((line = fake_process_read(process(i))) != NULL) {
		bool is_list = strstr(line, "\"tools/list\"") != NULL;
		unsigned long id;

		if (strstr(line, "\"initialize\"") != NULL)
			says(process(i), WELCOME);
		else if (strstr(line, "\"ping\"") != NULL &&
			 sscanf(line, "{\"jsonrpc\":\"2.0\",\"id\":%lu,", &id) == 1) {
			char text[100];

			snprintf(text, sizeof(text), EMPTY("%lu"), id);
			says(process(i), text);
		}
		if (!is_list && strstr(line, "\"tools/call\"") == NULL)
			continue;
		assert_int_equal(sscanf(line, "{\"jsonrpc\":\"2.0\",\"id\":%lu,", &id), 1);
		assert_true(lists[i].count < ARRAY_LEN(lists[i].asked));
		lists[i].asked[lists[i].count].id = id;
		lists[i].asked[lists[i].count++].is_list = is_list;
	}
}

static void lists_write_answer(char *text, size_t size, unsigned long id)
{
	if (any(12) == 0)
		snprintf(text, size, "{'jsonrpc':'2.0','id':%lu,'error':{'code':1,'message':'m'}}",
			 id);
	else if (any(3) == 0)
		snprintf(text, size,
			 "{'jsonrpc':'2.0','id':%lu,'result':{'tools':[%lu],'nextCursor':'%d'}}",
			 id, version, (int)any(1000));
	else
		snprintf(text, size, TOOLS("%lu", "%lu"), id, version);
}

/* It answers what it was asked for in any order: the list as it is now, a part of it, an error; or asks itself. */
static void lists_answer(size_t i)
{
	char text[200];
	size_t at;

	if (lists[i].count == 0)
		return;
	at = any(lists[i].count);
	if (!lists[i].asked[at].is_list && any(3) == 0) {
		says(process(i), ASK("9"));
		return;
	}
	if (lists[i].asked[at].is_list)
		lists_write_answer(text, sizeof(text), lists[i].asked[at].id);
	else
		snprintf(text, sizeof(text), RESULT("%lu"), lists[i].asked[at].id);
	lists[i].asked[at] = lists[i].asked[--lists[i].count];
	says(process(i), text);
}

static void ask_for_something(struct member *member)
{
	char text[200];

	if (any(6) == 0) {
		snprintf(text, sizeof(text), CANCELLED("%d"), (int)any(4));
		notify(member->route, text);
	} else if (any(5) == 0) {
		snprintf(text, sizeof(text), CALL("%d"), (int)any(4));
		request(member->route, text);
	} else {
		snprintf(text, sizeof(text), LIST("%d"), (int)any(4));
		request(member->route, text)->mark = version + 1;
	}
}

/* Nobody was shown a list that was older than the last change when he asked. */
static void check_versions(void)
{
	size_t answered = 0;

	for (size_t i = 0; i < front_count; i++) {
		const char *tools;

		if (fronts[i].mark == 0 || fronts[i].ending != ENDING_RESPONSE)
			continue;
		tools = strstr(buf_terminate(&fronts[i].response), "\"tools\":[");
		if (tools == NULL)
			continue;
		answered++;
		assert_true(strtoul(tools + 9, NULL, 10) + 1 >= fronts[i].mark);
	}
	print_message("# %zu requests, %zu lists, %lu changes, %d processes\n", front_count,
		      answered, version, (int)keeper.count);
	assert_true(answered > 1000 && version > 50);
}

/* At all processes: they know nothing of each other. */
static void change_lists(void)
{
	version++;
	for (size_t i = 0; i < keeper.count; i++) {
		if (process(i)->is_started && !process(i)->is_exited)
			says(process(i), CHANGED("tools"));
	}
}

static void random_step(struct member **all, size_t count)
{
	size_t i = any(keeper.count);

	ask_for_something(all[any(count)]);
	if (any(200) == 0)
		pass(1000 + any(40000));
	if (!process(i)->is_started || process(i)->is_exited)
		return;
	if (process(i)->is_eof || process(i)->last_signal != 0 ||
	    (any(250) == 0 && keeper.count < FAKE_PROCESSES_MAX - 4)) {
		fake_process_exit(&keeper, process(i), 0);
		fake_keeper_settle(&keeper);
		return;
	}
	lists_listen(i);
	for (uint64_t n = any(4); n > 0; n--)
		lists_answer(i);
	if (any(10) == 0)
		change_lists();
}

static void begin_randomly(enum isolation isolation)
{
	random_state = 20260728;
	memset(lists, 0, sizeof(lists));
	version = 0;
	backend.conf.isolation = isolation;
	backend.conf.pool_max = 4;
	backend.conf.calls_per_process = 3;
	backend.conf.queue_calls = 64;
	backend.conf.backoff_min_ms = 1;
}

static void act_randomly(struct member **all, size_t count)
{
	for (size_t step = 0; step < 6000; step++) {
		random_step(all, count);
		if (step % 700 == 699) {
			size_t leaves = any(count);

			session_end(&all[leaves]->route->session, REASON_DELETED);
			all[leaves] = all[--count];
		}
	}
	check_versions();
}

/* bridging.md §1.8: whatever comes between: changes, errors, parts, crashes, time-outs, clients that go. */
static void lists_are_never_old(void **state)
{
	struct member *all[40];

	(void)state;
	begin_randomly(ISOLATION_SHARED);
	all[0] = begin_plain(alice);
	for (size_t i = 1; i < ARRAY_LEN(all); i++)
		all[i] = i % 3 == 0 ? begin() :
				      join(open_session_as(i % 3 == 1 ? alice : bob, INITIALIZE));
	act_randomly(all, ARRAY_LEN(all));
}

/* The same beside calls that have their process for themselves, and are asked something. */
static void leased_lists_are_never_old(void **state)
{
	struct member *all[20];

	(void)state;
	begin_randomly(ISOLATION_PRINCIPAL);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i] = begin_asking(i % 2 == 0 ? alice : bob, i);
	act_randomly(all, ARRAY_LEN(all));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_PRINCIPALS(name) \
	cmocka_unit_test_setup_teardown(name, setup_principals, teardown_principals)

static const struct CMUnitTest tests[] = {
	TEST(sessions_share_a_child),
	TEST(start_can_fail),
	TEST(server_may_refuse),
	TEST(ids_and_tokens_do_not_cross),
	TEST(cancelled_calls_stay_silent),
	TEST(child_cannot_ask),
	TEST(what_is_not_offered_is_unknown),
	TEST(cursors_name_their_child),
	TEST(cursors_respect_the_limit),
	TEST(tasks_are_hidden),
	TEST(lost_cursors_are_not_tried_elsewhere),
	TEST(made_up_cursors_stay_strings),
	TEST(calls_are_spread),
	TEST(queue_is_shared_fairly),
	TEST(waiting_is_limited),
	TEST(one_start_serves_all_who_wait),
	TEST(lost_child_takes_only_its_calls),
	TEST(other_offers_are_told),
	TEST(timeout_asks_whether_it_lives),
	TEST(idle_children_go),
	TEST(session_end_cancels_its_calls),
	TEST(list_changes_reach_all_once),
	TEST(subscriptions_are_merged),
	TEST(refused_subscriptions_leave_nothing),
	TEST(subscribing_is_handed_on),
	TEST(subscriptions_outlive_children),
	TEST(updates_are_joined),
	TEST(large_updates_do_not_wait),
	TEST(subscriptions_are_not_waited_for_for_ever),
	TEST(subscriptions_are_bounded),
	TEST(updates_reach_those_whom_they_concern),
	TEST(subscriptions_at_once_are_bounded),
	TEST(waiting_together_is_bounded),
	TEST_PRINCIPALS(heirs_take_turns),
	TEST_PRINCIPALS(principals_do_not_share),
	TEST_PRINCIPALS(plain_classes_are_multiplexed),
	TEST_PRINCIPALS(servers_may_be_known_not_to_ask),
	TEST_PRINCIPALS(leased_child_asks_its_caller),
	TEST_PRINCIPALS(unleased_child_asks_nobody),
	TEST_PRINCIPALS(given_up_children_settle),
	TEST_PRINCIPALS(levels_go_with_the_lease),
	TEST_PRINCIPALS(levels_end_with_the_lease),
	TEST_PRINCIPALS(lost_lease_ends_its_asks),
	TEST_PRINCIPALS(leases_hold_against_cursors),
	TEST(lists_are_fetched_once),
	TEST(changes_outdate_what_is_on_its_way),
	TEST(pages_become_one),
	TEST_PRINCIPALS(lists_are_of_one_principal),
	TEST(errors_are_not_kept),
	TEST(endless_lists_are_passed_on),
	TEST(kept_lists_grow_old),
	TEST(own_words_reach_the_server),
	TEST(lost_fetches_are_repeated),
	TEST(nobody_is_waited_for),
	TEST(fetches_have_deadlines),
	TEST_PRINCIPALS(lists_need_no_lease),
	TEST(lists_and_calls_take_turns),
	TEST(long_lists_have_pages),
	TEST(kept_lists_are_bounded),
	TEST_PRINCIPALS(idle_children_make_room),
	TEST_PRINCIPALS(children_that_come_to_rest_make_room),
	TEST_PRINCIPALS(only_one_makes_room),
	TEST_PRINCIPALS(unused_pools_go),
	TEST(spares_are_taken),
	TEST(lost_spares_are_replaced),
	TEST(some_are_kept),
	TEST(old_ones_are_replaced),
	TEST(many_sessions_get_more),
	TEST(all_servers_have_a_limit),
	TEST(starts_have_a_rate),
	TEST(crash_loops_are_broken),
	TEST(nothing_crosses),
	TEST_PRINCIPALS(lists_are_never_old),
	TEST_PRINCIPALS(leased_lists_are_never_old),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
