/* SPDX-License-Identifier: Apache-2.0 */
/* TOML: what it means as JSON, what is refused and where, which bytes say a value, and JSON as TOML. */
#include "config/jsonc.h"

#include "base/mem.h"
#include "base/unit_test.h"
#include "jsonrpc/scan.h"

static void assert_read(const char *written, const char *meant)
{
	struct jsonc json = { 0 };
	struct error err = { .text = "" };

	if (toml_read(&json, slice_str(written), &err) < 0)
		fail_msg("%s: %s", written, err.text);
	assert_string_equal(buf_terminate(&json.text), meant);
	jsonc_fini(&json);
	assert_null(json.marks);
}

static void assert_refused(struct slice written, const char *reason)
{
	struct jsonc json = { 0 };
	struct error err = { .text = "" };

	assert_int_equal(toml_read(&json, written, &err), -1);
	if (strstr(err.text, reason) == NULL)
		fail_msg("%.*s: %s", SLICE_ARG(written), err.text);
	jsonc_fini(&json);
}

#define REFUSED(written, reason) assert_refused(SLICE_LIT(written), reason)

static void test_values(void **state)
{
	assert_read("", "{}");
	assert_read("\xEF\xBB\xBF# a\n\n \t# b", "{}");
	assert_read("a=true#c\nb = false", "{\"a\":true,\"b\":false}");
	assert_read("a = +1_000\nb = -0\nc = 6.0_1e+1_0\nd = 1e5",
		    "{\"a\":1000,\"b\":-0,\"c\":6.01e+10,\"d\":1e5}");
	assert_read(
		"a = 0xF_f\nb = 0o7\nc = 0b1\nd = -inf\ne = nan",
		"{\"a\":[\"0xF_f\"],\"b\":[\"0o7\"],\"c\":[\"0b1\"],\"d\":[\"-inf\"],\"e\":[\"nan\"]}");
	assert_read(
		"a = 2026-11-27\nb = 2026-11-27 07:32:00.5+01:00\nc = 07:32",
		"{\"a\":[\"2026-11-27\"],\"b\":[\"2026-11-27 07:32:00.5+01:00\"],\"c\":[\"07:32\"]}");
	assert_read("a = [ ]\nb = [1, # x ]\n\n[ \"c\" ,],{d = 1,\n},]",
		    "{\"a\":[],\"b\":[1,[\"c\"],{\"d\":1}]}");
	REFUSED("a = 01", "1:5: not valid TOML: no value");
	REFUSED("a = 1__0", "no value");
	REFUSED("a = 1.", "no value");
	REFUSED("a = 2026-13-01", "no value");
	REFUSED("a = True", "no value");
	REFUSED("a =", "1:4: not valid TOML: no value");
	REFUSED("a = [,]", "no value");
	REFUSED("a = [1 2]", "1:8: not valid TOML: a comma");
	REFUSED("a = [1", "a comma");
	REFUSED("a = 1 b = 2", "1:7: not valid TOML: more than one thing in a line");
	REFUSED("a = 1234567890123456789012345678901234567890123456789012345678901234567890",
		"no value");
}

static void test_texts(void **state)
{
	assert_read("a = \"\\b\\t\\n\\f\\r\\e\\\"\\\\\\u00e4\\U0001F600\\x41\"",
		    "{\"a\":\"\\b\\t\\n\\f\\r\\u001b\\\"\\\\\xc3\xa4\xf0\x9f\x98\x80"
		    "A\"}");
	assert_read("a = 'C:\\x\\'", "{\"a\":\"C:\\\\x\\\\\"}");
	assert_read("a = \"\"\"\nx\\\n  \n  y\n\"\"z\"\"\"\"\"",
		    "{\"a\":\"xy\\n\\\"\\\"z\\\"\\\"\"}");
	assert_read("a = '''\r\n\\'x''\r\n''''", "{\"a\":\"\\\\'x''\\r\\n'\"}");
	assert_read("a = \"\"\nb = ''", "{\"a\":\"\",\"b\":\"\"}");
	REFUSED("a = \"x\n\"", "1:5: not valid TOML: a text without an end");
	REFUSED("a = '", "a text without an end");
	REFUSED("a = \"\"\"x\"\"", "a text without an end");
	REFUSED("a = \"\"\"x\"\"\"\"\"\"", "more than one thing");
	REFUSED("a = \"\\q\"", "1:6: not valid TOML: a backslash that means nothing");
	REFUSED("a = \"\\u12\"", "a backslash that means nothing");
	REFUSED("a = \"\"\"\\ x\"\"\"", "a backslash that means nothing");
	REFUSED("a = \"\\ud800\"", "no character");
	REFUSED("a = \"\\U00110000\"", "no character");
	REFUSED("a = \"\\u0000\"", "no character");
	REFUSED("a = \"\x01\"", "1:6: not valid TOML: a control character");
	REFUSED("# \x7f", "a control character");
	REFUSED("a = 1\r", "1:6: not valid TOML: a control character");
	REFUSED("a = \"\0\"", "a control character");
	REFUSED("a = \"\xff\"", "it is not UTF-8");
}

static void test_keys_and_tables(void **state)
{
	assert_read("a . \"b.c\" .'d' = 1\na.x = 2\n\"\" = 3",
		    "{\"a\":{\"b.c\":{\"d\":1},\"x\":2},\"\":3}");
	assert_read("[a.b]\nc = 1\n[a]\nd = 2\n[ a . e ]",
		    "{\"a\":{\"b\":{\"c\":1},\"d\":2,\"e\":{}}}");
	assert_read("[[a]]\nb = 1\n[[a]]\n[a.c]\nd = 2\n[[a.e]]",
		    "{\"a\":[{\"b\":1},{\"c\":{\"d\":2},\"e\":[{}]}]}");
	assert_read("[a]\nb.c = 1\n[a.b.d]\n", "{\"a\":{\"b\":{\"c\":1,\"d\":{}}}}");
	assert_read("1-_z = {a.b = 1, a.c = 2}", "{\"1-_z\":{\"a\":{\"b\":1,\"c\":2}}}");
	REFUSED("a = 1\n\"\\u0061\" = 2", "2:10: not valid TOML: the same name once more");
	REFUSED("a = {b = 1, b = 2}", "the same name once more");
	REFUSED("[a]\n[a]", "2:3: not valid TOML: a table is defined twice");
	REFUSED("a.b = 1\n[a]", "a table is defined twice");
	REFUSED("[[a]]\n[a]", "a table is defined twice");
	REFUSED("a = []\n[[a]]", "a table is defined twice");
	REFUSED("a = {}\n[a.b]", "a name is used in two ways");
	REFUSED("a = {}\na.b = 1", "a name is used in two ways");
	REFUSED("a = 1\na.b = 1", "a name is used in two ways");
	REFUSED("[a.b]\n[a]\nb.c = 1", "a name is used in two ways");
	REFUSED("[[a.b]]\n[a]\nb.c = 1", "a name is used in two ways");
	REFUSED("[a", "a bracket is missing");
	REFUSED("[[a]", "a bracket is missing");
	REFUSED("[a] b = 1", "more than one thing");
	REFUSED("[]", "a name is missing");
	REFUSED("a. = 1", "a name is missing");
	REFUSED("= 1", "a name is missing");
	REFUSED("\xc3\xa4 = 1", "1:1: not valid TOML: a name is missing");
	REFUSED("\"\"\"a\"\"\" = 1", "no =");
	REFUSED("a", "1:2: not valid TOML: no =");
}

static void test_limits(void **state)
{
	struct buf text = { 0 };

	for (int i = 0; i < TOML_DEPTH_MAX; i++)
		buf_append_str(&text, i == 0 ? "a=" : "[");
	assert_refused(buf_slice(&text), "no value");
	buf_append_str(&text, "[");
	assert_refused(buf_slice(&text), "nested too deeply");
	text.len = 0;
	for (int i = 0; i < TOML_DEPTH_MAX + 1; i++)
		buf_append_str(&text, "a.");
	assert_refused(buf_slice(&text), "nested too deeply");
	text.len = 0;
	for (int i = 0; i <= TOML_NAMES_MAX; i++)
		buf_printf(&text, "a%d=1\n", i);
	assert_refused(buf_slice(&text), "4097:6: not valid TOML: one name too many");
	while (text.len <= TOML_BYTES_MAX)
		buf_append_char(&text, '\n');
	assert_refused(buf_slice(&text), "larger than");
	buf_fini(&text);
}

/* The parts of a member's span, with ! behind them if it is apart. */
static void assert_span(const char *written, const char *way, const char *from, const char *value)
{
	struct jsonc json = { 0 };
	struct error err;
	struct slice at, rest = slice_str(way);
	struct jsonc_span span;
	char *text;

	assert_int_equal(toml_read(&json, slice_str(written), &err), 0);
	at = buf_slice(&json.text);
	while (rest.n > 0)
		at = scan_member(at, slice_cut(&rest, '/')).text;
	span = jsonc_span(&json, at);
	text = mem_printf("%.*s%s", (int)(span.to - span.from), json.original.p + span.from,
			  span.is_apart ? "!" : "");
	assert_string_equal(text, from);
	assert_int_equal(strncmp(json.original.p + span.value, value, strlen(value)), 0);
	free(text);
	jsonc_fini(&json);
}

static void test_spans(void **state)
{
	static const char file[] =
		"\xEF\xBB\xBFx=1\n[s.a] # c\nb = 'd' # e\ne.f = [\n] #\n [s.a.g]\nh=1 #\n[s.i]\nj = {k = 2, l.m = 3}\n"
		"l = 1\n[s.a.n]\no = 1\n";

	assert_span(file, "x", "x=1", "1\n");
	assert_span(file, "s/a/b", "b = 'd'", "'d'");
	assert_span(
		file, "s/a",
		"[s.a] # c\nb = 'd' # e\ne.f = [\n] #\n [s.a.g]\nh=1 #\n[s.i]\nj = {k = 2, l.m = 3}\nl = 1\n[s.a.n]\no = 1!",
		" # c");
	assert_span(file, "s/a/e", "e.f = [\n]", "e.f");
	assert_span(file, "s/a/e/f", "e.f = [\n]", "[\n]");
	assert_span(file, "s/a/g", "[s.a.g]\nh=1", "\nh=1");
	assert_span(file, "s/i", "[s.i]\nj = {k = 2, l.m = 3}\nl = 1", "\nj");
	assert_span(file, "s/i/j", "j = {k = 2, l.m = 3}", "{k");
	assert_span(file, "s/i/j/k", "k = 2", "2");
	assert_span("[s]\na.b = 1\na.c = 2\n", "s/a", "a.b = 1\na.c = 2", "a.b");
	assert_span("a.b = 1\nc = 1\na.d = 2", "a", "a.b = 1\nc = 1\na.d = 2!", "a.b");
	assert_span("[a.b]\n[c]\n[a]\nd = 1\n", "a", "[a.b]\n[c]\n[a]\nd = 1!", "\nd");
	assert_span("a = {b.c = 1}\n", "a/b", "!", "a");
}

static void test_places(void **state)
{
	struct jsonc json = { 0 };
	struct error err;
	struct slice at;
	unsigned line, column;

	assert_int_equal(toml_read(&json, SLICE_LIT("\n[a.\"\xc3\xa4\"]\nb.c = [1,\n 'x']"), &err),
			 0);
	assert_string_equal(buf_terminate(&json.text),
			    "{\"a\":{\"\xc3\xa4\":{\"b\":{\"c\":[1,\"x\"]}}}}");
	at = buf_slice(&json.text);
	jsonc_place(&json, strstr(at.p, "\"x\""), &line, &column);
	assert_true(line == 4 && column == 2);
	jsonc_place(&json, strstr(at.p, "\"\xc3\xa4\""), &line, &column);
	assert_true(line == 2 && column == 4);
	jsonc_place(&json, strstr(at.p, "\"c\""), &line, &column);
	assert_true(line == 3 && column == 3);
	jsonc_fini(&json);
}

static void test_json_as_toml(void **state)
{
	struct buf out = { 0 };

	toml_append(&out, SLICE_LIT("{\"a:\\\":\": [\"b\\\\\", true], \"c\":{\"d\":1}}"));
	assert_string_equal(buf_terminate(&out),
			    "{\"a:\\\":\" = [\"b\\\\\", true], \"c\" = {\"d\" = 1}}");
	out.len = 0;
	toml_append(&out, SLICE_LIT("\"\x7f:\""));
	assert_string_equal(buf_terminate(&out), "\"\\u007F:\"");
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),          cmocka_unit_test(test_texts),
		cmocka_unit_test(test_keys_and_tables), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_spans),           cmocka_unit_test(test_places),
		cmocka_unit_test(test_json_as_toml),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
