/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of modern clients at legacy servers that ask: what the server sees of it. bridging.md §2.3.3 */
#include "router/bridged_call.h"

#include "router/request_stage.h"

#define CAN "'elicitation':{}"
#define ASKS(id, more)                                                                            \
	"{'jsonrpc':'2.0','id':" id ",'method':'elicitation/create','params':{'message':'m'" more \
	"}}"
#define PROGRESSED(token, count)                                                              \
	"{'jsonrpc':'2.0','method':'notifications/progress','params':{'progressToken':" token \
	",'progress':" count "}}"

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

static struct asker *try_again(const char *state, const char *answers)
{
	struct buf text = { 0 };
	struct asker *asker;

	buf_printf(&text, ASK_TOOL("5", CAN, ",'requestState':%s,'inputResponses':%s"), state,
		   answers);
	asker = ask(buf_terminate(&text));
	buf_fini(&text);
	return asker;
}

/* ---- (i): progress ---- */

static void servers_are_told_to_wait(void **state)
{
	struct asker *asker;
	char *given;

	servers[0].conf.tells_progress = true;
	asker = start_call();
	says(process(0), ASKS("7", ",'_meta':{'progressToken':'t'}"));
	says(process(0), ASKS("8", ""));
	given = get_asked(asker);
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
		"{'jsonrpc':'2.0','id':1,'method':'prompts/get','params':{'name':'p'," MODERN_META(
			CAN) "}}");

	hears(process(0), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(0), "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25',"
			 "'capabilities':{'tools':{}},'serverInfo':{'name':'s','version':'1'}}}");
	hears(process(0), INITIALIZED);
	was_refused(asker, "-32601", "");
	assert_int_equal(asker->http_status, 404);
	hears_nothing(process(0));
}

#define BRIDGE_TEST(name) cmocka_unit_test_setup_teardown(name, request_setup, request_teardown)

static const struct CMUnitTest tests[] = {
	BRIDGE_TEST(servers_are_told_to_wait),
	BRIDGE_TEST(servers_are_told_nothing),
	BRIDGE_TEST(what_is_not_offered_is_not_found),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
