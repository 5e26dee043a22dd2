/* SPDX-License-Identifier: Apache-2.0 */
/* Many sessions on few children. */
#include "router/pool.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/text.h"
#include "obs/counters.h"
#include "router/pool_stage.h"
#include "router/router.h"
#include "upstream/prestart.h"
#include "upstream/upstream.h"

/* ---- sessions ---- */

/* bridging.md §1.2, §1.3, §2.1 (2): one start for all; the child is told nothing of any client. */
static void sessions_share_a_child(void **state)
{
	struct front *first = open_session(INITIALIZE);
	struct front *second = open_session(INITIALIZE);
	struct front *third;

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
	session_end(first->call.client->session, REASON_DELETED);
	settle();
	hears_nothing(process(0));
	assert_false(process(0)->is_eof);
}

/* All who wait hear of a start that fails; the next one tries anew. */
static void start_can_fail(void **state)
{
	struct front *first = open_session(INITIALIZE);
	struct front *second = open_session(INITIALIZE);

	exits(process(0), 1 << 8);
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

/* SEC-06; bridging.md §8 (1), (2): the same id and token from two clients at once. */
static void ids_and_tokens_do_not_cross(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->client, TOKEN_CALL("1", "1"));
	struct front *two = request(b->client, TOKEN_CALL("1", "1"));

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
	struct front *one = request(a->client, CALL("1"));
	struct front *two = request(b->client, CALL("1"));

	hears(process(0), CALL("2"));
	hears(process(0), CALL("3"));
	notify(a->client, CANCELLED("1"));
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
	struct member *b = join(open_session(INITIALIZE_WITH("'elicitation':{'url':{}}")));
	struct front *call = request(a->client, CALL("1"));

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
	text_set_add(&b->client->elicitations, SLICE_LIT("\"e\"")); /* of no matter what */
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/elicitation/complete',"
			 "'params':{'elicitationId':'e'}}");
	was_told(call, "");
	heard(a, "");
	heard(b, "");
	notify(a->client, "{'jsonrpc':'2.0','method':'notifications/roots/list_changed'}");
	notify(a->client, "{'jsonrpc':'2.0','method':'notifications/vendor'}");
	hears_nothing(process(0));
}

/* bridging.md §2.1 (3): what is not offered is unknown, without the child being asked. */
static void what_is_not_offered_is_unknown(void **state)
{
	static const char *const methods[] = { "logging/setLevel", "tasks/list",
					       "completion/complete" };
	struct member *a = begin();

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		char text[200];

		snprintf(text, sizeof(text),
			 "{'jsonrpc':'2.0','id':1,'method':'%s','params':{'level':'info'}}",
			 methods[i]);
		assert_non_null(strstr(buf_terminate(&request(a->client, text)->response),
				       "\"code\":-32601"));
	}
	hears_nothing(process(0));
	request(a->client, "{'jsonrpc':'2.0','id':1,'method':'vendor/thing'}");
	hears(process(0), "{'jsonrpc':'2.0','id':2,'method':'vendor/thing'}");
}

/* A list that is nobody else's: the server is told something beside what is asked for. */
#define LIST_OF(id) "{'jsonrpc':'2.0','id':" id ",'method':'tools/list','params':{'of':'x'}}"

/* bridging.md §1.1 (7): a cursor leads back to its child; another one, or a made-up one, is refused. */
static void cursors_name_their_child(void **state)
{
	struct member *a = begin();
	struct front *first;
	struct json cursor;
	char page[300];

	request(a->client, CALL("1"));
	request(a->client, CALL("2"));
	first = request(a->client, LIST_OF("3")); /* by another process: 0 has enough */
	get_ready(1);
	hears(process(1), LIST_OF("2"));
	says(process(1), "{'jsonrpc':'2.0','id':2,'result':{'tools':[],'nextCursor':'a\\u0022b'}}");
	cursor = scan_path(buf_slice(&first->response),
			   (const char *const[]){ "result", "nextCursor" }, 2);
	assert_null(memmem(cursor.text.p, cursor.text.n, "u0022", 5));
	says(process(0), RESULT("2"));
	snprintf(page, sizeof(page), PAGE("4", "%.*s"), SLICE_ARG(cursor.text));
	first = request(a->client, page);
	hears(process(1), PAGE("3", "'a\\u0022b'"));
	says(process(1), "{'jsonrpc':'2.0','id':3,'result':{'tools':[]}}");
	is_answered(first, "{'jsonrpc':'2.0','id':4,'result':{'tools':[]}}");
	first = request(a->client, PAGE("5", "'bmV4dA'"));
	assert_non_null(strstr(buf_terminate(&first->response), "\"code\":-32602"));
	first = request(a->client, PAGE("5", "7"));
	assert_non_null(strstr(buf_terminate(&first->response), "\"code\":-32602"));
	exits(process(1), 0);
	first = request(a->client, page);
	assert_non_null(strstr(buf_terminate(&first->response), "\"code\":-32602"));
}

/* mcpgated.yaml(5) requests_per_process: the rest of a list is a request like others. */
static void cursors_respect_the_limit(void **state)
{
	struct member *a = begin();
	struct front *front = request(a->client, LIST_OF("1"));
	struct json cursor;
	char page[300];

	hears(process(0), LIST_OF("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[],'nextCursor':'n'}}");
	cursor = scan_path(buf_slice(&front->response),
			   (const char *const[]){ "result", "nextCursor" }, 2);
	snprintf(page, sizeof(page), PAGE("2", "%.*s"), SLICE_ARG(cursor.text));
	request(a->client, CALL("1"));
	request(a->client, page);
	hears(process(0), CALL("3"));
	hears(process(0), PAGE("4", "'n'"));
	is_failed(request(a->client, page), REASON_OVER_LIMIT);
	hears_nothing(process(0));
	says(process(0), RESULT("3"));
	request(a->client, page);
	hears(process(0), PAGE("5", "'n'"));
}

static void has_no_tasks(struct front *front)
{
	static const char *const methods[] = { "get", "result", "cancel", "list", "update" };
	struct member *a;
	char text[200];

	get_ready(0);
	assert_null(strstr(buf_terminate(&front->response), "tasks"));
	a = join(front);
	request(a->client, "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'t',"
			   "'task':{'ttl':1},'x':2}}");
	hears(process(0),
	      "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'t','x':2}}");
	front = request(a->client, LIST_OF("2"));
	hears(process(0), LIST_OF("3"));
	says(process(0),
	     TOOLS("3", "{'name':'a','execution':{'taskSupport':'required'}},{'name':'b',"
			"'execution':{}}"));
	is_answered(front, TOOLS("2", "{'name':'b'}"));
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		snprintf(text, sizeof(text),
			 "{'jsonrpc':'2.0','id':1,'method':'tasks/%s','params':{'taskId':'t'}}",
			 methods[i]);
		assert_non_null(strstr(buf_terminate(&request(a->client, text)->response),
				       "\"code\":-32601"));
	}
	hears_nothing(process(0));
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/tasks/status','params':{"
			 "'taskId':'t','status':'working'}}");
	heard(a, "");
}

/* bridging.md §1.3, §2.5: pools offer no tasks of 2025-11-25, so there is no word of them. */
static void tasks_are_hidden(void **state)
{
	has_no_tasks(open_session(INITIALIZE_WITH("")));
}

static void tasks_are_hidden_from_a_principal(void **state)
{
	has_no_tasks(open_session_as(alice, INITIALIZE_WITH("")));
}

/* Nor is another child asked for the rest of a list when the one that knows it is lost over it. */
static void lost_cursors_are_not_tried_elsewhere(void **state)
{
	struct member *a = begin();
	struct front *front;
	struct json cursor;
	char page[300];

	front = request(a->client, LIST_OF("1"));
	hears(process(0), LIST_OF("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[],'nextCursor':'n'}}");
	cursor = scan_path(buf_slice(&front->response),
			   (const char *const[]){ "result", "nextCursor" }, 2);
	snprintf(page, sizeof(page), PAGE("2", "%.*s"), SLICE_ARG(cursor.text));
	front = request(a->client, page);
	hears(process(0), PAGE("3", "'n'"));
	exits(process(0), 0);
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

	text_base64url(plain, sizeof(plain) - 1, text);
	snprintf(page, sizeof(page), PAGE("1", "'%s'"), text);
	front = request(a->client, page);
	assert_non_null(strstr(buf_terminate(&front->response), "\"code\":-32602"));
	hears_nothing(process(0));
}

/* ---- dispatch ---- */

/* bridging.md §1.4: the least loaded; another process when all are full; then waiting, one fairness key after the other. */
static void calls_are_spread(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *calls[8];

	calls[0] = request(a->client, CALL("10"));
	calls[1] = request(a->client, CALL("11"));
	assert_int_equal(keeper.count, 1);
	calls[2] = request(a->client, CALL("12"));
	assert_int_equal(keeper.count, 2);
	get_ready(1);
	hears(process(0), CALL("2"));
	hears(process(0), CALL("3"));
	hears(process(1), CALL("2"));
	calls[3] = request(a->client, CALL("13"));
	hears(process(1), CALL("3"));
	for (size_t i = 4; i < 7; i++)
		calls[i] = request(a->client, CALL("14"));
	calls[7] = request(b->client, CALL("20"));
	assert_int_equal(keeper.count, 2);                            /* pool.max */
	is_failed(request(a->client, CALL("15")), REASON_OVER_LIMIT); /* queue_calls */
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
	notify(a->client, CANCELLED("14"));
	hears(process(0), CANCELLED("4"));
	hears(process(0), CANCELLED("6"));
	hears_nothing(process(0));
}

/* bridging.md §1.4: also where neither is full, whichever has been there for longer. */
static void the_least_loaded_is_taken(void **state)
{
	struct member *a = begin();

	servers[0].conf.calls_per_process = 3;
	for (size_t i = 0; i < 4; i++)
		request(a->client, CALL("1"));
	for (size_t i = 2; i < 5; i++)
		assert_non_null(fake_process_read(process(0)));
	get_ready(1);
	hears(process(1), CALL("2"));
	request(a->client, CALL("2"));
	hears(process(1), CALL("3"));
	says(process(0), RESULT("2"));
	says(process(0), RESULT("3"));
	request(a->client, CALL("3"));
	hears(process(0), CALL("5"));
	says(process(1), RESULT("2"));
	request(a->client, CALL("4"));
	hears(process(1), CALL("4"));
}

/* bridging.md §1.4: nobody keeps others from waiting; who has most gives way, in calls or in bytes. */
static void queue_is_shared_fairly(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *many[6];
	struct front *few[3];
	char text[5000] = "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'";

	servers[0].conf.pool_max = 1;
	for (size_t i = 0; i < 6; i++)
		many[i] = request(a->client, CALL("1"));
	for (size_t i = 0; i < 3; i++)
		few[i] = request(b->client, CALL("1"));
	is_failed(many[5], REASON_OVER_LIMIT);
	is_failed(many[4], REASON_OVER_LIMIT);
	is_open(many[3]);
	is_open(few[1]);
	is_failed(few[2], REASON_OVER_LIMIT); /* as many as a has */
	notify(a->client, CANCELLED("1"));
	memset(text + strlen(text), 'x', 4000);
	strcpy(text + 4000, "'}}");
	servers[0].conf.queue_max = 2 * strlen(text) - 1;
	many[0] = request(a->client, text);
	is_open(many[0]);
	is_failed(request(a->client, text), REASON_OVER_LIMIT);
	servers[0].conf.queue_max++;
	is_open(request(a->client, text));
	servers[0].conf.queue_max = 4050;
	is_open(request(b->client, CALL("2")));
	is_failed(many[0], REASON_OVER_LIMIT);
}

/* bridging.md §1.4: who opens many sessions has no more turns than who has one, if his address tells that they are his. */
static void addresses_take_turns(void **state)
{
	static const char *const from[] = { "192.0.2.1", "192.0.2.1", "192.0.2.2" };
	struct front *front = open_session_from("192.0.2.9", INITIALIZE);
	struct client *clients[3];
	struct front *calls[3];

	get_ready(0);
	join(front);
	servers[0].conf.pool_max = servers[0].conf.calls_per_process = 1;
	request(front->call.client, CALL("1"));
	hears(process(0), CALL("2"));
	for (size_t i = 0; i < 3; i++) {
		clients[i] = join(open_session_from(from[i], INITIALIZE))->client;
		calls[i] = request(clients[i], CALL("1"));
	}
	says(process(0), RESULT("2"));
	hears(process(0), CALL("3"));
	says(process(0), RESULT("3"));
	is_answered(calls[0], RESULT("1"));
	hears(process(0), CALL("4"));
	says(process(0), RESULT("4"));
	is_answered(calls[2], RESULT("1"));
	is_open(calls[1]);
}

/* Where nothing waits any call may, also one longer than all that may wait together: it goes into one stdin as well. */
static void empty_queue_takes_any_call(void **state)
{
	struct member *a = begin();
	char text[5000] = "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'";

	servers[0].conf.pool_max = 1;
	for (size_t i = 0; i < 2; i++)
		request(a->client, CALL("1"));
	memset(text + strlen(text), 'x', 4000);
	strcpy(text + 4000, "'}}");
	servers[0].conf.queue_max = 3000;
	is_open(request(a->client, text));
	is_failed(request(a->client, CALL("2")), REASON_OVER_LIMIT);
}

/* Who comes later does not overtake those who wait; who waits too long is told so. */
static void waiting_is_limited(void **state)
{
	struct member *a = begin();
	struct front *calls[6];

	servers[0].conf.pool_max = 1;
	for (size_t i = 0; i < 4; i++)
		calls[i] = request(a->client, CALL("1"));
	pass(POOL_QUEUE_TIMEOUT_MS - 1);
	is_open(calls[2]);
	pass(1);
	is_failed(calls[2], REASON_OVER_LIMIT);
	is_failed(calls[3], REASON_OVER_LIMIT);
	is_open(calls[0]);
	calls[4] = request(a->client, CALL("4"));
	says(process(0), RESULT("2"));
	is_open(calls[4]);
	says(process(0), RESULT("4"));
	is_answered(calls[4], RESULT("4"));
}

/* DEF-11: what has waited is kept as what was sent at once: only if it may be asked again. */
static void only_what_is_safe_is_kept(void **state)
{
	struct member *a = begin();
	struct front *list, *call;

	servers[0].conf.pool_max = 1;
	for (int i = 0; i < 2; i++)
		request(a->client, CALL("1"));
	list = request(a->client, LIST_OF("2"));
	call = request(a->client, CALL("3"));
	says(process(0), RESULT("2"));
	says(process(0), RESULT("3"));
	assert_non_null(list->call.body);
	assert_null(call->call.body);
	exits(process(0), 0);
	is_failed(call, REASON_CHILD_EXITED);
	is_open(list);
	assert_false(call_was_sent(&list->call));
	get_ready(1);
	hears(process(1), LIST_OF("2"));
	assert_true(call_was_sent(&list->call));
	exits(process(1), 0);
	is_failed(list, REASON_CHILD_EXITED); /* it is asked again once */
}

/* What is asked again has a deadline from then on; while it waits, that of the first time is over. */
static void repeated_calls_have_a_new_deadline(void **state)
{
	struct member *a = begin();
	struct front *call;

	servers[0].conf.request_timeout_max_ms = 5000;
	call = request(a->client, LIST_OF("1"));
	hears(process(0), LIST_OF("2"));
	pass(4000);
	exits(process(0), 0);
	is_open(call);
	pass(2000); /* a process is being started */
	is_open(call);
	get_ready(1);
	hears(process(1), LIST_OF("2"));
	pass(4999);
	is_open(call);
	pass(1);
	is_failed(call, REASON_TIMEOUT);
}

/* Also when there is none just now: not one for each call. */
static void one_start_serves_all_who_wait(void **state)
{
	struct member *a = begin();
	struct front *calls[2];

	exits(process(0), 0);
	for (size_t i = 0; i < 2; i++)
		calls[i] = request(a->client, CALL("1"));
	assert_int_equal(keeper.count, 2);
	pass(POOL_QUEUE_TIMEOUT_MS); /* the start may take longer than that */
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
	struct front *call = request(a->client, CALL("1"));
	struct front *list = request(b->client, LIST("1"));
	struct front *other;

	other = request(b->client, CALL("2"));
	get_ready(1);
	exits(process(0), 0);
	is_failed(call, REASON_CHILD_EXITED);
	is_open(other);
	is_open(list);
	assert_int_equal(router.sessions.count, 2);
	hears(process(1), CALL("2"));
	hears(process(1), LIST("3"));
	exits(process(1), 0);
	is_failed(list, REASON_CHILD_EXITED);
	is_failed(other, REASON_CHILD_EXITED);
	assert_int_equal(router.sessions.count, 2);
	heard(a, "");
	call = request(a->client, CALL("5"));
	get_ready(2);
	hears(process(2), CALL("2"));
}

/* A child that comes back with other offers: everybody may want to look again. */
static void other_offers_are_told(void **state)
{
	struct member *a = begin();

	exits(process(0), 0);
	request(a->client, CALL("1"));
	assert_non_null(fake_process_read(process(1)));
	says(process(1), "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25',"
			 "'capabilities':{'tools':{'listChanged':true}},'serverInfo':{}}}");
	pass(100);
	heard(a, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}|");
}

/* A time-out costs the others nothing as long as the child lives. REL-25 */
static void timeout_asks_whether_it_lives(void **state)
{
	struct member *a = begin();
	struct front *first = request(a->client, CALL("1"));
	struct front *second;

	hears(process(0), CALL("2"));
	pass(30000);
	second = request(a->client, CALL("2"));
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

	pass(POOL_IDLE_MS - 1);
	call = request(a->client, CALL("1"));
	pass(1);
	assert_false(process(0)->is_eof);
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	pass(POOL_IDLE_MS);
	hears(process(0), CALL("2"));
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
	exits(process(0), 0);
	assert_int_equal(router.sessions.count, 1);
	request(a->client, CALL("1"));
	get_ready(1);
	hears(process(1), CALL("2"));
}

static void session_end_cancels_its_calls(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->client, CALL("1"));
	struct front *two = request(b->client, CALL("1"));

	hears(process(0), CALL("2"));
	hears(process(0), CALL("3"));
	session_end(a->client->session, REASON_DELETED);
	settle();
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

/* UTIL-SUBS-01; bridging.md §8 (7): fifty sessions, one subscribe, one unsubscribe. */
static void subscriptions_are_merged(void **state)
{
	struct member *all[50];
	struct front *subscribed[50];

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i] = begin();
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		subscribed[i] = request(all[i]->client, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	hears_nothing(process(0));
	is_open(subscribed[49]);
	says(process(0), EMPTY("2"));
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		is_answered(subscribed[i], EMPTY("1"));
	is_answered(request(all[3]->client, SUBSCRIBE("9")), EMPTY("9")); /* it is already */
	says(process(0), UPDATED("r:\\u0061")); /* however it is written */
	says(process(0), UPDATED("r:b"));
	pass(100);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		heard(all[i], UPDATED("r:a") "|");
	for (size_t i = 0; i + 1 < ARRAY_LEN(all); i++)
		is_answered(request(all[i]->client, UNSUBSCRIBE("1")), EMPTY("1"));
	hears_nothing(process(0));
	says(process(0), UPDATED("r:a"));
	pass(100);
	heard(all[0], "");
	heard(all[49], UPDATED("r:a") "|");
	session_end(all[49]->client->session, REASON_DELETED);
	settle();
	hears(process(0), UNSUBSCRIBE("3"));
}

/* Who subscribes to what the server has agreed to long ago hears of it like those before. */
static void late_subscribers_are_told(void **state)
{
	struct member *first = begin();
	struct member *late = begin();

	request(first->client, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	is_answered(request(late->client, SUBSCRIBE("5")), EMPTY("5"));
	hears_nothing(process(0));
	says(process(0), UPDATED("r:a"));
	pass(100);
	heard(first, UPDATED("r:a") "|");
	heard(late, UPDATED("r:a") "|");
	is_answered(request(first->client, UNSUBSCRIBE("3")), EMPTY("3"));
	hears_nothing(process(0)); /* one is left */
	is_answered(request(late->client, UNSUBSCRIBE("6")), EMPTY("6"));
	hears(process(0), UNSUBSCRIBE("3"));
}

/* Its refusal is everybody's, and leaves nothing. */
static void refused_subscriptions_leave_nothing(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *one = request(a->client, SUBSCRIBE("1"));
	struct front *two = request(b->client, SUBSCRIBE("'x'"));

	hears(process(0), SUBSCRIBE("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'error':{'code':-32002,'message':'none'}}");
	is_answered(one, "{'jsonrpc':'2.0','id':1,'error':{'code':-32002,'message':'none'}}");
	is_answered(two, "{'jsonrpc':'2.0','id':'x','error':{'code':-32002,'message':'none'}}");
	request(b->client, SUBSCRIBE("3"));
	hears(process(0), SUBSCRIBE("3"));
}

/* Who subscribes twice at once, and leaves when told of the second: nothing more is said of the first. */
static void subscribers_may_leave_when_told(void **state)
{
	struct member *a = begin();
	struct front *one = request(a->client, SUBSCRIBE("1"));
	struct front *two = request(a->client, SUBSCRIBE("2"));

	two->ends_session = true;
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	is_answered(two, EMPTY("2"));
	is_failed(one, REASON_PEER_CLOSED);
}

/* Whoever asked leaves: the next one of those who wait asks. */
static void subscribing_is_handed_on(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct member *c = begin();
	struct front *one = request(a->client, SUBSCRIBE("1"));
	struct front *two = request(b->client, SUBSCRIBE("2"));
	struct front *three = request(c->client, SUBSCRIBE("3"));

	hears(process(0), SUBSCRIBE("2"));
	notify(c->client, CANCELLED("3"));
	assert_int_equal(three->ending, ENDING_CANCELLED);
	hears_nothing(process(0));
	notify(a->client, CANCELLED("1"));
	assert_int_equal(one->ending, ENDING_CANCELLED);
	hears(process(0), CANCELLED("2"));
	hears(process(0), SUBSCRIBE("3"));
	exits(process(0), 0);
	is_failed(two, REASON_CHILD_EXITED);
	two = request(b->client, SUBSCRIBE("4"));
	get_ready(1);
	hears(process(1), SUBSCRIBE("2"));
	says(process(1), EMPTY("2"));
	is_answered(two, EMPTY("4"));
}

/* bridging.md §1.5, §8 (6): every child knows before its first call, and one is always there. */
static void subscriptions_outlive_children(void **state)
{
	struct member *a = begin();

	request(a->client, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	for (size_t i = 0; i < 3; i++)
		request(a->client, CALL("1"));
	get_ready(1);
	hears(process(1), SUBSCRIBE("2"));
	hears(process(1), CALL("3"));
	request(a->client, UNSUBSCRIBE("1"));
	hears(process(1), UNSUBSCRIBE("4"));
	request(a->client, SUBSCRIBE("1"));
	hears(process(1), SUBSCRIBE("5"));
	says(process(1), EMPTY("5"));
	fake_process_exit(&keeper, process(0), 0);
	exits(process(1), 0);
	assert_int_equal(keeper.count, 3); /* though nobody calls */
	get_ready(2);
	hears(process(2), SUBSCRIBE("2"));
	hears_nothing(process(2));
	pass(2 * POOL_IDLE_MS);
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

	request(a->client, SUBSCRIBE("1"));
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
	session_end(a->client->session, REASON_DELETED);
	pass(100); /* for nobody */
}

/*
 * Nobody else waits until all members have been told. Whoever leaves meanwhile, or a server that
 * repeats itself, keeps it from nobody. REL-24
 */
static void many_are_told_over_several_turns(void **state)
{
	struct member *all[8];

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i] = begin();
	request(all[0]->client, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	for (size_t i = 1; i < ARRAY_LEN(all); i++)
		request(all[i]->client, SUBSCRIBE("1"));
	stage_is_busy(100);
	says(process(0), UPDATED("r:a"));
	says(process(0), CHANGED("tools"));
	now_ms += 100;
	clock_freeze(now_ms);
	loop_turn(router.loop, true);
	heard(all[0], UPDATED("r:a") "|");
	heard(all[1], "");
	session_end(all[1]->client->session, REASON_DELETED);
	fake_process_write(process(0), q(UPDATED("r:a") "\n"));
	loop_turn(router.loop, true);
	heard(all[2], UPDATED("r:a") "|");
	heard(all[3], "");
	stage_rest();
	pass(100);
	heard(all[0], CHANGED("tools") "|" UPDATED("r:a") "|");
	for (size_t i = 2; i < ARRAY_LEN(all); i++)
		heard(all[i], CHANGED("tools") "|" UPDATED("r:a") "|");
}

/* CXL-08: who waits for the answer to another one's subscription does not wait for all before him to time out. */
static void subscriptions_are_not_waited_for_for_ever(void **state)
{
	struct member *m[3] = { begin(), begin(), begin() };
	struct front *calls[3];

	for (size_t i = 0; i < 3; i++) {
		calls[i] = request(m[i]->client, SUBSCRIBE("1"));
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

	memset(text + strlen(text), 'x', 8500);
	strcpy(text + 8500, "'}}");
	front = request(a->client, text);
	assert_non_null(strstr(buf_terminate(&front->response), "longer than 8 KiB"));
	for (unsigned int i = 0; i < TEXT_SET_MAX; i++) {
		char digits[20];

		text_set_add(&a->client->subscriptions,
			     slice_of(digits, text_format_u64(i, digits)));
	}
	front = request(a->client, SUBSCRIBE("1"));
	assert_non_null(strstr(buf_terminate(&front->response), "too many subscriptions"));
	text_set_fini(&a->client->subscriptions);
	a->client->pool->subscriptions.bytes += 1 << 20;
	front = request(a->client, SUBSCRIBE("1"));
	assert_non_null(strstr(buf_terminate(&front->response), "too many subscriptions"));
	a->client->pool->subscriptions.bytes -= 1 << 20;
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
	front = request(member->client, text);
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

/* UTIL-SUBS-01, SEC-07: whoever subscribed to the resource or to one above it, however it is written, and nobody else. */
static void updates_reach_those_whom_they_concern(void **state)
{
	struct member *above = begin();
	struct member *below = begin();
	struct member *deep = begin();
	struct member *escaped = begin();
	char uri[64] = "r:a/b";

	subscribe_to(above, "r:a");
	subscribe_to(below, "r:a/b");
	for (int i = 0; i < 20; i++)
		subscribe_to(deep, strcat(uri, "/"));
	subscribe_to(escaped, "r:\\/\\u0078");
	update(UPDATED("r:a/b////////////////////c"));
	heard(above, UPDATED("r:a/b////////////////////c") "|");
	heard(below, UPDATED("r:a/b////////////////////c") "|");
	heard(deep, UPDATED("r:a/b////////////////////c") "|");
	heard(escaped, "");
	update(UPDATED("r:a/b//c"));
	heard(above, UPDATED("r:a/b//c") "|");
	heard(below, UPDATED("r:a/b//c") "|");
	heard(deep, UPDATED("r:a/b//c") "|");
	heard(escaped, "");
	update(UPDATED("r:a/bc"));
	heard(above, UPDATED("r:a/bc") "|");
	heard(below, "");
	heard(deep, "");
	heard(escaped, "");
	update(UPDATED("r:\\u0061\\/bc"));
	heard(above, UPDATED("r:a/bc") "|"); /* as everything is spelled that is read. RPC-08 */
	heard(below, "");
	update(UPDATED("r:/x"));
	heard(escaped, UPDATED("r:/x") "|");
	heard(above, "");
	update("{'jsonrpc':'2.0','method':'notifications/resources/updated'}");
	heard(above, "");
}

/* SEC-50 */
static void updates_of_what_is_denied_are_not_told(void **state)
{
	static const struct slice all[] = { SLICE("*") };
	static const struct slice denied[] = { SLICE("r:a/private/*") };
	struct permissions *permissions = &servers[0].conf.permissions;
	struct member *a = begin();

	for (size_t i = 0; i < PERMISSION_KINDS; i++)
		permissions->kinds[i].allow = (struct slices){ all, 1 };
	permissions->kinds[PERMISSION_RESOURCE].deny = (struct slices){ denied, 1 };
	permissions_finish(permissions);
	subscribe_to(a, "r:a");
	update(UPDATED("r:a/private/x"));
	update(UPDATED("r:a/b/../Privat%65/x"));
	update(UPDATED("r:a/b"));
	heard(a, UPDATED("r:a/b") "|");
	permissions_free(permissions);
	*permissions = (struct permissions){ .has_rules = false };
}

/*
 * Waiting for an answer that others wait for is waiting, too: it counts among the calls in flight that the door bounds, and
 * nobody else waits for it.
 */
static void waiting_together_counts(void **state)
{
	struct member *a = begin();
	struct member *b = begin();

	request(a->client, SUBSCRIBE("1"));
	request(a->client, LIST("2"));
	for (size_t count = 2; count < 4096; count++) {
		struct envelope env = scan(q(count % 2 ? SUBSCRIBE("1") : LIST("2")));
		struct front *front = front_new(&env);

		assert_int_equal(a->client->call_count, count);
		forward_request(a->client, &front->call, admit(a->client, &env));
	}
	assert_int_equal(a->client->call_count, 4096);
	is_open(request(b->client, SUBSCRIBE("3")));
	is_open(request(b->client, LIST("4")));
	hears(process(0), SUBSCRIBE("2"));
	hears(process(0), LIST("3"));
	says(process(0), TOOLS("3", ""));
	says(process(0), EMPTY("2"));
	assert_int_equal(a->client->call_count, 0);
}

/* DEF-11: also when there was room while it was asked for. */
static void subscriptions_at_once_are_bounded(void **state)
{
	struct member *a = begin();
	struct member *b = begin();
	struct front *first, *second, *others;

	for (unsigned int i = 0; i + 1 < TEXT_SET_MAX; i++) {
		char digits[20];

		text_set_add(&a->client->subscriptions,
			     slice_of(digits, text_format_u64(i, digits)));
	}
	first = request(a->client, "{'jsonrpc':'2.0','id':1,'method':'resources/subscribe',"
				   "'params':{'uri':'r:x'}}");
	others = request(b->client, SUBSCRIBE("1"));
	second = request(a->client, SUBSCRIBE("2"));
	hears(process(0), "{'jsonrpc':'2.0','id':2,'method':'resources/subscribe',"
			  "'params':{'uri':'r:x'}}");
	hears(process(0), SUBSCRIBE("3"));
	says(process(0), EMPTY("2"));
	is_answered(first, EMPTY("1"));
	says(process(0), EMPTY("3"));
	is_answered(others, EMPTY("1"));
	assert_non_null(strstr(buf_terminate(&second->response), "too many subscriptions"));
	first = request(a->client, "{'jsonrpc':'2.0','id':1,'method':'resources/unsubscribe',"
				   "'params':{'uri':'r:x'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':4,'method':'resources/unsubscribe',"
			  "'params':{'uri':'r:x'}}");
	first = request(a->client, "{'jsonrpc':'2.0','id':1,'method':'resources/subscribe',"
				   "'params':{'uri':'r:y'}}");
	text_set_add(&a->client->subscriptions, SLICE_LIT("meanwhile"));
	hears(process(0), "{'jsonrpc':'2.0','id':5,'method':'resources/subscribe',"
			  "'params':{'uri':'r:y'}}");
	says(process(0), EMPTY("5"));
	assert_non_null(strstr(buf_terminate(&first->response), "too many subscriptions"));
	hears(process(0), "{'jsonrpc':'2.0','id':6,'method':'resources/unsubscribe',"
			  "'params':{'uri':'r:y'}}");
}

#define LONG(method, size) \
	"{'jsonrpc':'2.0','id':1,'method':'" method "','params':{'uri':'r:a','x':'%" size "s'}}"

/* DEF-11: requests that are kept while others are waited for are short, and not too much together. */
static void kept_requests_are_bounded(void **state)
{
	static char text[20000];
	struct member *a = begin();
	struct front *front;
	size_t waiting = 0;

	snprintf(text, sizeof(text), LONG("resources/subscribe", "17000"), "");
	assert_true(is_error(request(a->client, text), "longer than 16 KiB"));
	snprintf(text, sizeof(text), LONG("resources/subscribe", "15000"), "");
	request(a->client, SUBSCRIBE("1"));
	do {
		front = request(a->client, text);
	} while (front->ending == ENDING_NONE && ++waiting < 1000);
	assert_in_range(waiting, 500, 600); /* of 8 MiB */
	assert_true(is_error(front, "too many subscriptions"));
	says(process(0), EMPTY("2"));
	assert_int_equal(a->client->call_count, 0);
	assert_int_equal(a->client->pool->subscribing_bytes, 0);
	request(a->client, UNSUBSCRIBE("1"));
	request(a->client, SUBSCRIBE("1"));
	is_open(request(a->client, text));
	is_open(request(a->client, text));
	notify(a->client, CANCELLED("1"));
	assert_int_equal(a->client->pool->subscribing_bytes, 0);
}

/* bridging.md §4: what is safe is asked again, unless it is too long to be kept for that. */
static void long_requests_are_not_repeated(void **state)
{
	static char text[20000];
	struct member *a = begin();
	struct front *calls[2];

	a->client->pool->capabilities.offers |= OFFER_COMPLETIONS;
	for (size_t i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), LONG("completion/complete", "*"), i == 0 ? 10 : 17000,
			 "");
		calls[i] = request(a->client, text);
	}
	exits(process(0), 0);
	is_open(calls[0]);
	is_failed(calls[1], REASON_CHILD_EXITED);
}

/* ---- principals and leases ---- */

/* SEC-07; bridging.md §1.2: a process for each principal and class; the class is told in one form. */
static void principals_do_not_share(void **state)
{
	struct front *first = open_session_as(
		alice, INITIALIZE_WITH("'roots':{'listChanged':true},'sampling':{'tools':{},'x':1},"
				       "'tasks':{},'experimental':{'y':{}}"));
	struct front *second;
	struct front *third;

	hears(process(0), HANDSHAKE("'roots':{},'sampling':{'tools':{}},'experimental':{'y':{}}"));
	says(process(0), WELCOME);
	assert_non_null(strstr(buf_terminate(&first->response), "\"logging\":{}"));
	assert_null(strstr(buf_terminate(&first->response), "\"tasks\""));
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
	struct front *one = request(a->client, CALL("1"));
	struct front *two = request(a->client, CALL("2"));

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
	servers[0].conf.never_asks = true;
	open_session_as(alice, INITIALIZE_WITH("'elicitation':{}"));
	hears(process(0), HANDSHAKE(""));
}

/* bridging.md §1.2: a caller's own words make so many pools and no more; after that, what is known makes the class. */
static void own_words_make_few_pools(void **state)
{
	char text[300], heard_text[300];

	servers[0].conf.pool_max = 20;
	for (size_t i = 0; i < 8; i++) {
		snprintf(text, sizeof(text), INITIALIZE_WITH("'experimental':{'y%zu':{}}"), i);
		snprintf(heard_text, sizeof(heard_text), HANDSHAKE("'experimental':{'y%zu':{}}"),
			 i);
		open_session_as(alice, text);
		hears(process(i), heard_text);
	}
	open_session_as(alice, INITIALIZE_WITH("'roots':{},'experimental':{'z':{}}"));
	hears(process(8), HANDSHAKE("'roots':{}"));
	open_session_as(alice, INITIALIZE_WITH("'roots':{},'extensions':{'z':{}}"));
	assert_int_equal(keeper.count, 9);
	open_session_as(alice, INITIALIZE_WITH("'experimental':{'y3':{}}"));
	assert_int_equal(keeper.count, 9);
	open_session_as(bob, INITIALIZE_WITH("'experimental':{'z':{}}"));
	hears(process(9), HANDSHAKE("'experimental':{'z':{}}"));
}

/* bridging.md §1.4: pools that wait for a process are bounded like calls; who waits with most gives way. */
static void waiting_pools_are_bounded(void **state)
{
	struct front *his[3], *hers[2];

	servers[0].conf.pool_max = 1;
	servers[0].conf.queue_calls = 2;
	request(begin_plain(alice)->client, CALL("1"));
	his[0] = open_session_as(bob, INITIALIZE_WITH("'roots':{}"));
	his[1] = open_session_as(bob, INITIALIZE_WITH("'sampling':{}"));
	his[2] = open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	is_failed(his[2], REASON_OVER_LIMIT);
	hers[0] = open_session_as(alice, INITIALIZE_WITH("'roots':{}"));
	is_failed(his[1], REASON_OVER_LIMIT);
	is_open(his[0]);
	is_open(hers[0]);
	hers[1] = open_session_as(alice, INITIALIZE_WITH("'sampling':{}"));
	is_failed(hers[1], REASON_OVER_LIMIT);
	is_open(his[0]);
	is_open(open_session_as(bob, INITIALIZE_WITH("'roots':{}"))); /* the same pool */
}

/* bridging.md §1.4: a subscription that is asked for again, since its first asker has gone, waits in its turn. */
static void heirs_take_turns(void **state)
{
	struct member *a, *a2, *b;

	servers[0].conf.isolation = ISOLATION_SHARED;
	servers[0].conf.pool_max = 1;
	a = begin_plain(alice);
	a2 = join(open_session_as(alice, INITIALIZE));
	b = join(open_session_as(bob, INITIALIZE));
	request(a->client, SUBSCRIBE("1"));
	request(a2->client, SUBSCRIBE("2"));
	request(a->client, CALL("3"));
	request(a->client, CALL("4")); /* the first of alice's that waits */
	request(a->client, CALL("5"));
	request(b->client, CALL("6"));
	hears(process(0), SUBSCRIBE("2"));
	hears(process(0), CALL("3"));
	hears_nothing(process(0));
	notify(a->client, CANCELLED("1"));
	hears(process(0), CANCELLED("2"));
	hears(process(0), CALL("4"));
	says(process(0), RESULT("3"));
	hears(process(0), CALL("5")); /* bob's */
	says(process(0), RESULT("4"));
	says(process(0), RESULT("5"));
	hears(process(0), CALL("6")); /* and alice's, as they came */
	hears(process(0), SUBSCRIBE("7"));
}

/* bridging.md §1.6 (4): one call at a time, and what the child asks is asked in that call. */
static void leased_child_asks_its_caller(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct member *b = begin_asking(alice, 0);
	struct front *one = request(a->client, CALL("1"));
	struct front *two = request(b->client, CALL("1"));

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
	answer(b->client, "{'jsonrpc':'2.0','id':1000001,'result':{'of':'b'}}");
	hears(process(1), "{'jsonrpc':'2.0','id':7,'result':{'of':'b'}}");
	hears_nothing(process(0));
	answer(b->client, "{'jsonrpc':'2.0','id':1000001,'result':{'of':'b'}}");
	answer(a->client, "{'jsonrpc':'2.0','id':1000001,'result':{'of':'a'}}");
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

	says(process(0), ASK("5"));
	hears(process(0),
	      "{'jsonrpc':'2.0','id':5,'error':{'code':-32602,'message':'Invalid params: "
	      "it is not related to a request of a client'}}");
	call = request(a->client, CALL("1"));
	hears(process(0), CALL("2"));
	says(process(0), ASK("6"));
	says(process(0), RESULT("2"));
	hears(process(0), "{'jsonrpc':'2.0','id':6,'result':{'action':'cancel'}}");
	was_told(call, ASK("1000001") "|{'jsonrpc':'2.0','method':'notifications/cancelled',"
				      "'params':{'requestId':1000001}}|");
	is_answered(call, RESULT("1"));
	answer(a->client, "{'jsonrpc':'2.0','id':1000001,'result':{'late':1}}");
	hears_nothing(process(0));
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
			 "'error','data':'x'}}");
	heard(a, "");
}

/* bridging.md §2.3.3, §8 (3): after a cancellation the child is not used before it answers; that it lives does not do. */
static void given_up_children_settle(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *call;

	servers[0].conf.pool_max = 1;
	request(a->client, CALL("1"));
	hears(process(0), CALL("2"));
	notify(a->client, CANCELLED("1"));
	hears(process(0), CANCELLED("2"));
	hears(process(0), "{'jsonrpc':'2.0','id':3,'method':'ping'}");
	says(process(0), ASK("5"));
	assert_non_null(strstr(fake_process_read(process(0)), "-32602"));
	call = request(a->client, CALL("2"));
	hears_nothing(process(0));
	says(process(0), EMPTY("3"));
	hears_nothing(process(0));
	says(process(0), ASK("6"));
	assert_non_null(strstr(fake_process_read(process(0)), "-32602"));
	says(process(0), RESULT("2"));
	hears(process(0), CALL("4"));
	notify(a->client, CANCELLED("2"));
	assert_int_equal(call->ending, ENDING_CANCELLED);
	hears(process(0), CANCELLED("4"));
	call = request(a->client, CALL("3"));
	says(process(0), RESULT("4")); /* before the ping */
	hears(process(0), "{'jsonrpc':'2.0','id':5,'method':'ping'}");
	hears(process(0), CALL("6"));
	notify(a->client, CANCELLED("3"));
	pass(5000);
	assert_int_equal(process(0)->last_signal, SIGKILL);
	assert_int_equal(call->ending, ENDING_CANCELLED);
}

/* bridging.md §2.3.3: who lives, and does not answer, retires; what was asked beside the call is answered before. */
static void children_that_do_not_settle_retire(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *call, *list;

	servers[0].conf.pool_max = 1;
	request(a->client, CALL("1"));
	hears(process(0), CALL("2"));
	list = request(a->client, LIST("2"));
	hears(process(0), LIST("3"));
	notify(a->client, CANCELLED("1"));
	hears(process(0), CANCELLED("2"));
	hears(process(0), "{'jsonrpc':'2.0','id':4,'method':'ping'}");
	says(process(0), EMPTY("4"));
	call = request(a->client, CALL("3"));
	pass(4999);
	assert_false(process(0)->is_eof);
	pass(1);
	says(process(0), TOOLS("3", ""));
	is_answered(list, TOOLS("2", ""));
	assert_null(fake_process_read(process(0)));
	assert_true(process(0)->is_eof);
	assert_int_equal(process(0)->signals, 0);
	assert_false(is_logged("child_failed"));
	exits(process(0), 0);
	pass(1000);
	hears(process(1), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(1), WELCOME);
	hears(process(1), INITIALIZED);
	hears(process(1), CALL("2"));
	says(process(1), RESULT("2"));
	is_answered(call, RESULT("3"));
}

static void levels_go_with_the_lease(void **state)
{
	struct member *a = begin_asking(alice, 0);

	is_answered(request(a->client,
			    "{'jsonrpc':'2.0','id':1,'method':'logging/setLevel','params':"
			    "{'level':'warning'}}"),
		    EMPTY("1"));
	hears_nothing(process(0));
	for (int i = 0; i < 2; i++) {
		struct front *call = request(a->client, CALL("1"));

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
	struct front *call = request(b->client, CALL("1"));

	hears(process(0), CALL("2")); /* nobody has said anything */
	says(process(0), RESULT("2"));
	request(a->client, "{'jsonrpc':'2.0','id':1,'method':'logging/setLevel','params':{'level':"
			   "'error'}}");
	request(a->client, CALL("2"));
	hears(process(0), "{'jsonrpc':'2.0','id':3,'method':'logging/setLevel','params':{'level':"
			  "'error'}}");
	hears(process(0), CALL("4"));
	says(process(0), RESULT("4"));
	call = request(b->client, CALL("2"));
	hears(process(0), "{'jsonrpc':'2.0','id':5,'method':'logging/setLevel','params':{'level':"
			  "'debug'}}");
	hears(process(0), CALL("6"));
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
			 "'debug','data':'x'}}");
	was_told(call, "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
		       "'debug','data':'x'}}|");
	says(process(0), RESULT("6"));
	request(b->client, CALL("3"));
	hears(process(0), CALL("7")); /* it knows */
}

/* A leased child that dies: its client is told that the question is void, and the call fails. */
static void lost_lease_ends_its_asks(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *call = request(a->client, CALL("1"));

	says(process(0), ASK("6"));
	was_told(call, ASK("1000001") "|");
	exits(process(0), 0);
	is_failed(call, REASON_CHILD_EXITED);
	was_told(call, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':"
		       "1000001}}|");
	answer(a->client, "{'jsonrpc':'2.0','id':1000001,'result':{}}");
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

	call = request(b->client, LIST_OF("1"));
	hears(process(0), LIST_OF("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[],'nextCursor':'n'}}");
	cursor = scan_path(buf_slice(&call->response),
			   (const char *const[]){ "result", "nextCursor" }, 2);
	snprintf(page, sizeof(page), PAGE("2", "%.*s"), SLICE_ARG(cursor.text));
	call = request(a->client, CALL("1"));
	hears(process(0), CALL("3"));
	says(process(0), ASK("6"));
	was_told(call, ASK("1000001") "|");
	rest = request(b->client, page);
	is_failed(rest, REASON_OVER_LIMIT);
	says(process(0), RESULT("3"));
	is_answered(call, RESULT("1"));
	hears(process(0), "{'jsonrpc':'2.0','id':6,'result':{'action':'cancel'}}");
	request(b->client, page);
	hears(process(0), PAGE("4", "'n'"));
}

/* bridging.md §1.4: sessions of one principal take turns with each other. */
static void sessions_of_one_take_turns(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct member *b = begin_asking(alice, 0);
	struct front *first, *second, *other;

	servers[0].conf.pool_max = 1;
	request(a->client, CALL("1"));
	first = request(a->client, CALL("2"));
	second = request(a->client, CALL("3"));
	other = request(b->client, CALL("1"));
	says(process(0), RESULT("2"));
	says(process(0), RESULT("3"));
	is_answered(first, RESULT("2"));
	says(process(0), RESULT("4"));
	is_answered(other, RESULT("1"));
	is_open(second);
	says(process(0), RESULT("5"));
	is_answered(second, RESULT("3"));
}

/* bridging.md §8 (3): a client may have calls in several children; the end of one is nothing to what another asks. */
static void asks_end_with_their_own_lease(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *one = request(a->client, CALL("1"));
	struct front *two = request(a->client, CALL("2"));

	hears(process(0), CALL("2"));
	get_ready(1);
	hears(process(1), CALL("2"));
	says(process(0), ASK("6"));
	says(process(1), ASK("6"));
	was_told(one, ASK("1000001") "|");
	was_told(two, ASK("1000002") "|");
	says(process(0), RESULT("2"));
	is_answered(one, RESULT("1"));
	hears(process(0), "{'jsonrpc':'2.0','id':6,'result':{'action':'cancel'}}");
	was_told(two, "");
	hears_nothing(process(1));
	answer(a->client, "{'jsonrpc':'2.0','id':1000002,'result':{'x':2}}");
	hears(process(1), "{'jsonrpc':'2.0','id':6,'result':{'x':2}}");
}

/* Nor of one that has not come to rest: it may still work on the call that was given up. */
static void settling_holds_against_cursors(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct member *b = begin_asking(alice, 0);
	struct front *call = request(b->client, LIST_OF("1"));
	struct json cursor;
	char page[300];

	hears(process(0), LIST_OF("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'tools':[],'nextCursor':'n'}}");
	cursor = scan_path(buf_slice(&call->response),
			   (const char *const[]){ "result", "nextCursor" }, 2);
	snprintf(page, sizeof(page), PAGE("2", "%.*s"), SLICE_ARG(cursor.text));
	request(a->client, CALL("1"));
	hears(process(0), CALL("3"));
	notify(a->client, CANCELLED("1"));
	hears(process(0), CANCELLED("3"));
	hears(process(0), "{'jsonrpc':'2.0','id':4,'method':'ping'}");
	is_failed(request(b->client, page), REASON_OVER_LIMIT);
	hears_nothing(process(0));
	says(process(0), EMPTY("4"));
	is_failed(request(b->client, page), REASON_OVER_LIMIT);
	says(process(0), EMPTY("3"));
	request(b->client, page);
	hears(process(0), PAGE("5", "'n'"));
}

/* ---- how many processes there are ---- */

static void start_warm(size_t count)
{
	servers[0].conf.isolation = ISOLATION_SESSION;
	servers[0].conf.warm = count;
	prestart_keep_warm(&router.prestart, &servers[0]);
	settle();
}

/* mcpgated.yaml(5) pool.warm: the process is there before its session, and has heard nothing. */
static void warm_set_are_taken(void **state)
{
	struct front *front;

	servers[0].conf.pool_max = 5;
	start_warm(1);
	assert_int_equal(keeper.count, 1);
	hears_nothing(process(0));
	says(process(0), "a banner");
	front = open_session(INITIALIZE);
	assert_non_null(strstr(fake_process_read(process(0)), "initialize"));
	assert_int_equal(keeper.count, 2);
	says(process(0), WELCOME);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	pass(60000); /* a warm one has no handshake to be late with */
	assert_false(process(1)->is_eof);
	keeper.holds = true;
	open_session(INITIALIZE);
	assert_non_null(fake_process_read(process(1)));
	front = open_session(INITIALIZE); /* the next spare, although it is not there yet */
	keeper.holds = false;
	fake_keeper_start(&keeper, process(2));
	settle();
	assert_non_null(fake_process_read(process(2)));
}

/* Whoever comes does not wait for one that is being started while another one is there. */
static void the_spare_that_is_there_is_taken(void **state)
{
	servers[0].conf.pool_max = 5;
	keeper.holds = true;
	start_warm(2);
	assert_int_equal(keeper.count, 2);
	fake_keeper_start(&keeper, process(1));
	settle();
	open_session(INITIALIZE);
	assert_non_null(fake_process_read(process(1)));
	keeper.holds = false;
	fake_keeper_start(&keeper, process(0));
	settle();
	hears_nothing(process(0));
}

static void lost_spares_are_replaced(void **state)
{
	start_warm(2);
	assert_int_equal(keeper.count, 2);
	exits(process(0), 1 << 8);
	assert_int_equal(keeper.count, 2);
	assert_int_equal(servers[0].reserved, 1);
	pass(1000); /* the back-off */
	assert_int_equal(keeper.count, 3);
	servers[0].conf.pool_max = 3;
	open_session(INITIALIZE);
	assert_int_equal(keeper.count, 4);
	open_session(INITIALIZE);
	open_session(INITIALIZE);
	assert_int_equal(keeper.count, 4); /* pool.max: sessions come before warm ones */
	is_failed(open_session(INITIALIZE), REASON_OVER_LIMIT);
}

/* What there is no room for now is tried again, until there is. */
static void spares_come_when_there_is_room(void **state)
{
	servers[0].conf.pool_max = 1;
	start_warm(2);
	assert_int_equal(keeper.count, 1);
	pass(1000);
	assert_int_equal(keeper.count, 1);
	servers[0].conf.pool_max = 2; /* as if a process of another pool had gone */
	pass(1000);
	assert_int_equal(keeper.count, 2);
}

/* REL-41: nothing is started ahead of sessions that will not come. */
static void no_spares_come_while_draining(void **state)
{
	start_warm(1);
	prestart_hold(&router.prestart);
	exits(process(0), 0);
	pass(60000);
	assert_int_equal(keeper.count, 1);
}

/* mcpgatectl restart: who comes next gets a process of the new program; and it is no crash. */
static void restart_is_for_spares_too(void **state)
{
	start_warm(1);
	assert_int_equal(report_restart(&servers[0]), 1);
	settle();
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
	assert_int_equal(keeper.count, 2);
	open_session(INITIALIZE);
	assert_non_null(fake_process_read(process(1)));
}

static void restarts_are_no_crashes(void **state)
{
	servers[0].conf.pool_max = 30;
	servers[0].conf.pool_min = 5;
	pool_prepare(&router, &servers[0]);
	settle();
	for (size_t i = 0; i < 5; i++)
		get_ready(i);
	assert_int_equal(report_restart(&servers[0]), 5);
	settle();
	assert_int_equal(servers[0].backoff.failures, 0);
	assert_int_equal(keeper.count, 10);
}

/* One that was not needed for long, and ends, is no start that failed: nobody has to wait for that. */
static void old_spares_may_end(void **state)
{
	start_warm(1);
	for (size_t i = 0; i < 5; i++) {
		pass(60000);
		exits(process(i), 0);
		assert_int_equal(keeper.count, i + 2);
		assert_int_equal(servers[0].backoff.failures, 0);
	}
}

/* mcpgated.yaml(5) pool.min */
static void some_are_kept(void **state)
{
	servers[0].conf.pool_min = 1;
	pool_prepare(&router, &servers[0]);
	settle();
	get_ready(0);
	pass(2 * POOL_IDLE_MS);
	assert_false(process(0)->is_eof);
	is_answered(open_session(INITIALIZE), WELCOMED);
	exits(process(0), 0);
	assert_int_equal(keeper.count, 2);
	fake_process_exit(&keeper, process(1), 0); /* fails to start: the back-off */
	settle();
	pass(1000);
	assert_int_equal(keeper.count, 3);
	get_ready(2);
}

/* pool.min, bridging.md §1.5: who waits for notifications needs one, but does not make it fewer. */
static void as_many_are_kept_for_subscribers(void **state)
{
	struct member *a = begin();

	servers[0].conf.pool_min = 2;
	pool_prepare(&router, &servers[0]);
	settle();
	get_ready(1);
	request(a->client, SUBSCRIBE("1"));
	hears(process(0), SUBSCRIBE("2"));
	says(process(0), EMPTY("2"));
	pass(2 * POOL_IDLE_MS);
	pass(2 * POOL_IDLE_MS);
	for (size_t i = 0; i < 2; i++) {
		while (fake_process_read(process(i)) != NULL)
			;
		assert_false(process(i)->is_eof);
	}
}

static void old_ones_are_replaced(void **state)
{
	struct member *a = begin();
	struct front *call;

	servers[0].conf.max_age_ms = 1000;
	call = request(a->client, CALL("1"));
	pass(1000);
	request(a->client, CALL("2"));
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
	servers[0].conf.sessions_per_process = 2;
	begin();
	begin();
	assert_int_equal(keeper.count, 1);
	begin();
	assert_int_equal(keeper.count, 2);
	begin();
	begin();
	assert_int_equal(keeper.count, 2); /* pool.max */
}

/* mcpgated.yaml(5) limits.processes */
static void all_servers_have_a_limit(void **state)
{
	fleet.max = 1;
	servers[0].conf.isolation = ISOLATION_SESSION;
	open_session(INITIALIZE);
	assert_int_equal(fleet.count, 1);
	is_failed(open_session(INITIALIZE), REASON_OVER_LIMIT);
	exits(process(0), 0);
	assert_int_equal(fleet.count, 0);
	open_session(INITIALIZE);
	assert_int_equal(fleet.count, 1); /* delayed by the back-off, but with its place */
	fleet.max = 0;
	session_set_fini(&router.sessions);
	settle();
	assert_int_equal(fleet.count, 0);
}

/* A session of the other server. */
static struct front *open_neighbour(void)
{
	return open_session_at(&servers[1], &router.sessions.principals.anonymous, INITIALIZE);
}

/* mcpgated.yaml(5): what is idle elsewhere goes if that makes room, and only then; for sessions of their own as well. */
static void idle_ones_make_room_where_it_helps(void **state)
{
	fleet.max = 2;
	servers[0].conf.pool_max = 1;
	servers[1].conf = servers[0].conf;
	begin();
	assert_int_equal(open_neighbour()->ending, ENDING_NONE);
	get_ready(1);
	request(members[0].client, CALL("1"));
	request(members[0].client, CALL("2"));
	request(members[0].client, CALL("3")); /* waits for a process that pool.max forbids */
	pass(3000);
	hears_nothing(process(1));
	assert_false(process(1)->is_eof);
	servers[1].conf.isolation = ISOLATION_SESSION;
	servers[1].conf.pool_max = 3;
	says(process(0), RESULT("2"));
	says(process(0), RESULT("3"));
	says(process(0), RESULT("4"));
	is_failed(open_neighbour(), REASON_OVER_LIMIT);
	hears_nothing(process(1));
	assert_true(process(0)->is_eof != process(1)->is_eof);
	exits(process(process(1)->is_eof), 0);
	is_open(open_neighbour());
}

/* What is busy elsewhere stays where it is, if no room is what is wanted. */
static void failing_servers_claim_nothing(void **state)
{
	struct front *call;

	fleet.max = 1;
	servers[1].conf = servers[0].conf;
	call = open_neighbour();
	get_ready(0);
	call = request(call->call.client, CALL("1"));
	hears(process(0), CALL("2"));
	servers[0].conf.pool_min = 1;
	servers[0].backoff.failures = 3;
	servers[0].backoff.retry_at_ms = now_ms + 60000;
	pool_prepare(&router, &servers[0]);
	for (size_t i = 0; i < 20; i++)
		pass(1000);
	says(process(0), RESULT("2"));
	is_answered(call, RESULT("1"));
	hears_nothing(process(0));
	assert_false(process(0)->is_eof);
}

/* bridging.md §1.4: who always has more calls does not keep the others from the server. */
static void who_has_none_gets_one(void **state)
{
	struct member *a = begin_asking(alice, 0);
	struct front *calls[6];
	struct front *other;

	calls[0] = request(a->client, CALL("1"));
	calls[1] = request(a->client, CALL("2"));
	hears(process(1), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(1), WELCOME);
	hears(process(1), INITIALIZED);
	for (size_t i = 2; i < 6; i++)
		calls[i] = request(a->client, CALL("3"));
	other = open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	is_open(other);
	hears(process(0), CALL("2"));
	hears(process(1), CALL("2"));
	pass(1000);
	says(process(1), RESULT("2"));
	hears(process(1), CALL("3")); /* the one that alice keeps */
	says(process(0), RESULT("2"));
	is_answered(calls[0], RESULT("1"));
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
	says(process(1), RESULT("3")); /* alice is about to look for room, too */
	exits(process(0), 0);
	hears(process(2), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(2), WELCOME);
	assert_int_equal(other->ending, ENDING_RESPONSE);
	pass(2000);
	hears(process(1), CALL("4"));
	says(process(1), RESULT("4"));
	hears(process(1), CALL("5")); /* she has no more than bob has */
}

/* bridging.md §1.9 (6): who has less than a share gets more of who has more, although it has a process already. */
static void shares_are_kept(void **state)
{
	struct member *a = begin_asking(alice, 0), *b;
	struct front *calls[5], *his[2];

	servers[0].conf.pool_max = 4;
	servers[0].conf.share_percent = 50;
	for (size_t i = 0; i < 5; i++)
		calls[i] = request(a->client, CALL("1"));
	for (size_t i = 1; i < 4; i++)
		get_ready(i);
	for (size_t i = 0; i < 4; i++)
		hears(process(i), CALL("2"));
	his[0] = open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	pass(1000);
	says(process(0), RESULT("2"));
	hears_nothing(process(0));
	exits(process(0), 0);
	get_ready(4);
	b = join(his[0]);
	for (size_t i = 0; i < 2; i++)
		his[i] = request(b->client, CALL("1"));
	hears(process(4), CALL("2"));
	hears_nothing(process(4));
	pass(1000);
	says(process(1), RESULT("2"));
	hears_nothing(process(1)); /* alice has two that stay; her calls wait */
	exits(process(1), 0);
	get_ready(5);
	hears(process(5), CALL("2"));
	says(process(5), RESULT("2"));
	is_answered(his[1], RESULT("1"));
	is_open(his[0]);
	is_open(calls[4]);
	says(process(2), RESULT("2"));
	hears(process(2), CALL("3"));
	hears_nothing(process(5)); /* he used it a moment ago, and she has her share */
	assert_false(process(5)->is_eof);
	calls[0] = request(a->client, CALL("1"));
	pass(1000);
	assert_false(process(5)->is_eof);
	pass(1000); /* now he has not used it for long enough */
	hears_nothing(process(5));
	assert_true(process(5)->is_eof);
	is_open(calls[0]);
	exits(process(5), 0);
	get_ready(6);
	hears(process(6), CALL("2"));
	says(process(6), RESULT("2"));
	is_answered(calls[0], RESULT("1"));
}

static size_t count_leaving(const struct pool *pool)
{
	size_t count = 0;

	LIST_FOREACH(node, &pool->upstreams)
		count += container_of(node, struct upstream, link)->state == UPSTREAM_RETIRING;
	return count;
}

/* bridging.md §1.4: of several, the one with the fewest calls, although another one has been there for longer. */
static void the_least_loaded_is_given(void **state)
{
	struct member *a;
	struct front *calls[4], *other;

	servers[0].conf.share_percent = 100;
	a = begin_plain(alice);
	for (size_t i = 0; i < 3; i++)
		calls[i] = request(a->client, CALL("1"));
	pass(10);
	get_ready(1);
	hears(process(1), CALL("2"));
	other = open_session_as(bob, INITIALIZE_WITH(""));
	pass(1000);
	calls[3] = request(a->client, CALL("1"));
	hears_nothing(process(1));
	assert_false(process(1)->is_eof);
	says(process(1), RESULT("2"));
	is_answered(calls[2], RESULT("1"));
	hears_nothing(process(1));
	assert_true(process(1)->is_eof);
	exits(process(1), 0);
	get_ready(2);
	assert_int_equal(other->ending, ENDING_RESPONSE);
	hears(process(0), CALL("2"));
	hears(process(0), CALL("3"));
	hears_nothing(process(0));
	is_open(calls[3]);
}

/* A pool of the caller for clients with these capabilities, with so many processes, which all work. */
static struct pool *begin_working_at(struct server *server, struct principal *principal,
				     const char *initialize, size_t count)
{
	struct front *front = open_session_at(server, principal, initialize);
	struct member *member;

	get_ready(keeper.count - 1);
	member = join(front);
	for (size_t i = 0; i < count; i++) {
		request(member->client, CALL("1"));
		if (i > 0)
			get_ready(keeper.count - 1);
		hears(process(keeper.count - 1), CALL("2"));
	}
	pass(10);
	return member->client->pool;
}

static struct pool *begin_working(struct principal *principal, const char *initialize, size_t count)
{
	return begin_working_at(&servers[0], principal, initialize, count);
}

/* Its first member. */
static struct client *client_of(struct pool *pool)
{
	return container_of(pool->members.next, struct pool_member, link)->client;
}

static void pass_seconds(size_t count)
{
	for (size_t i = 0; i < count; i++)
		pass(1000);
}

static void is_stopped(size_t i)
{
	hears_nothing(process(i));
	assert_true(process(i)->is_eof);
}

static void is_kept(size_t i)
{
	hears_nothing(process(i));
	assert_false(process(i)->is_eof);
}

#define ELICITS INITIALIZE_WITH("'elicitation':{}")
#define SAMPLES INITIALIZE_WITH("'sampling':{}")
#define HAS_ROOTS INITIALIZE_WITH("'roots':{}")

/* §1.9 (6): at once, if it is more than a share, although it is the only one of its pool. */
static void what_is_more_than_a_share_is_given_at_once(void **state)
{
	struct pool *hers[2];

	servers[0].conf.share_percent = 50;
	hers[0] = begin_working(alice, ELICITS, 1);
	hers[1] = begin_working(alice, SAMPLES, 1);
	open_session_as(bob, ELICITS);
	pass(1000);
	assert_int_equal(count_leaving(hers[0]), 1);
	assert_int_equal(count_leaving(hers[1]), 0);
	pass(POOL_QUEUE_TIMEOUT_MS - 2000);
	assert_int_equal(count_leaving(hers[1]), 0);
	says(process(0), RESULT("2"));
	hears_nothing(process(0));
	exits(process(0), 0);
	get_ready(2);
}

static struct principal *somebody(void)
{
	static const struct identity identity = { .issuer = SLICE("i"), .subject = SLICE("carol") };

	return principal_get(&router.sessions.principals, &identity);
}

/* bridging.md §1.4: of several pools, the one with most gives, also if another one is older. */
static void who_has_most_gives(void **state)
{
	struct principal *third = somebody();
	struct pool *hers, *his;

	servers[0].conf.pool_max = 5;
	servers[0].conf.share_percent = 100;
	his = begin_working(bob, ELICITS, 2);
	hers = begin_working(alice, ELICITS, 3);
	open_session_as(third, ELICITS);
	pass(1000);
	assert_int_equal(count_leaving(hers), 1);
	assert_int_equal(count_leaving(his), 0);
	principal_unref(&third);
}

static void who_has_most_gives_first_or_last(void **state)
{
	struct principal *third = somebody();
	struct pool *hers, *his;

	servers[0].conf.pool_max = 5;
	servers[0].conf.share_percent = 100;
	hers = begin_working(alice, ELICITS, 3);
	his = begin_working(bob, ELICITS, 2);
	open_session_as(third, ELICITS);
	pass(1000);
	assert_int_equal(count_leaving(hers), 1);
	assert_int_equal(count_leaving(his), 0);
	principal_unref(&third);
}

/* §1.9 (6): but before that, who has more than a share, in however many pools. */
static void who_has_more_than_a_share_gives(void **state)
{
	static const char *const kinds[] = { ELICITS, SAMPLES, HAS_ROOTS };
	struct principal *third = somebody();
	struct pool *hers[3], *his;

	servers[0].conf.pool_max = 5;
	servers[0].conf.share_percent = 40;
	hers[0] = begin_working(alice, kinds[0], 1);
	his = begin_working(bob, ELICITS, 2);
	for (size_t i = 1; i < 3; i++)
		hers[i] = begin_working(alice, kinds[i], 1);
	open_session_as(third, ELICITS);
	pass(1000);
	assert_int_equal(count_leaving(his), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(count_leaving(hers[i]), i == 0); /* the oldest */
	principal_unref(&third);
}

/* Of those who wait, only who could use the place of that server counts. */
static void one_is_given_for_each(size_t max, size_t other_max)
{
	struct principal *third = somebody();
	struct front *front;
	struct pool *hers;

	fleet.max = 4;
	servers[0].conf.share_percent = 100;
	servers[1].conf = servers[0].conf;
	servers[0].conf.pool_max = max;
	servers[1].conf.pool_max = other_max;
	hers = begin_working(alice, ELICITS, 3);
	front = open_session_at(&servers[1], alice, ELICITS);
	get_ready(3);
	request(join(front)->client, CALL("1"));
	hears(process(3), CALL("2"));
	open_session_as(bob, ELICITS);
	open_session_at(&servers[1], third, ELICITS);
	for (size_t i = 0; i < 4; i++)
		pass(1000);
	assert_int_equal(count_leaving(hers), 1);
	principal_unref(&third);
}

static void who_waits_at_a_full_server_does_not_count(void **state)
{
	one_is_given_for_each(5, 1);
}

static void who_waits_elsewhere_for_a_full_server_does_not_count(void **state)
{
	one_is_given_for_each(3, 2);
}

/* bridging.md §1.4: who has no process, and needs none, does not wait. */
static void who_needs_none_takes_no_place_from_others(void **state)
{
	struct principal *third = somebody();

	servers[0].conf.queue_calls = servers[0].conf.pool_max = 1;
	begin_asking(alice, 0);
	pass(POOL_IDLE_MS);
	hears_nothing(process(0));
	exits(process(0), 0);
	begin_working(bob, ELICITS, 1);
	is_open(open_session_as(third, ELICITS));
	principal_unref(&third);
}

/* Exactly a share is no more than that: its only process stays for as long as others may have to wait, and no longer. */
static void what_is_a_share_is_kept_for_the_queue_timeout(void **state)
{
	struct principal *third = somebody();
	struct pool *hers, *his;

	servers[0].conf.share_percent = 50;
	hers = begin_working(alice, ELICITS, 1);
	his = begin_working(bob, ELICITS, 1);
	pass(980);
	is_open(open_session_as(third, ELICITS));
	for (size_t seconds = 1; seconds < 10; seconds++) {
		assert_int_equal(count_leaving(hers) + count_leaving(his), 0);
		pass(1000);
	}
	assert_int_equal(count_leaving(hers), 1);
	assert_int_equal(count_leaving(his), 0);
	principal_unref(&third);
}

/* §1.9 (6): who has a share gets no more of who has more than that. */
static void who_has_a_share_claims_nothing(void **state)
{
	struct pool *hers, *his;

	servers[0].conf.pool_max = 5;
	servers[0].conf.share_percent = 40;
	hers = begin_working(alice, ELICITS, 3);
	his = begin_working(bob, ELICITS, 2);
	request(client_of(his), CALL("3"));
	pass_seconds(5);
	assert_int_equal(count_leaving(hers), 0);
}

/* Nor does one who has less, of who has more at another server. */
static void shares_are_of_each_server(void **state)
{
	struct pool *hers, *his;

	fleet.max = 4;
	servers[1].conf = servers[0].conf;
	servers[0].conf.pool_max = servers[1].conf.pool_max = 4;
	servers[0].conf.share_percent = 25;
	servers[1].conf.share_percent = 100;
	hers = begin_working(alice, ELICITS, 3);
	his = begin_working_at(&servers[1], bob, ELICITS, 1);
	request(client_of(his), CALL("3"));
	pass_seconds(5);
	assert_int_equal(count_leaving(hers), 0);
}

/* What has not served yet is not given away. */
static void what_starts_is_not_given_away(void **state)
{
	servers[0].conf.pool_max = 1;
	is_open(open_session_as(alice, ELICITS));
	is_open(open_session_as(bob, ELICITS));
	pass_seconds(5);
	assert_non_null(fake_process_read(process(0)));
	is_kept(0);
}

/* Another one is given only when callers have waited as long as they may. */
static void another_one_is_given_after_the_queue_timeout(void **state)
{
	struct pool *hers;

	servers[0].conf.pool_max = 3;
	servers[0].conf.share_percent = 100;
	hers = begin_working(alice, ELICITS, 3);
	open_session_as(bob, ELICITS);
	pass_seconds(1);
	assert_int_equal(count_leaving(hers), 1);
	pass_seconds(8);
	open_session_as(bob, ELICITS);
	pass_seconds(1);
	assert_int_equal(count_leaving(hers), 1);
	pass_seconds(1);
	assert_int_equal(count_leaving(hers), 2);
}

/* §1.4: of those that are idle, the one that has been so for longest. */
static void longest_idle_is_stopped(void **state)
{
	servers[0].conf.share_percent = 100;
	begin_working(alice, ELICITS, 1);
	begin_working(bob, ELICITS, 1);
	for (size_t i = 0; i < 2; i++) {
		says(process(i), RESULT("2"));
		pass(10);
	}
	is_open(open_session_as(alice, SAMPLES));
	is_stopped(0);
	is_kept(1);
}

/* §1.9 (6): what was in use a moment ago is taken at once by who has less than a share, also of who has just that. */
static void less_than_a_share_takes_what_is_idle(void **state)
{
	struct pool *hers;

	servers[0].conf.pool_max = 3;
	servers[0].conf.share_percent = 67;
	hers = begin_working(alice, ELICITS, 1);
	begin_working(bob, ELICITS, 2);
	says(process(2), RESULT("2"));
	request(client_of(hers), CALL("3"));
	is_stopped(2);
}

/* And by who has a share, if it is another server's. */
static void idle_ones_of_other_servers_are_taken(void **state)
{
	struct pool *hers;

	fleet.max = 2;
	servers[0].conf.share_percent = 50;
	servers[1].conf = servers[0].conf;
	hers = begin_working(alice, ELICITS, 1);
	begin_working_at(&servers[1], bob, ELICITS, 1);
	says(process(1), RESULT("2"));
	request(client_of(hers), CALL("3"));
	is_stopped(1);
}

/* start.rate: where there is room, none is stopped for one that has to wait for its turn. */
static void waiting_for_a_turn_stops_nothing(void **state)
{
	static const char *const kinds[] = { ELICITS, SAMPLES, HAS_ROOTS };

	begin_working(alice, ELICITS, 1);
	says(process(0), RESULT("2"));
	servers[0].conf.share_percent = 100;
	servers[0].conf.pool_max = 10;
	servers[0].conf.start_rate = 1;
	servers[0].conf.start_timeout_ms = 1000;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		is_open(open_session_as(bob, kinds[i]));
	is_open(open_session_as(alice, SAMPLES));
	assert_true(keeper.count < 5);
	is_kept(0);
}

/* §1.4: of equals the one that has served for longest, in whatever order they were started. */
static void who_has_served_longest_is_given(void **state)
{
	struct member *a;

	servers[0].conf.pool_max = 3;
	servers[0].conf.share_percent = 100;
	a = begin_plain(alice);
	for (size_t i = 0; i < 5; i++)
		request(a->client, CALL("1"));
	for (size_t i = 2; i > 0; i--) {
		pass(10);
		get_ready(i);
	}
	for (size_t i = 0; i < 3; i++)
		hears(process(i), CALL("2"));
	hears(process(2), CALL("3"));
	says(process(2), RESULT("2")); /* the second and the third have a call each */
	open_session_as(bob, ELICITS);
	pass(1000);
	assert_int_equal(container_of(a->client->pool->upstreams.prev, struct upstream, link)
				 ->state,
			 UPSTREAM_RETIRING);
	assert_int_equal(count_leaving(a->client->pool), 1);
}

/* A list that is fetched for many has no progress to tell. */
static void lists_make_no_progress(void **state)
{
	struct member *a = begin();
	struct front *list = request(a->client, LIST("1"));

	hears(process(0), LIST("2"));
	says(process(0), PROGRESS("2", "1"));
	is_open(list);
	says(process(0), TOOLS("2", ""));
	is_answered(list, TOOLS("1", ""));
}

/* A place that becomes free is for who has none before who has some. */
static void who_has_none_grows_first(void **state)
{
	struct principal *third = somebody();
	struct front *front;
	struct pool *his;

	servers[0].conf.share_percent = 100;
	his = begin_working(bob, ELICITS, 1);
	begin_working(alice, ELICITS, 1);
	request(client_of(his), CALL("3"));
	front = open_session_as(third, ELICITS);
	exits(process(1), 0);
	get_ready(2);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	/* And is the last in turn now. */
	assert_ptr_equal(router.slots.pools.prev, &front->call.client->pool->link);
	principal_unref(&third);
}

/* A place that becomes free where the server is not to be started is no place: who waits hears why. */
static void who_has_none_hears_of_failures(void **state)
{
	struct front *front;

	servers[0].conf.pool_max = 1;
	servers[0].conf.give_up_after = 1;
	begin_working(alice, ELICITS, 1);
	front = open_session_as(bob, ELICITS);
	is_open(front);
	servers[0].conf.backoff_min_ms = servers[0].conf.backoff_max_ms = 40000;
	backoff_note_failed(&servers[0].backoff);
	exits(process(0), 0);
	is_failed(front, REASON_BACKEND_DOWN);
}

/* §1.9: shared pools take what is idle of sessions, one for each that waits, and only if they have nothing idle themselves. */
static void idle_sessions_give_to_shared_pools(void **state)
{
	struct principal *third = somebody();
	struct front *front;

	fleet.max = 4;
	servers[1].conf = servers[0].conf;
	servers[1].conf.isolation = ISOLATION_SESSION;
	servers[1].conf.reclaims = RECLAIM_IDLE;
	servers[0].conf.share_percent = 100;
	for (size_t i = 0; i < 2; i++) {
		open_session_at(&servers[1], alice, INITIALIZE_WITH(""));
		get_ready(i);
		pass(10);
	}
	begin_working(alice, ELICITS, 1);
	begin_working(bob, ELICITS, 1);
	pass(2000);
	says(process(2), RESULT("2"));
	front = open_session_as(bob, SAMPLES);
	is_stopped(2);
	is_kept(0);
	exits(process(2), 0);
	get_ready(4);
	request(join(front)->client, CALL("1"));
	hears(process(4), CALL("2"));
	front = open_session_as(third, ELICITS);
	is_kept(0); /* that is no use: pool.max is reached */
	servers[0].conf.pool_max = 4;
	pass_seconds(1);
	is_stopped(0);
	pass_seconds(3);
	is_kept(1);
	exits(process(0), 0);
	get_ready(5);
	assert_int_equal(front->ending, ENDING_RESPONSE);
	is_kept(1);
	principal_unref(&third);
}

/* And sessions what is idle in shared pools, as soon as it is. */
static void shared_pools_give_to_sessions(void **state)
{
	struct front *front;

	fleet.max = 1;
	servers[1].conf = servers[0].conf;
	servers[1].conf.isolation = ISOLATION_SESSION;
	servers[1].conf.reclaims = RECLAIM_IDLE;
	begin_working(alice, ELICITS, 1);
	front = open_session_at(&servers[1], bob, INITIALIZE_WITH(""));
	pass(3000);
	is_open(front);
	is_kept(0);
	says(process(0), RESULT("2"));
	is_stopped(0);
	exits(process(0), 0);
	get_ready(1);
	assert_int_equal(front->ending, ENDING_RESPONSE);
}

/* The same where nobody has more than one: who has had it for longest gives way. */
static void who_has_had_one_gives_way(void **state)
{
	struct member *a;
	struct front *calls[3];
	struct front *other;

	servers[0].conf.pool_max = 1;
	a = begin_asking(alice, 0);
	for (size_t i = 0; i < 2; i++)
		calls[i] = request(a->client, CALL("1"));
	other = open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	pass(5000);
	says(process(0), RESULT("2"));
	is_answered(calls[0], RESULT("1"));
	is_open(calls[1]);
	hears(process(0), CALL("2"));
	hears(process(0), CALL("3"));
	calls[2] = request(a->client, CALL("2"));
	pass(4000);
	pass(1000); /* as long as bob waits at most */
	is_failed(other, REASON_OVER_LIMIT);
	other = open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	pass(1000);
	says(process(0), RESULT("3"));
	is_answered(calls[1], RESULT("1"));
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
	exits(process(0), 0);
	hears(process(1), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(1), WELCOME);
	assert_int_equal(other->ending, ENDING_RESPONSE);
	is_open(calls[2]);
}

/* Long calls are no reason to give away one after the other: nobody would be served meanwhile. */
static void who_has_none_gets_but_one(void **state)
{
	struct member *a;

	servers[0].conf.pool_max = 3;
	a = begin_asking(alice, 0);
	for (size_t i = 0; i < 3; i++)
		request(a->client, CALL("1"));
	for (size_t i = 1; i < 3; i++) {
		hears(process(i), HANDSHAKE("'elicitation':{'form':{}}"));
		says(process(i), WELCOME);
		hears(process(i), INITIALIZED);
	}
	for (size_t i = 0; i < 2; i++) {
		open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
		for (size_t seconds = 0; seconds < 15; seconds++)
			pass(1000);
		assert_int_equal(count_leaving(a->client->pool), i + 1);
	}
	hears(process(0), CALL("2"));
	says(process(0), RESULT("2"));
	hears_nothing(process(0)); /* and takes its time to end */
	open_session_as(bob, INITIALIZE_WITH("'elicitation':{}"));
	for (size_t seconds = 0; seconds < 5; seconds++)
		pass(1000);
	assert_int_equal(count_leaving(a->client->pool), 1);
	exits(process(0), 0);
	hears(process(3), HANDSHAKE("'elicitation':{'form':{}}"));
}

/* Nor does it go on from one to the next: who has given away the only one waits for that. */
static void who_gave_takes_nothing_from_others(void **state)
{
	struct member *a, *b;
	struct front *calls[2];

	fleet.max = 2;
	servers[1].conf = servers[0].conf;
	a = begin_asking(alice, 0);
	b = begin_asking(bob, 1);
	calls[0] = request(a->client, CALL("1"));
	request(b->client, CALL("1"));
	open_neighbour();
	pass(POOL_QUEUE_TIMEOUT_MS - 1000);
	pass(1000);
	open_neighbour();
	pass(1000);
	assert_int_equal(count_leaving(a->client->pool), 1);
	calls[1] = request(a->client, CALL("2"));
	for (size_t seconds = 0; seconds < 5; seconds++)
		pass(1000);
	assert_int_equal(count_leaving(b->client->pool), 0);
	hears(process(0), CALL("2"));
	says(process(0), RESULT("2"));
	is_answered(calls[0], RESULT("1"));
	hears_nothing(process(0));
	exits(process(0), 0);
	get_ready(2);
	is_open(calls[1]);
}

/* What leaves already does not count for pool.min. */
static void what_is_kept_is_not_given_away(void **state)
{
	struct pool *pool;
	struct member *a;

	fleet.max = 3;
	servers[0].conf.pool_max = 3;
	servers[0].conf.calls_per_process = 1;
	servers[1].conf = servers[0].conf;
	servers[0].conf.pool_min = 2;
	a = begin();
	pool = a->client->pool;
	for (size_t i = 0; i < 3; i++)
		request(a->client, CALL("1"));
	get_ready(1);
	get_ready(2);
	for (size_t i = 0; i < 3; i++) {
		open_neighbour();
		for (size_t seconds = 0; seconds < 15; seconds++)
			pass(1000);
		assert_int_equal(count_leaving(pool), 1);
	}
}

/* BACK-FRAME-08: a process of many is replaced before its ids begin anew, whatever took the last ones. */
static void late_ids_end_a_process(void **state)
{
	struct member *a = begin();
	struct upstream *upstream =
		container_of(a->client->pool->upstreams.next, struct upstream, link);
	struct front *call;

	upstream->last_id = INT32_MAX - 1;
	request(a->client, LIST("1"));
	hears(process(0), LIST("2147483647"));
	says(process(0), TOOLS("2147483647", ""));
	upstream->last_id = INT32_MAX - 1000;
	call = request(a->client, CALL("1"));
	hears(process(0), CALL("2147482648"));
	says(process(0), RESULT("2147482648"));
	is_answered(call, RESULT("1"));
	hears_nothing(process(0));
	assert_true(process(0)->is_eof);
}

/* SEC-16; bridging.md §1.4: a burst of sessions is no burst of starts. */
static void starts_have_a_rate(void **state)
{
	servers[0].conf.isolation = ISOLATION_SESSION;
	servers[0].conf.pool_max = 30;
	servers[0].conf.start_rate = 10;
	for (int i = 0; i < 15; i++)
		open_session(INITIALIZE);
	assert_in_range(keeper.count, 10, 11);
	pass(200);
	assert_in_range(keeper.count, 12, 13);
	pass(500);
	assert_int_equal(keeper.count, 15);
}

/* And nobody waits longer for his turn than for the start itself. */
static void waits_for_a_turn_are_bounded(void **state)
{
	struct front *opened[30];
	size_t refused = 0;

	servers[0].conf.isolation = ISOLATION_SESSION;
	servers[0].conf.pool_max = 100;
	servers[0].conf.start_rate = 1;
	for (size_t i = 0; i < ARRAY_LEN(opened); i++) {
		opened[i] = open_session(INITIALIZE);
		refused += opened[i]->ending == ENDING_FAILED;
	}
	assert_in_range(refused, 7, 9); /* 20 s, and a second's worth at once */
	is_failed(opened[29], REASON_OVER_LIMIT);
	pass(20000);
	assert_int_equal(keeper.count, ARRAY_LEN(opened) - refused);
	is_open(open_session(INITIALIZE));
}

/* REL-29, DEF-19: crashes right after a good handshake are a crash loop, too. */
static void crash_loops_are_broken(void **state)
{
	struct front *front = NULL;

	servers[0].conf.isolation = ISOLATION_SESSION;
	for (size_t i = 0; i < 4; i++) {
		front = open_session(INITIALIZE);
		get_ready(i);
		assert_int_equal(front->ending, ENDING_RESPONSE);
		exits(process(i), 1 << 8);
	}
	front = open_session(INITIALIZE);
	assert_int_equal(keeper.count, 4);
	pass(1000);
	get_ready(4);
	exits(process(4), 1 << 8);
	open_session(INITIALIZE);
	pass(2000);
	get_ready(5);
	exits(process(5), 1 << 8);
	is_failed(open_session(INITIALIZE), REASON_BACKEND_DOWN);
	pass(8000);
	front = open_session(INITIALIZE);
	get_ready(6);
	assert_int_equal(servers[0].backoff.failures, 3);
	request(front->call.client, CALL("1"));
	says(process(6), RESULT("2"));
	assert_int_equal(servers[0].backoff.failures, 0); /* one that answers has recovered */
	session_end(front->call.client->session, REASON_DELETED);
	settle();
	fake_process_exit(&keeper, process(6), 0);
	pass(60000);
	front = open_session(INITIALIZE);
	get_ready(7);
	assert_int_equal(servers[0].backoff.failures, 0);
	/* Nobody must be able to keep the server from others by calls that it does not survive. */
	for (size_t i = 0; i < 6; i++) {
		struct front *call = request(front->call.client, CALL("1"));

		if (i < 3)
			says(process(7 + i), RESULT("2"));
		assert_int_equal(call->ending, i < 3 ? ENDING_RESPONSE : ENDING_NONE);
		exits(process(7 + i), 1 << 8);
		front = open_session(INITIALIZE);
		get_ready(8 + i);
	}
	assert_int_equal(servers[0].backoff.failures, 0);
}

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
	TEST(the_least_loaded_is_taken),
	TEST(queue_is_shared_fairly),
	TEST(addresses_take_turns),
	TEST(empty_queue_takes_any_call),
	TEST(waiting_is_limited),
	TEST(one_start_serves_all_who_wait),
	TEST(lost_child_takes_only_its_calls),
	TEST(only_what_is_safe_is_kept),
	TEST(repeated_calls_have_a_new_deadline),
	TEST(other_offers_are_told),
	TEST(timeout_asks_whether_it_lives),
	TEST(idle_children_go),
	TEST(session_end_cancels_its_calls),
	TEST(list_changes_reach_all_once),
	TEST(subscriptions_are_merged),
	TEST(late_subscribers_are_told),
	TEST(refused_subscriptions_leave_nothing),
	TEST(subscribers_may_leave_when_told),
	TEST(waiting_together_counts),
	TEST(subscribing_is_handed_on),
	TEST(subscriptions_outlive_children),
	TEST(updates_are_joined),
	TEST(many_are_told_over_several_turns),
	TEST(subscriptions_are_not_waited_for_for_ever),
	TEST(subscriptions_are_bounded),
	TEST(updates_reach_those_whom_they_concern),
	TEST(updates_of_what_is_denied_are_not_told),
	TEST(subscriptions_at_once_are_bounded),
	TEST(kept_requests_are_bounded),
	TEST(long_requests_are_not_repeated),
	TEST_PRINCIPALS(own_words_make_few_pools),
	TEST_PRINCIPALS(waiting_pools_are_bounded),
	TEST_PRINCIPALS(heirs_take_turns),
	TEST_PRINCIPALS(principals_do_not_share),
	TEST_PRINCIPALS(tasks_are_hidden_from_a_principal),
	TEST_PRINCIPALS(plain_classes_are_multiplexed),
	TEST_PRINCIPALS(servers_may_be_known_not_to_ask),
	TEST_PRINCIPALS(leased_child_asks_its_caller),
	TEST_PRINCIPALS(unleased_child_asks_nobody),
	TEST_PRINCIPALS(given_up_children_settle),
	TEST_PRINCIPALS(children_that_do_not_settle_retire),
	TEST_PRINCIPALS(levels_go_with_the_lease),
	TEST_PRINCIPALS(levels_end_with_the_lease),
	TEST_PRINCIPALS(lost_lease_ends_its_asks),
	TEST_PRINCIPALS(leases_hold_against_cursors),
	TEST_PRINCIPALS(settling_holds_against_cursors),
	TEST_PRINCIPALS(asks_end_with_their_own_lease),
	TEST_PRINCIPALS(sessions_of_one_take_turns),
	TEST(warm_set_are_taken),
	TEST(the_spare_that_is_there_is_taken),
	TEST(lost_spares_are_replaced),
	TEST(spares_come_when_there_is_room),
	TEST(no_spares_come_while_draining),
	TEST(restart_is_for_spares_too),
	TEST(restarts_are_no_crashes),
	TEST(old_spares_may_end),
	TEST(some_are_kept),
	TEST(as_many_are_kept_for_subscribers),
	TEST(old_ones_are_replaced),
	TEST(many_sessions_get_more),
	TEST(all_servers_have_a_limit),
	TEST(idle_ones_make_room_where_it_helps),
	TEST(failing_servers_claim_nothing),
	TEST_PRINCIPALS(who_has_none_gets_one),
	TEST_PRINCIPALS(shares_are_kept),
	TEST_PRINCIPALS(the_least_loaded_is_given),
	TEST_PRINCIPALS(what_is_more_than_a_share_is_given_at_once),
	TEST_PRINCIPALS(who_has_most_gives),
	TEST_PRINCIPALS(who_has_most_gives_first_or_last),
	TEST_PRINCIPALS(who_has_more_than_a_share_gives),
	TEST_PRINCIPALS(who_waits_at_a_full_server_does_not_count),
	TEST_PRINCIPALS(who_waits_elsewhere_for_a_full_server_does_not_count),
	TEST_PRINCIPALS(who_needs_none_takes_no_place_from_others),
	TEST_PRINCIPALS(what_is_a_share_is_kept_for_the_queue_timeout),
	TEST_PRINCIPALS(who_has_a_share_claims_nothing),
	TEST_PRINCIPALS(shares_are_of_each_server),
	TEST_PRINCIPALS(what_starts_is_not_given_away),
	TEST_PRINCIPALS(another_one_is_given_after_the_queue_timeout),
	TEST_PRINCIPALS(longest_idle_is_stopped),
	TEST_PRINCIPALS(less_than_a_share_takes_what_is_idle),
	TEST_PRINCIPALS(idle_ones_of_other_servers_are_taken),
	TEST_PRINCIPALS(waiting_for_a_turn_stops_nothing),
	TEST(lists_make_no_progress),
	TEST_PRINCIPALS(who_has_served_longest_is_given),
	TEST_PRINCIPALS(who_has_none_grows_first),
	TEST_PRINCIPALS(who_has_none_hears_of_failures),
	TEST_PRINCIPALS(idle_sessions_give_to_shared_pools),
	TEST_PRINCIPALS(shared_pools_give_to_sessions),
	TEST_PRINCIPALS(who_has_had_one_gives_way),
	TEST_PRINCIPALS(who_has_none_gets_but_one),
	TEST_PRINCIPALS(who_gave_takes_nothing_from_others),
	TEST(what_is_kept_is_not_given_away),
	TEST(late_ids_end_a_process),
	TEST(starts_have_a_rate),
	TEST(waits_for_a_turn_are_bounded),
	TEST(crash_loops_are_broken),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
