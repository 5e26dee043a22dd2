/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a call counts as one in flight, which limits are about: until the server has done with it; and what is told of
 * it meanwhile. SEC-42, bridging.md §2.5
 */
#include "router/call.h"
#include "router/client.h"
#include "router/era_stage.h"
#include "router/pool.h"
#include "router/request_stage.h"
#include "router/running_tasks.h"
#include "session/principal.h"

#define TIMEOUT_MS 60000 /* request_timeout */

static const struct slice limited[] = { SLICE("t") };
static struct tool_limit of_tool;
static struct client *client;

static int setup(void **state)
{
	struct server_conf *conf = &servers[0].conf;

	request_setup(state);
	conf->isolation = ISOLATION_SESSION;
	conf->request_timeout_ms = TIMEOUT_MS;
	of_tool = (struct tool_limit){ .tools = { .written = { limited, 1 } },
				       .limit = { .concurrency = 100 } };
	conf->limits =
		(struct call_limits){ .all = { .concurrency = 100 }, .tools = { &of_tool, 1 } };
	call_limits_finish(&conf->limits, slice_str(conf->name));
	return 0;
}

static int teardown(void **state)
{
	call_limits_free(&servers[0].conf.limits);
	return request_teardown(state);
}

static size_t count_of(const struct call_limit *limit, const struct principal *principal)
{
	static const struct peer nowhere;
	const struct holder *holder =
		holder_find(&router.sessions.holders, limit->in_flight_scope, principal, &nowhere);

	return holder != NULL ? holder->count : 0;
}

/* Alice's calls of the tool; hers alone. */
static void counts(size_t count)
{
	assert_int_equal(count_of(&servers[0].conf.limits.all, alice), count);
	assert_int_equal(count_of(&of_tool.limit, alice), count);
	assert_int_equal(count_of(&servers[0].conf.limits.all, bob), 0);
}

static void begin_alone(void)
{
	client = begin_plain(alice)->client;
}

static void until_it_is_answered(void **state)
{
	begin_alone();
	counts(0);
	request(client, CALL("1"));
	counts(1);
	request(client, CALL("2"));
	counts(2);
	request(client, LIST("3")); /* it calls no tool */
	assert_int_equal(count_of(&servers[0].conf.limits.all, alice), 3);
	assert_int_equal(count_of(&of_tool.limit, alice), 2);
	says(process(0), TOOLS("4", ""));
	says(process(0), RESULT("3"));
	counts(1);
	says(process(0), "{'jsonrpc':'2.0','id':2,'error':{'code':-32603,'message':'m'}}");
	counts(0);
	servers[0].conf.limits.all.concurrency = 0;
	request(client, CALL("5"));
	assert_int_equal(count_of(&servers[0].conf.limits.all, alice), 0);
	assert_int_equal(count_of(&of_tool.limit, alice), 1);
}

/* Its client has given it up: the server has not. */
static void begin_cancelled(void)
{
	struct front *front;

	begin_alone();
	front = request(client, CALL("1"));
	notify(client, CANCELLED("1"));
	assert_int_equal(front->ending, ENDING_CANCELLED);
	counts(1);
}

static void cancelled_until_it_is_answered(void **state)
{
	begin_cancelled();
	says(process(0), RESULT("3")); /* of another one */
	counts(1);
	says(process(0), RESULT("2"));
	counts(0);
}

static void cancelled_until_the_timeout(void **state)
{
	begin_cancelled();
	pass(TIMEOUT_MS - 1);
	counts(1);
	pass(1);
	counts(0);
}

static void cancelled_until_the_process_is_gone(void **state)
{
	begin_cancelled();
	session_end(client->session, REASON_DELETED);
	settle();
	counts(1);
	exits(process(0), 0);
	counts(0);
}

/* Also one that got no answer in time. */
static void timed_out_until_it_is_answered(void **state)
{
	struct front *front;

	begin_alone();
	front = request(client, CALL("1"));
	pass(TIMEOUT_MS);
	is_failed(front, REASON_TIMEOUT);
	counts(1);
	says(process(0), RESULT("2"));
	counts(0);
}

/* But none that no server has got. */
static void what_waits_ends_at_once(void **state)
{
	servers[0].conf.isolation = ISOLATION_PRINCIPAL;
	servers[0].conf.pool_max = servers[0].conf.calls_per_process = 1;
	begin_alone();
	request(client, CALL("1"));
	request(client, CALL("2"));
	counts(2);
	notify(client, CANCELLED("2"));
	counts(1);
}

/* The client of a call that may ask has gone: the server works on. */
static void a_call_that_may_ask_counts(void **state)
{
	struct asker *asker = ask_as(alice, ASK_TOOL("1", "'elicitation':{}", ""));

	hears(process(0), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(0), WELCOME);
	hears(process(0), INITIALIZED);
	hears(process(0), CALLED("2"));
	counts(1);
	call_cancel(&asker->call);
	settle();
	counts(1);
	says(process(0), RESULT("2"));
	counts(0);
}

/* ---- tasks of sessions: 2025-11-25 ---- */

#define TASK_OF(id, status) "'taskId':" id ",'status':'" status "'"
#define MADE(id, task) \
	"{'jsonrpc':'2.0','id':" id ",'result':{'task':{" TASK_OF(task, "working") "}}}"
#define STATUS(task, status)                                                              \
	"{'jsonrpc':'2.0','method':'notifications/tasks/status','params':{" TASK_OF(task, \
										    status) "}}"

/* A session that has made this task. */
static void begin_task(void)
{
	struct front *front = open_session_as(alice, INITIALIZE_WITH("'tasks':{}"));

	get_ready(0);
	client = join(front)->client;
	front = request(client, CALL("1"));
	hears(process(0), CALL("2"));
	says(process(0), MADE("2", "'a'"));
	assert_int_equal(front->ending, ENDING_RESPONSE);
	counts(1);
}

static void a_task_counts_until_its_end(void **state)
{
	static const char *const ends[] = { STATUS("'a'", "completed"), STATUS("'a'", "failed"),
					    STATUS("'a'", "cancelled") };

	begin_task();
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		char text[100];

		says(process(0), STATUS("'a'", "working"));
		says(process(0), STATUS("'b'", "completed"));
		counts(1);
		says(process(0), ends[i]);
		counts(0);
		request(client, CALL("9"));
		snprintf(text, sizeof(text), MADE("%zu", "'a'"), i + 3);
		says(process(0), text);
	}
	counts(1);
}

static void a_task_counts_until_its_result_is_there(void **state)
{
	begin_task();
	request(client, "{'jsonrpc':'2.0','id':2,'method':'tasks/result','params':{'taskId':'a'}}");
	counts(1); /* what is asked about tasks does not count */
	says(process(0),
	     "{'jsonrpc':'2.0','id':3,'result':{'_meta':{'io.modelcontextprotocol/related-task':{'taskId':'a'}}}}");
	counts(0);
}

static void a_task_counts_as_long_as_it_is_told_of(void **state)
{
	begin_task();
	for (int i = 0; i < 2; i++) {
		pass(LIVE_TASKS_MS - 1);
		counts(1);
		says(process(0), STATUS("'a'", "working"));
	}
	pass(LIVE_TASKS_MS - 1);
	counts(1);
	pass(1);
	counts(0);
}

/* Its session has ended: while its process is there, it may work. */
static void a_task_counts_while_its_process_is_there(void **state)
{
	begin_task();
	session_end(client->session, REASON_DELETED);
	settle();
	counts(1);
	exits(process(0), 0);
	counts(0);
}

/* Two of one name are one; of too many the oldest is not known any more, and counts all the same. */
static void too_many_tasks_count(void **state)
{
	char text[200];

	begin_task();
	request(client, CALL("1"));
	says(process(0), MADE("3", "'a'"));
	counts(1);
	for (int i = 0; i < 64; i++) {
		request(client, CALL("1"));
		snprintf(text, sizeof(text), MADE("%d", "'%d'"), i + 4, i);
		says(process(0), text);
	}
	counts(65);
	says(process(0), STATUS("'a'", "completed"));
	counts(65);
	says(process(0), STATUS("'0'", "completed"));
	counts(64);
}

/* UTIL-PROG-01: its progress is told under the token of the call that made it, to its own session, while it works. */
static void the_progress_of_a_task_is_told(void **state)
{
	struct front *front = open_session_as(alice, INITIALIZE_WITH("'tasks':{}"));
	static const char call[] =
		"{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'t',"
		"'_meta':{'progressToken':'%s'}}}";
	char token[1100], text[1300];
	struct member *member;

	get_ready(0);
	member = join(front);
	router.limits.id_max = 2000;
	memset(token, 'x', sizeof(token));
	token[1024 - 2] = '\0';
	for (size_t more = 0; more < 2; more++) {
		char id[2] = { (char)('2' + more), '\0' };

		snprintf(text, sizeof(text), call, token);
		request(member->client, text);
		snprintf(text, sizeof(text), MADE("%s", "'%s'"), id, id);
		says(process(0), text);
		snprintf(text, sizeof(text), PROGRESS("%s", "1"), id);
		says(process(0), text);
		says(process(0), text); /* it is no more than before */
		snprintf(text, sizeof(text), PROGRESS("'%s'", "1") "|", token);
		heard(member, more == 0 ? text : ""); /* of a longer one no task is known */
		token[1024 - 2] = 'x';
		token[1024 - 1] = '\0';
	}
	says(process(0), PROGRESS("9", "2"));
	says(process(0), STATUS("'2'", "completed"));
	says(process(0), PROGRESS("2", "2"));
	pass(100);
	assert_null(strstr(buf_terminate(&member->got), "notifications/progress"));
}

/* ---- tasks of modern clients and servers ---- */

#define EXTENSION "'extensions':{'io.modelcontextprotocol/tasks':{}}"
#define MAKE REQUEST("'c'", "tools/call", "'name':'t'," META_OF(EXTENSION, CLIENT) "}")
#define STATE(task, status, more) \
	"'taskId':'" task "','status':'" status "','createdAt':'x','lastUpdatedAt':'x'" more

static void begin_modern(void)
{
	servers[0].conf.isolation = ISOLATION_SHARED;
	servers[0].conf.era = ERA_MODERN;
	servers[0].conf.calls_per_process = 1000;
}

/* The client's id of a task that was made in process 0, by the request to it with this id. */
static char *make(const char *id, const char *task)
{
	struct asker *asker = ask_as(alice, MAKE);
	char text[300];
	struct json name;

	if (id[0] == '2' && id[1] == '\0') {
		assert_non_null(fake_process_read(process(0)));
		says(process(0), DISCOVERED_WITH("'tools':{}," EXTENSION));
	}
	assert_non_null(fake_process_read(process(0)));
	snprintf(text, sizeof(text),
		 ANSWER("%s", "'resultType':'task'," STATE("%s", "working", "")), id, task);
	says(process(0), text);
	assert_int_equal(asker->ending, ENDING_RESPONSE);
	name = scan_path(buf_slice(&asker->response), (const char *const[]){ "result", "taskId" },
			 2);
	return strndup(name.text.p, name.text.n);
}

/* Asks for the task's state, and the server says this, as its answer to the request of this id. */
static void is_told(const char *name, const char *id, const char *state)
{
	char text[1000];

	snprintf(text, sizeof(text),
		 REQUEST("'g'", "tasks/get", "'taskId':%s," META_OF(EXTENSION, CLIENT) "}"), name);
	ask_as(alice, text);
	assert_non_null(fake_process_read(process(0)));
	snprintf(text, sizeof(text), ANSWER("%s", "'resultType':'complete',%s"), id, state);
	says(process(0), text);
}

static void a_modern_task_counts_until_its_end(void **state)
{
	char *name;

	begin_modern();
	name = make("2", "a");
	counts(1);
	pass(LIVE_TASKS_MS - 1);
	is_told(name, "3", STATE("a", "input_required", ""));
	counts(1);
	pass(LIVE_TASKS_MS - 1);
	counts(1);
	is_told(name, "4", STATE("a", "completed", ",'result':{}"));
	counts(0);
	free(name);
}

static void a_modern_task_counts_for_a_while(void **state)
{
	begin_modern();
	servers[0].conf.idle_ms = 2 * LIVE_TASKS_MS;
	free(make("2", "a"));
	pass(LIVE_TASKS_MS - 1);
	counts(1);
	pass(1);
	counts(0);
}

/* How long a server keeps a task, which its client may have chosen, says nothing about how long it works. */
static void a_task_that_is_not_kept_counts(void **state)
{
	char *name;

	begin_modern();
	name = make("2", "a");
	is_told(name, "3", STATE("a", "working", ",'ttlMs':0"));
	counts(1);
	is_told(name, "4",
		STATE("a", "completed", ",'result':{}")); /* that one is not known any more */
	counts(1);
	pass(LIVE_TASKS_MS);
	counts(0);
	free(name);
}

/* Two calls that have become one task count as one, while its process is there. */
static void one_modern_task_counts_once(void **state)
{
	begin_modern();
	free(make("2", "a"));
	free(make("3", "a"));
	counts(1);
	exits(process(0), 0);
	counts(0);
}

/* Of too many the one told of longest ago is not known any more, but counts. */
static void a_forgotten_modern_task_counts(void **state)
{
	struct upstream *upstream;
	char text[200];

	begin_modern();
	servers[0].conf.idle_ms = 2 * LIVE_TASKS_MS;
	free(make("2", "a"));
	upstream = container_of(container_of(router.slots.pools.next, struct pool, link)
					->upstreams.next,
				struct upstream, link);
	for (unsigned int i = 0; i < LIVE_TASKS_MAX; i++) {
		snprintf(text, sizeof(text), "{" STATE("%u", "working", "") "}", i);
		assert_true(live_tasks_note(upstream, slice_str(q(text))));
	}
	assert_true(live_tasks_note(upstream, slice_str(q("{" STATE("a", "completed", "") "}"))));
	pass(LIVE_TASKS_MS - 1);
	counts(1);
	pass(1);
	counts(0);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(until_it_is_answered),
	TEST(cancelled_until_it_is_answered),
	TEST(cancelled_until_the_timeout),
	TEST(cancelled_until_the_process_is_gone),
	TEST(timed_out_until_it_is_answered),
	TEST(what_waits_ends_at_once),
	TEST(a_call_that_may_ask_counts),
	TEST(a_task_counts_until_its_end),
	TEST(a_task_counts_until_its_result_is_there),
	TEST(a_task_counts_as_long_as_it_is_told_of),
	TEST(a_task_counts_while_its_process_is_there),
	TEST(too_many_tasks_count),
	TEST(the_progress_of_a_task_is_told),
	TEST(a_modern_task_counts_until_its_end),
	TEST(a_modern_task_counts_for_a_while),
	TEST(a_task_that_is_not_kept_counts),
	TEST(one_modern_task_counts_once),
	TEST(a_forgotten_modern_task_counts),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
