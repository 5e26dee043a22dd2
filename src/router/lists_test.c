/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that are kept.  bridging.md §1.8 */
#include "router/lists.h"

#include "base/clock.h"
#include "base/pause.h"
#include "io/aside.h"
#include "router/pages.h"
#include "router/pool_stage.h"

#define PROMPTS_LIST(id) "{'jsonrpc':'2.0','id':" id ",'method':'prompts/list'}"

/* bridging.md §1.8: one fetch for all who ask; another one after a change. */
static void lists_are_fetched_once(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->client, LIST("1"));
	struct front *two = request(b->client, LIST("'x'"));
	struct front *late;

	hears(process(0), LIST("2"));
	says(process(0), TOOLS("2", "{'name':'t','execution':{'taskSupport':'optional'}}"));
	is_answered(one, TOOLS("1", "{'name':'t'}"));
	is_answered(two, TOOLS("'x'", "{'name':'t'}"));
	late = request(a->client,
		       "{'jsonrpc':'2.0','id':3,'method':'tools/list','params':{'_meta':{"
		       "'progressToken':1,'traceparent':'00-1','io.modelcontextprotocol/"
		       "clientInfo':{}}}}");
	is_answered(late, TOOLS("3", "{'name':'t'}"));
	hears_nothing(process(0));
	pass(POOL_IDLE_MS - 1);
	is_answered(request(b->client, LIST("4")), TOOLS("4", "{'name':'t'}"));
	says(process(0), CHANGED("resources")); /* another one */
	is_answered(request(b->client, LIST("5")), TOOLS("5", "{'name':'t'}"));
	hears_nothing(process(0));
	says(process(0), CHANGED("tools"));
	one = request(a->client, LIST("6"));
	two = request(b->client, LIST("7"));
	hears(process(0), LIST("3"));
	hears_nothing(process(0));
	says(process(0), TOOLS("3", ""));
	is_answered(one, TOOLS("6", ""));
	is_answered(two, TOOLS("7", ""));
}

static size_t count_endings(struct front *calls[], size_t count)
{
	size_t ended = 0;

	for (size_t i = 0; i < count; i++)
		ended += calls[i]->ending != ENDING_NONE;
	return ended;
}

/* Nobody else waits until all calls have their answer, whatever it is. REL-24 */
static void waiting_calls_go_on_over_several_turns(void **state)
{
	struct member *a = begin();
	struct front *calls[6];

	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		calls[i] = request(a->client, LIST("1"));
	hears(process(0), LIST("2"));
	stage_is_busy(0);
	fake_process_write(process(0), q(TOOLS("2", "{'name':'t'}") "\n"));
	loop_turn(router.loop, true);
	assert_in_range(count_endings(calls, ARRAY_LEN(calls)), 1, 2);
	stage_rest();
	settle();
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		is_answered(calls[i], TOOLS("1", "{'name':'t'}"));
	says(process(0), CHANGED("tools"));
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		calls[i] = request(a->client, LIST("1"));
	hears(process(0), LIST("3"));
	stage_is_busy(0);
	fake_process_write(process(0), q("{'jsonrpc':'2.0','id':3,'result':7}\n"));
	loop_turn(router.loop, true);
	assert_in_range(count_endings(calls, ARRAY_LEN(calls)), 0, 2);
	stage_rest();
	settle();
	/* They went on as if there were no catalogue: each is asked for. */
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		is_open(calls[i]);
	assert_non_null(fake_process_read(process(0)));
	session_end(a->client->session, REASON_DELETED);
}

/* A change while the list is on its way: who asked before gets what comes, who asks later gets the new one. */
static void changes_outdate_what_is_on_its_way(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *before = request(a->client, LIST("1"));
	struct front *after;

	hears(process(0), LIST("2"));
	says(process(0), CHANGED("tools"));
	after = request(b->client, LIST("1"));
	hears(process(0), LIST("3"));
	says(process(0), TOOLS("2", "'old'"));
	is_answered(before, TOOLS("1", "'old'"));
	is_open(after);
	says(process(0), TOOLS("3", "'new'"));
	is_answered(after, TOOLS("1", "'new'"));
	is_answered(request(a->client, LIST("2")), TOOLS("2", "'new'"));
	hears_nothing(process(0));
}

/* UTIL-PAGE-01: all pages, as one; what stands around the items is that of the first. */
static void pages_become_one(void **state)
{
	struct member *a = begin();
	struct front *list = request(a->client, LIST("1"));

	hears(process(0), LIST("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'x':1,'tools':[ 1 , 2 ],'nextCursor':"
			 "'a\\u0022','y':2}}");
	hears(process(0), PAGE("3", "'a\\u0022'"));
	is_open(list);
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'tools':[],'nextCursor':''}}");
	hears(process(0), PAGE("4", "''"));
	says(process(0), "{'jsonrpc':'2.0','id':4,'result':{'z':1,'tools':[3]}}");
	is_answered(list, "{'jsonrpc':'2.0','id':1,'result':{'x':1,'tools':[1 , 2,3],'y':2}}");
	is_answered(request(a->client, LIST("2")),
		    "{'jsonrpc':'2.0','id':2,'result':{'x':1,'tools':[1 , 2,3],'y':2}}");
	hears_nothing(process(0));
}

/* AUTH-SES-10: what one principal is shown is neither kept nor fetched for another one. */
static void lists_are_of_one_principal(void **state)
{
	struct member *a, *a2, *b;
	struct front *of_alice, *of_alice_too, *of_bob;

	servers[0].conf.isolation = ISOLATION_SHARED;
	a = begin_plain(alice);
	a2 = join(open_session_as(alice, INITIALIZE));
	b = join(open_session_as(bob, INITIALIZE));
	of_alice = request(a->client, LIST("1"));
	of_bob = request(b->client, LIST("1"));
	of_alice_too = request(a2->client, LIST("1"));
	hears(process(0), LIST("2"));
	hears(process(0), LIST("3"));
	hears_nothing(process(0));
	says(process(0), TOOLS("2", "'for alice'"));
	is_open(of_bob);
	is_answered(of_alice, TOOLS("1", "'for alice'"));
	is_answered(of_alice_too, TOOLS("1", "'for alice'"));
	says(process(0), TOOLS("3", "'for bob'"));
	is_answered(of_bob, TOOLS("1", "'for bob'"));
	is_answered(request(b->client, LIST("2")), TOOLS("2", "'for bob'"));
	is_answered(request(a2->client, LIST("2")), TOOLS("2", "'for alice'"));
	is_open(request(begin()->client, LIST("1"))); /* of nobody in particular */
	hears(process(0), LIST("4"));
}

/* An error is for all who wait, and for nobody later. */
static void errors_are_not_kept(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->client, LIST("1"));
	struct front *two = request(b->client, LIST("2"));

	hears(process(0), LIST("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'error':{'code':-32042,'message':'m'}}");
	is_answered(one, "{'jsonrpc':'2.0','id':1,'error':{'code':-32603,'message':'m'}}");
	is_answered(two, "{'jsonrpc':'2.0','id':2,'error':{'code':-32603,'message':'m'}}");
	one = request(a->client, LIST("3"));
	hears(process(0), LIST("3"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'tools':[],'nextCursor':'n'}}");
	hears(process(0), PAGE("4", "'n'"));
	says(process(0), "{'jsonrpc':'2.0','id':4,'error':{'code':-32602,'message':'m'}}");
	hears(process(0), LIST("5")); /* the error was not about what the client has asked */
	says(process(0), "{'jsonrpc':'2.0','id':5,'result':{'tools':[1],'nextCursor':'n'}}");
	assert_true(is_error(one, "\"tools\":[1],\"nextCursor\""));
	one = request(a->client, LIST("4"));
	hears(process(0), LIST("6"));
	says(process(0), "{'jsonrpc':'2.0','id':6,'result':7,'error':8}");
	is_failed(one, REASON_CHILD_PROTOCOL_ERROR);
}

/* What has no end, or is no list that we know, is forwarded; after a while it is tried again. */
static void endless_lists_are_passed_on(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->client, LIST("1"));
	struct front *two = request(b->client, LIST("1"));

	servers[0].conf.idle_ms = 24 * POOL_IDLE_MS;
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
	one = request(a->client, LIST("2"));
	hears(process(0), LIST("6"));
	says(process(0), "{'jsonrpc':'2.0','id':6,'result':{'tools':[],'nextCursor':'n'}}");
	assert_int_equal(one->ending, ENDING_RESPONSE);
	pass(5 * 60 * 1000);
	one = request(a->client, LIST("3"));
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
	struct front *list = request(a->client, PROMPTS_LIST("1"));

	hears(process(0), PROMPTS_LIST("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'prompts':[1]}}");
	pass(4999);
	list = request(a->client, PROMPTS_LIST("2"));
	is_answered(list, "{'jsonrpc':'2.0','id':2,'result':{'prompts':[1]}}");
	pass(1);
	list = request(a->client, PROMPTS_LIST("3"));
	hears(process(0), PROMPTS_LIST("3"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'prompts':[2]}}");
	is_answered(list, "{'jsonrpc':'2.0','id':3,'result':{'prompts':[2]}}");
	says(process(0), CHANGED("prompts")); /* although it did not say that it would */
	list = request(a->client, PROMPTS_LIST("4"));
	hears(process(0), PROMPTS_LIST("4"));
	says(process(0), "{'jsonrpc':'2.0','id':4,'result':{'prompts':[3]}}");
	list = request(a->client, LIST("5"));
	hears(process(0), LIST("5"));
	says(process(0), TOOLS("5", "1"));
	is_answered(list, TOOLS("5", "1"));
	exits(process(0), 0);
	list = request(a->client, LIST("6"));
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

	for (size_t i = 0; i < ARRAY_LEN(params); i++) {
		char text[200];
		char line[200];
		struct front *list;

		snprintf(text, sizeof(text),
			 "{'jsonrpc':'2.0','id':1,'method':'tools/list','params':%s}", params[i]);
		list = request(a->client, text);
		snprintf(line, sizeof(line),
			 "{'jsonrpc':'2.0','id':%zu,'method':'tools/list','params':%s}", i + 2,
			 params[i]);
		hears(process(0), line);
		snprintf(line, sizeof(line), TOOLS("%zu", "%zu"), i + 2, i);
		says(process(0), line);
		snprintf(line, sizeof(line), TOOLS("1", "%zu"), i);
		is_answered(list, line);
	}
	request(a->client, LIST("1"));
	hears(process(0), LIST("6"));
}

/* One that is longer than what may wait is forwarded, whatever stands in it. DEF-11 */
static void long_requests_reach_the_server(void **state)
{
	struct member *a = begin();

	for (int length = 1024; length <= 1025; length++) {
		static const char head[] = "{'jsonrpc':'2.0','id':1,'method':'tools/list',"
					   "'params':{'_meta':{'traceparent':'";
		char text[1100];

		snprintf(text, sizeof(text), "%s%0*d'}}}", head,
			 length - (int)(sizeof(head) - 1) - 4, 0);
		assert_int_equal(strlen(text), length);
		request(a->client, text);
		if (length == 1024)
			hears(process(0), LIST("2"));
		else
			assert_non_null(strstr(fake_process_read(process(0)), "traceparent"));
	}
}

/* bridging.md §4: asked again once; who waits fails when that is in vain, too. */
static void lost_fetches_are_repeated(void **state)
{
	struct member *a = begin();
	struct front *list = request(a->client, LIST("1"));

	hears(process(0), LIST("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[1],'nextCursor':'n'}}");
	exits(process(0), 0);
	is_open(list);
	get_ready(1);
	hears(process(1), LIST("2"));
	exits(process(1), 0);
	is_failed(list, REASON_CHILD_EXITED);
	servers[0].conf.pool_max = 0; /* there may be no other */
	list = request(a->client, LIST("2"));
	is_open(list);
	pass(POOL_QUEUE_TIMEOUT_MS);
	is_failed(list, REASON_OVER_LIMIT);
	servers[0].conf.pool_max = 1;
	keeper.refuses = ENOENT;
	list = request(a->client, LIST("3"));
	pass(1000);
	is_failed(list, REASON_START_FAILED);
}

/* Who has gone is not answered; when all have, nothing more is asked. */
static void nobody_is_waited_for(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->client, LIST("1"));
	struct front *two = request(b->client, LIST("1"));

	hears(process(0), LIST("2"));
	notify(a->client, CANCELLED("1"));
	assert_int_equal(one->ending, ENDING_CANCELLED);
	hears_nothing(process(0));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[1],'nextCursor':'n'}}");
	hears(process(0), PAGE("3", "'n'"));
	session_end(b->client->session, REASON_DELETED);
	is_failed(two, REASON_DELETED);
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'tools':[2],'nextCursor':'o'}}");
	hears_nothing(process(0));
	one = request(a->client, LIST("2"));
	hears(process(0), LIST("4"));
	says(process(0), TOOLS("4", "5"));
	is_answered(one, TOOLS("2", "5"));
	pass(POOL_IDLE_MS);
	hears_nothing(process(0));
	assert_true(process(0)->is_eof); /* it counts as idle again */
}

/* REL-25: a page that does not come. Each that comes is a sign of life, but no request lasts for ever. */
static void fetches_have_deadlines(void **state)
{
	struct member *a = begin();
	struct front *list = request(a->client, LIST("1"));
	char text[200];

	hears(process(0), LIST("2"));
	pass(60000);
	is_failed(list, REASON_TIMEOUT);
	hears(process(0), "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
			  "'requestId':2,'reason':'no answer in time'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':3,'method':'ping'}");
	says(process(0), TOOLS("2", "1")); /* too late */
	says(process(0), EMPTY("3"));
	list = request(a->client, LIST("2"));
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
	struct front *call = request(a->client, CALL("1"));
	struct front *list = request(b->client, LIST("1"));

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
	servers[0].conf.calls_per_process = 1;
	servers[0].conf.pool_max = 1;
	says(process(0), CHANGED("tools"));
	list = request(b->client, LIST("2"));
	hears_nothing(process(0));
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	hears(process(0), "{'jsonrpc':'2.0','id':7,'result':{'action':'cancel'}}");
	hears(process(0), LIST("4"));
	call = request(a->client, CALL("2"));
	hears_nothing(process(0));
	says(process(0), TOOLS("4", ""));
	is_answered(list, TOOLS("2", ""));
	hears(process(0), CALL("5"));
	says(process(0), RESULT("5"));
	is_answered(call, RESULT("2"));
}

/* Neither calls nor lists keep the others from an upstream. */
static void lists_and_calls_take_turns(void **state)
{
	struct member *a = begin();
	struct front *first;

	servers[0].conf.pool_max = 1;
	servers[0].conf.calls_per_process = 1;
	first = request(a->client, CALL("1"));
	request(a->client, CALL("2"));
	request(a->client, CALL("3"));
	request(a->client, LIST("4"));
	request(a->client, PROMPTS_LIST("5"));
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
		settle();
	}
	says(process(i), end);
}

/* What waits to be told is bounded in bytes, too. */
static void large_updates_do_not_wait(void **state)
{
	struct member *a = begin();

	request(a->client, SUBSCRIBE("1"));
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
	assert_int_equal(a->client->pool->notices.update_bytes, 0);
}

static void ask_for_much(struct member *member, size_t first_id, size_t pages)
{
	char begin[200];
	char end[200];

	request(member->client, LIST("1"));
	for (size_t i = 0; i < pages; i++) {
		snprintf(begin, sizeof(begin), "{'jsonrpc':'2.0','id':%zu,'result':{'tools':['",
			 first_id + i);
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
	struct buf beyond = { 0 };
	struct json cursor;
	char page[300], other[300];
	uint64_t number, at;

	ask_for_much(a, 2, 6);
	list = &fronts[front_count - 1];
	assert_int_equal(list->ending, ENDING_RESPONSE);
	assert_in_range(list->response.len, 4000000, 4 << 20);
	cursor = scan_path(buf_slice(&list->response),
			   (const char *const[]){ "result", "nextCursor" }, 2);
	assert_int_equal(cursor.type, JSON_STRING);
	snprintf(page, sizeof(page), PAGE("2", "%.*s"), SLICE_ARG(cursor.text));
	rest = request(a->client, page);
	assert_in_range(rest->response.len, 2000000, 2100000);
	assert_int_equal(scan_path(buf_slice(&rest->response),
				   (const char *const[]){ "result", "nextCursor" }, 2)
				 .type,
			 JSON_ABSENT);
	page[strlen(page) - 5] ^= 1; /* of another list */
	assert_true(is_error(request(a->client, page), "\"code\":-32602"));
	page[strlen(page) - 5] ^= 1;
	assert_int_equal(cursor_open_page(cursor, &number, &at), 0);
	cursor_append_page(&beyond, number, at + 1); /* behind the last */
	snprintf(other, sizeof(other), PAGE("2", "%.*s"), SLICE_ARG(buf_slice(&beyond)));
	assert_true(is_error(request(a->client, other), "\"code\":-32602"));
	buf_fini(&beyond);
	assert_true(is_error(request(begin()->client, page), "\"result\""));
	for (size_t i = 0; i < 6; i++)
		assert_non_null(fake_process_read(process(0)));
	hears_nothing(process(0));
	assert_in_range(router.lists.bytes, 6000000, 6200000);
	says(process(0), CHANGED("tools"));
	assert_true(is_error(request(a->client, page), "\"result\"")); /* it holds together */
	ask_for_much(a, 8, 17);
	is_open(&fronts[front_count - 1]); /* it was forwarded */
	assert_true(is_error(request(a->client, page), "\"code\":-32602"));
	assert_in_range(router.lists.bytes, 1, 10000);
}

/* Process i says pages of 1 MB without an end, to this request and to those that follow from `next` on. */
static void say_pages(size_t i, const char *member, size_t id, size_t next, size_t pages)
{
	char begin[200], end[200];

	for (size_t page = 0; page < pages; page++) {
		snprintf(begin, sizeof(begin), "{'jsonrpc':'2.0','id':%zu,'result':{'%s':['",
			 page == 0 ? id : next + page - 1, member);
		snprintf(end, sizeof(end), "'],'nextCursor':'%zu'}}", page);
		says_much(i, begin, end);
	}
}

/* Lists of one server that are on their way leave room for those of others. */
static void lists_on_their_way_leave_room(void **state)
{
	struct member *a = begin();

	servers[0].conf.calls_per_process = 3;
	request(a->client, LIST("1"));
	request(a->client, PROMPTS_LIST("2"));
	request(a->client, "{'jsonrpc':'2.0','id':3,'method':'resources/list'}");
	say_pages(0, "tools", 2, 5, 12);
	say_pages(0, "prompts", 3, 17, 12);
	assert_in_range(router.lists.bytes, 24000000, 24 << 20);
	say_pages(0, "resources", 4, 29, 12);
	assert_in_range(router.lists.bytes, 24000000, 24 << 20);
}

/* The same of those of processes that sessions have to themselves. */
static void lists_of_sessions_leave_room(void **state)
{
	servers[0].conf.isolation = ISOLATION_SESSION;
	servers[0].conf.checks_schemas = true;
	servers[0].conf.pool_max = 3;
	for (size_t i = 0; i < 3; i++) {
		struct front *front = open_session(INITIALIZE);

		get_ready(i);
		request(join(front)->client, CALL("1"));
		say_pages(i, "tools", 2, 3, 12);
		assert_in_range(router.lists.bytes, 12000000, 24 << 20);
	}
}

/* All that is kept is bounded: what was asked for last stays. */
static void kept_lists_are_bounded(void **state)
{
	struct member *a = begin();
	size_t all = 64 << 20;
	size_t small;

	request(a->client, LIST("1"));
	hears(process(0), LIST("2"));
	says(process(0), TOOLS("2", "1"));
	small = router.lists.bytes;
	request(a->client, PROMPTS_LIST("2"));
	hears(process(0), PROMPTS_LIST("3"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'prompts':[]}}");
	request(a->client, LIST("3"));
	assert_in_range(small, 1, 4000);
	router.lists.bytes += all - 2 * small - 100; /* as if others were there */
	request(a->client, "{'jsonrpc':'2.0','id':4,'method':'resources/list'}");
	hears(process(0), "{'jsonrpc':'2.0','id':4,'method':'resources/list'}");
	says(process(0), "{'jsonrpc':'2.0','id':4,'result':{'resources':[]}}");
	is_answered(request(a->client, LIST("5")), TOOLS("5", "1"));
	hears_nothing(process(0));
	request(a->client, PROMPTS_LIST("6")); /* it had to give way */
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

	servers[0].conf.pool_max = 1;
	front = open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	is_open(front);
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
	exits(process(0), 0);
	assert_int_equal(keeper.count, 2);
	get_ready(1);
	join(front);
	request(front->call.client, CALL("1"));
	call = request(a->client, CALL("1")); /* bob's is busy */
	is_open(call);
	front = open_session_as(alice, INITIALIZE_WITH("'sampling':{}"));
	pass(POOL_QUEUE_TIMEOUT_MS);
	is_failed(call, REASON_OVER_LIMIT);
	is_failed(front, REASON_OVER_LIMIT);
}

/* Who waits for a place need not ask again: the one that comes to rest makes it. */
static void children_that_come_to_rest_make_room(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *call = request(a->client, CALL("1"));
	struct front *front;

	servers[0].conf.pool_max = 1;
	front = open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	is_open(front);
	assert_false(process(0)->is_eof);
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	while (fake_process_read(process(0)) != NULL)
		;
	assert_true(process(0)->is_eof);
	exits(process(0), 0);
	assert_int_equal(keeper.count, 2);
	get_ready(1);
	join(front);
	assert_int_equal(router.slots.leaving, 0);
}

/* Not more of them are stopped than are waited for. */
static void only_one_makes_room(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *calls[2];

	calls[0] = request(a->client, CALL("1"));
	calls[1] = request(a->client, CALL("2"));
	get_ready(1);
	says(process(0), RESULT("2"));
	says(process(1), RESULT("2"));
	is_answered(calls[1], RESULT("2"));
	open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	assert_int_equal(router.slots.leaving, 1);
	while (fake_process_read(process(0)) != NULL)
		;
	exits(process(process(0)->is_eof ? 0 : 1), 0);
	assert_int_equal(router.slots.leaving, 0);
	assert_int_equal(keeper.count, 3);
}

/* Nobody's pool is kept. */
static void unused_pools_go(void **state)
{
	struct member *a = begin_asking(alice, 0);

	session_end(a->client->session, REASON_DELETED);
	settle();
	assert_false(list_is_empty(&router.slots.pools));
	pass(POOL_IDLE_MS);
	assert_true(list_is_empty(&router.slots.pools));
}

/* All who asked have gone, then the process goes, too: no other is started for a list that nobody wants. */
static void lost_fetches_of_nobody_are_forgotten(void **state)
{
	struct member *a = begin();
	struct front *list = request(a->client, LIST("1"));

	hears(process(0), LIST("2"));
	notify(a->client, CANCELLED("1"));
	assert_int_equal(list->ending, ENDING_CANCELLED);
	exits(process(0), 0);
	pass(2000);
	assert_int_equal(keeper.count, 1);
}

/* The same when the sessions have gone: the pool goes with its process. */
static void pools_of_nobody_are_not_revived(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *list = request(a->client, LIST("1"));

	hears(process(0), LIST("2"));
	session_end(a->client->session, REASON_DELETED);
	is_failed(list, REASON_DELETED);
	exits(process(0), 0);
	pass(2000);
	assert_int_equal(keeper.count, 1);
	assert_true(list_is_empty(&router.slots.pools));
}

/* ---- long lists, which give way ---- */

#define LONG_ITEMS 4000

static unsigned int list_id; /* of the last request for a list at the process */

static void hears_list(size_t at)
{
	char text[100];

	snprintf(text, sizeof(text), LIST("%u"), ++list_id);
	hears(process(at), text);
}

static void (*consider)(void);
static unsigned int points;

/* Each few hundred steps make the turn a long one. */
static void take_long(void)
{
	if (++points % 200 == 0) {
		now_ms += 5;
		clock_freeze(now_ms);
	}
	consider();
}

static void do_nothing(not_used struct aside *aside)
{
}

static void make_turns_long(void)
{
	struct aside first;

	aside_init(&first, do_nothing);
	aside_start(router.loop, &first, 0); /* from then on there is something that considers */
	consider = pause_consider;
	pause_consider = take_long;
}

/* From now on, what is done for the list gives way now and then. */
static void says_long_list(size_t at)
{
	struct buf text = { 0 };

	buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":{\"tools\":[", list_id);
	for (int i = 0; i < LONG_ITEMS; i++)
		buf_printf(&text, "{\"name\":\"tool_%010d\"},", i);
	buf_append_str(&text, "{\"name\":\"last\"}]}}\n");
	assert_true(text.len > ASIDE_BYTES);
	for (size_t from = 0; from < text.len; from += 30000) {
		char part[30001];

		snprintf(part, sizeof(part), "%s", buf_terminate(&text) + from);
		fake_process_write(process(at), part);
		loop_turn(router.loop, false);
		loop_turn(router.loop, false);
		if (from == 0)
			make_turns_long();
	}
	buf_fini(&text);
}

/* Returns whether it had not been done before. */
static bool in_the_middle(size_t turns)
{
	for (size_t i = 0; i < turns && aside_is_busy(router.loop); i++)
		loop_turn(router.loop, false);
	return aside_is_busy(router.loop);
}

static void come_to_rest(void)
{
	if (pause_consider == take_long)
		pause_consider = consider;
	while (aside_is_busy(router.loop))
		loop_turn(router.loop, false);
	settle();
}

/* REL-54: what comes behind it stays behind it. */
static void long_lists_give_way(void **state)
{
	struct member *a = begin();
	struct front *one = request(a->client, LIST("1"));

	list_id = 1;
	hears_list(0);
	says_long_list(0);
	fake_process_write(process(0), q(CHANGED("tools") "\n"));
	assert_true(in_the_middle(20));
	is_open(one);
	come_to_rest();
	assert_true(is_error(one, "\"last\""));
	one = request(a->client, LIST("2"));
	hears_list(0);
	says_long_list(0);
	come_to_rest();
	assert_true(is_error(one, "\"last\""));
	hears_nothing(process(0));
}

/* One that is kept gives way for each who asks. */
static void kept_long_lists_give_way(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one, *two, *three;

	servers[0].conf.permissions.has_rules =
		true; /* nothing is allowed: each item is looked at */
	request(a->client, LIST("1"));
	list_id = 1;
	hears_list(0);
	says_long_list(0);
	come_to_rest();
	make_turns_long();
	one = request(a->client, LIST("3"));
	two = request(b->client, LIST("4"));
	three = request(begin()->client, LIST("5"));
	assert_true(in_the_middle(2));
	is_open(two);
	session_end(a->client->session, REASON_DELETED);
	session_end(b->client->session, REASON_DELETED);
	is_failed(one, REASON_DELETED);
	come_to_rest();
	assert_true(is_error(three, "\"result\""));
	/* It changes while somebody waits. */
	make_turns_long();
	one = request(begin()->client, LIST("6"));
	assert_true(in_the_middle(2));
	servers[0].rules++;
	two = request(begin()->client, LIST("7"));
	come_to_rest();
	hears_list(0);
	says_long_list(0);
	come_to_rest();
	assert_true(is_error(one, "\"result\""));
	assert_true(is_error(two, "\"result\""));
}

static void end_session(struct member *a)
{
	session_end(a->client->session, REASON_DELETED);
}

static void swap_rules(not_used struct member *a)
{
	aside_finish(router.loop); /* as gateway_reload does */
	assert_false(aside_is_busy(router.loop));
}

/* Something happens while a list is looked through, in each of its stages. */
static void try_in_all_stages(void (*happens)(struct member *a))
{
	struct member *other = begin();
	size_t met = 0;
	bool is_in_the_middle = true;

	list_id = 1;
	for (size_t turns = 1; is_in_the_middle; turns += turns / 2 + 1) {
		struct member *a = begin();
		struct front *last;

		request(a->client, LIST("1"));
		hears_list(0);
		says_long_list(0);
		is_in_the_middle = in_the_middle(turns);
		met += is_in_the_middle;
		happens(a);
		come_to_rest();
		says(process(0), CHANGED("tools"));
		last = request(other->client, LIST("1"));
		hears_list(0);
		says(process(0), "{'jsonrpc':'2.0','id':99,'result':{}}");
		says_long_list(0);
		come_to_rest();
		assert_true(is_error(last, "\"last\""));
		says(process(0), CHANGED("tools"));
	}
	assert_true(met > 5);
}

static void client_leaves_while_its_list_comes(void **state)
{
	try_in_all_stages(end_session);
}

static void reload_while_a_list_comes(void **state)
{
	try_in_all_stages(swap_rules);
}

/* Another process is asked. */
static void process_is_lost_while_its_list_comes(void **state)
{
	static const size_t turns[] = { 1, 20, 60 };
	struct member *a = begin();

	list_id = 1;
	for (size_t at = 0; at < ARRAY_LEN(turns); at++) {
		struct front *list = request(a->client, LIST("1"));

		hears_list(at);
		says_long_list(at);
		assert_true(in_the_middle(turns[at]));
		assert_int_equal(report_restart(&servers[0]), 1);
		fake_process_exit(&keeper, process(at), 0);
		come_to_rest();
		is_open(list);
		get_ready(at + 1);
		list_id = 1;
		hears_list(at + 1);
		says(process(at + 1), TOOLS("2", "'x'"));
		is_answered(list, TOOLS("1", "'x'"));
		says(process(at + 1), CHANGED("tools"));
	}
}

static bool is_held_up;
static struct aside other_work;

static void hold_up(not_used struct aside *aside)
{
	aside_open();
	while (is_held_up)
		pause_point();
	aside_close();
}

static void begin_other_work(not_used struct task *task)
{
	aside_init(&other_work, hold_up);
	aside_start(router.loop, &other_work, 0);
}

/* REL-25: a process lives if it has said something, even if that has not been looked at yet. */
static void who_has_to_wait_to_be_heard_lives(void **state)
{
	struct member *a = begin();
	struct task begins;
	char text[10001] = "";

	request(a->client, CALL("1"));
	pass(60000); /* and is asked whether it lives */
	is_held_up = true;
	make_turns_long();
	task_init(&begins, begin_other_work);
	task_schedule(router.loop, &begins);
	loop_turn(router.loop, false);
	assert_true(in_the_middle(1));
	memset(text, 'x', sizeof(text) - 1);
	for (int i = 0; i < 8; i++) {
		fake_process_write(process(0), text);
		assert_true(in_the_middle(2));
	}
	fake_process_write(process(0), "\n");
	assert_true(in_the_middle(2));
	now_ms += 6000;
	clock_freeze(now_ms);
	assert_true(in_the_middle(2));
	assert_int_equal(process(0)->signals, 0);
	is_held_up = false;
	come_to_rest();
	pass(6000);
	assert_int_equal(process(0)->signals, 0);
}

static const struct CMUnitTest tests[] = {
	TEST(who_has_to_wait_to_be_heard_lives),
	TEST(long_lists_give_way),
	TEST(kept_long_lists_give_way),
	TEST(client_leaves_while_its_list_comes),
	TEST(reload_while_a_list_comes),
	TEST(process_is_lost_while_its_list_comes),
	TEST(lost_fetches_of_nobody_are_forgotten),
	TEST_PRINCIPALS(pools_of_nobody_are_not_revived),
	TEST(large_updates_do_not_wait),
	TEST(lists_are_fetched_once),
	TEST(waiting_calls_go_on_over_several_turns),
	TEST(changes_outdate_what_is_on_its_way),
	TEST(pages_become_one),
	TEST_PRINCIPALS(lists_are_of_one_principal),
	TEST(errors_are_not_kept),
	TEST(endless_lists_are_passed_on),
	TEST(kept_lists_grow_old),
	TEST(own_words_reach_the_server),
	TEST(long_requests_reach_the_server),
	TEST(lost_fetches_are_repeated),
	TEST(nobody_is_waited_for),
	TEST(fetches_have_deadlines),
	TEST_PRINCIPALS(lists_need_no_lease),
	TEST(lists_and_calls_take_turns),
	TEST(long_lists_have_pages),
	TEST(lists_on_their_way_leave_room),
	TEST(lists_of_sessions_leave_room),
	TEST(kept_lists_are_bounded),
	TEST_PRINCIPALS(idle_children_make_room),
	TEST_PRINCIPALS(children_that_come_to_rest_make_room),
	TEST_PRINCIPALS(only_one_makes_room),
	TEST_PRINCIPALS(unused_pools_go),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
