/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of modern clients to modern servers: those that only need other values are spliced, byte for byte, and mean the
 * same as the ones that are rewritten. BACK-MSG-04
 */
#include "upstream/send.h"

#include "base/unit_test.h"
#include "jsonrpc/canonical.h"
#include "mcp/level.h"
#include "upstream/upstream.h"
#include "upstream/upstream_ops.h"

#define REVISION "'io.modelcontextprotocol/protocolVersion':'2026-07-28'"
#define LEVEL(name) "'io.modelcontextprotocol/logLevel':'" name "'"
#define CALL(params) "{'jsonrpc':'2.0','id':'c','method':'tools/call','params':{" params "}}"
#define SENT(params) "{'jsonrpc':'2.0','id':7,'method':'tools/call','params':{" params "}}"

static const struct scan_limits limits = { .depth_max = 64, .id_max = 256 };
static struct buf sent;

static void keep_message(struct upstream *upstream, struct buf *message)
{
	(void)upstream;
	sent.len = 0;
	buf_append_slice(&sent, buf_slice(message));
}

static const struct upstream_ops ops = { .write = keep_message };

/* The text with " for '. */
static void quote(struct buf *out, const char *text)
{
	for (const char *p = text; *p != '\0'; p++)
		buf_append_char(out, *p == '\'' ? '"' : *p);
}

static void append_form(struct buf *out, struct slice text)
{
	assert_int_equal(canonical_append(out, text, 64), 0);
}

/* Sends the request with what `request` wants of it. Returns whether it was rewritten; either way it means the same. */
static bool is_rewritten(const char *message, const struct modern_request *request)
{
	struct upstream_setup setup = { .initialize = NULL };
	struct upstream_shared shared = { .limits = limits };
	struct upstream upstream = { .ops = &ops,
				     .shared = &shared,
				     .setup = &setup,
				     .era = &upstream_era_modern,
				     .state = UPSTREAM_READY };
	struct buf text = { 0 }, form = { 0 }, rewritten = { 0 }, rewritten_form = { 0 };
	struct envelope env;
	struct error err;
	bool is_equal;

	quote(&text, message);
	assert_int_equal(scan_envelope(buf_slice(&text), &limits, 0, &env, &err), 0);
	send_modern_request(&upstream, 7, env.method, env.params.text, request);
	buf_append_slice(&rewritten, buf_slice(&sent));
	append_form(&rewritten_form, buf_slice(&sent));
	send_passed_request(&upstream, 7, &env, request);
	append_form(&form, buf_slice(&sent));
	assert_string_equal(buf_terminate(&form), buf_terminate(&rewritten_form));
	is_equal = slice_is_equal(buf_slice(&sent), buf_slice(&rewritten));
	buf_fini(&text);
	buf_fini(&form);
	buf_fini(&rewritten);
	buf_fini(&rewritten_form);
	buf_fini(&shared.scratch);
	return is_equal;
}

static void is_spliced(const char *message, const struct modern_request *request,
		       const char *expected)
{
	struct buf text = { 0 };

	assert_false(is_rewritten(message, request));
	quote(&text, expected);
	assert_string_equal(buf_terminate(&sent), buf_terminate(&text));
	buf_fini(&text);
}

static void what_needs_no_change_is_spliced(void **state)
{
	struct modern_request request = { .is_modern = true, .level = -1 };

	/* _meta stands last: whoever rewrites it puts it first. */
	is_spliced(CALL("'name':'t', 'x':[1 ],'_meta':{'k':1," REVISION "}"), &request,
		   SENT("'name':'t', 'x':[1 ],'_meta':{'k':1," REVISION "}"));
	is_spliced(CALL("'name':'a\xE2\x80\xA8',\n'_meta':{" REVISION "}"), &request,
		   SENT("'name':'a\\u2028', '_meta':{" REVISION "}"));
	request.token = SLICE_LIT("7");
	is_spliced(CALL("'name':'t','_meta':{'progressToken':'p'," REVISION "}"), &request,
		   SENT("'name':'t','_meta':{'progressToken':7," REVISION "}"));
	request.cursor = SLICE_LIT("\"own\"");
	request.task_id = SLICE_LIT("\"t\xE2\x80\xA8\""); /* a server's own, as it wrote it */
	is_spliced(CALL("'taskId':'s','_meta':{'progressToken':1," REVISION "}"), &request,
		   SENT("'taskId':'t\\u2028','_meta':{'progressToken':7," REVISION "}"));
	request.task_id = SLICE_LIT("\"task\"");
	is_spliced(CALL("'taskId':'s','cursor':'x','_meta':{'progressToken':1," REVISION "}"),
		   &request,
		   SENT("'taskId':'task','cursor':'own','_meta':{'progressToken':7," REVISION "}"));
}

/* BACK-MSG-01: one of our own, for a modern client, has no _meta to begin with. */
static void own_requests_say_who_asks(void **state)
{
	struct modern_request request = { .is_modern = true, .level = -1 };

	assert_true(is_rewritten(CALL("'x':1"), &request));
	assert_non_null(strstr(buf_terminate(&sent), "/clientCapabilities\":{}"));
	assert_non_null(strstr(buf_terminate(&sent), "/clientInfo\":{"));
}

static void log_level_is_passed_if_it_is_wanted(void **state)
{
	struct modern_request request = { .is_modern = true,
					  .level = level_find(SLICE_LIT("info")) };

	is_spliced(CALL("'name':'t','_meta':{" REVISION "," LEVEL("info") "}"), &request,
		   SENT("'name':'t','_meta':{" REVISION "," LEVEL("info") "}"));
	assert_true(is_rewritten(CALL("'_meta':{" REVISION "," LEVEL("debug") "}"), &request));
	assert_true(is_rewritten(CALL("'_meta':{" REVISION "}"), &request));
	request.level = -1;
	assert_true(is_rewritten(CALL("'_meta':{" REVISION "," LEVEL("info") "}"), &request));
}

static void answers_are_passed_if_they_are_the_clients(void **state)
{
	static const char message[] =
		CALL("'inputResponses':{'q':{}},'requestState':'s','_meta':{" REVISION "}");
	struct modern_request request = { .is_modern = true, .level = -1 };

	assert_true(is_rewritten(message, &request));
	request.request_state = SLICE_LIT("\"s\"");
	assert_true(is_rewritten(message, &request));
	request.request_state.n = 0;
	request.input_responses = SLICE_LIT("{\"q\":{}}");
	assert_true(is_rewritten(message, &request));
	request.request_state = SLICE_LIT("\"s\"");
	is_spliced(message, &request,
		   SENT("'inputResponses':{'q':{}},'requestState':'s','_meta':{" REVISION "}"));
}

static void everything_else_is_rewritten(void **state)
{
	struct modern_request request = { .is_modern = true, .level = -1 };

	assert_true(is_rewritten(CALL("'name':'t'"), &request));
	assert_true(is_rewritten(CALL("'_meta':{}"), &request));
	assert_true(is_rewritten(CALL("'_meta':{'progressToken':1," REVISION "}"), &request));
	assert_true(is_rewritten(CALL("'_meta':{'progressToken':null," REVISION "}"), &request));
	request.token = SLICE_LIT("7");
	assert_true(is_rewritten(CALL("'_meta':{" REVISION "}"), &request));
	request.token = SLICE_LIT("");
	request.is_modern = false;
	assert_true(is_rewritten(CALL("'name':'t','_meta':{" REVISION "}"), &request));
}

/* BACK-MSG-09: who is calling is ours to say. */
static void callers_are_not_passed(void **state)
{
	struct modern_request request = { .is_modern = true, .level = -1 };

	assert_true(is_rewritten(CALL("'_meta':{'" SCAN_CALLER_META "':'x','k':1," REVISION "}"),
				 &request));
	assert_null(strstr(buf_terminate(&sent), "caller"));
	assert_non_null(strstr(buf_terminate(&sent), "\"k\":1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_needs_no_change_is_spliced),
		cmocka_unit_test(own_requests_say_who_asks),
		cmocka_unit_test(log_level_is_passed_if_it_is_wanted),
		cmocka_unit_test(answers_are_passed_if_they_are_the_clients),
		cmocka_unit_test(everything_else_is_rewritten),
		cmocka_unit_test(callers_are_not_passed),
	};
	int failed;

	cmocka_set_message_output(CM_OUTPUT_TAP);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	buf_fini(&sent);
	return failed;
}
