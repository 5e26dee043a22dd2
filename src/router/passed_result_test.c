/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of modern servers for modern clients: what is passed on in parts means the same as what is written anew, and
 * whatever has to be changed is written anew. MOD-RES-02, bridging.md §2.4
 */
#include "router/era.h"

#include "base/unit_test.h"
#include "jsonrpc/canonical.h"
#include "mcp/error.h"

#define META "io.modelcontextprotocol/"
#define INFO "{'name':'s','version':'1'}"
#define INFO_MEMBER "'" META "serverInfo':"

static const struct scan_limits limits = { .depth_max = 64, .id_max = 256 };

/* A response with this result, in which ' stands for "; the envelope is of `text`. */
static struct envelope scan_result(const char *result, struct buf *text)
{
	struct envelope env;
	struct error err;

	buf_printf(text, "{'jsonrpc':'2.0','id':1,'result':%s}", result);
	for (size_t i = 0; i < text->len; i++) {
		if (text->data[i] == '\'')
			text->data[i] = '"';
	}
	assert_int_equal(scan_envelope(buf_slice(text), &limits, SCAN_LENIENT, &env, &err), 0);
	return env;
}

/* Returns whether it is passed on in parts; these mean what era_append_passed_result writes then. */
static bool is_split(const char *method_name, const char *result, const char *info, bool is_private)
{
	const struct method *method = method_find(slice_str(method_name));
	struct buf text = { 0 }, info_text = { 0 }, joined = { 0 }, written = { 0 };
	struct buf joined_form = { 0 }, written_form = { 0 };
	struct envelope env = scan_result(result, &text);
	struct slice parts[ERA_PARTS_MAX];
	size_t count;

	for (const char *p = info; *p != '\0'; p++)
		buf_append_char(&info_text, *p == '\'' ? '"' : *p);
	count = era_split_passed_result(method, &env, buf_slice(&info_text), is_private, parts);
	assert_true(count <= ERA_PARTS_MAX);
	for (size_t i = 0; i < count; i++)
		buf_append_slice(&joined, parts[i]);
	if (count > 0) {
		era_append_passed_result(&written, method, env.result.text, buf_slice(&info_text),
					 slice_of(NULL, 0), is_private);
		assert_int_equal(canonical_append(&joined_form, buf_slice(&joined), 64), 0);
		assert_int_equal(canonical_append(&written_form, buf_slice(&written), 64), 0);
		assert_string_equal(buf_terminate(&joined_form), buf_terminate(&written_form));
	}
	buf_fini(&text);
	buf_fini(&info_text);
	buf_fini(&joined);
	buf_fini(&written);
	buf_fini(&joined_form);
	buf_fini(&written_form);
	return count > 0;
}

static void results_that_lack_something_are_completed(void **state)
{
	static const char *const results[] = {
		"{}",
		"{ }",
		"{'content':[]}",
		"{'resultType':'complete'}",
		"{'content':[],'resultType':'complete','structuredContent':{'ttlMs':1,'_meta':3}}",
		"{'_meta':{},'content':[]}",
		"{'content':[],'_meta':{ }}",
		"{'content':[],'_meta':{'k':1,'k':2},'isError':true}",
		"{'resultType':'complete','_meta':{'k':{'a':'}'}},'a':1}",
	};
	static const char *const infos[] = { "", INFO };

	for (size_t i = 0; i < ARRAY_LEN(results); i++)
		for (size_t j = 0; j < ARRAY_LEN(infos); j++) {
			assert_true(is_split("tools/call", results[i], infos[j], true));
			assert_true(is_split("vendor/method", results[i], infos[j], false));
		}
}

static void the_servers_own_name_stays_if_it_is_the_known_one(void **state)
{
	static const char own[] =
		"{'resultType':'complete','_meta':{" INFO_MEMBER INFO "},'content':[]}";

	assert_true(is_split("tools/call", own, INFO, true));
	assert_false(is_split("tools/call", own, "", true));
	assert_false(is_split("tools/call", own, "{'name':'t'}", true));
}

static void what_has_to_go_is_written_anew(void **state)
{
	static const char *const results[] = {
		"{'resultType':'input_required'}",
		"{'resultType':1}",
		"{'resultType':'complet\\u0065'}",
		"{'resultType':'complete','resultType':'complete'}",
		"{'result\\u0054ype':'task'}",
		"{'ttlMs':1}",
		"{'cacheScope':'private'}",
		"{'inputRequests':{}}",
		"{'requestState':'s'}",
		"{'_meta':1}",
		"{'_meta':{},'_meta':{}}",
		"{'_meta':{'" META "related-task':{}}}",
		"{'_meta':{'a\\u0020b':1}}",
		"{'_meta':{" INFO_MEMBER INFO "," INFO_MEMBER INFO "}}",
		/* Some readers ignore case. SEC-41 */
		"{'ResultType':'input_required'}",
		"{'inputrequests':{}}",
		"{'re\xC5\xBFultType':'task'}",
		"{'\xC4\xB1nputRequests':{}}",
		"{'_META':{}}",
		"{'_meta':{'IO.modelcontextprotocol/serverInfo':{}}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(results); i++)
		assert_false(is_split("tools/call", results[i], INFO, false));
	assert_false(is_split("tools/call", "[]", INFO, false));
	assert_false(is_split("tools/call", "null", INFO, false));
}

/* Neither side's server says by a name in other case what the gateway says itself. SEC-41 */
static void what_looks_like_it_goes(void **state)
{
	static const char result[] =
		"{'content':[],'ResultType':'input_required','INPUTREQUESTS':{},'reque\xC5\xBFtState':'s',"
		"'TTLMS':1,'cacheScop\\u0045':'public','_META':{'a':1},'_meta':{'b':1,'"
		"IO.MODELCONTEXTPROTOCOL/serverinfo':{}}}";
	const struct method *method = method_find(SLICE_LIT("tools/call"));
	struct buf text = { 0 }, passed = { 0 }, written = { 0 };
	struct envelope env = scan_result(result, &text);

	era_append_passed_result(&passed, method, env.result.text, slice_of(NULL, 0),
				 slice_of(NULL, 0), true);
	era_append_result(&written, method, env.result.text, slice_of(NULL, 0));
	assert_string_equal(buf_terminate(&passed),
			    "{\"resultType\":\"complete\",\"content\":[],\"_meta\":{\"b\":1}}");
	assert_string_equal(buf_terminate(&written), buf_terminate(&passed));
	assert_false(env.is_plain_result);
	buf_fini(&text);
	buf_fini(&passed);
	buf_fini(&written);
}

/* MOD-RES-03, -04 */
static void lists_have_to_say_how_long_they_are_kept(void **state)
{
#define KEPT(ttl, scope) "{'tools':[],'ttlMs':" ttl ",'cacheScope':" scope "}"
	assert_true(is_split("tools/list", KEPT("0", "'private'"), INFO, true));
	assert_true(is_split("tools/list", KEPT("60000", "'public'"), INFO, false));
	assert_false(is_split("tools/list", KEPT("60000", "'public'"), INFO, true));
	assert_false(is_split("tools/list", KEPT("-1", "'private'"), INFO, false));
	assert_false(is_split("tools/list", KEPT("1.5", "'private'"), INFO, false));
	assert_false(is_split("tools/list", KEPT("1", "'shared'"), INFO, false));
	assert_false(is_split("tools/list", KEPT("1", "null"), INFO, false));
	assert_false(is_split("tools/list", "{'tools':[],'ttlMs':1}", INFO, false));
	assert_false(is_split("resources/read", "{'contents':[]}", INFO, false));
	assert_true(is_split("resources/read", KEPT("1", "'private'"), "", false));
}

/* Of a server that has not said its name, nothing is said. */
static void unknown_servers_have_no_name(void **state)
{
	struct buf written = { 0 };

	era_append_result(&written, method_find(SLICE_LIT("tools/call")), SLICE_LIT("{}"),
			  slice_of(NULL, 0));
	assert_string_equal(buf_terminate(&written), "{\"resultType\":\"complete\"}");
	buf_fini(&written);
}

/* Codes that a modern client would take for another thing, and what is no number of 32 bits, are errors of the server. */
static void codes_of_the_era_are_not_passed(void **state)
{
	static const struct {
		const char *written;
		int code;
	} rows[] = {
		{ "1", 1 },
		{ "-32601", -32601 },
		{ "-32019", -32019 },
		{ "-32020", MCP_INTERNAL_ERROR },
		{ "-32021", MCP_MISSING_CAPABILITY },
		{ "-32022", MCP_INTERNAL_ERROR },
		{ "-32099", MCP_INTERNAL_ERROR },
		{ "-32100", -32100 },
		{ "2147483647", 2147483647 },
		{ "2147483648", MCP_INTERNAL_ERROR },
		{ "-2147483648", -2147483647 - 1 },
		{ "-2147483649", MCP_INTERNAL_ERROR },
		{ "\"1\"", MCP_INTERNAL_ERROR },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf error = { 0 }, out = { 0 }, expected = { 0 };
		int code;

		buf_printf(&error, "{\"code\":%s,\"message\":\"m\"}", rows[i].written);
		era_append_passed_error(&out, buf_slice(&error), &code);
		assert_int_equal(code, rows[i].code);
		buf_printf(&expected, "{\"code\":%d,\"message\":\"m\"}", rows[i].code);
		assert_string_equal(buf_terminate(&out), buf_terminate(&expected));
		buf_fini(&error);
		buf_fini(&out);
		buf_fini(&expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_that_lack_something_are_completed),
		cmocka_unit_test(the_servers_own_name_stays_if_it_is_the_known_one),
		cmocka_unit_test(what_has_to_go_is_written_anew),
		cmocka_unit_test(what_looks_like_it_goes),
		cmocka_unit_test(lists_have_to_say_how_long_they_are_kept),
		cmocka_unit_test(unknown_servers_have_no_name),
		cmocka_unit_test(codes_of_the_era_are_not_passed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
