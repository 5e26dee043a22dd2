/* SPDX-License-Identifier: Apache-2.0 */
/* Names and words that clients see in place of a server's own. */
#include "policy/shown.h"

#include "base/buf.h"
#include "base/unit_test.h"
#include "jsonrpc/scan.h"

#define ONE(name_, value)                                                                    \
	{                                                                                    \
		.name = SLICE(name_), .values = {(const struct slice[]){ SLICE(value) }, 1 } \
	}

/* a and b change their names, c becomes d; e is said to be harmless. */
static const struct named_slices names[] = { ONE("a", "b"), ONE("b", "a"), ONE("c", "d") };
static const struct named_slices descriptions[] = { ONE("c", "Say \"hi\"") };
static const struct named_slices annotations[] = {
	ONE("c", "{\"destructiveHint\":false,\"title\":\"C\"}"),
	ONE("e", "{\"readOnlyHint\":true}"),
};
static const struct named_slices prompts[] = { ONE("p", "q") };
static const struct shown
	shown = { .kinds = {
			  [PERMISSION_TOOL] = { .names = { names, ARRAY_LEN(names) },
						.descriptions = { descriptions,
								  ARRAY_LEN(descriptions) },
						.annotations = { annotations,
								 ARRAY_LEN(annotations) } },
			  [PERMISSION_PROMPT] = { .names = { prompts, ARRAY_LEN(prompts) } },
		  } };
static const struct shown nothing;

static void names_lead_back(void **state)
{
	static const struct {
		const char *name, *real; /* NULL: nothing has that name */
	} rows[] = {
		{ "a", "b" },  { "b", "a" },    { "d", "c" }, { "c", NULL },  { "e", "e" },
		{ "D", NULL }, { " C ", NULL }, { "E", "E" }, { "dd", "dd" }, { "", "" },
	};
	struct slice real;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool is_there =
			shown_find_real(&shown, PERMISSION_TOOL, slice_str(rows[i].name), &real);

		assert_int_equal(is_there, rows[i].real != NULL);
		if (is_there)
			assert_true(slice_is_equal(real, slice_str(rows[i].real)));
		assert_true(
			shown_find_real(&nothing, PERMISSION_TOOL, slice_str(rows[i].name), &real));
	}
	assert_true(shown_find_real(&shown, PERMISSION_PROMPT, SLICE_LIT("c"), &real));
	assert_false(shown_is_reachable(&shown, PERMISSION_TOOL, SLICE_LIT("d")));
	assert_true(shown_is_reachable(&shown, PERMISSION_TOOL, SLICE_LIT("a")));
	assert_true(shown_is_reachable(&shown, PERMISSION_PROMPT, SLICE_LIT("d")));
	assert_true(shown_differs(&shown, PERMISSION_PROMPT));
	assert_false(shown_differs(&shown, PERMISSION_RESOURCE));
}

static void items_are_shown(void **state)
{
	static const struct {
		const char *item, *expected; /* NULL: it cannot be reached */
	} rows[] = {
		{ "{\"name\":\"e\",\"x\":1}",
		  "{\"annotations\":{\"readOnlyHint\":true},\"name\":\"e\",\"x\":1}" },
		{ "{\"x\": [1], \"name\" : \"a\"}", "{\"name\":\"b\",\"x\": [1]}" },
		{ "{\"name\":\"\\u0061\"}", "{\"name\":\"b\"}" },
		{ "{\"name\":\"c\",\"description\":\"x\",\"annotations\":{\"title\":\"x\",\"openWorldHint\":true},"
		  "\"inputSchema\":{\"name\":\"c\"}}",
		  "{\"name\":\"d\",\"description\":\"Say \\\"hi\\\"\","
		  "\"annotations\":{\"openWorldHint\":true,\"destructiveHint\":false,\"title\":\"C\"},"
		  "\"inputSchema\":{\"name\":\"c\"}}" },
		{ "{\"name\":\"c\",\"annotations\":7}",
		  "{\"name\":\"d\",\"description\":\"Say \\\"hi\\\"\","
		  "\"annotations\":{\"destructiveHint\":false,\"title\":\"C\"}}" },
		{ "{\"name\":\"d\"}", NULL },
		{ "{ \"name\":\"other\" }", "{ \"name\":\"other\" }" },
		{ "{\"name\":7}", "{\"name\":7}" },
		{ "[\"c\"]", "[\"c\"]" },
		{ "null", "null" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf out = { 0 };
		bool is_there =
			shown_append(&shown, PERMISSION_TOOL, slice_str(rows[i].item), &out);

		assert_int_equal(is_there, rows[i].expected != NULL);
		assert_string_equal(buf_terminate(&out), is_there ? rows[i].expected : "");
		buf_fini(&out);
	}
}

static void messages_get_real_names(void **state)
{
#define CALL(method, params) \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"
	static const struct {
		const char *text, *expected; /* NULL: stays as it is */
		const char *what;
	} rows[] = {
		{ CALL("tools/call", "{\"name\":\"d\",\"arguments\":{\"name\":\"d\"}}"),
		  CALL("tools/call", "{\"name\":\"c\",\"arguments\":{\"name\":\"d\"}}"), NULL },
		{ CALL("tools/call", "{\"arguments\":{}, \"name\" : \"\\u0061\" }"),
		  CALL("tools/call", "{\"arguments\":{}, \"name\" : \"b\" }"), NULL },
		{ CALL("tools/call", "{\"name\":\"e\"}"), NULL, NULL },
		{ CALL("tools/call", "{\"name\":\"c\"}"), NULL, "tool" },
		{ CALL("Tools/Call", "{\"name\":\"c\"}"), NULL, "tool" },
		{ CALL("tools/call", "{\"name\":7}"), NULL, "tool" },
		{ CALL("tools/call", "{\"name\":[\"c\"]}"), NULL, "tool" },
		{ CALL("tools/call", "{}"), NULL, "tool" },
		{ CALL("tools/call", "[]"), NULL, NULL },
		{ CALL("prompts/get", "{\"name\":\"q\"}"), CALL("prompts/get", "{\"name\":\"p\"}"),
		  NULL },
		{ CALL("prompts/get", "{\"name\":\"p\"}"), NULL, "prompt" },
		{ CALL("prompts/get", "{\"name\":\"d\"}"), NULL, NULL },
		{ CALL("completion/complete",
		       "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"q\"},\"argument\":{}}"),
		  CALL("completion/complete",
		       "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"p\"},\"argument\":{}}"),
		  NULL },
		{ CALL("resources/read", "{\"uri\":\"c\"}"), NULL, NULL },
		{ CALL("\xc2\xad", "{\"name\":\"d\"}"), NULL, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"name\":\"d\"}}", NULL, NULL },
	};
	static const struct scan_limits limits = { 64, 256 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf out = { 0 };
		struct envelope env;
		struct error err;
		const char *what;

		assert_int_equal(scan_envelope(slice_str(rows[i].text), &limits, 0, &env, &err), 0);
		what = shown_take_message(&shown, &env, &out);
		assert_int_equal(what == NULL, rows[i].what == NULL);
		if (what != NULL)
			assert_string_equal(what, rows[i].what);
		assert_string_equal(buf_terminate(&out),
				    rows[i].expected != NULL ? rows[i].expected : "");
		out.len = 0;
		assert_null(shown_take_message(&nothing, &env, &out));
		assert_int_equal(out.len, 0);
		buf_fini(&out);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_lead_back),
		cmocka_unit_test(items_are_shown),
		cmocka_unit_test(messages_get_real_names),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
