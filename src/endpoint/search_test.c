/* SPDX-License-Identifier: Apache-2.0 */
/* Which tools a query finds, in which order, and what neither a query nor a list can do. */
#include "endpoint/search.h"

#include "base/mem.h"
#include "base/unit_test.h"
#include "jsonrpc/write.h"

#define TOOL(name, rest) "{\"name\":\"" name "\"" rest "}"
#define SAYS(text) ",\"description\":\"" text "\""
#define TAKES(name, text)                                               \
	",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"" name \
	"\":{\"type\":\"string\"" SAYS(text) "}}}"

static const char list[] =
	"{\"tools\":[" TOOL("files__read_file", SAYS("Reads a file from disk.") TAKES("path", "where it is")) "," TOOL("files__writeFile", SAYS("Writes text to disk.")) "," TOOL(
		"gh__create_issue",
		",\"title\":\"New issue\"" SAYS("Opens a ticket in a repository.") TAKES(
			"repo",
			"its name")) "," TOOL("gh__list_issues",
					      SAYS("All issues of a repository; the file of labels is read as well, and much more is said here of "
						   "nothing in particular.")) "," TOOL("mail__send",
										       SAYS("\\u00dcberweist eine NACHRICHT \\u6587\\u4ef6.")) "," TOOL("odd",
																			",\"inputSchema\":7") ",7,null," TOOL("twin",
																							      "") "," TOOL("twin",
																									   "") "]}";

/* The text of what is found for these arguments. */
static void find_in(struct slice tools, const char *arguments, struct buf *text)
{
	static const char *const way[] = { "content" };
	struct buf out = { 0 };
	struct json content, value;

	text->len = 0;
	search_append_found(tools, slice_str(arguments), &out);
	content = scan_path(buf_slice(&out), way, 1);
	assert_int_equal(content.type, JSON_ARRAY);
	value = scan_member(slice_of(content.text.p + 1, content.text.n - 2), SLICE_LIT("text"));
	assert_int_equal(scan_decode_string(value, text), 0);
	buf_terminate(text);
	assert_int_equal(strstr(buf_terminate(&out), "\"isError\":true") != NULL,
			 strstr(text->data, "needs `query`") != NULL);
	buf_fini(&out);
}

static int add_name(struct slice element, void *arg)
{
	struct buf *names = arg;

	buf_append_slice(names, scan_plain_string(scan_member(element, SLICE_LIT("name"))));
	buf_append_char(names, ' ');
	return 0;
}

static void assert_found(const char *arguments, const char *names)
{
	struct buf text = { 0 }, found = { 0 };
	struct json tools;
	struct error err;

	find_in(slice_str(list), arguments, &text);
	tools = scan_member(buf_slice(&text), SLICE_LIT("tools"));
	if (names[0] != '\0')
		assert_true(scan_array(tools.text, 100, add_name, &found, &err) > 0);
	else
		assert_non_null(strstr(text.data, "None of 8 tools"));
	assert_string_equal(buf_terminate(&found), names);
	buf_fini(&text);
	buf_fini(&found);
}

static void the_best_comes_first(void **state)
{
	assert_found("{\"query\":\"read file\"}",
		     "files__read_file gh__list_issues files__writeFile ");
	assert_found("{\"query\":\"Write a FILE\",\"limit\":1}", "files__writeFile ");
	assert_found("{\"query\":\"issue\"}", "gh__create_issue gh__list_issues ");
	assert_found("{\"query\":\"repository ticket\",\"limit\":2}",
		     "gh__create_issue gh__list_issues ");
	assert_found("{\"query\":\"repo\",\"limit\":1}", "gh__create_issue ");
	assert_found("{\"query\":\"twin\"}", "twin twin ");
	assert_found("{\"query\":\"twin\",\"limit\":0}", "twin twin ");
	assert_found("{\"query\":\"new\"}", "gh__create_issue ");
	assert_found("{\"query\":\"where\"}", "files__read_file ");
	assert_found("{\"query\":\"re\"}", "");
}

/* The weights of what is said: in the name, the titles, the description, of arguments. */
static void what_counts_more(void **state)
{
	static const char tools[] =
		"{\"tools\":[" TOOL("a", TAKES("x", "salt")) "," TOOL("b", SAYS("salt")) "," TOOL("c", ",\"title\":\"salt\"") "," TOOL(
			"d",
			",\"annotations\":{\"title\":\"salt\"}") "," TOOL("salt",
									  "") "," TOOL("f",
										       SAYS("pepperoni")) "," TOOL("g",
														   SAYS("pepper")) "]}";
	struct buf text = { 0 }, found = { 0 };
	struct error err;

	find_in(slice_str(tools), "{\"query\":\"salt\"}", &text);
	assert_true(scan_array(scan_member(buf_slice(&text), SLICE_LIT("tools")).text, 100,
			       add_name, &found, &err) > 0);
	assert_string_equal(buf_terminate(&found), "salt c d b a ");
	found.len = 0;
	find_in(slice_str(tools), "{\"query\":\"pepper\"}", &text);
	assert_true(scan_array(scan_member(buf_slice(&text), SLICE_LIT("tools")).text, 100,
			       add_name, &found, &err) > 0);
	assert_string_equal(buf_terminate(&found), "g f ");
	buf_fini(&text);
	buf_fini(&found);
}

static void words_of_all_scripts(void **state)
{
	assert_found("{\"query\":\"\\u00fcberweist\"}", "mail__send ");
	assert_found("{\"query\":\"nachricht\"}", "mail__send ");
	assert_found("{\"query\":\"\\u4ef6\"}", "mail__send ");
	assert_found("{\"query\":\"\\u6587\\u5b57\"}", "mail__send ");
}

static void what_fits_nothing(void **state)
{
	static const char *const rows[] = { "{\"query\":\"\"}", "{\"query\":\"zebra\"}",
					    "{\"query\":\"?!\"}", "{\"query\":\"ea\"}" };
	static const char *const wrong[] = { "{}", "{\"query\":7}", "{\"limit\":3}",
					     "{\"query\":\"\\ud800\"}" };
	struct buf text = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_found(rows[i], "");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		find_in(slice_str(list), wrong[i], &text);
		assert_non_null(strstr(text.data, "needs `query`"));
	}
	find_in(SLICE_LIT("{\"tools\":[]}"), "{\"query\":\"a\"}", &text);
	assert_non_null(strstr(text.data, "None of 0 tools"));
	buf_fini(&text);
}

/* Of a list without end the beginning is read, and of a query some words. */
static void what_is_very_long(void **state)
{
	struct buf tools = { 0 }, query = { 0 }, text = { 0 };

	buf_append_str(&tools, "{\"tools\":[");
	for (int i = 0; i < 20000; i++)
		buf_printf(&tools, "%s{\"name\":\"t%d\",\"description\":\"same\"}",
			   i > 0 ? "," : "", i);
	buf_append_str(&tools, "]}");
	find_in(buf_slice(&tools), "{\"query\":\"same\",\"limit\":1000}", &text);
	assert_non_null(strstr(text.data, "\"t0\""));
	assert_non_null(strstr(text.data, "\"t19\""));
	assert_null(strstr(text.data, "\"t20\""));
	find_in(buf_slice(&tools), "{\"query\":\"t4095\",\"limit\":1}", &text);
	assert_non_null(strstr(text.data, "\"t4095\""));
	find_in(buf_slice(&tools), "{\"query\":\"t4096\"}", &text);
	assert_non_null(strstr(text.data, "None of 4096 tools"));
	buf_append_str(&query, "{\"query\":\"");
	for (int i = 0; i < 20; i++)
		buf_printf(&query, "x%d ", i);
	buf_append_str(&query, "twin\"}");
	find_in(slice_str(list), buf_terminate(&query), &text);
	assert_non_null(strstr(text.data, "None of 8 tools"));
	tools.len = 0;
	buf_append_str(&tools, "{\"tools\":[{\"name\":\"big\",\"description\":\"");
	for (int i = 0; i < 3 << 20; i++)
		buf_append_str(&tools, i == 200 << 10 ? " alpha " :
				       i == 300 << 10 ? " beta " :
							"y");
	buf_append_str(&tools, " \"},{\"name\":\"late\"}]}");
	find_in(buf_slice(&tools), "{\"query\":\"big\"}", &text);
	assert_non_null(strstr(text.data, "\"big\""));
	find_in(buf_slice(&tools), "{\"query\":\"late\"}", &text); /* of another server, maybe */
	assert_non_null(strstr(text.data, "\"late\""));
	find_in(buf_slice(&tools), "{\"query\":\"alpha\"}", &text);
	assert_non_null(strstr(text.data, "\"big\""));
	find_in(buf_slice(&tools), "{\"query\":\"beta\"}",
		&text); /* half of what is read is for each */
	assert_non_null(strstr(text.data, "None of 2 tools"));
	buf_fini(&tools);
	buf_fini(&query);
	buf_fini(&text);
}

/* Wherever a text is cut off. */
static void characters_are_not_cut(void **state)
{
	struct buf tools = { 0 }, text = { 0 };

	for (size_t n = 0; n < 5; n++) {
		tools.len = 0;
		buf_append_str(&tools, "{\"tools\":[{\"name\":\"big\",\"description\":\"");
		buf_append(&tools, "xxxxx", n);
		for (int i = 0; i < 200 << 10; i++)
			buf_append_str(&tools, "\xf0\x9d\x92\x9c");
		buf_append_str(&tools, "\",\"inputSchema\":{\"properties\":{\"\u00e9\":{}}}}]}");
		find_in(buf_slice(&tools), "{\"query\":\"big\"}", &text);
		assert_non_null(strstr(text.data, "\"big\""));
	}
	buf_fini(&tools);
	buf_fini(&text);
}

static void assert_arguments(const char *message, size_t n)
{
	struct envelope env;
	struct error err;

	assert_int_equal(scan_envelope(slice_str(message), &scan_limits_none, 0, &env, &err), 0);
	assert_int_equal(search_arguments(&env).n, n);
}

static void assert_unwrapped(const char *message, const char *expected)
{
	struct envelope env;
	struct buf out = { 0 };
	struct error err;

	assert_int_equal(scan_envelope(slice_str(message), &scan_limits_none, 0, &env, &err), 0);
	assert_int_equal(search_unwrap(&env, &out), expected != NULL);
	if (expected != NULL)
		assert_string_equal(buf_terminate(&out), expected);
	buf_fini(&out);
}

#define CALL(params) \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{" params "}}"

static void a_call_is_taken_apart(void **state)
{
	assert_unwrapped(
		CALL("\"name\":\"call_tool\",\"arguments\":{\"name\":\"a\",\"arguments\":{\"x\":[1]}},\"_meta\":{}"),
		CALL("\"name\":\"a\",\"arguments\":{\"x\":[1]},\"_meta\":{}"));
	assert_unwrapped(
		CALL("\"arguments\":{\"arguments\":{\"name\":\"no\"},\"name\":\"a\"},\"name\":\"call_tool\""),
		CALL("\"arguments\":{\"name\":\"no\"},\"name\":\"a\""));
	assert_unwrapped(
		CALL("\"name\":\"call_tool\",\"arguments\":{\"name\":\"a\",\"arguments\":\"{}\"}"),
		CALL("\"name\":\"a\",\"arguments\":{}"));
	assert_unwrapped(CALL("\"name\":\"call_tool\",\"arguments\":{\"name\":\"a\"}"),
			 CALL("\"name\":\"a\",\"arguments\":{}"));
	assert_unwrapped(CALL("\"name\":\"call_tool\",\"arguments\":{\"name\":7}"), NULL);
	assert_unwrapped(CALL("\"name\":\"call_tool\",\"arguments\":[\"name\"]"), NULL);
	assert_unwrapped(CALL("\"name\":\"call_tool\""), NULL);
}

static void a_query_is_short(void **state)
{
	struct buf message = { 0 };

	assert_arguments(CALL("\"name\":\"find_tool\""), 2);
	assert_arguments(CALL("\"arguments\":[\"query\"]"), 2);
	assert_arguments(CALL("\"arguments\":{\"query\":\"x\"}"), 13);
	buf_append_str(
		&message,
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"arguments\":{\"query\":\"");
	for (int i = 0; i < 8192 - 12; i++)
		buf_append_char(&message, 'x');
	buf_append_str(&message, "\"}}}");
	assert_arguments(buf_terminate(&message), 8192);
	message.len -= 4;
	buf_append_str(&message, "x\"}}}");
	assert_arguments(buf_terminate(&message), 2);
	buf_fini(&message);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_best_comes_first), cmocka_unit_test(words_of_all_scripts),
		cmocka_unit_test(what_fits_nothing),    cmocka_unit_test(what_is_very_long),
		cmocka_unit_test(what_counts_more),     cmocka_unit_test(characters_are_not_cut),
		cmocka_unit_test(a_query_is_short),     cmocka_unit_test(a_call_is_taken_apart),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
