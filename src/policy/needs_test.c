/* SPDX-License-Identifier: Apache-2.0 */
/* Which messages need the scopes of a tool, prompt or resource, however that is spelled. AUTH-SCP-12, SEC-42, SEC-50, SEC-57 */
#include "policy/permissions.c"

#include "base/unit_test.h"
#include "jsonrpc/scan.h"

enum { NOTHING, WRITE, BOTH, NO_NAME, ANY_AND_NO_NAME };

static struct envelope scan(const char *message, char *text, size_t size)
{
	static const struct scan_limits limits = { 64, 256 };
	struct envelope env;
	struct error err;

	snprintf(text, size, "%s", message);
	for (char *at = text; (at = strchr(at, '\'')) != NULL;)
		*at = '"';
	if (scan_envelope(slice_str(text), &limits, 0, &env, &err) < 0)
		fail_msg("%s: %s", message, err.text);
	return env;
}

/* delete_* needs `write`, Drop is folded and needs `drop`. */
static int needs_of(const char *message)
{
	static const struct named_slices patterns[] = { { SLICE("delete_*"), { NULL, 0 } },
							{ SLICE("Drop"), { NULL, 0 } } };
	static struct name_needs names[] = { { SLICE("delete_*"), { { 1 } } },
					     { SLICE("drop"), { { 2 } } } };
	const struct needs needs = { .by_name = { [PERMISSION_TOOL] = { patterns, 2 } },
				     .names = { [PERMISSION_TOOL] = names } };
	struct scope_set needed = { { 0 } };
	char text[2048];
	struct envelope env = scan(message, text, sizeof(text));
	const char *why = needs_add_of_message(&needs, &env, &needed).what;

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

/* SEC-50: a name that fits as it is written needs the scope, also where its marks come into another order when folded. */
static void either_form_of_a_name_counts(void **state)
{
	static const char *const names[] = { "a\u0327", "a\u0301\u0327", "A\u0327" };
	static const struct slice scope[] = { SLICE("s") };
	static const struct named_slices entry = { SLICE("a*\u0327"), { scope, 1 } };
	struct scope_table table = { .count = 0 };
	struct needs needs = { .by_name = { [PERMISSION_TOOL] = { &entry, 1 } } };

	needs_finish(&needs, &table);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct scope_set needed = { { 0 } };

		assert_null(
			needs_add_of_name(&needs, PERMISSION_TOOL, slice_str(names[i]), &needed));
		assert_int_equal(needed.words[0], 1);
	}
	needs_free(&needs);
}

/* internal_* of prompts needs scope 0, what is below res://private scope 1; tools need none. */
static struct needs some_needs(struct scope_table *table)
{
	static const struct slice scopes[] = { SLICE("inner"), SLICE("private") };
	static const struct named_slices prompts[] = { { SLICE("internal_*"), { scopes, 1 } } };
	static const struct named_slices resources[] = { { SLICE("res://Private/*"),
							   { scopes + 1, 1 } } };
	struct needs needs = { .by_name = { [PERMISSION_PROMPT] = { prompts, 1 },
					    [PERMISSION_RESOURCE] = { resources, 1 } } };

	needs_finish(&needs, table);
	return needs;
}

static void prompts_and_resources_have_needs(void **state)
{
	static const struct {
		const char *message;
		uint64_t needed;
		const char *flaw;
	} rows[] = {
		{ "'method':'prompts/get','params':{'name':'p'}", 0, NULL },
		{ "'method':'prompts/get','params':{'name':'Internal_ a'}", 1, NULL },
		{ "'method':'prompts/get','params':{'name':'p\\u0000'}", 0, "prompt" },
		{ "'method':'prompts/get','params':{'name':7}", 1, "prompt" },
		{ "'method':'prompts/get','params':[]", 3, "prompt" },
		{ "'method':'resources/read','params':{'uri':'res://a'}", 0, NULL },
		{ "'method':'resources/read','params':{'uri':'res://private/a'}", 2, NULL },
		{ "'method':'resources/read','params':{'uri':'res://x/%2e%2e/PRIVATE/a?q'}", 0,
		  "resource" },
		{ "'method':'resources/subscribe','params':{'uri':'RES:///priv%61te/a'}", 2, NULL },
		{ "'method':'resources/unsubscribe','params':{'uri':'res://private/a'}", 2, NULL },
		{ "'method':'Resources/Read','params':{'uri':'res://private/a'}", 2, NULL },
		{ "'method':'resources/read\xE2\x80\x8B','params':{'uri':'res://private/a'}", 3,
		  "method" },
		{ "'method':'completion/complete','params':{'ref':{'name':'internal_a'}}", 1,
		  NULL },
		{ "'method':'completion/complete','params':{'ref':{'uri':'res://private/{x}'}}", 2,
		  NULL },
		{ "'method':'completion/complete','params':{'ref':{'name':'p','uri':'res://a'}}", 0,
		  NULL },
		{ "'method':'tools/call','params':{'name':'internal_a'}", 0, NULL },
		{ "'method':'tools/call','params':[]", 0, NULL },
		{ "'method':'prompts/list'", 0, NULL },
	};
	struct scope_table table = { .count = 0 };
	struct needs needs = some_needs(&table);

	assert_int_equal(table.count, 2);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct scope_set needed = { { 0 } };
		char message[512], text[512];
		struct envelope env;
		struct needs_flaw flaw;

		snprintf(message, sizeof(message), "{'jsonrpc':'2.0','id':1,%s}", rows[i].message);
		env = scan(message, text, sizeof(text));
		flaw = needs_add_of_message(&needs, &env, &needed);
		if (needed.words[0] != rows[i].needed ||
		    (flaw.what == NULL) != (rows[i].flaw == NULL) ||
		    (flaw.what != NULL && strcmp(flaw.what, rows[i].flaw) != 0))
			fail_msg("%s: %u, %s", text, (unsigned int)needed.words[0],
				 flaw.what != NULL ? flaw.what : "no flaw");
	}
	needs_free(&needs);
}

/* SEC-58 */
static void lists_show_what_scopes_are_enough_for(void **state)
{
	static const struct {
		enum permission_kind kind;
		const char *name;
		uint64_t held;
		bool is_shown;
	} rows[] = {
		{ PERMISSION_PROMPT, "\"p\"", 0, true },
		{ PERMISSION_PROMPT, "\"internal_a\"", 0, false },
		{ PERMISSION_PROMPT, "\"internal_a\"", 1, true },
		{ PERMISSION_PROMPT, "7", 1, false },
		{ PERMISSION_RESOURCE, "\"res://private/a\"", 1, false },
		{ PERMISSION_RESOURCE, "\"res://private/a\"", 3, true },
		{ PERMISSION_TEMPLATE, "\"res://private/{x}\"", 0, true },
		{ PERMISSION_TOOL, "\"internal_a\"", 0, true },
	};
	struct scope_table table = { .count = 0 };
	struct needs needs = some_needs(&table);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rights rights = { .needs_scopes = true, .scopes = { { rows[i].held } } };
		struct slice text = slice_str(rows[i].name);
		struct json name = scan_value(text);

		needs.hides = true;
		if (needs_show(&needs, &rights, rows[i].kind, name) != rows[i].is_shown)
			fail_msg("row %zu", i);
		rights.needs_scopes = false;
		assert_true(needs_show(&needs, &rights, rows[i].kind, name));
		rights.needs_scopes = true;
		needs.hides = false;
		assert_true(needs_show(&needs, &rights, rows[i].kind, name));
	}
	needs_free(&needs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_need_what_either_form_needs),
		cmocka_unit_test(calls_without_a_name_are_refused),
		cmocka_unit_test(methods_that_look_like_calls_are_calls),
		cmocka_unit_test(either_form_of_a_name_counts),
		cmocka_unit_test(prompts_and_resources_have_needs),
		cmocka_unit_test(lists_show_what_scopes_are_enough_for),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
