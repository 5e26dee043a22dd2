/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of sessions of one principal, in time and number: how long a process is kept, how long is waited, for how many. */
#include "router/pooled_task.h"

#include <stdlib.h>

#include "router/pool_demand.h"
#include "router/pool_stage.h"
#include "router/running_tasks.h"

#define RELATED "io.modelcontextprotocol/related-task"
#define MAKE(id) \
	"{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':'t','task':{}}}"
#define STATE(task, status, more) \
	"'taskId':" task ",'status':'" status "','createdAt':'x','lastUpdatedAt':'x'" more
#define MADE(id, task, more) \
	"{'jsonrpc':'2.0','id':" id ",'result':{'task':{" STATE(task, "working", more) "}}}"
#define TOLD(task, status)                                                         \
	"{'jsonrpc':'2.0','method':'notifications/tasks/status','params':{" STATE( \
		task, status, ",'ttl':null") "}}"
#define REFUSED(id) "{'jsonrpc':'2.0','id':" id ",'error':{'code':-32000,'message':'m'}}"
#define LIST_TASKS(id) "{'jsonrpc':'2.0','id':" id ",'method':'tasks/list'}"

static char line[8192];

/* ---- words for the stories ---- */

static struct upstream *upstream_of(const struct member *member, size_t i)
{
	LIST_FOREACH(node, &member->client->pool->upstreams) {
		if (i-- == 0)
			return container_of(node, struct upstream, link);
	}
	return NULL;
}

/* The id, in its quotes, of the task that the next call of the member becomes; its process answers `made`. */
static char *make(struct member *member, size_t i, const char *made)
{
	struct front *front = request(member->client, MAKE("1"));
	struct json name;

	assert_non_null(fake_process_read(process(i)));
	says(process(i), made);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	name = scan_path(buf_slice(&front->response),
			 (const char *const[]){ "result", "task", "taskId" }, 3);
	assert_int_equal(name.type, JSON_STRING);
	return strndup(name.text.p, name.text.n);
}

static struct front *ask_about(struct member *member, const char *method, const char *name)
{
	(void)snprintf(line, sizeof(line),
		       "{'jsonrpc':'2.0','id':3,'method':'tasks/%s','params':{'taskId':%s}}",
		       method, name);
	return request(member->client, line);
}

static bool is_stopped(size_t i)
{
	hears_nothing(process(i));
	return process(i)->is_eof;
}

static int setup(void **state)
{
	pool_setup_principals(state);
	servers[0].conf.idle_ms = 60000;
	servers[0].conf.request_timeout_max_ms = 600000;
	return 0;
}

/* ---- the time of a process ---- */

/* bridging.md §2.5: as long as its task works, and when that is over until its result is given. */
static void a_result_is_waited_for(void **state)
{
	struct member *a = begin_plain(alice);
	char *name = make(a, 0, MADE("2", "'t'", ",'ttl':null"));
	struct front *result;

	pass(60001);
	assert_false(is_stopped(0));
	says(process(0), TOLD("'t'", "completed"));
	pass(300000);
	assert_false(is_stopped(0));
	result = ask_about(a, "result", name);
	hears(process(0),
	      "{'jsonrpc':'2.0','id':3,'method':'tasks/result','params':{'taskId':'t'}}");
	says(process(0), RESULT("3"));
	is_answered(result, RESULT("3"));
	pass(60001);
	assert_true(is_stopped(0));
	free(name);
}

/* Of one that is over an error is the result, too; to ask too early for it is no end. */
static void an_error_may_be_the_result(void **state)
{
	struct member *a = begin_plain(alice);
	char *name = make(a, 0, MADE("2", "'t'", ",'ttl':null"));

	for (size_t i = 0; i < 2; i++) {
		(void)ask_about(a, "result", name);
		assert_non_null(fake_process_read(process(0)));
		says(process(0), i == 0 ? REFUSED("3") : REFUSED("4"));
		pass(60001);
		assert_int_equal(is_stopped(0), i == 1);
		if (i == 0)
			says(process(0), TOLD("'t'", "failed"));
	}
	free(name);
}

/* Without a word of it ten minutes, or its ttl, if that is less; one that is cancelled keeps nothing. */
static void a_task_keeps_its_process_for_a_while(void **state)
{
	static const struct {
		const char *made, *told;
		uint64_t kept_ms;
	} rows[] = {
		{ MADE("2", "'t'", ",'ttl':null"), NULL, LIVE_TASKS_MS },
		{ MADE("2", "'t'", ",'ttl':90000"), NULL, 90000 },
		{ MADE("2", "'t'", ",'ttlMs':90000"), NULL, LIVE_TASKS_MS },
		{ MADE("2", "'t'", ""), TOLD("'t'", "cancelled"), 0 },
		{ MADE("2", "'t'", ",'ttl':-1"), NULL, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct front *front = open_session_as(alice, INITIALIZE_WITH(""));
		struct member *a;

		get_ready(i);
		a = join(front);
		free(make(a, i, rows[i].made));
		if (rows[i].told != NULL)
			says(process(i), rows[i].told);
		if (rows[i].kept_ms > 0) {
			pass(rows[i].kept_ms - 1);
			assert_false(is_stopped(i));
		}
		pass(120001);
		assert_true(is_stopped(i));
		exits(process(i), 0);
		session_end(a->client->session, REASON_SESSION_END);
	}
}

/* bridging.md §1.4: who gives a process away gives one that works on no task, if there is one. */
static void tasks_are_rather_kept(void **state)
{
	struct member *a = begin_plain(alice);
	char *name;
	struct front *other;

	servers[0].conf.calls_per_process = 1;
	name = make(a, 0, MADE("2", "'t'", ",'ttl':null"));
	request(a->client, CALL("4"));
	hears(process(0), CALL("3"));
	request(a->client, CALL("5"));
	get_ready(1);
	hears(process(1), CALL("2"));
	says(process(0), RESULT("3"));
	other = open_session_as(bob, INITIALIZE_WITH(""));
	request(a->client, CALL("6"));
	hears(process(0), CALL("4"));
	pass(1000);
	assert_int_equal(upstream_of(a, 0)->state, UPSTREAM_READY);
	assert_int_equal(upstream_of(a, 1)->state, UPSTREAM_RETIRING);
	is_open(other);
	free(name);
}

/* ---- the time of a request ---- */

/* UTIL-TASK-01: a result takes as long as its task; a list of one process does not. */
static void results_are_waited_for_lists_are_not(void **state)
{
	struct member *a = begin_plain(alice);
	char *name = make(a, 0, MADE("2", "'t'", ",'ttl':null"));
	struct front *result = ask_about(a, "result", name), *list;

	assert_non_null(fake_process_read(process(0)));
	pass(120000);
	is_open(result);
	list = request(a->client, LIST_TASKS("4"));
	hears(process(0), "{'jsonrpc':'2.0','id':4,'method':'tasks/list','params':{}}");
	pass(9999);
	is_open(list);
	pass(1);
	is_failed(list, REASON_TIMEOUT);
	is_open(result);
	free(name);
}

/* bridging.md §1.6 (4): nobody reads the stream of the session that made it, so nobody can be asked. */
static void a_task_that_nobody_hears_is_told_so(void **state)
{
	struct member *a = begin_asking(alice, 0);

	free(make(a, 0, MADE("2", "'t'", ",'ttl':null")));
	stream_detach(&a->reader);
	says(process(0),
	     "{'jsonrpc':'2.0','id':'q','method':'elicitation/create','params':{'message':"
	     "'m','_meta':{'" RELATED "':{'taskId':'t'}}}}");
	hears_nothing(process(0));
	pass(60000);
	hears(process(0),
	      "{'jsonrpc':'2.0','id':'q','error':{'code':-32603,'message':'no client is "
	      "there to be asked'}}");
}

/* ---- numbers ---- */

/* bridging.md §2.5: many may wait for results; even then a task can be cancelled; there is an end to it. */
static void requests_about_tasks_are_bounded(void **state)
{
	struct member *a = begin_plain(alice);
	char *name = make(a, 0, MADE("2", "'t'", ",'ttl':null"));
	struct front *call;

	for (size_t i = 0; i < 2 + 64; i++) {
		is_open(ask_about(a, "result", name));
		assert_non_null(fake_process_read(process(0)));
	}
	is_failed(ask_about(a, "result", name), REASON_OVER_LIMIT);
	for (size_t i = 0; i < 64; i++) {
		is_open(ask_about(a, i % 2 == 0 ? "get" : "cancel", name));
		assert_non_null(fake_process_read(process(0)));
	}
	is_failed(ask_about(a, "cancel", name), REASON_OVER_LIMIT);
	call = request(a->client, CALL("4"));
	get_ready(1);
	hears(process(1), CALL("2"));
	is_open(call);
	free(name);
}

/* DEF-11: of a pool. */
static void tasks_that_tell_are_bounded(void **state)
{
	struct member *sessions[17];
	const struct pool *pool;
	size_t id = 2;

	for (size_t i = 0; i < ARRAY_LEN(sessions); i++) {
		sessions[i] = i == 0 ? begin_plain(alice) :
				       join(open_session_as(alice, INITIALIZE_WITH("")));
		for (size_t n = 0; n < 64; n++, id++) {
			struct buf made = { 0 };

			buf_printf(&made, MADE("%zu", "'t%zu'", ",'ttl':null"), id, id);
			free(make(sessions[i], 0, buf_terminate(&made)));
			buf_fini(&made);
		}
	}
	pool = sessions[0]->client->pool;
	assert_int_equal(pool->running_task_count, 1024);
	assert_int_equal(sessions[0]->client->running_task_count, 0);
	assert_int_equal(sessions[16]->client->running_task_count, 64);
	says(process(0), TOLD("'t2'", "working"));
	heard(sessions[0], "");
	session_end(sessions[16]->client->session, REASON_SESSION_END);
	assert_int_equal(pool->running_task_count, 1024 - 64);
}

/* ---- what is no message of a task ---- */

/* SEC-42: a server that names two tasks alike has one, which is whose it was at first. */
static void two_tasks_of_one_name_are_one(void **state)
{
	struct member *a = begin_plain(alice);

	free(make(a, 0, MADE("2", "'t'", ",'ttl':null")));
	free(make(a, 0, MADE("3", "'t'", ",'ttl':null")));
	assert_int_equal(a->client->running_task_count, 1);
	says(process(0), TOLD("'t'", "completed"));
	assert_int_equal(a->client->running_task_count, 0);
}

/* UTIL-TASK-03: a client's answer names what it likes; only its own id of a task becomes the server's. */
static void answers_name_what_they_like(void **state)
{
	struct member *a = begin_asking(alice, 0);
	char *name = make(a, 0, MADE("2", "'t'", ",'ttl':null"));
	const char *const names[] = { name, "7", "'t'", "'g1.x'", "{}" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		says(process(0),
		     "{'jsonrpc':'2.0','id':'q','method':'elicitation/create','params':{"
		     "'message':'m','_meta':{'" RELATED "':{'taskId':'t'}}}}");
		(void)snprintf(
			line, sizeof(line),
			"{'jsonrpc':'2.0','id':%zu,'result':{'action':'accept','_meta':{'" RELATED
			"':{'taskId':%s}}}}",
			1000001 + i, names[i]);
		answer(a->client, line);
		(void)snprintf(
			line, sizeof(line),
			"{'jsonrpc':'2.0','id':'q','result':{'action':'accept','_meta':{'" RELATED
			"':{'taskId':%s}}}}",
			i == 0 ? "'t'" : names[i]);
		hears(process(0), line);
	}
	free(name);
}

int main(void)
{
#define TASK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, pool_teardown_principals)
	const struct CMUnitTest tests[] = {
		TASK_TEST(a_result_is_waited_for),
		TASK_TEST(an_error_may_be_the_result),
		TASK_TEST(a_task_keeps_its_process_for_a_while),
		TASK_TEST(tasks_are_rather_kept),
		TASK_TEST(results_are_waited_for_lists_are_not),
		TASK_TEST(a_task_that_nobody_hears_is_told_so),
		TASK_TEST(requests_about_tasks_are_bounded),
		TASK_TEST(tasks_that_tell_are_bounded),
		TASK_TEST(two_tasks_of_one_name_are_one),
		TASK_TEST(answers_name_what_they_like),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
