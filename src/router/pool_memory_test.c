/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a server when its last process has been stopped.  bridging.md §1.8, AUTH-SES-10, MOD-RES-04 */
#include "router/pool_memory.h"

#include "router/pool_stage.h"
#include "router/router.h"

#define REMEMBER_MS 600000
#define IDLE_MS 1000
#define KIND(name) INITIALIZE_WITH("'experimental':{'" name "':{}}")

static int setup(void **state)
{
	pool_setup_principals(state);
	servers[0].conf.idle_ms = IDLE_MS;
	servers[0].conf.remember_ms = REMEMBER_MS;
	return 0;
}

static void end(struct client *client)
{
	session_end(client->session, REASON_DELETED);
	settle();
}

/* The last process, which nobody uses, is stopped in order. */
static void sleeps(size_t i)
{
	pass(IDLE_MS);
	assert_true(process(i)->is_eof || fake_process_read(process(i)) == NULL);
	exits(process(i), 0);
	assert_int_equal(servers[0].count, 0);
}

/* Process i is started for this session, and lists one tool; then it is stopped. */
static void lists_and_sleeps(struct front *front, size_t i, const char *list)
{
	struct front *asked;

	assert_int_equal(keeper.count, i + 1);
	assert_non_null(fake_process_read(process(i)));
	says(process(i), WELCOME);
	hears(process(i), INITIALIZED);
	asked = request(front->call.client, LIST("1"));
	hears(process(i), LIST("2"));
	says(process(i), list);
	assert_int_equal(asked->ending, ENDING_RESPONSE);
	end(front->call.client);
	sleeps(i);
}

static struct client *is_served_at_once(struct front *front)
{
	assert_int_equal(front->ending, ENDING_RESPONSE);
	return front->call.client;
}

/* Until there is work for a process; then it is asked, whatever the one before has said. */
static void looking_costs_no_process(void **state)
{
	struct client *client;
	struct front *list;

	lists_and_sleeps(open_session_as(alice, INITIALIZE), 0, TOOLS("2", "'old'"));
	pass(REMEMBER_MS - 1);
	client = is_served_at_once(open_session_as(alice, INITIALIZE));
	is_answered(request(client, LIST("1")), TOOLS("1", "'old'"));
	assert_int_equal(keeper.count, 1);
	request(client, CALL("2"));
	assert_int_equal(keeper.count, 2);
	is_answered(request(client, LIST("3")), TOOLS("3", "'old'")); /* none serves yet */
	get_ready(1);
	hears(process(1), CALL("2"));
	list = request(client, LIST("4"));
	hears(process(1), LIST("3"));
	says(process(1), TOOLS("3", "'new'"));
	is_answered(list, TOOLS("4", "'new'"));
}

/* What the process that served last has not listed is not told by what one before it has. */
static void another_process_ends_it(void **state)
{
	struct client *client;
	struct front *call;

	lists_and_sleeps(open_session_as(alice, INITIALIZE), 0, TOOLS("2", "'old'"));
	client = is_served_at_once(open_session_as(alice, INITIALIZE));
	call = request(client, CALL("2"));
	get_ready(1);
	hears(process(1), CALL("2"));
	says(process(1), RESULT("2"));
	is_answered(call, RESULT("2"));
	end(client);
	sleeps(1);
	client = is_served_at_once(open_session_as(alice, INITIALIZE));
	is_open(request(client, LIST("1")));
	assert_int_equal(keeper.count, 3);
}

static void memory_has_an_end(void **state)
{
	struct front *front;

	lists_and_sleeps(open_session_as(alice, INITIALIZE), 0, TOOLS("2", ""));
	end(is_served_at_once(open_session_as(alice, INITIALIZE)));
	assert_int_equal(router.pool_memories.count, 1);
	pass(REMEMBER_MS);
	assert_int_equal(router.pool_memories.count, 0);
	assert_int_equal(router.pool_memories.bytes, 0);
	assert_true(list_is_empty(&router.slots.pools));
	assert_int_equal(router.lists.bytes, 0);
	front = open_session_as(alice, INITIALIZE);
	is_open(front);
	assert_int_equal(keeper.count, 2);
}

/* As long as sessions are there they know what they were told; lists are not told for longer. */
static void lists_have_an_end(void **state)
{
	struct client *client;
	struct front *list;

	lists_and_sleeps(open_session_as(alice, INITIALIZE), 0, TOOLS("2", "'old'"));
	client = is_served_at_once(open_session_as(alice, INITIALIZE));
	pass(REMEMBER_MS);
	list = request(client, LIST("1"));
	is_open(list);
	get_ready(1);
	hears(process(1), LIST("2"));
	says(process(1), TOOLS("2", "'new'"));
	is_answered(list, TOOLS("1", "'new'"));
}

static void nobody_else_gets_it(void **state)
{
	lists_and_sleeps(open_session_as(alice, INITIALIZE), 0, TOOLS("2", "'for alice'"));
	lists_and_sleeps(open_session_as(bob, INITIALIZE), 1, TOOLS("2", "'for bob'"));
	is_answered(request(is_served_at_once(open_session_as(alice, INITIALIZE)), LIST("1")),
		    TOOLS("1", "'for alice'"));
	is_answered(request(is_served_at_once(open_session_as(bob, INITIALIZE)), LIST("1")),
		    TOOLS("1", "'for bob'"));
}

/* Where all share the processes, lists are of one principal still. */
static void lists_of_a_shared_server(void **state)
{
	struct client *client;

	servers[0].conf.isolation = ISOLATION_SHARED;
	lists_and_sleeps(open_session_as(alice, INITIALIZE), 0, TOOLS("2", "'for alice'"));
	is_answered(request(is_served_at_once(open_session_as(alice, INITIALIZE)), LIST("1")),
		    TOOLS("1", "'for alice'"));
	client = is_served_at_once(open_session_as(bob, INITIALIZE));
	is_open(request(client, LIST("1")));
	assert_int_equal(keeper.count, 2);
}

static void shared_server_is_forgotten(void **state)
{
	servers[0].conf.isolation = ISOLATION_SHARED;
	lists_and_sleeps(open_session(INITIALIZE), 0, TOOLS("2", ""));
	pass(REMEMBER_MS);
	is_open(open_session(INITIALIZE));
	assert_int_equal(keeper.count, 2);
}

static void failure_ends_it(void **state)
{
	struct front *front = open_session_as(alice, INITIALIZE);
	struct client *client = front->call.client;

	get_ready(0);
	request(client, LIST("1"));
	hears(process(0), LIST("2"));
	says(process(0), TOOLS("2", ""));
	end(client);
	exits(process(0), 1);
	front = open_session_as(alice, INITIALIZE);
	is_open(front);
}

/* The one that failed was another one than the list is from. */
static void failure_of_another_ends_it(void **state)
{
	struct client *client;
	struct front *call;

	lists_and_sleeps(open_session_as(alice, INITIALIZE), 0, TOOLS("2", ""));
	client = is_served_at_once(open_session_as(alice, INITIALIZE));
	call = request(client, CALL("2"));
	exits(process(1), 1);
	assert_int_equal(call->ending, ENDING_FAILED);
	is_open(request(client, LIST("3")));
	end(client);
	is_open(open_session_as(alice, INITIALIZE));
}

static void change_is_not_forgotten(void **state)
{
	struct client *client;
	struct front *front = open_session_as(alice, INITIALIZE);

	get_ready(0);
	request(front->call.client, LIST("1"));
	hears(process(0), LIST("2"));
	says(process(0), TOOLS("2", "'old'"));
	says(process(0), CHANGED("tools"));
	end(front->call.client);
	sleeps(0);
	client = is_served_at_once(open_session_as(alice, INITIALIZE));
	assert_int_equal(keeper.count, 1);
	is_open(request(client, LIST("1")));
	assert_int_equal(keeper.count, 2);
}

static void restart_ends_it(void **state)
{
	lists_and_sleeps(open_session_as(alice, INITIALIZE), 0, TOOLS("2", ""));
	report_restart(&servers[0]);
	is_open(open_session_as(alice, INITIALIZE));
	assert_int_equal(keeper.count, 2);
}

static void another_era_ends_it(void **state)
{
	const struct pool *pool;

	servers[0].conf.era = ERA_UNKNOWN;
	lists_and_sleeps(open_session_as(alice, INITIALIZE), 0, TOOLS("2", ""));
	era_note(&servers[0], ERA_MODERN);
	is_open(open_session_as(alice, INITIALIZE));
	assert_int_equal(keeper.count, 2);
	pool = container_of(router.slots.pools.next, struct pool, link);
	assert_true(pool->memory.described == NULL && !timer_is_running(&pool->memory.ends));
}

/* What the operator decides about what a server says of itself, clients hear without another process. */
static void decisions_take_effect(void **state)
{
	struct pins *pins = &servers[0].pins;
	struct front *front;

	servers[0].conf.pin = PIN_ENFORCE;
	router_note_decision(&router, &servers[0]); /* about what nobody has said yet */
	lists_and_sleeps(open_session_as(alice, INITIALIZE), 0, TOOLS("2", ""));
	report_restart(&servers[0]);
	front = open_session_as(alice, INITIALIZE);
	assert_non_null(fake_process_read(process(1)));
	says(process(1), "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25',"
			 "'capabilities':{},'instructions':'i'}}");
	is_answered(front, "{'jsonrpc':'2.0','id':0,'result':{'protocolVersion':'2025-06-18',"
			   "'capabilities':{}}}");
	pins_approve(pins, pins_find(pins, PIN_SERVER, SLICE_LIT("instructions")));
	router_note_decision(&router, &servers[0]);
	is_answered(open_session_as(alice, INITIALIZE),
		    "{'jsonrpc':'2.0','id':0,'result':{'protocolVersion':'2025-06-18',"
		    "'capabilities':{},'instructions':'i'}}");
}

static void none_where_that_is_configured(void **state)
{
	servers[0].conf.remember_ms = 0;
	lists_and_sleeps(open_session_as(alice, INITIALIZE), 0, TOOLS("2", ""));
	assert_true(list_is_empty(&router.slots.pools));
	is_open(open_session_as(alice, INITIALIZE));
	assert_int_equal(keeper.count, 2);
}

/* Who makes up kinds of clients drives out his own, and none of them is a reason to be told less. */
static void memories_of_one_caller_are_bounded(void **state)
{
	size_t count = 0;

	servers[1].conf = servers[0].conf;
	lists_and_sleeps(open_session_as(bob, INITIALIZE), count++, TOOLS("2", ""));
	lists_and_sleeps(open_session_at(&servers[1], alice, KIND("a")), count++, TOOLS("2", ""));
#define LOOK(name) lists_and_sleeps(open_session_as(alice, KIND(name)), count++, TOOLS("2", ""))
	LOOK("a");
	LOOK("b");
	LOOK("c");
	LOOK("d");
	LOOK("e");
	LOOK("f");
	LOOK("g");
	LOOK("h");
	assert_int_equal(router.pool_memories.count, 10);
	LOOK("i");
	pass(0);
	assert_int_equal(router.pool_memories.count, 10);
	is_served_at_once(open_session_as(bob, INITIALIZE));
	is_served_at_once(open_session_at(&servers[1], alice, KIND("a")));
	is_served_at_once(open_session_as(alice, KIND("b")));
	is_served_at_once(open_session_as(alice, KIND("i")));
	is_open(open_session_as(alice, KIND("a")));
}

static void memories_are_bounded(void **state)
{
	router.pool_memories.count_max = 2;
	lists_and_sleeps(open_session_as(alice, KIND("a")), 0, TOOLS("2", ""));
	lists_and_sleeps(open_session_as(alice, KIND("b")), 1, TOOLS("2", ""));
	end(is_served_at_once(open_session_as(alice, KIND("a")))); /* b is the older one now */
	lists_and_sleeps(open_session_as(bob, INITIALIZE), 2, TOOLS("2", ""));
	assert_int_equal(router.pool_memories.count, 2);
	end(is_served_at_once(open_session_as(alice, KIND("a"))));
	router.pool_memories.bytes_max = router.pool_memories.bytes - 1;
	end(is_served_at_once(open_session_as(alice, KIND("a"))));
	assert_int_equal(router.pool_memories.count, 1);
	router.pool_memories.bytes_max = 1;
	end(is_served_at_once(open_session_as(alice, KIND("a"))));
	assert_int_equal(router.pool_memories.count, 0);
	assert_true(list_is_empty(&router.slots.pools));
}

#define REMEMBERS(name) cmocka_unit_test_setup_teardown(name, setup, pool_teardown_principals)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REMEMBERS(looking_costs_no_process),
		REMEMBERS(another_process_ends_it),
		REMEMBERS(memory_has_an_end),
		REMEMBERS(lists_have_an_end),
		REMEMBERS(nobody_else_gets_it),
		REMEMBERS(lists_of_a_shared_server),
		REMEMBERS(shared_server_is_forgotten),
		REMEMBERS(failure_ends_it),
		REMEMBERS(failure_of_another_ends_it),
		REMEMBERS(change_is_not_forgotten),
		REMEMBERS(restart_ends_it),
		REMEMBERS(another_era_ends_it),
		REMEMBERS(decisions_take_effect),
		REMEMBERS(none_where_that_is_configured),
		REMEMBERS(memories_of_one_caller_are_bounded),
		REMEMBERS(memories_are_bounded),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
