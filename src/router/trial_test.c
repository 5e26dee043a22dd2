/* SPDX-License-Identifier: Apache-2.0 */
/* What a server may do to the process that is started only to see what it is (start.try). mcpgated(1) */
#include "router/era_stage.h"
#include "upstream/prestart.h"

#define LOOK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, client_stage_close)
#define LOOK_WELCOME                                                                       \
	"{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25','capabilities':" \
	"{'tools':{}},'serverInfo':{'name':'s','version':'1'}}}"
#define LISTED(id) "{'jsonrpc':'2.0','id':" id ",'method':'tools/list'}"

static bool is_told;

static void on_verdict(struct trial_waiter *waiter)
{
	is_told = true;
}

static struct trial_waiter waiter = { .on_verdict = on_verdict };

static int setup(void **state)
{
	era_setup(state);
	list_init(&waiter.link);
	is_told = false;
	servers[0].conf.is_tried = true;
	router_start_server(&router, &servers[0]);
	settle();
	assert_int_equal(keeper.count, 1);
	return 0;
}

static bool waits(void)
{
	return prestart_wait(&router.prestart, &servers[0], &waiter);
}

static void begin_look(void)
{
	assert_non_null(strstr(fake_process_read(process(0)), "\"initialize\""));
	says(process(0), LOOK_WELCOME);
	hears(process(0), INITIALIZED);
}

/* Its process stops, no other is started, and nobody waits for it any more. */
static void is_over(size_t i)
{
	settle();
	assert_true(list_is_empty(&router.prestart.trials));
	assert_false(waits());
	while (fake_process_read(process(i)) != NULL)
		;
	assert_true(process(i)->is_eof);
	assert_int_equal(keeper.count, i + 1);
}

static void says_list(size_t id, const char *tools, const char *more)
{
	char text[8000];

	snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':%zu,'result':{'tools':[%s]%s}}", id,
		 tools, more);
	says(process(0), text);
}

static void all_pages_are_counted(void **state)
{
	begin_look();
	hears(process(0), LISTED("2"));
	says_list(2, "{},{}", ",'nextCursor':'a\\\\b'");
	hears(process(0), "{'jsonrpc':'2.0','id':3,'method':'tools/list','params':{'cursor':"
			  "'a\\\\b'}}");
	says_list(3, "{}", ",'nextCursor':null");
	assert_true(is_logged("server_found"));
	assert_true(is_logged(" tools=3 "));
	is_over(0);
}

static void a_server_without_tools_is_not_asked(void **state)
{
	fake_process_read(process(0));
	says(process(0), "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25',"
			 "'capabilities':{},'serverInfo':{'name':7}}}");
	assert_true(is_logged(" tools=0 "));
	is_over(0);
}

static void lists_without_end_end(void **state)
{
	begin_look();
	for (size_t id = 2; id < 202 && !list_is_empty(&router.prestart.trials); id++)
		says_list(id, "{}", ",'nextCursor':'x'");
	assert_true(is_logged("has no end"));
	assert_false(is_logged("server_found"));
	is_over(0);
}

static void long_cursors_are_not_sent_back(void **state)
{
	char more[6000];

	begin_look();
	hears(process(0), LISTED("2"));
	snprintf(more, sizeof(more), ",'nextCursor':'%05000d'", 0);
	says_list(2, "", more);
	assert_true(is_logged("has no end"));
	is_over(0);
}

/* However it is spread over pages: half a minute in all. */
static void slow_lists_end(void **state)
{
	begin_look();
	for (size_t id = 2; id < 5; id++) {
		pass(9000);
		says_list(id, "{}", ",'nextCursor':'x'");
	}
	assert_false(is_logged("server_unlisted"));
	pass(4000);
	assert_true(is_logged("not answered within 30 s"));
	is_over(0);
}

static void lists_that_are_none(void **state)
{
	begin_look();
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':{}}}");
	assert_true(is_logged("no list"));
	is_over(0);
}

static void answers_that_are_none(void **state)
{
	begin_look();
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{},'error':{}}");
	assert_true(is_logged("server_unlisted"));
	is_over(0);
}

/* Nobody is there to be asked, or to hear anything. */
static void questions_and_floods(void **state)
{
	begin_look();
	hears(process(0), LISTED("2"));
	says(process(0),
	     "{'jsonrpc':'2.0','id':'q','method':'sampling/createMessage','params':{}}");
	hears(process(0), "{'jsonrpc':'2.0','id':'q','error':{'code':-32601,'message':"
			  "'Method not found'}}");
	says(process(0), "{'jsonrpc':'2.0','id':9,'method':'ping'}");
	hears(process(0), "{'jsonrpc':'2.0','id':9,'result':{}}");
	for (int i = 0; i < 1000; i++)
		fake_process_write(process(0), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
					       "tools/list_changed\"}\n");
	settle();
	says(process(0), "{'jsonrpc':'2.0','id':77,'result':{}}");
	says_list(2, "{}", "");
	assert_true(is_logged(" tools=1 "));
	is_over(0);
}

/* Who comes meanwhile waits until it has answered, and not for its list. */
static void who_waits_is_told_of_the_answer(void **state)
{
	struct trial_waiter other = { .on_verdict = on_verdict };

	list_init(&other.link);
	assert_true(waits());
	assert_false(prestart_wait(&router.prestart, &servers[1], &other));
	pass(1000);
	assert_false(is_told);
	begin_look();
	assert_true(is_told);
	assert_false(trial_waiter_is_waiting(&waiter));
	assert_false(waits());
	says_list(2, "", "");
	is_over(0);
}

/* product §2: a few at once; that of a client is next, whether one of them has answered or not. */
static void who_waits_is_next(void **state)
{
	static struct trial_waiter other = { .on_verdict = on_verdict };

	list_init(&other.link);
	for (int i = 0; i < 4; i++)
		prestart_look(&router.prestart, &servers[i == 3]);
	settle();
	assert_int_equal(keeper.count, 4);
	assert_true(prestart_wait(&router.prestart, &servers[1], &other));
	settle();
	assert_int_equal(keeper.count, 5);
	trial_waiter_leave(&other);
}

static void who_waits_is_told_of_the_end(void **state)
{
	assert_true(waits());
	exits(process(0), 1);
	settle();
	assert_true(is_told);
	assert_int_equal(servers[0].verdict.handshake, ERA_UNANSWERED);
	assert_true(list_is_empty(&router.prestart.trials));
	assert_false(waits());
	assert_int_equal(keeper.count, 1);
}

static void who_waits_may_leave(void **state)
{
	assert_true(waits());
	trial_waiter_leave(&waiter);
	exits(process(0), 1);
	settle();
	assert_false(is_told);
}

/* It is given as long as any other, and no longer. */
static void a_silent_one_is_not_waited_for_for_ever(void **state)
{
	assert_true(waits());
	pass(servers[0].conf.start_timeout_ms - 1000);
	assert_false(is_told);
	pass(2000);
	assert_true(is_told);
	is_over(0);
}

static void one_that_dies_in_its_list(void **state)
{
	begin_look();
	hears(process(0), LISTED("2"));
	exits(process(0), 1);
	settle();
	assert_true(list_is_empty(&router.prestart.trials));
	assert_false(is_logged("server_found"));
	assert_int_equal(servers[0].verdict.handshake, ERA_ANSWERED);
}

/* BACK-ERA-05: refused in one era it is tried in the other, once. */
static void one_that_refuses_is_of_the_modern_era(void **state)
{
	assert_true(waits());
	fake_process_read(process(0));
	says(process(0), REFUSED);
	settle();
	assert_int_equal(keeper.count, 2);
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
	assert_false(is_told);
	hears(process(1), DISCOVER("", GATEWAY));
	says(process(1), DISCOVERED);
	assert_true(is_told);
	assert_int_equal(servers[0].verdict.era, ERA_MODERN);
}

static void one_that_refuses_both(void **state)
{
	assert_true(waits());
	fake_process_read(process(0));
	says(process(0), ERROR("1", "-32601"));
	hears(process(1), DISCOVER("", GATEWAY));
	says(process(1), "{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'x'}}");
	settle();
	assert_true(is_told);
	is_over(1);
	assert_false(is_logged("server_found"));
}

/* A gateway that stops says nothing to anybody. */
static void stopping_ends_all(void **state)
{
	assert_true(waits());
	router_end_processes(&router, REASON_DRAINING);
	settle();
	assert_false(is_told);
	assert_false(trial_waiter_is_waiting(&waiter));
	is_over(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOOK_TEST(all_pages_are_counted),
		LOOK_TEST(a_server_without_tools_is_not_asked),
		LOOK_TEST(lists_without_end_end),
		LOOK_TEST(long_cursors_are_not_sent_back),
		LOOK_TEST(slow_lists_end),
		LOOK_TEST(lists_that_are_none),
		LOOK_TEST(answers_that_are_none),
		LOOK_TEST(questions_and_floods),
		LOOK_TEST(who_waits_is_told_of_the_answer),
		LOOK_TEST(who_waits_is_next),
		LOOK_TEST(who_waits_is_told_of_the_end),
		LOOK_TEST(who_waits_may_leave),
		LOOK_TEST(a_silent_one_is_not_waited_for_for_ever),
		LOOK_TEST(one_that_dies_in_its_list),
		LOOK_TEST(one_that_refuses_is_of_the_modern_era),
		LOOK_TEST(one_that_refuses_both),
		LOOK_TEST(stopping_ends_all),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
