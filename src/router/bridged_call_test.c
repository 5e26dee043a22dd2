/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of modern clients at legacy servers that ask: what the server sees of it. bridging.md §2.3.3 */
#include "router/bridged_call.h"

#include "router/request_stage.h"

#define ERROR(id, code) "{'jsonrpc':'2.0','id':" id ",'error':{'code':" code ",'message':'m'}}"
#define CAN "'elicitation':{}"
#define ASKS(id, more)                                                                            \
	"{'jsonrpc':'2.0','id':" id ",'method':'elicitation/create','params':{'message':'m'" more \
	"}}"
#define PROGRESSED(token, count)                                                              \
	"{'jsonrpc':'2.0','method':'notifications/progress','params':{'progressToken':" token \
	",'progress':" count "}}"

#define LOGGED \
	"{'jsonrpc':'2.0','method':'notifications/message','params':{'level':'info','data':'d'}}"
/* That of ASKER_META(CAN), with another member. */
#define META_WITH(more)                                                    \
	"'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'," \
	"'io.modelcontextprotocol/clientCapabilities':{" CAN "}," more "}"

/* A call at the process i, which is the first of a client that can be asked for forms. */
static struct asker *start_call_as(struct principal *principal, size_t i)
{
	struct asker *asker = ask_as(principal, ASK_TOOL("1", CAN, ""));

	hears(process(i), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(i), WELCOME);
	hears(process(i), INITIALIZED);
	hears(process(i), CALLED("2"));
	return asker;
}

static struct asker *start_call(void)
{
	return start_call_as(&router.sessions.principals.anonymous, 0);
}

/* Its client is asked what the server wants to know; returns the requestState, to be freed. */
static char *get_asked(struct asker *asker)
{
	pass(20);
	return result_member(asker, "requestState");
}

static struct asker *try_again_as(struct principal *principal, const char *state,
				  const char *answers)
{
	struct buf text = { 0 };
	struct asker *asker;

	buf_printf(&text, ASK_TOOL("5", CAN, ",'requestState':%s,'inputResponses':%s"), state,
		   answers);
	asker = ask_as(principal, buf_terminate(&text));
	buf_fini(&text);
	return asker;
}

static struct asker *try_again(const char *state, const char *answers)
{
	return try_again_as(&router.sessions.principals.anonymous, state, answers);
}

/* ---- (i): progress ---- */

static void servers_are_told_to_wait(void **state)
{
	struct asker *asker;
	char *given, *asked;

	servers[0].conf.tells_progress = true;
	asker = start_call();
	says(process(0), ASKS("7", ",'_meta':{'progressToken':'t'}"));
	says(process(0), ASKS("8", ",'elicitationId':'e','mode':'form'"));
	given = get_asked(asker);
	asked = result_member(asker, "inputRequests");
	assert_string_equal(asked,
			    q("{'r1':{'method':'elicitation/create','params':{'message':'m'}},"
			      "'r2':{'method':'elicitation/create','params':{'message':'m','mode':"
			      "'form'}}}"));
	free(asked);
	pass(19999);
	hears_nothing(process(0));
	pass(1);
	hears(process(0), PROGRESSED("'t'", "1"));
	says(process(0), ASKS("9", ",'_meta':{'progressToken':9}"));
	pass(20000);
	hears(process(0), PROGRESSED("'t'", "2"));
	hears(process(0), PROGRESSED("9", "2"));
	asker = try_again(given, "{'r1':{'action':'decline'},'r2':{'action':'decline'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':7,'result':{'action':'decline'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':8,'result':{'action':'decline'}}");
	free(given);
	given = get_asked(asker);
	pass(20000);
	hears(process(0), PROGRESSED("9", "3"));
	asker = try_again(given, "{'r3':{'action':'decline'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':9,'result':{'action':'decline'}}");
	pass(20000);
	hears_nothing(process(0));
	free(given);
}

static void servers_are_told_nothing(void **state)
{
	struct asker *asker = start_call();
	char *given;

	says(process(0), ASKS("7", ",'_meta':{'progressToken':'t'}"));
	given = get_asked(asker);
	pass(60000);
	hears_nothing(process(0));
	asker = try_again(given, "{'r1':{'action':'decline'}}");
	hears(process(0), "{'jsonrpc':'2.0','id':7,'result':{'action':'decline'}}");
	free(given);
}

/* ---- what no server is asked ---- */

/* The refusal is ours: no process has answered. FRONT-ERA-07 */
static void what_is_not_offered_is_not_found(void **state)
{
	struct asker *asker = ask(
		"{'jsonrpc':'2.0','id':1,'method':'prompts/get','params':{'name':'p'," ASKER_META(
			CAN) "}}");

	hears(process(0), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(0), "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25',"
			 "'capabilities':{'tools':{}},'serverInfo':{'name':'s','version':'1'}}}");
	hears(process(0), INITIALIZED);
	was_refused(asker, "-32601", "");
	assert_int_equal(asker->http_status, 404);
	hears_nothing(process(0));
}

/* ---- what its client hears ---- */

/* The server knows the client's capabilities, asks for another all the same, and fails over it. MOD-CAP-01 */
static void what_was_asked_in_vain_is_named(void **state)
{
	struct asker *asker = start_call();

	says(process(0), "{'jsonrpc':'2.0','id':7,'method':'roots/list'}");
	reads_one(0); /* that there is none */
	says(process(0), "{'jsonrpc':'2.0','id':2,'error':{'code':-32000,'message':'m'}}");
	was_answered(asker, 400,
		     "{'jsonrpc':'2.0','id':1,'error':{'code':-32021,'message':'Missing required "
		     "client capability','data':{'requiredCapabilities':{'roots':{}}}}}");
}

/* The same of a mode that it has not declared. */
static void what_mode_was_asked_in_vain_is_named(void **state)
{
	struct asker *asker = start_call();

	says(process(0), ASKS("7", ",'mode':'url','url':'u'"));
	reads_one(0); /* that it cannot be */
	says(process(0), ERROR("2", "-32000"));
	was_answered(
		asker, 400,
		"{'jsonrpc':'2.0','id':1,'error':{'code':-32021,'message':'Missing required "
		"client capability','data':{'requiredCapabilities':{'elicitation':{'url':{}}}}}}");
}

/* A legacy server offers the method, so it is the tool that it does not know. bridging.md §2.3.5 */
static void an_unknown_tool_is_no_unknown_method(void **state)
{
	struct asker *asker = start_call();

	says(process(0), ERROR("2", "-32601"));
	was_answered(asker, 0, ERROR("1", "-32602"));
}

/* Not where it may have been for another call, or for none. */
static void what_was_asked_for_another_is_not_named(void **state)
{
	struct asker *askers[3];

	for (size_t i = 0; i < ARRAY_LEN(askers); i++) {
		askers[i] = ask(ASK_TOOL("1", "", ""));
		if (i == 0)
			get_ready(0);
		reads_one(0);
		says(process(0), "{'jsonrpc':'2.0','id':7,'method':'roots/list'}");
		if (i != 1)
			continue; /* it has two calls, and then one */
		says(process(0), ERROR("2", "-32000"));
		says(process(0), ERROR("3", "-32000"));
		says(process(0), "{'jsonrpc':'2.0','id':8,'method':'roots/list'}");
	}
	was_answered(askers[1], 0, ERROR("1", "-32000"));
	says(process(0), ERROR("4", "-32000"));
	assert_int_equal(askers[2]->http_status, 400);
}

/* bridging.md §2.5: there are no tasks between the eras; what a server says of one all the same is left as it is. */
static void tasks_are_no_word_for_it(void **state)
{
	static const char said[] = "'task':{'taskId':'t'}";
	struct asker *asker = start_call();

	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'task':{'taskId':'t'}}}");
	assert_int_equal(asker->ending, ENDING_RESPONSE);
	assert_non_null(strstr(buf_terminate(&asker->response), q(said)));
}

/* Progress and log lines are for the request that waits now, as it wants them. MOD-LOG-01 */
static void each_request_says_what_it_hears(void **state)
{
	struct asker *asker = ask("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':"
				  "'t'," META_WITH("'progressToken':'t'") "}}");
	struct buf text = { 0 };
	char *given;

	hears(process(0), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(0), WELCOME);
	hears(process(0), INITIALIZED);
	reads_one(0); /* the call */
	says(process(0), LOGGED);
	says(process(0), PROGRESSED("2", "1"));
	assert_string_equal(buf_terminate(&asker->messages), q(PROGRESSED("'t'", "1") "|"));
	says(process(0), ASKS("7", ""));
	given = get_asked(asker);
	buf_printf(&text,
		   "{'jsonrpc':'2.0','id':5,'method':'tools/call','params':{'name':'t',"
		   "'requestState':%s,'inputResponses':{'r1':{'action':'decline'}}," META_WITH(
			   "'io.modelcontextprotocol/logLevel':'info'") "}}",
		   given);
	asker = ask(buf_terminate(&text));
	reads_one(0); /* the answer */
	says(process(0), PROGRESSED("2", "2"));
	says(process(0), LOGGED);
	assert_string_equal(buf_terminate(&asker->messages), q(LOGGED "|"));
	buf_fini(&text);
	free(given);
}

/* ---- (j): what is told while nobody is there to hear it ---- */

#define HEARS(token, level) \
	META_WITH("'progressToken':" token ",'io.modelcontextprotocol/logLevel':" level)

static struct asker *ask_with(const char *more, const char *meta)
{
	struct buf text = { 0 };
	struct asker *asker;

	buf_printf(&text,
		   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'t'%s,%s}}",
		   more, meta);
	asker = ask(buf_terminate(&text));
	buf_fini(&text);
	return asker;
}

/* Returns the requestState, to be freed. */
static char *begin_parked(void)
{
	struct asker *asker = ask_with("", HEARS("'t'", "'info'"));

	hears(process(0), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(0), WELCOME);
	hears(process(0), INITIALIZED);
	hears(process(0),
	      "{'jsonrpc':'2.0','id':2,'method':'logging/setLevel','params':{'level':'info'}}");
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{}}");
	reads_one(0); /* the call, which is 3 there */
	says(process(0), ASKS("7", ""));
	return get_asked(asker);
}

static struct asker *retry_with(const char *state, const char *answers, const char *meta)
{
	struct buf more = { 0 };
	struct asker *asker;

	buf_printf(&more, ",'requestState':%s,'inputResponses':%s", state, answers);
	asker = ask_with(buf_terminate(&more), meta);
	buf_fini(&more);
	return asker;
}

static void the_next_request_hears_it(void **state)
{
	char *given = begin_parked();
	struct asker *asker;

	says(process(0), PROGRESSED("3", "1"));
	says(process(0), LOGGED);
	says(process(0), PROGRESSED("3", "2"));
	asker = retry_with(given, "{'r1':7}", HEARS("'bad'", "'info'"));
	assert_int_equal(asker->http_status, 400);
	assert_int_equal(asker->messages.len, 0);
	asker = retry_with(given, "{'r1':{'action':'decline'}}", HEARS("'u'", "'info'"));
	reads_one(0); /* the answer */
	says(process(0), PROGRESSED("3", "3"));
	assert_string_equal(buf_terminate(&asker->messages),
			    q(PROGRESSED("'u'", "1") "|" LOGGED
						     "|" PROGRESSED("'u'",
								    "2") "|" PROGRESSED("'u'",
											"3") "|"));
	free(given);
}

/* It has a level and a token of its own, or none. */
static void it_hears_what_it_wants(void **state)
{
	char *given = begin_parked();
	struct asker *asker;

	says(process(0), PROGRESSED("3", "1"));
	says(process(0), LOGGED);
	asker = retry_with(given, "{'r1':{'action':'decline'}}", HEARS("'u'", "'error'"));
	reads_one(0); /* the answer */
	assert_string_equal(buf_terminate(&asker->messages), q(PROGRESSED("'u'", "1") "|"));
	free(given);
	says(process(0), ASKS("8", ""));
	given = get_asked(asker);
	says(process(0), PROGRESSED("3", "2"));
	asker = retry_with(given, "{'r2':{'action':'decline'}}",
			   META_WITH("'io.modelcontextprotocol/logLevel':'info'"));
	reads_one(0); /* the answer */
	says(process(0), LOGGED);
	assert_string_equal(buf_terminate(&asker->messages), q(LOGGED "|"));
	free(given);
}

/* The server has answered meanwhile, or is gone, or is still to hear an answer. */
static void it_hears_it_before_its_answer(void **state)
{
	char *given = begin_parked();
	struct asker *asker;

	says(process(0), PROGRESSED("3", "1"));
	asker = retry_with(given, "{}", HEARS("'u'", "'info'"));
	assert_string_equal(buf_terminate(&asker->messages), q(PROGRESSED("'u'", "1") "|"));
	free(given);
	given = result_member(asker, "requestState");
	says(process(0), PROGRESSED("3", "2"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'content':[]}}");
	asker = retry_with(given, "{}", HEARS("'v'", "'info'"));
	assert_string_equal(buf_terminate(&asker->messages), q(PROGRESSED("'v'", "2") "|"));
	assert_int_equal(asker->ending, ENDING_RESPONSE);
	free(given);
}

static void it_hears_it_before_the_loss(void **state)
{
	char *given = begin_parked();
	struct asker *asker;

	says(process(0), PROGRESSED("3", "1"));
	exits(process(0), 1);
	asker = retry_with(given, "{}", HEARS("'u'", "'info'"));
	assert_string_equal(buf_terminate(&asker->messages), q(PROGRESSED("'u'", "1") "|"));
	assert_int_equal(asker->ending, ENDING_FAILED);
	assert_int_equal(asker->reason, REASON_PARKED_LOST);
	free(given);
}

/* Nothing of it counts, its level neither. (b), (c) */
static void a_bad_retry_changes_no_level(void **state)
{
	char *given = begin_parked();
	struct asker *asker = retry_with(given, "{'r1':7}", META_WITH("'k':1"));

	assert_int_equal(asker->http_status, 400);
	says(process(0), LOGGED);
	asker = retry_with(given, "{'r1':{'action':'decline'}}", HEARS("'u'", "'info'"));
	reads_one(0); /* the answer */
	assert_string_equal(buf_terminate(&asker->messages), q(LOGGED "|"));
	free(given);
}

/* MOD-SUB-02: what a client has to do with what it listens to, the gateway alone says. */
static void nothing_is_told_of_listening(void **state)
{
	char *given = begin_parked();
	struct asker *asker;

	says(process(0), "{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged'}");
	says(process(0),
	     "{'jsonrpc':'2.0','method':'notifications/tasks','params':{'taskId':'t'}}");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/x','params':{'_meta':{"
			 "'io.modelcontextprotocol/subscriptionId':1}}}");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/x','params':{'_meta':{},"
			 "'_meta':{'io.modelcontextprotocol/subscriptionId':1}}}");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/x','params':{'_m\\u0065ta':{"
			 "'io.modelcontextprotocol/subscriptionId':1}}}");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/y'}");
	asker = retry_with(given, "{'r1':{'action':'decline'}}", HEARS("'u'", "'info'"));
	reads_one(0); /* the answer */
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged'}");
	says(process(0), "{'jsonrpc':'2.0','method':'notifications/z'}");
	assert_string_equal(buf_terminate(&asker->messages),
			    q("{'jsonrpc':'2.0','method':'notifications/y'}|"
			      "{'jsonrpc':'2.0','method':'notifications/z'}|"));
	free(given);
}

/* FRONT-SSE-02 */
static void what_a_server_calls_itself_is_one_line(void **state)
{
	struct asker *asker = ask(ASK_TOOL("1", CAN, ""));
	char *given;

	hears(process(0), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(0), "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25',"
			 "'capabilities':{'tools':{}},'serverInfo':{'name':'s',\r'version':'1'}}}");
	hears(process(0), INITIALIZED);
	hears(process(0), CALLED("2"));
	says(process(0), ASKS("7", ""));
	given = get_asked(asker);
	assert_non_null(strstr(buf_terminate(&asker->response),
			       q("'_meta':{'io.modelcontextprotocol/serverInfo':{'name':'s',")));
	assert_null(strchr(buf_terminate(&asker->response), '\r'));
	asker = try_again(given, "{'r1':{'action':'decline'}}");
	reads_one(0); /* the answer */
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'content':[]}}");
	assert_non_null(strstr(buf_terminate(&asker->response), "serverInfo"));
	assert_null(strchr(buf_terminate(&asker->response), '\r'));
	free(given);
}

static size_t count_bars(struct asker *asker)
{
	size_t count = 0;

	for (const char *at = buf_terminate(&asker->messages); *at != '\0'; at++)
		count += *at == '|';
	return count;
}

static void tells_progress(size_t first, size_t last, size_t padding)
{
	struct buf text = { 0 };

	for (size_t i = first; i <= last; i++) {
		text.len = 0;
		buf_printf(&text,
			   "{'jsonrpc':'2.0','method':'notifications/progress','params':{"
			   "'progressToken':3,'progress':%zu,'message':'%0*d'}}",
			   i, (int)padding, 0);
		says(process(0), buf_terminate(&text));
	}
	buf_fini(&text);
}

/* The oldest goes, by number and by bytes. */
static void it_hears_so_much(void **state)
{
	uint64_t dropped = counter_get(COUNTER_STREAM_DROPPED);
	char *given = begin_parked();
	struct asker *asker;

	tells_progress(1, 66, 1);
	asker = retry_with(given, "{}", HEARS("'u'", "'info'"));
	assert_int_equal(count_bars(asker), 64);
	assert_non_null(strstr(buf_terminate(&asker->messages), q("'progress':3,")));
	assert_null(strstr(buf_terminate(&asker->messages), q("'progress':2,")));
	assert_int_equal(counter_get(COUNTER_STREAM_DROPPED) - dropped, 2);
	free(given);
	given = result_member(asker, "requestState");
	tells_progress(67, 76, 10000);
	asker = retry_with(given, "{}", HEARS("'u'", "'info'"));
	assert_int_equal(count_bars(asker), 3);
	free(given);
	given = result_member(asker, "requestState");
	tells_progress(77, 77, 1);
	tells_progress(78, 78, 40000); /* leaves what is there */
	asker = retry_with(given, "{}", HEARS("'u'", "'info'"));
	assert_int_equal(count_bars(asker), 1);
	free(given);
	given = result_member(asker, "requestState");
	tells_progress(79, 80, 1); /* nobody comes for it */
	free(given);
}

/* ---- bounds ---- */

/* Of the processes that a server may have, calls that wait for their clients hold one half. */
static void some_processes_are_left_to_others(void **state)
{
	static const char *const answers = "{'r1':{'action':'decline'}}";
	char *given[2];

	for (size_t i = 0; i < 2; i++) {
		struct asker *asker = start_call_as(&router.sessions.principals.anonymous, i);

		says(process(i), ASKS("7", ""));
		given[i] = get_asked(asker);
	}
	was_refused(try_again(given[0], answers), "-32602", "'invalid_request_state'");
	try_again(given[1], answers);
	hears(process(1), "{'jsonrpc':'2.0','id':7,'result':{'action':'decline'}}");
	free(given[0]);
	free(given[1]);
}

/* One caller has eight calls that wait for him; anonymous ones of this machine may be many callers. */
static void callers_have_so_many(struct principal *principal, bool is_first_kept)
{
	static const char *const answers = "{'r1':{'action':'decline'}}";
	char *first = NULL;
	struct asker *asker;

	servers[0].conf.pool_max = 20;
	for (size_t i = 0; i < 9; i++) {
		asker = start_call_as(principal, i);
		says(process(i), ASKS("7", ""));
		pass(20);
		if (i == 0)
			first = result_member(asker, "requestState");
	}
	asker = try_again_as(principal, first, answers);
	if (is_first_kept)
		hears(process(0), "{'jsonrpc':'2.0','id':7,'result':{'action':'decline'}}");
	else
		was_refused(asker, "-32602", "'invalid_request_state'");
	free(first);
}

static void a_caller_has_so_many(void **state)
{
	callers_have_so_many(alice, false);
}

static void a_crowd_is_many_callers(void **state)
{
	callers_have_so_many(&router.sessions.principals.anonymous, true);
}

/* ---- who and what may go on ---- */

static const char *const declined = "{'r1':{'action':'decline'}}";

static void deny(const struct principal *principal)
{
	assert_non_null(deny_list_add(&router.sessions.deny_list, principal->identity.issuer,
				      DENIAL_BY_SUB, principal->identity.subject, UINT64_MAX));
}

/* The server is told to stop, and nobody can go on. */
static void is_given_up(const char *given, struct principal *principal)
{
	pass(0);
	hears(process(0), "{'jsonrpc':'2.0','id':7,'result':{'action':'cancel'}}");
	reads_one(0); /* the cancellation */
	was_refused(try_again_as(principal, given, declined), "-32602", "'invalid_request_state'");
}

static void a_denied_token_ends_it(void **state)
{
	struct asker *asker = start_call_as(alice, 0);
	char *given;

	says(process(0), ASKS("7", ""));
	given = get_asked(asker);
	deny(bob);
	hears_nothing(process(0));
	deny(alice);
	is_given_up(given, alice);
	free(given);
}

/* The request that waits watches its own token; the next one may have another, which is then the one that counts. */
static void the_token_of_the_last_request_counts(void **state)
{
	struct asker *asker = start_call_as(alice, 0);
	char *given;

	says(process(0), ASKS("7", ""));
	given = get_asked(asker);
	asker = try_again_as(alice, given, declined);
	hears(process(0), "{'jsonrpc':'2.0','id':7,'result':{'action':'decline'}}");
	deny(alice);
	hears_nothing(process(0));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'content':[]}}");
	assert_int_equal(asker->ending, ENDING_RESPONSE);
	free(given);
}

static void asks_in_vain(size_t i)
{
	says(process(i), ASKS("7", ""));
	hears(process(i),
	      "{'jsonrpc':'2.0','id':7,'error':{'code':-32603,'message':'no client can be asked now'}}");
}

/* Other requests reach the server that is in use now. */
static void a_retired_server_asks_in_vain(void **state)
{
	struct asker *asker;
	char *given;

	servers[0].conf.pool_max = 20;
	asker = start_call();
	says(process(0), ASKS("7", ""));
	given = get_asked(asker);
	start_call_as(&router.sessions.principals.anonymous, 1);
	asker = start_call_as(&router.sessions.principals.anonymous, 2);
	says(process(2), ASKS("7", ""));
	router_retire_server(&router, &servers[0]);
	is_given_up(given, &router.sessions.principals.anonymous);
	asks_in_vain(1);
	pass(20);
	assert_int_equal(asker->ending, ENDING_FAILED);
	assert_int_equal(asker->reason, REASON_RETIRED);
	free(given);
}

static void anonymous_calls_end_where_tokens_are_needed(void **state)
{
	struct asker *asker;
	char *given;

	servers[0].conf.pool_max = 20;
	asker = start_call();
	says(process(0), ASKS("7", ""));
	given = get_asked(asker);
	asker = start_call_as(alice, 1);
	says(process(1), ASKS("7", ""));
	pass(20);
	start_call_as(&router.sessions.principals.anonymous, 2);
	router_end_anonymous(&router, REASON_DENIED);
	is_given_up(given, &router.sessions.principals.anonymous);
	hears_nothing(process(1));
	asks_in_vain(2);
	free(given);
	asker = start_call_as(&router.sessions.principals.anonymous, 3); /* tokens went again */
	says(process(3), ASKS("7", ""));
	given = get_asked(asker);
	assert_non_null(given);
	free(given);
}

static bool judged_as; /* what is said of a call that a reload has overtaken */
static const struct call *judged;

static bool judge_again(struct call *call, const struct envelope *env,
			struct call_refusal *refusal_r)
{
	assert_ptr_equal(call, judged);
	*refusal_r = (struct call_refusal){
		.code = -32602, .text = "not any more", .rule = RULE_SCHEMA, .word = "denied"
	};
	return judged_as;
}

/* A call that waits while its client's rights change goes on only if it still may. */
static struct asker *wait_over_a_reload(bool may_go_on)
{
	static struct call_ops ops;
	struct asker *asker = ask(ASK_TOOL("1", CAN, ""));

	judged_as = may_go_on;
	judged = &asker->call;
	ops = *asker->call.ops;
	ops.judge = judge_again;
	asker->call.ops = &ops;
	hears(process(0), HANDSHAKE("'elicitation':{'form':{}}"));
	router.configuration++;
	says(process(0), WELCOME);
	hears(process(0), INITIALIZED);
	return asker;
}

static void who_has_waited_is_judged_again(void **state)
{
	struct asker *asker = wait_over_a_reload(false);

	hears_nothing(process(0));
	was_answered(asker, 0,
		     "{'jsonrpc':'2.0','id':1,'error':{'code':-32602,'message':'not any more'}}");
	assert_int_equal(asker->call.refused_by, RULE_SCHEMA); /* as its record says */
	assert_string_equal(asker->call.refused_as, "denied");
}

static void who_may_still_goes_on(void **state)
{
	wait_over_a_reload(true);
	hears(process(0), CALLED("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'content':[]}}");
}

/* The call may finish, but its client will not be let in again. */
static void who_leaves_asks_nobody(void **state)
{
	start_call();
	router_drain(&router);
	asks_in_vain(0);
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'content':[]}}");
}

/* ---- modern servers ---- */

/* A server that has given no state gets none back: what its client has brought is ours. BACK-MSG-04 */
static void servers_without_a_state_get_none(void **state)
{
	struct asker *asker;
	const char *line;
	char *given;

	servers[0].conf.era = ERA_MODERN;
	asker = ask(ASK_TOOL("1", CAN, ""));
	reads_one(0); /* server/discover */
	says(process(0), "{'jsonrpc':'2.0','id':1,'result':{'resultType':'complete',"
			 "'supportedVersions':['2026-07-28'],'capabilities':{'tools':{}},"
			 "'ttlMs':0,'cacheScope':'private'}}");
	reads_one(0); /* the call */
	says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'resultType':'input_required',"
			 "'inputRequests':{'q':{'method':'elicitation/create','params':{'message':"
			 "'m','requestedSchema':{}}}}}}");
	given = result_member(asker, "requestState");
	assert_non_null(given);
	asker = try_again(given, "{'q':{'action':'decline'}}");
	line = fake_process_read(process(0));
	assert_non_null(strstr(line, "inputResponses"));
	assert_null(strstr(line, "requestState"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'resultType':'complete'}}");
	assert_int_equal(asker->ending, ENDING_RESPONSE);
	free(given);
}

/* The process that has asked is the one that is asked again. §2.4 */
static void retries_go_to_the_process_that_has_asked(void **state)
{
	struct asker *asker;
	char *given;

	servers[0].conf.era = ERA_MODERN;
	asker = ask(ASK_TOOL("1", CAN, ""));
	for (size_t i = 0; i < 2; i++) {
		reads_one(i); /* server/discover */
		says(process(i), "{'jsonrpc':'2.0','id':1,'result':{'resultType':'complete',"
				 "'supportedVersions':['2026-07-28'],'capabilities':{'tools':{}},"
				 "'ttlMs':0,'cacheScope':'private'}}");
		reads_one(i); /* the call */
		if (i > 0)
			break;
		says(process(0), "{'jsonrpc':'2.0','id':2,'result':{'resultType':"
				 "'input_required','requestState':'x'}}");
		given = result_member(asker, "requestState");
		for (size_t n = 0; n < 3; n++)
			ask(ASK_TOOL("1", CAN, ""));
		reads_one(0);
		reads_one(0);
	}
	says(process(0), "{'jsonrpc':'2.0','id':3,'result':{'resultType':'complete'}}");
	says(process(1), "{'jsonrpc':'2.0','id':2,'result':{'resultType':'complete'}}");
	try_again(given, "{}");
	reads_one(0); /* that has more to do than the other one, which is idle */
	says(process(0), "{'jsonrpc':'2.0','id':5,'result':{'resultType':'complete'}}");
	free(given);
}

/* The server is alive, and may wait for an answer: it gets one. */
static void a_call_that_takes_too_long_leaves_nothing(void **state)
{
	struct asker *asker;
	char *given;

	servers[0].conf.request_timeout_max_ms = 30000;
	asker = start_call();
	says(process(0), ASKS("7", ""));
	given = get_asked(asker);
	pass(30000);
	reads_one(0); /* the cancellation */
	hears(process(0), "{'jsonrpc':'2.0','id':7,'result':{'action':'cancel'}}");
	was_refused(try_again(given, "{'r1':{'action':'decline'}}"), "-32602",
		    "'invalid_request_state'");
	free(given);
}

#define BRIDGE_TEST(name) cmocka_unit_test_setup_teardown(name, request_setup, request_teardown)

static const struct CMUnitTest tests[] = {
	BRIDGE_TEST(servers_are_told_to_wait),
	BRIDGE_TEST(servers_are_told_nothing),
	BRIDGE_TEST(what_is_not_offered_is_not_found),
	BRIDGE_TEST(what_was_asked_in_vain_is_named),
	BRIDGE_TEST(what_mode_was_asked_in_vain_is_named),
	BRIDGE_TEST(an_unknown_tool_is_no_unknown_method),
	BRIDGE_TEST(what_was_asked_for_another_is_not_named),
	BRIDGE_TEST(tasks_are_no_word_for_it),
	BRIDGE_TEST(each_request_says_what_it_hears),
	BRIDGE_TEST(the_next_request_hears_it),
	BRIDGE_TEST(it_hears_what_it_wants),
	BRIDGE_TEST(it_hears_it_before_its_answer),
	BRIDGE_TEST(it_hears_it_before_the_loss),
	BRIDGE_TEST(it_hears_so_much),
	BRIDGE_TEST(a_bad_retry_changes_no_level),
	BRIDGE_TEST(nothing_is_told_of_listening),
	BRIDGE_TEST(what_a_server_calls_itself_is_one_line),
	BRIDGE_TEST(some_processes_are_left_to_others),
	BRIDGE_TEST(a_caller_has_so_many),
	BRIDGE_TEST(a_crowd_is_many_callers),
	BRIDGE_TEST(a_denied_token_ends_it),
	BRIDGE_TEST(the_token_of_the_last_request_counts),
	BRIDGE_TEST(a_retired_server_asks_in_vain),
	BRIDGE_TEST(anonymous_calls_end_where_tokens_are_needed),
	BRIDGE_TEST(who_has_waited_is_judged_again),
	BRIDGE_TEST(who_may_still_goes_on),
	BRIDGE_TEST(who_leaves_asks_nobody),
	BRIDGE_TEST(retries_go_to_the_process_that_has_asked),
	BRIDGE_TEST(servers_without_a_state_get_none),
	BRIDGE_TEST(a_call_that_takes_too_long_leaves_nothing),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
