/* SPDX-License-Identifier: Apache-2.0 */
/* A modern server that wants to be told something, and a client that has to be asked for it. bridging §2.2 */
#include "router/router.h"

#include "router/era_stage.h"
#include "router/process_slots.h"

#define ASKING_CLIENT "'sampling':{},'elicitation':{'form':{}}"
#define META_ASKING META_OF(ASKING_CLIENT, CLIENT) "}"
#define ROOTS "{'method':'roots/list'}"
#define SLASHED_SAMPLING \
	"{'method':'sampling\\/createMessage','params':{'messages':[],'maxTokens':1}}"
#define SAMPLING "{'method':'sampling/createMessage','params':{'messages':[],'maxTokens':1}}"
#define ACCEPT "{'action':'accept','content':{'a':[1, 2]}}"
#define TOOL_FAILS(id, why)                                                                   \
	"{'jsonrpc':'2.0','id':" id ",'result':{'content':[{'type':'text','text':'" why "'}]" \
	",'isError':true}}"

/* The call is at the server, under id 2. */
static struct front *call_of(struct member *member)
{
	struct front *front = request(member->client, CALL("'c'"));

	assert_non_null(fake_process_read(process(0)));
	return front;
}

/* A call whose client is asked for a form. */
static struct front *asked(struct member *member)
{
	struct front *front = call_of(member);

	says(process(0), ASKS("2", "'inputRequests':{'q':" FORM "},'requestState':'s\\u0041'"));
	was_told(front, ASKED("1000001") "|");
	hears_nothing(process(0));
	return front;
}

/* BACK-MSG-04: the same request, another id, what was answered, the state byte for byte; its token is the new one. */
static void answers_come_with_the_same_request(void **state)
{
	struct member *member = begin_asked();
	struct front *front =
		request(member->client,
			"{'jsonrpc':'2.0','id':'c','method':'tools/call','params':{'name':"
			"'t','arguments':{'b':'\\\\/'},'_meta':{'progressToken':'p'}}}");

	assert_non_null(fake_process_read(process(0)));
	says(process(0), ASKS("2", "'inputRequests':{'q':" FORM ",'r\\u0041':" SLASHED_SAMPLING
				   "},'requestState':'s\\u0041'"));
	was_told(
		front,
		ASKED("1000001") "|"
				 "{'jsonrpc':'2.0','id':1000002,'method':'sampling/createMessage','params':"
				 "{'messages':[],'maxTokens':1}}|");
	answer(member->client, ANSWER("1000002", "'role':'assistant'"));
	hears_nothing(process(0));
	answer(member->client, "{'jsonrpc':'2.0','id':1000001,'result':" ACCEPT "}");
	hears(process(0), REQUEST("3", "tools/call",
				  META_OF(ASKING_CLIENT,
					  CLIENT) ",'progressToken':3},'name':'t','arguments':{'b':"
						  "'\\\\/'},'inputResponses':{'q':" ACCEPT
						  ",'rA':{'role':'assistant'}},"
						  "'requestState':'sA'"));
	says(process(0), PROGRESS("3", "1"));
	was_told(front, PROGRESS("'p'", "1") "|");
	says(process(0), ANSWER("3", "'resultType':'complete','content':[]"));
	is_answered(front, ANSWER("'c'", "'content':[]"));
	assert_int_equal(upstream_load(pool_own_upstream(member->client->pool)), 0);
}

/* BACK-MSG-04: none is sent that was not received; the answers are those of the last round only. */
static void rounds_do_not_add_up(void **state)
{
	struct member *member = begin_asked();
	struct front *front = asked(member);

	answer(member->client, "{'jsonrpc':'2.0','id':1000001,'result':" ACCEPT "}");
	assert_non_null(fake_process_read(process(0)));
	says(process(0), ASKS("3", "'inputRequests':{'z':" FORM "}"));
	was_told(front, ASKED("1000002") "|");
	answer(member->client, "{'jsonrpc':'2.0','id':1000002,'error':{'code':1,'message':'m'}}");
	hears(process(0), REQUEST("4", "tools/call",
				  META_ASKING ",'name':'t','inputResponses':{'z':{'action':"
					      "'cancel'}}"));
	says(process(0), RESULT("4"));
	is_answered(front, RESULT("'c'"));
}

/* Without a question it is asked again after a while, each time a longer one. */
static void state_alone_is_brought_back(void **state)
{
	struct front *front = call_of(begin_asked());

	says(process(0), ASKS("2", "'requestState':'1'"));
	pass(249);
	hears_nothing(process(0));
	pass(1);
	hears(process(0), REQUEST("3", "tools/call", META_ASKING ",'name':'t','requestState':'1'"));
	says(process(0), ASKS("3", "'inputRequests':{},'requestState':'2'"));
	pass(499);
	hears_nothing(process(0));
	pass(1);
	hears(process(0), REQUEST("4", "tools/call", META_ASKING ",'name':'t','requestState':'2'"));
	is_open(front);
	exits(process(0), 0);
	is_failed(front, REASON_CHILD_EXITED);
}

/* While the client is asked nothing is at the server: what it says is about nothing. */
static void server_has_no_say_meanwhile(void **state)
{
	struct member *member = begin_asked();
	struct front *front = asked(member);

	says(process(0), RESULT("2"));
	says(process(0), ASKS("2", "'inputRequests':{'q':" FORM "}"));
	says(process(0), ERROR("2", "-32603"));
	is_open(front);
	was_told(front, "");
	answer(member->client, "{'jsonrpc':'2.0','id':1000001,'result':" ACCEPT "}");
	assert_non_null(fake_process_read(process(0)));
	says(process(0), RESULT("2"));
	is_open(front);
	says(process(0), RESULT("3"));
	is_answered(front, RESULT("'c'"));
}

/* People take their time. */
static void question_is_no_silence(void **state)
{
	struct member *member = begin_asked();
	struct front *front;

	servers[0].conf.request_timeout_ms = 60000;
	front = asked(member);
	pass(10ull * 60 * 1000 - 1);
	is_open(front);
	answer(member->client, "{'jsonrpc':'2.0','id':1000001,'result':" ACCEPT "}");
	is_open(front);
}

/* CXL-02: the client takes back its call, and with it what it was asked. */
static void cancelled_call_withdraws_its_questions(void **state)
{
	struct member *member = begin_asked();
	struct front *front = asked(member);

	notify(member->client, CANCELLED("'c'"));
	assert_int_equal(front->ending, ENDING_CANCELLED);
	was_told(front, WITHDRAWN("1000001"));
	assert_true(list_is_empty(&member->client->server_requests.all));
	answer(member->client, "{'jsonrpc':'2.0','id':1000001,'result':" ACCEPT "}");
	hears(process(0), CANCELLED("2"));
	hears_nothing(process(0));
}

static void lost_process_withdraws_questions(void **state)
{
	struct front *front = asked(begin_asked());

	exits(process(0), 1);
	is_failed(front, REASON_CHILD_EXITED);
	was_told(front, WITHDRAWN("1000001"));
}

static void session_may_end_meanwhile(void **state)
{
	struct member *member = begin_asked();
	struct front *front = asked(member);

	session_end(member->client->session, REASON_DELETED);
	assert_int_equal(front->endings, 1);
}

/* Nobody is there to answer: the server hears so, as far as there are words for it. */
static void nobody_answers(void **state)
{
	struct member *member = begin_asked();
	struct front *first = call_of(member), *second;

	first->refuses = true;
	says(process(0), ASKS("2", "'inputRequests':{'q':" FORM "}"));
	heard(member, ASKED("1000001") "|");
	stream_detach(&member->reader);
	pass(60000);
	pass(60000);
	hears(process(0), REQUEST("3", "tools/call",
				  META_ASKING ",'name':'t','inputResponses':{'q':{'action':"
					      "'cancel'}}"));
	says(process(0), RESULT("3"));
	is_answered(first, RESULT("'c'"));
	second = request(member->client, CALL("'d'"));
	second->refuses = true;
	says(process(0), ASKS("4", "'inputRequests':{'q':" SAMPLING "}"));
	pass(60000);
	is_answered(second,
		    TOOL_FAILS("'d'", "The client did not answer what the server asked it"));
}

/* All is looked at before anything is asked. */
static void all_or_nothing(void **state)
{
	static const char *const inputs[] = {
		"'inputRequests':{'q':" FORM ",'r':" ROOTS "}",
		"'inputRequests':{'q':" FORM
		",'r':{'method':'elicitation/create','params':{'mode':'url'}}}",
		"'inputRequests':{'q':{'method':'sampling/createMessage','params':{'tools':[]}}}",
	};
	struct member *member = begin_asked();

	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		struct front *front = request(member->client, CALL("'c'"));
		struct buf text = { 0 };

		buf_printf(&text, ASKS("%zu", "%s"), i + 2, inputs[i]);
		says(process(0), buf_terminate(&text));
		is_answered(front, TOOL_FAILS("'c'", "The server needs what this client cannot be "
						     "asked"));
		was_told(front, "");
		buf_fini(&text);
	}
}

/* What has no result with an error in it gets an error. */
static void others_than_tools_fail_as_errors(void **state)
{
	struct client *client = begin_with("", "'prompts':{}")->client;
	struct front *front = request(client, "{'jsonrpc':'2.0','id':'c','method':'prompts/get',"
					      "'params':{'name':'p'}}");

	says(process(0), ASKS("2", "'inputRequests':{'r':" ROOTS "}"));
	is_answered(front, "{'jsonrpc':'2.0','id':'c','error':{'code':-32603,'message':'The server "
			   "needs what this client cannot be asked'}}");
	front = request(client, CALL("'d'"));
	says(process(0), ERROR("3", "-32021"));
	is_answered(front, TOOL_FAILS("'d'", "The server needs a client that can do more than this "
					     "one"));
	front = request(client, CALL("'e'"));
	says(process(0), ERROR("4", "-32000"));
	is_answered(front, ERROR("'e'", "-32000"));
	front = request(client,
			"{'jsonrpc':'2.0','id':'f','method':'prompts/get','params':{'name':'p'}}");
	says(process(0), ERROR("5", "-32021"));
	assert_null(strstr(buf_terminate(&front->response), "isError"));
	assert_non_null(strstr(buf_terminate(&front->response), "error"));
}

/* What is neither complete nor asks is nothing that we know. */
static void unknown_results_fail_the_call(void **state)
{
	struct front *front = call_of(begin_asked());

	says(process(0), ANSWER("2", "'resultType':'other','inputRequests':{'q':" FORM "}"));
	is_failed(front, REASON_CHILD_PROTOCOL_ERROR);
}

/* BACK-SEC-01: nothing that a server says here is more than its own call's end. */
static void malformed_rounds_fail_the_call(void **state)
{
	static const char *const inputs[] = {
		"'x':1",
		"'requestState':1",
		"'inputRequests':[]",
		"'inputRequests':{'q':1}",
		"'inputRequests':{'q':{'method':'tools/call'}}",
		"'inputRequests':{'q':{'method':'ping'}}",
		"'inputRequests':{'q':{'method':'elicitation/create','params':[]}}",
	};
	struct member *member = begin_asked();
	struct front *front;

	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		struct buf text = { 0 };

		front = request(member->client, CALL("'c'"));
		buf_printf(&text, ASKS("%zu", "%s"), i + 2, inputs[i]);
		says(process(0), buf_terminate(&text));
		is_failed(front, REASON_CHILD_PROTOCOL_ERROR);
		buf_fini(&text);
	}
	/* A list cannot need anything. */
	front = request(member->client, LIST("'l'"));
	says(process(0), ASKS("9", "'inputRequests':{'q':" FORM "}"));
	is_failed(front, REASON_CHILD_PROTOCOL_ERROR);
}

static void questions_have_a_limit(void **state)
{
	struct member *member = begin_asked();

	for (int count = 32; count <= 33; count++) {
		struct front *front = call_of(member);
		struct buf text = { 0 };

		buf_printf(&text,
			   "{'jsonrpc':'2.0','id':%d,'result':{'resultType':'input_required',"
			   "'inputRequests':{'0':" FORM,
			   count - 30);
		for (int i = 1; i < count; i++)
			buf_printf(&text, ",'%d':" FORM, i);
		buf_append_str(&text, "}}}");
		says(process(0), buf_terminate(&text));
		if (count == 32)
			is_open(front);
		else
			is_failed(front, REASON_CHILD_PROTOCOL_ERROR);
		buf_fini(&text);
	}
}

/* DEF-11: what a client answers is kept until all is answered, and is then sent at once. */
static void answers_have_a_limit(void **state)
{
	struct member *member = begin_asked();
	struct front *front = call_of(member);
	struct buf text = { 0 };

	says(process(0), ASKS("2", "'inputRequests':{'q':" SAMPLING ",'r':" SAMPLING
				   ",'s':" SAMPLING ",'t':" SAMPLING "}"));
	for (int id = 1000001; id <= 1000003; id++) {
		struct envelope env;

		is_open(front);
		text.len = 0;
		buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"x\":\"%0*d\"}}", id,
			   2 * 1024 * 1024 - 100, 0);
		env = scan(buf_terminate(&text));
		forward_answer(member->client, admit(member->client, &env));
		settle();
	}
	is_answered(front, TOOL_FAILS("'c'", "The answers to what the server asked are too large"));
	buf_fini(&text);
}

/* A single one may be as large as messages may be. */
static void a_single_answer_may_be_large(void **state)
{
	struct member *member = begin_asked();
	struct front *front = call_of(member);
	struct buf text = { 0 };
	struct envelope env;

	says(process(0), ASKS("2", "'inputRequests':{'q':" SAMPLING "}"));
	buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":1000001,\"result\":{\"x\":\"%0*d\"}}",
		   5 * 1024 * 1024, 0);
	env = scan(buf_terminate(&text));
	forward_answer(member->client, admit(member->client, &env));
	settle();
	is_open(front);
	buf_fini(&text);
}

/* Only URLs that have none get a name, and nothing else does. */
static void what_has_a_name_keeps_it(void **state)
{
	struct member *member = begin_with("'sampling':{},'elicitation':{'url':{}}", "'tools':{}");
	struct front *front = call_of(member);

	says(process(0), ASKS("2", "'inputRequests':{'q':{'method':'elicitation/create','params':{"
				   "'mode':'url','elicitationId':'e','url':'u','message':'m'}}}"));
	was_told(front, "{'jsonrpc':'2.0','id':1000001,'method':'elicitation/create','params':{"
			"'mode':'url','elicitationId':'e','url':'u','message':'m'}}|");
	front = request(member->client, CALL("'d'"));
	says(process(0),
	     ASKS("3", "'inputRequests':{'q':{'method':'sampling/createMessage','params'"
		       ":{'mode':'url','messages':[],'maxTokens':1}}}"));
	assert_null(strstr(buf_terminate(&front->messages), "elicitationId"));
	assert_non_null(strstr(buf_terminate(&front->messages), "maxTokens"));
}

/* A URL has a name in 2025-11-25, which a modern server does not give it. */
static void urls_get_a_name(void **state)
{
	struct member *member = begin_with("'elicitation':{'url':{}}", "'tools':{}");
	struct front *front = call_of(member);
	const char *told;

	says(process(0), ASKS("2", "'inputRequests':{'q':{'method':'elicitation/create','params':{"
				   "'mode':'url','url':'u','message':'m'}}}"));
	told = buf_terminate(&front->messages);
	assert_non_null(strstr(told, q("'params':{'elicitationId':'")));
	assert_non_null(strstr(told, q("','mode':'url','url':'u','message':'m'}}|")));
}

#define URL "{'method':'elicitation/create','params':{'mode':'url','url':'u','message':'m'}}"
#define TO_URLS(id) ASKS(id, "'inputRequests':{'q':" URL ",'r':" URL "}")
#define TO_URL(id, url)                                                                  \
	ASKS(id, "'inputRequests':{'q':{'method':'elicitation/create','params':{'mode':" \
		 "'url','elicitationId':'e','url':'" url "','message':'m'}}}")
#define AGAIN(id)                                                                                 \
	REQUEST(id, "tools/call",                                                                 \
		META_OF("'elicitation':{'url':{}}", CLIENT) "},'name':'t','inputResponses':{'q':" \
							    "{'action':'accept'}}")

/* To accept a URL is only to go there: the server is asked again, the client is not. */
static void urls_are_shown_once(void **state)
{
	struct member *member = begin_with("'elicitation':{'url':{}}", "'tools':{}");
	struct front *front = call_of(member);

	says(process(0), TO_URL("2", "u"));
	assert_non_null(strstr(buf_terminate(&front->messages), "1000001"));
	answer(member->client, ANSWER("1000001", "'action':'accept'"));
	front->messages.len = 0;
	for (int id = 3; id < 40; id++) {
		struct buf text = { 0 };

		buf_printf(&text, AGAIN("%d"), id);
		hears(process(0), buf_terminate(&text));
		text.len = 0;
		buf_printf(&text, TO_URL("%d", "u"), id);
		says(process(0), buf_terminate(&text));
		was_told(front, "");
		pass(1999);
		hears_nothing(process(0));
		pass(1);
		buf_fini(&text);
	}
	hears(process(0), AGAIN("40"));
	says(process(0), TO_URL("40", "v"));
	assert_non_null(strstr(buf_terminate(&front->messages), "1000002"));
	answer(member->client, ANSWER("1000002", "'action':'decline'"));
	assert_non_null(fake_process_read(process(0)));
	says(process(0), TO_URL("41", "v"));
	assert_non_null(strstr(buf_terminate(&front->messages), "1000003"));
}

/* Who has declined one of them is asked again. */
static void urls_are_accepted_together(void **state)
{
	struct member *member = begin_with("'elicitation':{'url':{}}", "'tools':{}");
	struct front *front = call_of(member);

	says(process(0), TO_URLS("2"));
	answer(member->client, ANSWER("1000001", "'action':'decline'"));
	answer(member->client, ANSWER("1000002", "'action':'accept'"));
	assert_non_null(fake_process_read(process(0)));
	says(process(0), TO_URLS("3"));
	assert_non_null(strstr(buf_terminate(&front->messages), "1000003"));
}

static void urls_are_not_waited_for_for_ever(void **state)
{
	struct member *member = begin_with("'elicitation':{'url':{}}", "'tools':{}");
	struct front *front;
	int id = 3;

	servers[0].conf.request_timeout_max_ms = 60 * 60 * 1000;
	front = call_of(member);
	says(process(0), TO_URL("2", "u"));
	answer(member->client, ANSWER("1000001", "'action':'accept'"));
	for (; front->ending == ENDING_NONE && id < 400; id++) {
		struct buf text = { 0 };

		assert_non_null(fake_process_read(process(0)));
		buf_printf(&text, TO_URL("%d", "u"), id);
		says(process(0), buf_terminate(&text));
		pass(2000);
		buf_fini(&text);
	}
	assert_int_equal(id, 3 + 10 * 60 / 2 + 1);
	is_answered(front, TOOL_FAILS("'c'", "What the client was sent to was not done in time"));
}

/* A client of a revision that has no words for it is not asked. */
static void older_clients_are_asked_in_their_words(void **state)
{
	struct front *front = open_session(
		"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':"
		"'2024-11-05','capabilities':{'elicitation':{},'sampling':{}},'clientInfo':" CLIENT
		"}}");
	struct member *member;

	hears(process(0), DISCOVER("'sampling':{}", CLIENT));
	says(process(0), DISCOVERED);
	member = join(front);
	front = call_of(member);
	says(process(0), ASKS("2", "'inputRequests':{'q':" FORM "}"));
	is_answered(front, TOOL_FAILS("'c'", "The server needs what this client cannot be asked"));
}

/* Of calls that share a process one may have the log lines: they do not say whose they are. bridging §1.7 */
static int setup_principals(void **state)
{
	pool_setup_principals(state);
	servers[0].conf.era = ERA_MODERN;
	return 0;
}

static void one_of_many_has_the_log(void **state)
{
	struct member *member;
	struct front *first, *second;

	servers[0].conf.calls_per_process = 3;
	first = open_session_as(alice, INITIALIZE_WITH(""));
	hears(process(0), DISCOVER("", GATEWAY));
	says(process(0), DISCOVERED_WITH("'tools':{},'logging':{}"));
	member = join(first);
	first = request(member->client, CALL("5")); /* it wants none */
	hears(process(0), REQUEST("2", "tools/call", META_OF("", GATEWAY) "},'name':'t'"));
	is_answered(request(member->client, "{'jsonrpc':'2.0','id':6,'method':'logging/setLevel',"
					    "'params':{'level':'info'}}"),
		    EMPTY("6"));
	first = request(member->client, CALL("7"));
	second = request(member->client, CALL("8"));
	hears(process(0), REQUEST("3", "tools/call",
				  META_OF("", GATEWAY) ",'" META "logLevel':'info'},'name':'t'"));
	hears(process(0), REQUEST("4", "tools/call", META_OF("", GATEWAY) "},'name':'t'"));
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
			 "'info','data':1}}");
	was_told(second, "");
	was_told(first, "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
			"'info','data':1}}|");
	says(process(0), RESULT("3"));
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':"
			 "'info','data':2}}");
	was_told(second, "");
	heard(member, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MODERN_TEST(answers_come_with_the_same_request),
		MODERN_TEST(rounds_do_not_add_up),
		MODERN_TEST(state_alone_is_brought_back),
		MODERN_TEST(server_has_no_say_meanwhile),
		MODERN_TEST(question_is_no_silence),
		MODERN_TEST(cancelled_call_withdraws_its_questions),
		MODERN_TEST(lost_process_withdraws_questions),
		MODERN_TEST(session_may_end_meanwhile),
		MODERN_TEST(nobody_answers),
		MODERN_TEST(all_or_nothing),
		MODERN_TEST(others_than_tools_fail_as_errors),
		MODERN_TEST(malformed_rounds_fail_the_call),
		MODERN_TEST(questions_have_a_limit),
		MODERN_TEST(answers_have_a_limit),
		MODERN_TEST(unknown_results_fail_the_call),
		MODERN_TEST(a_single_answer_may_be_large),
		MODERN_TEST(what_has_a_name_keeps_it),
		MODERN_TEST(urls_get_a_name),
		MODERN_TEST(urls_are_shown_once),
		MODERN_TEST(urls_are_accepted_together),
		MODERN_TEST(urls_are_not_waited_for_for_ever),
		MODERN_TEST(older_clients_are_asked_in_their_words),
		cmocka_unit_test_setup_teardown(one_of_many_has_the_log, setup_principals,
						pool_teardown_principals),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
