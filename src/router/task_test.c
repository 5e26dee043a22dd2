/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of modern clients at modern servers, in time: how long a process is kept for one, who hears of it, and when. */
#include "router/running_tasks.h"

#include "router/era_stage.h"
#include "router/request_stage.h"
#include "router/era.h"
#include "router/modern_tasks.h"
#include "session/principal.h"

#define IDLE_MS 60000
#define EXTENSION "'extensions':{'io.modelcontextprotocol/tasks':{}}"
#define KNOWING META_OF(EXTENSION, CLIENT) "}"
#define MAKE(id) REQUEST(id, "tools/call", "'name':'t'," KNOWING)
#define STATE(id, status, more) \
	"'taskId':" id ",'status':'" status "','createdAt':'x','lastUpdatedAt':'x'" more
#define MADE(id, task, more) ANSWER(id, "'resultType':'task'," STATE(task, "working", more))
#define ACKNOWLEDGED(id, tasks)                                                           \
	"{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged','params':{" \
	"'notifications':{'taskIds':[" tasks "]},'_meta':{'" META "subscriptionId':" id "}}}"
#define TOLD(id, task, status)                                              \
	"{'jsonrpc':'2.0','method':'notifications/tasks','params':{" STATE( \
		task, status, ",'ttlMs':null") ",'_meta':{'" META "subscriptionId':" id "}}}"

/* ---- words for the stories ---- */

static void begin_process(size_t i)
{
	hears(process(i), DISCOVER("", GATEWAY));
	says(process(i), DISCOVERED_WITH("'tools':{},'completions':{}," EXTENSION));
}

/* The client's id of the task of that name, made in process 0 by its request of that id: with its quotes. */
static char *made(const char *id, const char *task, const char *more)
{
	struct asker *asker = ask(MAKE("'c'"));
	struct buf text = { 0 };
	struct json name;

	if (id[0] == '2')
		begin_process(0);
	reads_one(0);
	buf_printf(&text, MADE("%s", "'%s'", "%s"), id, task, more);
	says(process(0), buf_terminate(&text));
	buf_fini(&text);
	assert_int_equal(asker->ending, ENDING_RESPONSE);
	name = scan_path(buf_slice(&asker->response), (const char *const[]){ "result", "taskId" },
			 2);
	assert_int_equal(name.type, JSON_STRING);
	return strndup(name.text.p, name.text.n);
}

/* Whether the process has been told to stop; it has read all else. */
static bool is_stopped(void)
{
	hears_nothing(process(0));
	return process(0)->is_eof;
}

/* One who listens to these, JSON strings with commas between. */
static struct asker *listen_to_tasks(const char *names)
{
	struct buf text = { 0 };
	struct asker *asker;

	buf_printf(&text,
		   REQUEST("'l'", "subscriptions/listen",
			   "'notifications':{'taskIds':[%s]}," KNOWING),
		   names);
	asker = ask(buf_terminate(&text));
	buf_fini(&text);
	return asker;
}

static void leave(struct asker *asker)
{
	call_give_up(&asker->call, "it has left");
	call_cancel(&asker->call);
	settle();
}

static bool has_heard(struct asker *asker, const char *text)
{
	bool is_there = strstr(buf_terminate(&asker->messages), q(text)) != NULL;

	asker->messages.len = 0;
	return is_there;
}

static int setup(void **state)
{
	request_setup(state);
	servers[0].conf.isolation = ISOLATION_SHARED;
	servers[0].conf.era = ERA_MODERN;
	servers[0].conf.idle_ms = IDLE_MS;
	return 0;
}

/* ---- the time of a process ---- */

/* bridging.md §2.5: for ten minutes without a word; then it is as idle as any. */
static void keeps_its_process(const char *more)
{
	free(made("2", "a", more));
	pass(LIVE_TASKS_MS - IDLE_MS);
	assert_false(is_stopped());
	pass(2 * IDLE_MS);
	assert_true(is_stopped());
}

static void a_task_keeps_its_process(void **state)
{
	keeps_its_process(",'ttlMs':null");
}

static void no_task_keeps_it_for_longer(void **state)
{
	keeps_its_process(",'ttlMs':86400000");
}

/* The server says how long it is there; a number that is none of that says nothing. */
static void a_task_keeps_it_no_longer_than_it_lives(void **state)
{
	free(made("2", "a", ",'ttlMs':90000"));
	pass(IDLE_MS + 1);
	assert_false(is_stopped());
	pass(IDLE_MS);
	assert_true(is_stopped());
}

static void no_time_keeps_nothing(void **state)
{
	free(made("2", "a", ",'ttlMs':-5"));
	pass(IDLE_MS + 1);
	assert_true(is_stopped());
}

static void look(const char *id, const char *name, const char *status)
{
	struct buf text = { 0 };

	buf_printf(&text, REQUEST("'g'", "tasks/get", "'taskId':%s," KNOWING), name);
	ask(buf_terminate(&text));
	reads_one(0);
	text.len = 0;
	buf_printf(&text,
		   ANSWER("%s", "'resultType':'complete'," STATE("'a'", "%s", ",'ttlMs':null")), id,
		   status);
	says(process(0), buf_terminate(&text));
	buf_fini(&text);
}

/* Each word of it begins the time anew, and that of its end ends it. */
static void what_is_told_counts(void **state)
{
	char *name = made("2", "a", ",'ttlMs':null");

	pass(LIVE_TASKS_MS - 1);
	look("3", name, "working");
	pass(LIVE_TASKS_MS - IDLE_MS);
	assert_false(is_stopped());
	look("4", name, "completed");
	pass(IDLE_MS + 1);
	assert_true(is_stopped());
	free(name);
}

/* A process that is to go, for its age or a change of the server's era, goes with its last task. */
static void one_that_retires_waits_for_its_tasks(void **state)
{
	char *name = made("2", "a", ",'ttlMs':null");
	struct pool *pool = container_of(router.slots.pools.next, struct pool, link);

	upstream_retire(container_of(pool->upstreams.next, struct upstream, link));
	settle();
	assert_false(is_stopped());
	look("3", name, "working");
	look("4", name, "failed");
	assert_true(is_stopped());
	free(name);
}

#define USE(id) REQUEST(id, "tools/call", "'name':'t'," KNOWING)

/* bridging.md §1.4: who gives a process away gives one that works on no task, if there is one. */
static void tasks_are_rather_kept(void **state)
{
	const struct pool *pool;

	servers[0].conf.isolation = ISOLATION_PRINCIPAL;
	servers[0].conf.calls_per_process = 1;
	ask_as(alice, MAKE("'c'"));
	begin_process(0);
	reads_one(0);
	says(process(0), MADE("2", "'a'", ",'ttlMs':null"));
	ask_as(alice, USE("1"));
	reads_one(0);
	ask_as(alice, USE("2"));
	begin_process(1);
	reads_one(1);
	pool = container_of(router.slots.pools.next, struct pool, link);
	says(process(0), ANSWER("3", "'resultType':'complete'"));
	ask_as(bob, USE("3"));
	ask_as(alice, USE("4"));
	reads_one(0);
	pass(1000);
	assert_int_equal(container_of(pool->upstreams.next, struct upstream, link)->state,
			 UPSTREAM_READY);
	assert_int_equal(container_of(pool->upstreams.prev, struct upstream, link)->state,
			 UPSTREAM_RETIRING);
}

/* But others do not wait for it for longer than callers do: then its process goes, which has no call. */
static void a_task_gives_way_to_who_waits(void **state)
{
	fleet.max = 1;
	servers[1].conf = servers[0].conf;
	free(made("2", "a", ""));
	for (int i = 0; i < 2; i++) {
		is_open(open_session_at(&servers[1], &router.sessions.principals.anonymous,
					INITIALIZE_WITH("")));
		for (int seconds = 0; seconds < 9; seconds++) {
			assert_int_equal(is_stopped(), i > 0 && seconds > 0);
			pass(1000);
		}
	}
	exits(process(0), 0);
	assert_int_equal(keeper.count, 2);
}

/* What is passed on stands in one line. */
static void results_have_no_line_breaks(void **state)
{
	struct asker *asker = ask(MAKE("'c'"));

	begin_process(0);
	reads_one(0);
	says(process(0), ANSWER("2", "'resultType':'complete',\r'content':[],\r'_meta':{}"));
	assert_int_equal(asker->ending, ENDING_RESPONSE);
	assert_null(strchr(buf_terminate(&asker->response), '\r'));
}

/* Of many, those that were told of last are kept in mind; DEF-11. */
static void tasks_without_end_are_bounded(void **state)
{
	struct upstream *upstream;
	struct buf text = { 0 };

	free(made("2", "a", ",'ttlMs':null"));
	upstream = container_of(container_of(router.slots.pools.next, struct pool, link)
					->upstreams.next,
				struct upstream, link);
	for (unsigned int i = 0; i < LIVE_TASKS_MAX; i++) {
		text.len = 0;
		buf_printf(&text, "{" STATE("'t%u'", "working", "") "}", i);
		assert_true(live_tasks_note(upstream, slice_str(q(buf_terminate(&text)))));
	}
	for (unsigned int i = 0; i < LIVE_TASKS_MAX; i++) {
		assert_true(live_tasks_has_some(upstream));
		text.len = 0;
		buf_printf(&text, "{" STATE("'t%u'", "cancelled", "") "}", i);
		assert_true(live_tasks_note(upstream, slice_str(q(buf_terminate(&text)))));
	}
	assert_false(live_tasks_has_some(upstream)); /* `a` was the oldest */
	buf_fini(&text);
}

/* ---- what servers say ---- */

#define WANTING(request) ",'ttlMs':null,'inputRequests':{'q':" request "}"
#define ASKS_FORM(more) "{'method':'elicitation/create'" more ",'params':{'message':'m'}}"

/* MOD-TASK-02: a state with nothing in it but the id that has to be changed. */
static void short_states_bear_the_clients_id(void **state)
{
	char *name = made("2", "a", ",'ttlMs':null");
	struct buf text = { 0 };
	struct asker *asker;

	buf_printf(&text, REQUEST("'g'", "tasks/get", "'taskId':%s," KNOWING), name);
	asker = ask(buf_terminate(&text));
	reads_one(0);
	says(process(0), ANSWER("3", "'resultType':'complete'," STATE("'a'", "working", "")));
	assert_int_equal(asker->ending, ENDING_RESPONSE);
	assert_non_null(strstr(buf_terminate(&asker->response), name));
	assert_null(strstr(buf_terminate(&asker->response), q("'a'")));
	buf_fini(&text);
	free(name);
}

/* Of another task than it was asked for. */
static void other_tasks_are_none(void **state)
{
	char *name = made("2", "a", ",'ttlMs':null");
	struct buf text = { 0 };
	struct asker *asker;

	buf_printf(&text, REQUEST("'g'", "tasks/get", "'taskId':%s," KNOWING), name);
	asker = ask(buf_terminate(&text));
	reads_one(0);
	says(process(0), ANSWER("3", "'resultType':'complete'," STATE("'b'", "working", "")));
	assert_int_equal(asker->ending, ENDING_FAILED);
	assert_int_equal(asker->reason, REASON_CHILD_PROTOCOL_ERROR);
	buf_fini(&text);
	free(name);
}

/* MOD-MRTR-02: what the client has not said that it can be asked, what is no question, what two may read differently. */
static void tasks_ask_what_may_be_asked(void **state)
{
	static const struct {
		const char *requests;
		bool is_fine;
	} rows[] = {
		{ WANTING(ASKS_FORM("")), true },
		{ WANTING("{'method':'sampling/createMessage','params':{}}"), false },
		{ WANTING("{'method':'notifications/roots/list_changed','params':{}}"), false },
		{ WANTING(ASKS_FORM(",'method':'ping'")), false },
		{ WANTING("{'method':'elicitation/create','params':{'mode':'url','url':'u:1'}}"),
		  false },
		{ WANTING(ASKS_FORM("") ",'r':" ASKS_FORM("")), true },
		{ WANTING(ASKS_FORM("") ",'q':" ASKS_FORM("")), false }, /* one key for two */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct asker *asker =
			ask(REQUEST("'c'", "tools/call",
				    "'name':'t'," META_OF("'elicitation':{},'roots':{}," EXTENSION,
							  CLIENT) "}"));
		struct buf text = { 0 };

		if (i == 0)
			begin_process(0);
		reads_one(0);
		buf_printf(&text, MADE("%zu", "'a'", "%s"), i + 2, rows[i].requests);
		says(process(0), buf_terminate(&text));
		assert_int_equal(asker->ending, rows[i].is_fine ? ENDING_RESPONSE : ENDING_FAILED);
		buf_fini(&text);
	}
}

/* bridging.md §2.5 (4): where all share the process, the request that asks says what it can be asked. */
static void each_request_says_what_it_can_be_asked(void **state)
{
	char *name = made("2", "a", ",'ttlMs':null");

	for (size_t i = 0; i < 2; i++) {
		const char *caps = i == 0 ? EXTENSION : "'elicitation':{}," EXTENSION;
		struct buf text = { 0 };
		struct asker *asker;

		buf_printf(&text,
			   REQUEST("'g'", "tasks/get", "'taskId':%s," META_OF("%s", CLIENT) "}"),
			   name, caps);
		asker = ask(buf_terminate(&text));
		reads_one(0);
		text.len = 0;
		buf_printf(&text,
			   ANSWER("%zu",
				  "'resultType':'complete'," STATE("'a'", "input_required", "%s")),
			   i + 3, WANTING(ASKS_FORM("")));
		says(process(0), buf_terminate(&text));
		assert_int_equal(asker->ending, i == 0 ? ENDING_FAILED : ENDING_RESPONSE);
		buf_fini(&text);
	}
	free(name);
}

/* AUTH-DWN-02: a process that was told other claims has other tasks, though it is the same principal's. */
static void other_claims_have_other_tasks(void **state)
{
	static const struct slice names[] = { SLICE("team") };
	struct principal_set *principals = &router.sessions.principals;
	struct buf text = { 0 };
	struct asker *asker;
	char *name;

	principals->claim_names = servers[0].conf.claims = (struct slices){ names, 1 };
	servers[0].conf.isolation = ISOLATION_PRINCIPAL;
	principal_set_claim(alice, 0, SLICE_LIT("a"));
	asker = ask_as(alice, MAKE("'c'"));
	begin_process(0);
	reads_one(0);
	says(process(0), MADE("2", "'a'", ",'ttlMs':null"));
	name = result_member(asker, "taskId");
	buf_printf(&text, REQUEST("'g'", "tasks/get", "'taskId':%s," KNOWING), name);
	principal_set_claim(alice, 0, SLICE_LIT("b"));
	was_refused(ask_as(alice, buf_terminate(&text)), "-32602", "");
	hears_nothing(process(0));
	principal_set_claim(alice, 0, SLICE_LIT("a"));
	asker = ask_as(alice, buf_terminate(&text));
	reads_one(0);
	says(process(0),
	     ANSWER("3", "'resultType':'complete'," STATE("'a'", "working", ",'ttlMs':null")));
	assert_int_equal(asker->ending, ENDING_RESPONSE);
	buf_fini(&text);
	free(name);
}

/* Whatever else we have sealed for this caller, it is no task. */
static void other_seals_are_no_tasks(void **state)
{
	struct digest digest;
	struct seal_binding binding = { slice_str(servers[0].conf.name), &alice->identity,
					&digest };
	struct seal seal = { .kind = SEAL_REPLAY,
			     .expires_at_s = UINT64_MAX,
			     .text = SLICE_LIT("a") };
	struct buf name = { 0 }, text = { 0 };

	digest_bytes(SLICE_LIT("task"), &digest);
	seal_append(&name, &router.seal_keys, &binding, &seal);
	buf_printf(&text, REQUEST("'g'", "tasks/get", "'taskId':%s," KNOWING),
		   buf_terminate(&name));
	was_refused(ask_as(alice, buf_terminate(&text)), "-32602", "");
	assert_true(is_logged("it is no task's"));
	buf_fini(&name);
	buf_fini(&text);
}

/* ---- listening ---- */

static void listeners_keep_the_process(void **state)
{
	char *name = made("2", "a", ",'ttlMs':1");
	struct asker *asker = listen_to_tasks(name);

	hears(process(0), REQUEST("3", "subscriptions/listen",
				  META_OF("", GATEWAY) "},'notifications':{'taskIds':['a']}"));
	says(process(0), ACKNOWLEDGED("3", "'a'"));
	assert_true(has_heard(asker, "'taskIds':["));
	pass(LIVE_TASKS_MS + 2 * IDLE_MS);
	assert_false(is_stopped());
	leave(asker);
	reads_one(0); /* the cancellation */
	pass(2 * IDLE_MS);
	assert_true(is_stopped());
	free(name);
}

/* MOD-SUB-06: ten seconds; what comes later is not for it. */
static void agreement_is_awaited_for_a_while(void **state)
{
	char *name = made("2", "a", ",'ttlMs':null");
	struct asker *asker = listen_to_tasks(name);

	reads_one(0);
	says(process(0), TOLD("3", "'a'", "working"));
	pass(9999);
	assert_int_equal(asker->messages.len, 0);
	pass(1);
	assert_true(has_heard(asker, "'notifications':{}"));
	reads_one(0); /* the cancellation */
	says(process(0), ACKNOWLEDGED("3", "'a'"));
	says(process(0), TOLD("3", "'a'", "completed"));
	assert_int_equal(asker->messages.len, 0);
	leave(asker);
	free(name);
}

/* It is told of no more tasks than it listens to, by no other subscription, in no unknown state. */
static void only_what_was_agreed_to_is_told(void **state)
{
	char *a = made("2", "a", ",'ttlMs':null"), *b = made("3", "b", ",'ttlMs':null");
	struct asker *asker;
	struct buf names = { 0 }, agreed = { 0 };

	buf_printf(&names, "%s,%s", a, b);
	asker = listen_to_tasks(buf_terminate(&names));
	assert_non_null(strstr(fake_process_read(process(0)), q("{'taskIds':['a','b']}")));
	says(process(0), ACKNOWLEDGED("4", "'a','c'"));
	buf_printf(&agreed, "'notifications':{'taskIds':[%s]}", a);
	assert_true(has_heard(asker, buf_terminate(&agreed)));
	buf_fini(&agreed);
	says(process(0), TOLD("4", "'b'", "working"));
	says(process(0), TOLD("4", "'c'", "working"));
	says(process(0), TOLD("1", "'a'", "working"));
	says(process(0), TOLD("4", "'a'", "later"));
	says(process(0), TOLD("4", "7", "working"));
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/tasks','params':{" STATE(
				 "'a'", "input_required",
				 WANTING(ASKS_FORM(""))) ",'_meta':{'" META "subscriptionId':4}}}");
	says(process(0), ACKNOWLEDGED("4", "'b'"));
	assert_int_equal(asker->messages.len, 0);
	says(process(0), TOLD("4", "'\\u0061'", "working"));
	assert_true(has_heard(asker, "'status':'working'"));
	leave(asker);
	buf_fini(&names);
	free(a);
	free(b);
}

/* The server ends the subscription, in whatever way: so ends the client's, and it asks again. MOD-SUB-04 */
static void the_end_there_is_the_end_here(void **state)
{
	static const struct {
		const char *agrees, *ends;
	} rows[] = {
		{ ACKNOWLEDGED("3", "'a'"), ANSWER("3", "'resultType':'complete'") },
		{ ACKNOWLEDGED("4", "'a'"), ERROR("4", "-32000") },
		{ ACKNOWLEDGED("5", "'a'"), "{'jsonrpc':'2.0','method':'notifications/cancelled',"
					    "'params':{'requestId':5}}" },
	};
	char *name = made("2", "a", ",'ttlMs':null");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct asker *asker = listen_to_tasks(name);

		reads_one(0);
		says(process(0), rows[i].agrees);
		assert_int_equal(asker->ending, ENDING_NONE);
		says(process(0), rows[i].ends);
		assert_int_equal(asker->ending, ENDING_RESPONSE);
		hears_nothing(process(0));
	}
	free(name);
}

/* So much of a filter is read, whatever stands in it. */
static void filters_are_bounded(void **state)
{
	char *name = made("2", "a", ",'ttlMs':null");
	struct buf names = { 0 };
	struct asker *asker;

	for (unsigned int i = 0; i < TASK_LISTENER_MAX; i++)
		buf_append_str(&names, "'x',");
	buf_append_str(&names, name);
	asker = listen_to_tasks(buf_terminate(&names));
	assert_true(has_heard(asker, "'notifications':{}"));
	hears_nothing(process(0));
	leave(asker);
	buf_fini(&names);
	free(name);
}

/* A process that does not read is not asked: its tasks are left out. REL-26 */
static void who_does_not_read_is_not_asked(void **state)
{
	static char text[79000] = "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'x':'";
	char *name = made("2", "a", ",'ttlMs':null");
	struct asker *call, *asker;

	memset(text + strlen(text), 'x', 78000);
	strcpy(text + 78000, "','name':'t'," KNOWING "}}");
	call = ask(text);
	servers[0].conf.queue_max = 1;
	asker = listen_to_tasks(name);
	assert_true(has_heard(asker, "'notifications':{}"));
	leave(asker);
	leave(call);
	free(name);
}

/* ---- names ---- */

static void only_some_texts_are_ids(void **state)
{
	static char text[TASK_ID_BYTES_MAX + 1];
	struct json id = { JSON_STRING, false, { text, TASK_ID_BYTES_MAX } };

	memset(text, 'x', sizeof(text));
	text[0] = '"';
	text[TASK_ID_BYTES_MAX - 1] = '"';
	assert_true(task_id_is_fit(id));
	id.text.n++;
	assert_false(task_id_is_fit(id));
	id.text = SLICE_LIT("\"\"");
	assert_false(task_id_is_fit(id));
	id = (struct json){ JSON_NUMBER, false, SLICE_LIT("1234") };
	assert_false(task_id_is_fit(id));
}

/* bridging.md §2.5: however it is spelled; everything else stays as it is. */
static void the_extension_is_left_out(void **state)
{
	static const char *const rows[][2] = {
		{ "{'a':1,'extensions':{'io.modelcontextprotocol/tasks':{}},'b':[]}",
		  "{'a':1,'extensions':{},'b':[]}" },
		{ "{'extensions':{'x':1,'io.modelcontextprotocol\\/tasks':{'y':2},'z':{}}}",
		  "{'extensions':{'x':1,'z':{}}}" },
		{ "{'extension\\u0073':{'io.modelcontextprotocol/task\\u0073':{}}}",
		  "{'extension\\u0073':{}}" },
		{ "{'extensions':[],'io.modelcontextprotocol/tasks':{}}",
		  "{'extensions':[],'io.modelcontextprotocol/tasks':{}}" },
		{ "{}", "{}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf out = { 0 };

		task_extension_append_without(&out, slice_str(q(rows[i][0])));
		assert_string_equal(buf_terminate(&out), q(rows[i][1]));
		buf_fini(&out);
	}
}

int main(void)
{
#define TASK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, request_teardown)
	const struct CMUnitTest tests[] = {
		TASK_TEST(a_task_keeps_its_process),
		TASK_TEST(no_task_keeps_it_for_longer),
		TASK_TEST(a_task_keeps_it_no_longer_than_it_lives),
		TASK_TEST(no_time_keeps_nothing),
		TASK_TEST(what_is_told_counts),
		TASK_TEST(one_that_retires_waits_for_its_tasks),
		TASK_TEST(tasks_are_rather_kept),
		TASK_TEST(a_task_gives_way_to_who_waits),
		TASK_TEST(tasks_without_end_are_bounded),
		TASK_TEST(results_have_no_line_breaks),
		TASK_TEST(short_states_bear_the_clients_id),
		TASK_TEST(other_tasks_are_none),
		TASK_TEST(tasks_ask_what_may_be_asked),
		TASK_TEST(each_request_says_what_it_can_be_asked),
		TASK_TEST(other_claims_have_other_tasks),
		TASK_TEST(other_seals_are_no_tasks),
		TASK_TEST(listeners_keep_the_process),
		TASK_TEST(agreement_is_awaited_for_a_while),
		TASK_TEST(only_what_was_agreed_to_is_told),
		TASK_TEST(the_end_there_is_the_end_here),
		TASK_TEST(filters_are_bounded),
		TASK_TEST(who_does_not_read_is_not_asked),
		cmocka_unit_test(only_some_texts_are_ids),
		cmocka_unit_test(the_extension_is_left_out),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
