/* SPDX-License-Identifier: Apache-2.0 */
/* A legacy server wants URLs to be opened; its modern client does that, and tries again. bridging.md §2.3.7 */

#include "router/request_stage.h"
#include "router/url_pending.h"
#include "router/url_replay.h"

#define WAIT_MS 20000
#define CAN "'elicitation':{'url':{}}"
#define TOLD HANDSHAKE("'elicitation':{'url':{}}")
#define URL(id, url) "{'mode':'url','elicitationId':" id ",'message':'m','url':" url "}"
#define WANTS(id, list)             \
	"{'jsonrpc':'2.0','id':" id \
	",'error':{'code':-32042,'message':'m','data':{'elicitations':[" list "]}}}"
#define REQUEST(url) \
	"{'method':'elicitation/create','params':{'mode':'url','message':'m','url':" url "}}"
#define COMPLETE(id)                                                                                   \
	"{'jsonrpc':'2.0','method':'notifications/elicitation/complete','params':{'elicitationId':" id \
	"}}"
#define ACCEPT "{'action':'accept'}"
#define DONE(id)                                                                              \
	"{'jsonrpc':'2.0','id':" id ",'result':{'resultType':'complete','ok':1,'_meta':{'io." \
	"modelcontextprotocol/serverInfo':{'name':'s','version':'1'}}}}"

/* The process i begins for who can be asked to open URLs. */
static void get_told(size_t i)
{
	hears(process(i), TOLD);
	says(process(i), WELCOME);
	hears(process(i), INITIALIZED);
}

static struct asker *start_call(void)
{
	struct asker *asker = ask(ASK_TOOL("1", CAN, ""));

	get_told(0);
	hears(process(0), CALLED("2"));
	return asker;
}

/* It was asked to open these; returns its requestState, good until the next one. */
static const char *was_asked(struct asker *asker, const char *requests)
{
	static char state[1024];
	char *found = result_member(asker, "inputRequests");

	assert_string_equal(found != NULL ? found : "", q(requests));
	free(found);
	found = result_member(asker, "requestState");
	assert_non_null(found);
	snprintf(state, sizeof(state), "%s", found);
	free(found);
	assert_int_equal(asker->http_status, 0);
	return state;
}

static struct asker *ask_again_as(struct principal *principal, const char *id, const char *state,
				  const char *answers)
{
	struct buf text = { 0 };
	struct asker *asker;

	buf_printf(&text, ASK_TOOL("%s", CAN, ",'requestState':%s,'inputResponses':%s"), id, state,
		   answers);
	asker = ask_as(principal, buf_terminate(&text));
	buf_fini(&text);
	return asker;
}

static struct asker *ask_again(const char *id, const char *state, const char *answers)
{
	return ask_again_as(&router.sessions.principals.anonymous, id, state, answers);
}

/* ---- the stories ---- */

/* The server tells that it is through: the call is made anew, at the same process. */
static void what_is_complete_runs_again(void **state)
{
	struct asker *asker = start_call();
	const char *given;

	says(process(0), WANTS("2", URL("'a'", "'u:1'") "," URL("'b'", "'u:2'")));
	given = was_asked(asker, "{'e1':" REQUEST("'u:1'") ",'e2':" REQUEST("'u:2'") "}");
	asker = ask_again("5", given, "{'e1':" ACCEPT ",'e2':" ACCEPT "}");
	hears_nothing(process(0));
	says(process(0), COMPLETE("'z'"));
	says(process(0), COMPLETE("'b'"));
	hears_nothing(process(0));
	says(process(0), COMPLETE("'a'"));
	hears(process(0), CALLED("3"));
	says(process(0), RESULT("3"));
	was_answered(asker, 0, DONE("5"));
	assert_int_equal(keeper.count, 1);
}

/* It was through before the client came back; and the state is good for another time: that is the client's own will. */
static void what_was_complete_before(void **state)
{
	struct asker *asker = start_call();
	const char *given;

	says(process(0), WANTS("2", URL("'a'", "'u:1'")));
	given = was_asked(asker, "{'e1':" REQUEST("'u:1'") "}");
	says(process(0), COMPLETE("'a'"));
	for (size_t i = 3; i < 5; i++) {
		asker = ask_again("5", given, "{'e1':" ACCEPT "}");
		hears(process(0), i == 3 ? CALLED("3") : CALLED("4"));
		says(process(0), i == 3 ? RESULT("3") : RESULT("4"));
		was_answered(asker, 0, DONE("5"));
	}
}

/* One was through before the client had accepted the other: it is not waited for again. */
static void what_was_complete_in_part(void **state)
{
	struct asker *asker = start_call();
	const char *given;

	says(process(0), WANTS("2", URL("'a'", "'u:1'") "," URL("'b'", "'u:2'")));
	given = was_asked(asker, "{'e1':" REQUEST("'u:1'") ",'e2':" REQUEST("'u:2'") "}");
	says(process(0), COMPLETE("'a'"));
	asker = ask_again("5", given, "{'e1':" ACCEPT "}");
	given = was_asked(asker, "{'e2':" REQUEST("'u:2'") "}");
	says(process(0), COMPLETE("'b'"));
	asker = ask_again("6", given, "{'e2':" ACCEPT "}");
	hears(process(0), CALLED("3"));
	says(process(0), RESULT("3"));
	was_answered(asker, 0, DONE("6"));
}

/* A server that says nothing is asked again after a while; if it wants more, so it is. */
static void the_wait_is_bounded(void **state)
{
	struct asker *asker = start_call();
	const char *given;

	says(process(0), WANTS("2", URL("'a'", "'u:1'")));
	given = was_asked(asker, "{'e1':" REQUEST("'u:1'") "}");
	asker = ask_again("5", given, "{'e1':" ACCEPT "}");
	pass(WAIT_MS - 1);
	hears_nothing(process(0));
	pass(1);
	hears(process(0), CALLED("3"));
	says(process(0), WANTS("3", URL("'a'", "'u:1'")));
	was_asked(asker, "{'e1':" REQUEST("'u:1'") "}");
}

/* Who waits does not hold the process: others have it meanwhile. */
static void nothing_is_held(void **state)
{
	struct asker *asker = start_call(), *other;
	const char *given;

	says(process(0), WANTS("2", URL("'a'", "'u:1'")));
	given = was_asked(asker, "{'e1':" REQUEST("'u:1'") "}");
	other = ask(ASK_TOOL("2", CAN, ""));
	hears(process(0), CALLED("3"));
	asker = ask_again("5", given, "{'e1':" ACCEPT "}");
	says(process(0), RESULT("3"));
	was_answered(other, 0, DONE("2"));
	assert_true(list_is_empty(&router.parked_calls.kept));
	call_cancel(&asker->call);
	pass(WAIT_MS);
	hears_nothing(process(0));
}

static void processes_that_go(void **state)
{
	struct asker *asker = start_call();
	const char *given;

	says(process(0), WANTS("2", URL("'a'", "'u:1'")));
	given = was_asked(asker, "{'e1':" REQUEST("'u:1'") "}");
	asker = ask_again("5", given, "{'e1':" ACCEPT "}");
	exits(process(0), 0);
	get_told(1);
	hears(process(1), CALLED("2"));
	says(process(1), RESULT("2"));
	was_answered(asker, 0, DONE("5"));
}

/* In one turn the URLs become complete, and whoever waits for that leaves. */
static void who_leaves_when_all_is_complete(void **state)
{
	struct asker *asker = start_call();
	struct upstream *upstream;
	struct pool *pool = asker->call.client->pool;
	const char *given;

	upstream = container_of(pool->upstreams.next, struct upstream, link);
	says(process(0), WANTS("2", URL("'a'", "'u:1'")));
	given = was_asked(asker, "{'e1':" REQUEST("'u:1'") "}");
	asker = ask_again("5", given, "{'e1':" ACCEPT "}");
	assert_true(
		url_pending_end(&pool->urls, upstream_child_number(upstream), SLICE_LIT("\"a\"")));
	call_cancel(&asker->call);
	settle();
	hears_nothing(process(0));
}

/* MOD-MRTR-05 */
static void answers_that_do_not_do(void **state)
{
	struct asker *asker = start_call();
	char *given;

	says(process(0), WANTS("2", URL("'a'", "'u:1'") "," URL("'b'", "'u:2'")));
	given = strdup(was_asked(asker, "{'e1':" REQUEST("'u:1'") ",'e2':" REQUEST("'u:2'") "}"));
	was_refused(ask_again("5", given, "{'e1':1}"), "-32602", "");
	was_answered(ask_again("5", given, "{'e1':" ACCEPT ",'e2':{'action':'decline'}}"), 0,
		     "{'jsonrpc':'2.0','id':5,'result':{'resultType':'complete','content':[{'type':"
		     "'text','text':'The URL that the server wants to be opened was declined'}],"
		     "'isError':true,'_meta':{'io.modelcontextprotocol/serverInfo':{'name':'s',"
		     "'version':'1'}}}}");
	asker = ask_again("5", given, "{'e2':" ACCEPT "}");
	free(given);
	given = strdup(was_asked(asker, "{'e1':" REQUEST("'u:1'") "}"));
	says(process(0), COMPLETE("'a'"));
	asker = ask_again("5", given, "{'e1':" ACCEPT "}");
	hears_nothing(process(0));
	says(process(0), COMPLETE("'b'"));
	hears(process(0), CALLED("3"));
	free(given);
}

/* MOD-MRTR-03: of another caller, of other arguments, changed. */
static void states_of_others(void **state)
{
	struct asker *asker = ask_as(alice, ASK_TOOL("1", CAN, ""));
	char *given;

	get_told(0);
	hears(process(0), CALLED("2"));
	says(process(0), WANTS("2", URL("'a'", "'u:1'")));
	given = strdup(was_asked(asker, "{'e1':" REQUEST("'u:1'") "}"));
	asker = ask_again_as(bob, "5", given, "{'e1':" ACCEPT "}");
	get_told(1);
	was_refused(asker, "-32602", "'invalid_request_state'");
	hears_nothing(process(1));
	given[strlen(given) - 3] ^= 1;
	was_refused(ask_again_as(alice, "5", given, "{'e1':" ACCEPT "}"), "-32602",
		    "'invalid_request_state'");
	hears_nothing(process(0));
	free(given);
}

/* MOD-CAP-01: who cannot open URLs hears that, by whatever way its call went. */
static void clients_that_cannot(void **state)
{
	static const char answer[] =
		"{'jsonrpc':'2.0','id':1,'error':{'code':-32021,'message':'Missing required client "
		"capability','data':{'requiredCapabilities':{'elicitation':{'url':{}}}}}}";
	struct asker *asker = ask(ASK_TOOL("1", "", ""));

	get_ready(0);
	hears(process(0), CALLED("2"));
	says(process(0), WANTS("2", URL("'a'", "'u:1'")));
	was_answered(asker, 400, answer);
	asker = ask(ASK_TOOL("1", "'elicitation':{}", ""));
	hears(process(1), HANDSHAKE("'elicitation':{'form':{}}"));
	says(process(1), WELCOME);
	hears(process(1), INITIALIZED);
	hears(process(1), CALLED("2"));
	says(process(1), WANTS("2", URL("'a'", "'u:1'")));
	was_answered(asker, 400, answer);
}

/* A server that is told of no client's capabilities may want it all the same. */
static void servers_of_all(void **state)
{
	struct asker *asker;
	const char *given;

	servers[0].conf.isolation = ISOLATION_SHARED;
	asker = ask(ASK_TOOL("1", CAN, ""));
	get_ready(0);
	hears(process(0), CALLED("2"));
	says(process(0), WANTS("2", URL("'a'", "'u:1'")));
	given = was_asked(asker, "{'e1':" REQUEST("'u:1'") "}");
	asker = ask_again("5", given, "{'e1':" ACCEPT "}");
	hears_nothing(process(0));
	says(process(0), COMPLETE("'a'"));
	hears(process(0), CALLED("3"));
	says(process(0), RESULT("3"));
	was_answered(asker, 0, DONE("5"));
}

/* What does not say what it should is an error like any of no meaning in the era. */
static void errors_that_are_none(void **state)
{
	struct asker *asker = start_call();

	says(process(0), WANTS("2", "{'mode':'form'}"));
	was_refused(asker, "-32603", "");
}

/* ---- what is pending ---- */

static unsigned int told;

static void on_over(struct url_waiter *waiter)
{
	told++;
}

static void add(struct url_pending *pending, uint64_t child, int number)
{
	char text[32];

	snprintf(text, sizeof(text), "[{\"id\":\"%d\"}]", number);
	url_pending_add(pending, child, slice_str(text));
}

/* Whoever gives out most only makes others wait less. */
static void what_is_pending_is_bounded(void **state)
{
	struct url_pending pending;
	struct url_waiter waiter = { .on_over = on_over, .child = 1 };

	told = 0;
	list_init(&waiter.link);
	url_pending_init(&pending);
	waiter.wanted = SLICE_LIT("[{\"id\":\"0\"}]");
	assert_false(url_pending_wait(&pending, &waiter));
	for (int i = 0; i <= URL_PENDING_MAX; i++) {
		add(&pending, 1, i);
		add(&pending, 1, i);
	}
	assert_int_equal(pending.count, URL_PENDING_MAX);
	assert_false(url_pending_wait(&pending, &waiter));
	waiter.wanted = SLICE_LIT("[{\"id\":\"0\"},{\"id\":\"256\"}]");
	assert_true(url_pending_wait(&pending, &waiter));
	assert_false(url_pending_end(&pending, 2, SLICE_LIT("\"256\"")));
	assert_false(url_pending_end(&pending, 1, SLICE_LIT("\"0\"")));
	url_pending_forget(&pending, 2);
	assert_int_equal(told, 0);
	url_pending_forget(&pending, 1);
	assert_int_equal(told, 1);
	assert_int_equal(pending.count, 0);
}

#define REPLAY_TEST(name) cmocka_unit_test_setup_teardown(name, request_setup, request_teardown)

static const struct CMUnitTest tests[] = {
	REPLAY_TEST(what_is_complete_runs_again),
	REPLAY_TEST(what_was_complete_before),
	REPLAY_TEST(what_was_complete_in_part),
	REPLAY_TEST(the_wait_is_bounded),
	REPLAY_TEST(nothing_is_held),
	REPLAY_TEST(processes_that_go),
	REPLAY_TEST(who_leaves_when_all_is_complete),
	REPLAY_TEST(answers_that_do_not_do),
	REPLAY_TEST(states_of_others),
	REPLAY_TEST(clients_that_cannot),
	REPLAY_TEST(servers_of_all),
	REPLAY_TEST(errors_that_are_none),
	cmocka_unit_test(what_is_pending_is_bounded),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
