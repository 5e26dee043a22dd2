/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools that are held against the schema of their tool. MOD-HDR-04, -06, -07 */
#include "router/call_check.h"

#include <stdlib.h>

#include "io/peer.h"
#include "mcp/error.h"
#include "router/client_request.h"
#include "router/pool_stage.h"

#define ASKERS_MAX 8
#define SCHEMA(more) "{'type':'object','properties':{'a':{" more "}}}"
#define TOOL(name, more) "{'name':" name ",'inputSchema':" SCHEMA(more) "}"
#define MIRRORED "'type':'string','x-mcp-header':'A'"
#define META                                                               \
	"'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'," \
	"'io.modelcontextprotocol/clientCapabilities':{}}"
#define ASK_TOOL(id, name) \
	"{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':" name "," META "}}"
#define SENT(id, name)                                                                            \
	"{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':" name ",'_meta':{}" \
	"}}"

/* A request without a session, and its front. */
struct asker {
	struct call call;
	struct buf response;
	enum ending ending;
	int http_status;
	char *schema; /* that it was last held against */
	unsigned int checks;
};

static struct asker askers[ASKERS_MAX];
static size_t asker_count;
static struct tool_verdict verdict; /* of each check */

static struct asker *of_call(struct call *call)
{
	return container_of(call, struct asker, call);
}

static bool on_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg)
{
	return true;
}

static struct tool_verdict check_tool(struct call *call, const struct envelope *env,
				      struct slice input_schema)
{
	struct asker *asker = of_call(call);

	assert_true(slice_is_equal(env->method, SLICE_LIT("tools/call")));
	free(asker->schema);
	asker->schema = strndup(input_schema.p, input_schema.n);
	asker->checks++;
	return verdict;
}

static void end(struct call *call, enum ending ending)
{
	struct asker *asker = of_call(call);

	assert_int_equal(asker->ending, ENDING_NONE);
	asker->ending = ending;
	asker->http_status = call->http_status;
	client_request_close(call->client);
}

static void on_response(struct call *call, const struct slice *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_append_slice(&of_call(call)->response, parts[i]);
	end(call, ENDING_RESPONSE);
}

static void on_failed(struct call *call, enum reason reason)
{
	end(call, ENDING_FAILED);
}

static void on_cancelled(struct call *call)
{
	end(call, ENDING_CANCELLED);
}

static const struct call_ops ops = {
	.on_message = on_message,
	.check_tool = check_tool,
	.on_response = on_response,
	.on_failed = on_failed,
	.on_cancelled = on_cancelled,
};

/* ---- words for the stories ---- */

static struct asker *ask(const char *text)
{
	static const struct peer nobody;
	struct asker *asker = &askers[asker_count++];
	struct envelope env = scan(q(text));

	assert_true(asker_count <= ASKERS_MAX);
	call_init(&asker->call, &ops, &env);
	client_request_open(&router, &servers[0], &router.sessions.principals.anonymous, &nobody,
			    &asker->call, admit(NULL, &env));
	settle();
	return asker;
}

/* The first of all: its process begins, and is asked for the list. */
static struct asker *ask_first(const char *text)
{
	struct asker *asker = ask(text);

	get_ready(0);
	hears(process(0), LIST("2"));
	return asker;
}

static void was_checked(struct asker *asker, const char *schema)
{
	assert_int_equal(asker->checks, 1);
	assert_string_equal(asker->schema, q(schema));
}

static void was_not_checked(const struct asker *asker)
{
	assert_int_equal(asker->checks, 0);
}

static int setup(void **state)
{
	memset(askers, 0, sizeof(askers));
	asker_count = 0;
	verdict = (struct tool_verdict){ .broken = NULL };
	return pool_setup(state);
}

static int teardown(void **state)
{
	router_end_calls(&router, REASON_DRAINING);
	for (size_t i = 0; i < asker_count; i++) {
		assert_int_not_equal(askers[i].ending, ENDING_NONE);
		buf_fini(&askers[i].response);
		free(askers[i].schema);
	}
	return client_stage_close(state);
}

/* ---- the stories ---- */

/* MOD-HDR-07: the list is fetched once for all who wait, then kept; names compare by what they mean. */
static void schemas_are_found(void **state)
{
	struct asker *one = ask_first(ASK_TOOL("1", "'t'"));
	struct asker *two = ask(ASK_TOOL("2", "'\\u0074'"));
	struct asker *other = ask(ASK_TOOL("3", "'z'"));

	hears_nothing(process(0));
	says(process(0), TOOLS("2", TOOL("'s'", "'type':'string'") "," TOOL("'t'", MIRRORED)));
	hears(process(0), SENT("3", "'t'"));
	hears(process(0), SENT("4", "'\\u0074'"));
	was_checked(one, SCHEMA(MIRRORED));
	was_checked(two, SCHEMA(MIRRORED));
	says(process(0), RESULT("3"));
	says(process(0), RESULT("4"));
	hears(process(0), SENT("5", "'z'"));
	was_not_checked(other);
	says(process(0), RESULT("5"));
	assert_int_equal(one->ending, ENDING_RESPONSE);
	one = ask(ASK_TOOL("4", "'t'"));
	was_checked(one, SCHEMA(MIRRORED));
	hears(process(0), SENT("6", "'t'"));
}

/* MOD-HDR-04: what is refused is answered, with 400, and reaches no server. */
static void refusals_are_answers(void **state)
{
	struct asker *asker = ask_first(ASK_TOOL("7", "'t'"));

	verdict = (struct tool_verdict){ .refusal = "no", .code = MCP_HEADER_MISMATCH };
	says(process(0), TOOLS("2", TOOL("'t'", MIRRORED)));
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(asker->ending, ENDING_RESPONSE);
		assert_int_equal(asker->http_status, 400);
		assert_string_equal(
			buf_terminate(&asker->response),
			q("{'jsonrpc':'2.0','id':7,'error':{'code':-32020,'message':'no'}}"));
		hears_nothing(process(0));
		asker = ask(ASK_TOOL("7", "'t'"));
	}
}

/* A list in which nothing is annotated is not searched. */
static void plain_tools_are_not_checked(void **state)
{
	struct asker *asker = ask_first(ASK_TOOL("1", "'t'"));

	says(process(0), TOOLS("2", TOOL("'t'", "'type':'string'")));
	hears(process(0), SENT("3", "'t'"));
	was_not_checked(asker);
}

/* MOD-HDR-06: said once for each list that has it. */
static void broken_annotations_do_not_count(void **state)
{
	struct asker *asker = ask_first(ASK_TOOL("1", "'t'"));

	verdict = (struct tool_verdict){ .broken = "twice" };
	says(process(0), TOOLS("2", TOOL("'t'", MIRRORED)));
	hears(process(0), SENT("3", "'t'"));
	says(process(0), RESULT("3"));
	asker = ask(ASK_TOOL("2", "'t'"));
	was_not_checked(asker);
	hears(process(0), SENT("4", "'t'"));
	says(process(0), RESULT("4"));
	assert_int_equal(count_logged("annotations_broken"), 1);
	says(process(0), CHANGED("tools"));
	asker = ask(ASK_TOOL("3", "'t'"));
	hears(process(0), LIST("5"));
	says(process(0), TOOLS("5", TOOL("'t'", MIRRORED)));
	hears(process(0), SENT("6", "'t'"));
	assert_int_equal(asker->checks, 1);
	assert_int_equal(count_logged("annotations_broken"), 2);
}

/* MOD-HDR-07: an error, or none that tells of an end. Both are remembered for 5 s, by those who call. */
static void lists_that_fail(void **state)
{
	struct asker *asker = ask_first(ASK_TOOL("1", "'t'"));

	says(process(0), "{'jsonrpc':'2.0','id':2,'error':{'code':-32603,'message':'m'}}");
	hears(process(0), SENT("3", "'t'"));
	was_not_checked(asker);
	says(process(0), RESULT("3"));
	assert_int_equal(asker->ending, ENDING_RESPONSE);
	pass(4999);
	asker = ask(ASK_TOOL("2", "'t'"));
	hears(process(0), SENT("4", "'t'"));
	says(process(0), RESULT("4"));
	pass(1);
	asker = ask(ASK_TOOL("3", "'t'"));
	hears(process(0), LIST("5"));
	pass(9999);
	hears_nothing(process(0));
	pass(1);
	hears(process(0), SENT("6", "'t'"));
	was_not_checked(asker);
	says(process(0), RESULT("6"));
	asker = ask(ASK_TOOL("4", "'t'"));
	hears(process(0), SENT("7", "'t'"));
	was_not_checked(asker);
	/* The answer comes after all: it is kept, and counts. */
	says(process(0), TOOLS("5", TOOL("'t'", MIRRORED)));
	says(process(0), RESULT("7"));
	asker = ask(ASK_TOOL("5", "'t'"));
	was_checked(asker, SCHEMA(MIRRORED));
}

/* A list that changes while it is fetched is there: it is asked for again. */
static void lists_that_change(void **state)
{
	struct asker *asker = ask_first(ASK_TOOL("1", "'t'"));

	says(process(0), CHANGED("tools"));
	says(process(0), TOOLS("2", TOOL("'t'", MIRRORED)));
	hears(process(0), SENT("3", "'t'"));
	was_not_checked(asker);
	asker = ask(ASK_TOOL("2", "'t'"));
	hears(process(0), LIST("4"));
	says(process(0), TOOLS("4", TOOL("'t'", MIRRORED)));
	was_checked(asker, SCHEMA(MIRRORED));
}

/* A server that does not tell of changes is not asked again every few seconds. */
static void old_lists_will_do(void **state)
{
	struct asker *asker = ask(ASK_TOOL("1", "'t'"));

	assert_non_null(fake_process_read(process(0)));
	says(process(0), "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25',"
			 "'capabilities':{'tools':{}}}}");
	hears(process(0), INITIALIZED);
	hears(process(0), LIST("2"));
	says(process(0), TOOLS("2", TOOL("'t'", MIRRORED)));
	hears(process(0), SENT("3", "'t'"));
	says(process(0), RESULT("3"));
	was_checked(asker, SCHEMA(MIRRORED));
	pass(60000);
	asker = ask(ASK_TOOL("2", "'t'"));
	was_checked(asker, SCHEMA(MIRRORED));
	hears(process(0), SENT("4", "'t'"));
}

/* CXL-04: who leaves meanwhile is not waited for, and what it would have called is not called. */
static void clients_leave(void **state)
{
	struct asker *asker = ask_first(ASK_TOOL("1", "'t'"));

	call_cancel(&asker->call);
	says(process(0), TOOLS("2", TOOL("'t'", MIRRORED)));
	hears_nothing(process(0));
	was_not_checked(asker);
	asker = ask(ASK_TOOL("2", "'t'"));
	hears(process(0), SENT("3", "'t'"));
}

/* The time in which it waited for its pool is over: it may listen for as long as it likes. */
static void listening_has_no_end(void **state)
{
	struct asker *asker =
		ask("{'jsonrpc':'2.0','id':1,'method':'subscriptions/listen','params':{" META
		    ",'notifications':{}}}");

	get_ready(0);
	pass(2 * POOL_QUEUE_TIMEOUT_MS);
	assert_int_equal(asker->ending, ENDING_NONE);
}

/* ---- arguments that are checked: SEC-59 ---- */

static void is_refused(struct asker *asker, const char *error)
{
	struct buf expected = { 0 };

	assert_int_equal(asker->ending, ENDING_RESPONSE);
	buf_printf(&expected, "\"error\":{%s}}", q(error));
	if (strstr(buf_terminate(&asker->response), buf_terminate(&expected)) == NULL)
		fail_msg("%s", asker->response.data);
	buf_fini(&expected);
}

#define UNTOLD                                                                                  \
	"'code':-32603,'message':'Internal error: the arguments cannot be checked: the server " \
	"has not told its tools'"
#define UNLISTED "'code':-32602,'message':'Invalid params: the server lists no such tool'"
#define MISSING                                                                               \
	"'code':-32602,'message':'Invalid params: arguments must have the member a (schema: " \
	"/required)'"
#define STRICT_TOOL(name) "{'name':" name ",'inputSchema':{'required':['a']}}"

/* What is not in the list is not called, nor what does not fit, nor what is not understood. */
static void strict_calls(void **state)
{
	struct asker *asker;

	servers[0].conf.checks_schemas = true;
	asker = ask_first(ASK_TOOL("1", "'t'"));
	says(process(0),
	     TOOLS("2", STRICT_TOOL("'t'") ",{'name':'bare'},{'name':'free','inputSchema':{}},"
					   "{'name':'odd','inputSchema':{'type':'x'}}"));
	is_refused(asker, MISSING);
	is_refused(ask(ASK_TOOL("2", "'none'")), UNLISTED);
	is_refused(
		ask(ASK_TOOL("3", "'bare'")),
		"'code':-32603,'message':'Internal error: the schema of this tool cannot be used: "
		"there is none'");
	for (size_t i = 0; i < 2; i++)
		is_refused(
			ask(ASK_TOOL("4", "'odd'")),
			"'code':-32603,'message':'Internal error: the schema of this tool cannot be "
			"used: /type is not a type'");
	assert_int_equal(count_logged("schema_unusable"), 1);
	assert_true(is_logged(" tool=odd "));
	hears_nothing(process(0));
	asker = ask(ASK_TOOL("5", "'free'"));
	hears(process(0), SENT("3", "'free'"));
	was_not_checked(asker);
	ask(ASK_TOOL("6", "'t','arguments':{'\\u0061':1}"));
	hears(process(0), SENT("4", "'t','arguments':{'\\u0061':1}"));
}

#define CALL_WITH(id, arguments)    \
	"{'jsonrpc':'2.0','id':" id \
	",'method':'tools/call','params':{'name':'t','arguments':{" arguments "}}}"

/* They have no headers that could mirror an argument; their arguments are checked all the same. */
static void strict_calls_of_sessions(void **state)
{
	struct front *front;

	servers[0].conf.checks_schemas = true;
	front = request(begin()->client, CALL_WITH("1", "'a':1"));
	hears(process(0), LIST("2"));
	says(process(0), TOOLS("2", TOOL("'t'", MIRRORED)));
	assert_true(is_error(front, "-32602"));
	request(front->call.client, CALL_WITH("2", "'a':'x'"));
	hears(process(0), CALL_WITH("3", "'a':'x'"));
}

/* One that changes while it is fetched is fetched again, once. */
static void strict_lists_that_change(void **state)
{
	struct asker *asker;

	servers[0].conf.checks_schemas = true;
	asker = ask_first(ASK_TOOL("1", "'t'"));
	says(process(0), CHANGED("tools"));
	says(process(0), TOOLS("2", "{'name':'t','inputSchema':{}}"));
	hears(process(0), LIST("3"));
	assert_int_equal(asker->ending, ENDING_NONE);
	says(process(0), TOOLS("3", STRICT_TOOL("'t'")));
	is_refused(asker, MISSING);
	says(process(0), CHANGED("tools"));
	asker = ask(ASK_TOOL("2", "'t'"));
	hears(process(0), LIST("4"));
	says(process(0), CHANGED("tools"));
	says(process(0), TOOLS("4", "{'name':'t','inputSchema':{}}"));
	hears(process(0), LIST("5"));
	says(process(0), CHANGED("tools"));
	says(process(0), TOOLS("5", "{'name':'t','inputSchema':{}}"));
	is_refused(asker, UNTOLD);
	hears_nothing(process(0));
}

/* What it does not tell, or not in time, is not called; and a list that is old is no list. */
static void strict_lists_that_fail(void **state)
{
	struct asker *asker;

	servers[0].conf.checks_schemas = true;
	asker = ask(ASK_TOOL("1", "'t'"));
	assert_non_null(fake_process_read(process(0)));
	says(process(0), "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25',"
			 "'capabilities':{'tools':{}}}}");
	hears(process(0), INITIALIZED);
	hears(process(0), LIST("2"));
	says(process(0), "{'jsonrpc':'2.0','id':2,'error':{'code':-32603,'message':'m'}}");
	hears(process(0), LIST("3"));
	says(process(0), "{'jsonrpc':'2.0','id':3,'error':{'code':-32603,'message':'m'}}");
	is_refused(asker, UNTOLD);
	is_refused(ask(ASK_TOOL("2", "'t'")), UNTOLD);
	hears_nothing(process(0));
	pass(5000);
	asker = ask(ASK_TOOL("3", "'t'"));
	hears(process(0), LIST("4"));
	pass(10000);
	is_refused(asker, UNTOLD);
	says(process(0), TOOLS("4", STRICT_TOOL("'t'")));
	is_refused(ask(ASK_TOOL("4", "'t'")), MISSING);
	pass(5001);
	asker = ask(ASK_TOOL("5", "'t'"));
	hears(process(0), LIST("5"));
	call_cancel(&asker->call);
	says(process(0), TOOLS("5", "{'name':'t','inputSchema':{}}"));
	hears_nothing(process(0));
}

#define CHECK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	CHECK_TEST(schemas_are_found),
	CHECK_TEST(refusals_are_answers),
	CHECK_TEST(plain_tools_are_not_checked),
	CHECK_TEST(broken_annotations_do_not_count),
	CHECK_TEST(lists_that_fail),
	CHECK_TEST(lists_that_change),
	CHECK_TEST(old_lists_will_do),
	CHECK_TEST(clients_leave),
	CHECK_TEST(listening_has_no_end),
	CHECK_TEST(strict_calls),
	CHECK_TEST(strict_calls_of_sessions),
	CHECK_TEST(strict_lists_that_change),
	CHECK_TEST(strict_lists_that_fail),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
