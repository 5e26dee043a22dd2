/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls need the scopes of a tool, however that is spelled. AUTH-SCP-12, SEC-42, SEC-50 */
#include "base/unit_test.h"
#include "endpoint/authorization.h"
#include "jsonrpc/scan.h"

enum { NOTHING, WRITE, BOTH, NO_NAME, ANY_AND_NO_NAME };

/* delete_* needs `write`, Drop is folded and needs `drop`. */
static int needs_of(const char *message)
{
	static const struct named_slices patterns[] = { { SLICE("delete_*"), { NULL, 0 } },
							{ SLICE("Drop"), { NULL, 0 } } };
	static const struct tool_needs needs[] = { { SLICE("delete_*"), { { 1 } } },
						   { SLICE("drop"), { { 2 } } } };
	static const struct scan_limits limits = { 64, 256 };
	const struct protected_resource place = { .tool_scopes = { patterns, 2 },
						  .tool_needs = needs };
	struct scope_set needed = { { 0 } };
	struct envelope env;
	struct error err;
	char text[2048];
	const char *why;

	snprintf(text, sizeof(text), "%s", message);
	for (char *at = text; (at = strchr(at, '\'')) != NULL;)
		*at = '"';
	if (scan_envelope(slice_str(text), &limits, 0, &env, &err) < 0)
		fail_msg("%s: %s", message, err.text);
	why = authorization_add_required(&place, &env, &needed);
	assert_in_range(needed.words[0], 0, 3);
	if (why != NULL)
		return needed.words[0] == 0 ? NO_NAME : ANY_AND_NO_NAME;
	return needed.words[0] == 0 ? NOTHING : needed.words[0] == 3 ? BOTH : WRITE;
}

static int needs_of_params(const char *params)
{
	char text[1024];

	snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':%s}",
		 params);
	return needs_of(text);
}

static void calls_need_what_either_form_needs(void **state)
{
	assert_int_equal(needs_of_params("{'name':'delete_all'}"), WRITE);
	assert_int_equal(needs_of_params("{'name':'DELETE_all'}"), WRITE);
	assert_int_equal(needs_of_params("{'name':'\\uff44elete\\uFF3Fall'}"), WRITE);
	assert_int_equal(needs_of_params("{'name':' delete _all'}"), WRITE);
	assert_int_equal(needs_of_params("{'name':'Drop'}"), WRITE);
	assert_int_equal(needs_of_params("{'name':'drop'}"), WRITE);
	assert_int_equal(needs_of_params("{'name':'read'}"), NOTHING);
	assert_int_equal(needs_of_params("{'name':'deleted'}"), NOTHING);
	assert_int_equal(needs_of_params("{'name':'drop\\u0301'}"), NOTHING);
	assert_int_equal(needs_of("{'jsonrpc':'2.0','id':1,'result':{'name':'drop'}}"), NOTHING);
	assert_int_equal(needs_of("{'jsonrpc':'2.0','id':1,'method':'prompts/get',"
				  "'params':{'name':'drop'}}"),
			 NOTHING);
	assert_int_equal(needs_of("{'jsonrpc':'2.0','method':'tools/call',"
				  "'params':{'name':'drop'}}"),
			 WRITE);
}

static void calls_without_a_name_are_refused(void **state)
{
	static const char *const hidden[] = { "\\u0000",        "\\u200b", "\\uFEFF", "\\u202E",
					      "\\udb40\\udc41", "\\n",     "\\u00AD", "\\ufe0f" };

	for (size_t i = 0; i < ARRAY_LEN(hidden); i++) {
		char params[64];

		snprintf(params, sizeof(params), "{'name':'drop%s'}", hidden[i]);
		assert_int_equal(needs_of_params(params), NO_NAME);
		snprintf(params, sizeof(params), "{'name':'read%s'}", hidden[i]);
		assert_int_equal(needs_of_params(params), NO_NAME);
	}
	assert_int_equal(needs_of_params("{'name':''}"), NO_NAME);
	assert_int_equal(needs_of_params("[]"), NO_NAME);
	assert_int_equal(needs_of_params("['drop']"), NO_NAME);
	assert_int_equal(needs_of_params("[{'name':'drop'}]"), NO_NAME);
	assert_int_equal(needs_of_params("{}"), ANY_AND_NO_NAME);
	assert_int_equal(needs_of_params("{'name':7}"), ANY_AND_NO_NAME);
	assert_int_equal(needs_of_params("{'name':null}"), ANY_AND_NO_NAME);
	assert_int_equal(needs_of_params("{'name':['drop']}"), ANY_AND_NO_NAME);
	assert_int_equal(needs_of_params("{'name':{'name':'drop'}}"), ANY_AND_NO_NAME);
	assert_int_equal(needs_of_params("{'name':'dr\\ud83dop'}"), ANY_AND_NO_NAME);
	assert_int_equal(needs_of("{'jsonrpc':'2.0','id':1,'method':'tools/call'}"),
			 ANY_AND_NO_NAME);
}

static void methods_that_look_like_calls_are_calls(void **state)
{
	static const char *const methods[] = { "Tools/Call", "tools/call ", "\uff54ools/call",
					       "tools\uff0fcall", "tools/call\u200b" };
	static const char *const others[] = { "tools/calls", "tools/list", "ping", "x/tools/call" };
	char text[128];

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		snprintf(text, sizeof(text),
			 "{'jsonrpc':'2.0','id':1,'method':'%s','params':{'name':'drop'}}",
			 methods[i]);
		assert_int_equal(needs_of(text), WRITE);
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		snprintf(text, sizeof(text),
			 "{'jsonrpc':'2.0','id':1,'method':'%s','params':{'name':'drop'}}",
			 others[i]);
		assert_int_equal(needs_of(text), NOTHING);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_need_what_either_form_needs),
		cmocka_unit_test(calls_without_a_name_are_refused),
		cmocka_unit_test(methods_that_look_like_calls_are_calls),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
