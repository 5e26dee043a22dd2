/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what the head mirrors of a call's arguments: the values of the fields, and the annotations of schemas. Texts lie
 * in blocks of exactly their size.
 */
#include "endpoint/modern.h"

#include "base/unit_test.h"
#include "jsonrpc/param_headers.h"
#include "mcp/error.h"

static const struct scan_limits limits = { .depth_max = 200, .id_max = 256 };

static char *copy_text(struct slice s)
{
	char *copy = malloc(s.n > 0 ? s.n : 1);

	memcpy(copy, s.p, s.n);
	return copy;
}

/* ---- values ---- */

struct value_row {
	struct slice value;
	const char *meaning; /* NULL: it has none */
};

static void check_values(const struct value_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *copy = copy_text(rows[i].value);
		struct buf out = { 0 };
		bool is_good;

		buf_append_char(&out, '>');
		is_good = modern_decode_value(slice_of(copy, rows[i].value.n), &out);
		if (is_good != (rows[i].meaning != NULL) ||
		    strcmp(buf_terminate(&out) + 1, is_good ? rows[i].meaning : "") != 0)
			fail_msg("<%.*s>: %d <%s>", SLICE_ARG(rows[i].value), is_good, out.data);
		buf_fini(&out);
		free(copy);
	}
}

/* MOD-HDR-02 */
static void marked_values_are_decoded(void **state)
{
	static const struct value_row rows[] = {
		{ SLICE("=?base64?SGVsbG8sIOS4lueVjA==?="), "Hello, \xe4\xb8\x96\xe7\x95\x8c" },
		{ SLICE("=?base64?IHBhZGRlZCA=?="), " padded " },
		{ SLICE("=?base64?bGluZTEKbGluZTI=?="), "line1\nline2" },
		{ SLICE("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="), "=?base64?literal?=" },
		{ SLICE("=?base64?YQ==?="), "a" },
		{ SLICE("=?base64?YWI=?="), "ab" },
		{ SLICE("=?base64?YWJj?="), "abc" },
		{ SLICE("=?base64?\?="), "" },
		{ SLICE("=?base64?Pj4+?="), ">>>" },
		{ SLICE("=?base64?Pz8/?="), "???" },
		{ SLICE("=?base64?8J+YgA==?="), "\xf0\x9f\x98\x80" },
		/* the markers share a character */
		{ SLICE("=?base64?="), NULL },
		/* padding */
		{ SLICE("=?base64?YQ?="), NULL },
		{ SLICE("=?base64?YQ=?="), NULL },
		{ SLICE("=?base64?YWI?="), NULL },
		{ SLICE("=?base64?YQ===?="), NULL },
		{ SLICE("=?base64?YWJj=?="), NULL },
		{ SLICE("=?base64?YWJj====?="), NULL },
		{ SLICE("=?base64?====?="), NULL },
		{ SLICE("=?base64?=?="), NULL },
		{ SLICE("=?base64?A===?="), NULL },
		{ SLICE("=?base64?YQ==YQ==?="), NULL },
		{ SLICE("=?base64?=YWJ?="), NULL },
		{ SLICE("=?base64?Y===?="), NULL },
		/* bits that stand for nothing */
		{ SLICE("=?base64?YR==?="), NULL },
		{ SLICE("=?base64?Yf==?="), NULL },
		{ SLICE("=?base64?YWJ=?="), NULL },
		{ SLICE("=?base64?YWK=?="), NULL },
		/* alphabet */
		{ SLICE("=?base64?Pj4-?="), NULL },
		{ SLICE("=?base64?Pz8_?="), NULL },
		{ SLICE("=?base64?YW Jj?="), NULL },
		{ SLICE("=?base64? YWJj?="), NULL },
		{ SLICE("=?base64?YWJj ?="), NULL },
		{ SLICE("=?base64?YW\tJj?="), NULL },
		{ SLICE("=?base64?YW?j?="), NULL },
		{ SLICE("=?base64?YWJ.?="), NULL },
		{ SLICE("=?base64?%59Q==?="), NULL },
		/* not UTF-8 */
		{ SLICE("=?base64?/w==?="), NULL },
		{ SLICE("=?base64?w6Q=?="), "\xc3\xa4" },
		{ SLICE("=?base64?ww==?="), NULL },
		{ SLICE("=?base64?wIA=?="), NULL },
		{ SLICE("=?base64?7aCA?="), NULL },
		{ SLICE("=?base64?9JCAgA==?="), NULL },
	};
	struct buf out = { 0 };

	check_values(rows, ARRAY_LEN(rows));
	assert_true(modern_decode_value(SLICE_LIT("=?base64?AGE=?="), &out));
	assert_int_equal(out.len, 2);
	assert_memory_equal(out.data, "\0a", 2);
	buf_fini(&out);
}

/* MOD-HDR-02, MOD-HDR-03 */
static void other_values_are_literal(void **state)
{
	static const struct value_row rows[] = {
		{ SLICE(""), "" },
		{ SLICE("us-west1"), "us-west1" },
		{ SLICE("a b\tc"), "a b\tc" },
		{ SLICE("=?BASE64?YQ==?="), "=?BASE64?YQ==?=" },
		{ SLICE("=?Base64?YQ==?="), "=?Base64?YQ==?=" },
		{ SLICE("=?base64?YQ=="), "=?base64?YQ==" },
		{ SLICE("=?base64?YQ==?= "), "=?base64?YQ==?= " },
		{ SLICE(" =?base64?YQ==?="), " =?base64?YQ==?=" },
		{ SLICE("YQ==?="), "YQ==?=" },
		{ SLICE("=?base64?"), "=?base64?" },
		{ SLICE("?="), "?=" },
		{ SLICE("=?base6?YQ==?="), "=?base6?YQ==?=" },
		{ SLICE("=?utf-8?B?YQ==?="), "=?utf-8?B?YQ==?=" },
		{ SLICE("~!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}"),
		  "~!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}" },
		{ SLICE("\xc3\xa4"), NULL },
		{ SLICE("a\x80"), NULL },
		{ SLICE("\xff"), NULL },
		{ SLICE("a\x7f"), NULL },
		{ SLICE("a\0b"), NULL },
		{ SLICE("a\x1f"), NULL },
		{ SLICE("a\rb"), NULL },
		{ SLICE("a\nb"), NULL },
		{ SLICE("=?base64?YQ==\xc3\xa4?="), NULL },
	};

	check_values(rows, ARRAY_LEN(rows));
}

/* ---- schemas ---- */

#define PROPERTIES(list) "{\"type\":\"object\",\"properties\":{" list "}}"
#define STRING(header) "{\"type\":\"string\",\"x-mcp-header\":\"" header "\"}"
#define TYPED(type, header) "{\"type\":" type ",\"x-mcp-header\":" header "}"

struct schema_row {
	const char *schema;
	const char *why; /* a part; NULL: they count, or there are none */
};

static void check_schemas(const struct schema_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct slice schema = slice_str(rows[i].schema);
		char *copy = copy_text(schema);
		const char *why = param_headers_check(slice_of(copy, schema.n));

		if ((why == NULL) != (rows[i].why == NULL) ||
		    (why != NULL && strstr(why, rows[i].why) == NULL))
			fail_msg("%s: %s", rows[i].schema, why != NULL ? why : "fine");
		free(copy);
	}
}

/* MOD-HDR-06 */
static void annotations_have_a_type_and_a_name(void **state)
{
	static const struct schema_row rows[] = {
		{ "", NULL },
		{ "{}", NULL },
		{ "true", NULL },
		{ PROPERTIES("\"a\":{\"type\":\"string\"}"), NULL },
		{ PROPERTIES("\"a\":" STRING("A")), NULL },
		{ PROPERTIES("\"a\":" TYPED("\"integer\"", "\"A\"")), NULL },
		{ PROPERTIES("\"a\":" TYPED("\"boolean\"", "\"A\"")), NULL },
		{ PROPERTIES("\"a\":" STRING("!#$%&'*+-.^_`|~09azAZ")), NULL },
		{ PROPERTIES("\"a\":" STRING("\\u0041")), NULL },
		{ PROPERTIES("\"a\":" STRING("A") ",\"b\":" STRING("B")), NULL },
		{ PROPERTIES("\"a\":" PROPERTIES("\"b\":" STRING("B"))), NULL },
		{ PROPERTIES("\"a\":" STRING("A") ",\"b\":" PROPERTIES("\"a\":" STRING("B"))),
		  NULL },
		/* types */
		{ PROPERTIES("\"a\":" TYPED("\"number\"", "\"A\"")), "no string" },
		{ PROPERTIES("\"a\":" TYPED("\"object\"", "\"A\"")), "no string" },
		{ PROPERTIES("\"a\":" TYPED("\"array\"", "\"A\"")), "no string" },
		{ PROPERTIES("\"a\":" TYPED("\"null\"", "\"A\"")), "no string" },
		{ PROPERTIES("\"a\":" TYPED("[\"string\",\"null\"]", "\"A\"")), "no string" },
		{ PROPERTIES("\"a\":" TYPED("null", "\"A\"")), "no string" },
		{ PROPERTIES("\"a\":{\"x-mcp-header\":\"A\"}"), "no string" },
		/* names */
		{ PROPERTIES("\"a\":" STRING("")), "token" },
		{ PROPERTIES("\"a\":" STRING("A B")), "token" },
		{ PROPERTIES("\"a\":" STRING("A:")), "token" },
		{ PROPERTIES("\"a\":" STRING("A\\r\\nB: c")), "token" },
		{ PROPERTIES("\"a\":" STRING("A\\u0000")), "token" },
		{ PROPERTIES("\"a\":" STRING("\xc3\xa4")), "token" },
		{ PROPERTIES("\"a\":" STRING("\\ud800")), "token" },
		{ PROPERTIES("\"a\":" TYPED("\"string\"", "true")), "token" },
		{ PROPERTIES("\"a\":" TYPED("\"string\"", "[\"A\"]")), "token" },
		{ PROPERTIES("\"a\":" TYPED("\"string\"", "null")), "token" },
		{ PROPERTIES("\"a\":" STRING("A") ",\"b\":" STRING("A")), "same" },
		{ PROPERTIES("\"a\":" STRING("Region") ",\"b\":" STRING("rEGION")), "same" },
		{ PROPERTIES("\"a\":" STRING("A") ",\"b\":" STRING("\\u0061")), "same" },
		{ PROPERTIES("\"a\":" STRING("A") ",\"b\":" PROPERTIES("\"c\":" STRING("a"))),
		  "same" },
	};

	check_schemas(rows, ARRAY_LEN(rows));
}

/* MOD-HDR-06 */
static void annotations_stand_at_properties(void **state)
{
	static const struct schema_row rows[] = {
		{ STRING("A"), "chain" },
		{ "{\"properties\":[" STRING("A") "]}", "chain" },
		{ "[" STRING("A") "]", "chain" },
		{ "{\"items\":" STRING("A") "}", "chain" },
		{ PROPERTIES("\"a\":{\"type\":\"array\",\"items\":" STRING("A") "}"), "chain" },
		{ PROPERTIES("\"a\":{\"items\":" PROPERTIES("\"b\":" STRING("A")) "}"), "chain" },
		{ PROPERTIES("\"a\":{\"anyOf\":[" STRING("A") ",{}]}"), "chain" },
		{ "{\"allOf\":[" PROPERTIES("\"a\":" STRING("A")) "]}", "chain" },
		{ "{\"oneOf\":[{}," PROPERTIES("\"a\":" STRING("A")) "]}", "chain" },
		{ "{\"not\":" PROPERTIES("\"a\":" STRING("A")) "}", "chain" },
		{ "{\"if\":" PROPERTIES("\"a\":" STRING("A")) "}", "chain" },
		{ "{\"$defs\":{\"t\":" STRING("A") "}}", "chain" },
		{ "{\"$defs\":{\"properties\":{\"a\":" STRING("A") "}}}", "chain" },
		{ "{\"$defs\":{\"default\":" STRING("A") "}}", "chain" },
		{ "{\"patternProperties\":{\"^a\":" STRING("A") "}}", "chain" },
		{ "{\"additionalProperties\":" STRING("A") "}", "chain" },
		{ "{\"dependentSchemas\":{\"a\":" PROPERTIES("\"b\":" STRING("A")) "}}", "chain" },
		{ "{\"x-other\":" PROPERTIES("\"a\":" STRING("A")) "}", "chain" },
		{ PROPERTIES("\"a\":" STRING("A") ",\"b\":{\"items\":" STRING("B") "}"), "chain" },
		{ PROPERTIES("\"\\ud800\":" STRING("A")), "chain" },
		/* what only looks like one */
		{ PROPERTIES("\"x-mcp-header\":{\"type\":\"string\"}"), NULL },
		{ PROPERTIES("\"properties\":" STRING("A")), NULL },
		{ PROPERTIES("\"default\":" STRING("A")), NULL },
		{ PROPERTIES("\"items\":" STRING("A")), NULL },
		{ PROPERTIES("\"a\":{\"default\":{\"x-mcp-header\":1}}"), NULL },
		{ PROPERTIES("\"a\":{\"enum\":[{\"x-mcp-header\":1}]}"), NULL },
		{ PROPERTIES("\"a\":{\"const\":{\"x-mcp-header\":1}}"), NULL },
		{ "{\"examples\":[{\"x-mcp-header\":\"A\"}]}", NULL },
		{ "{\"description\":\"x-mcp-header\"}", NULL },
		{ "{\"required\":[\"x-mcp-header\"]}", NULL },
		{ "\"x-mcp-header\"", NULL },
	};

	check_schemas(rows, ARRAY_LEN(rows));
}

static void repeat(struct buf *out, const char *text, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_append_str(out, text);
}

/* BACK-SEC-02 */
static void the_search_has_bounds(void **state)
{
	struct buf out = { 0 };
	static const struct {
		size_t depth;
		bool is_fine;
	} depths[] = { { 1, true }, { 16, true }, { 17, false }, { 40, false }, { 1000, false } };
	static const struct {
		size_t count;
		bool is_fine;
	} counts[] = { { 64, true }, { 65, false }, { 20000, false } };

	for (size_t i = 0; i < ARRAY_LEN(depths); i++) {
		repeat(&out, "{\"properties\":{\"a\":", depths[i].depth);
		buf_append_str(&out, STRING("A"));
		repeat(&out, "}}", depths[i].depth);
		assert_int_equal(param_headers_check(buf_slice(&out)) == NULL, depths[i].is_fine);
		buf_fini(&out);
	}
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		buf_append_str(&out, "{\"properties\":{\"z\":{}");
		for (size_t k = 0; k < counts[i].count; k++)
			buf_printf(&out,
				   ",\"p%zu\":{\"type\":\"string\",\"x-mcp-header\":\"H%zu\"}", k,
				   k);
		buf_append_str(&out, "}}");
		assert_int_equal(param_headers_check(buf_slice(&out)) == NULL, counts[i].is_fine);
		buf_fini(&out);
	}
}

/* BACK-SEC-02: also where no annotation is */
static void the_search_has_bounds_without_annotations(void **state)
{
	static const struct {
		const char *begin, *repeated, *end;
		size_t count;
		bool is_fine;
	} rows[] = {
		{ "{\"$comment\":[\"x-mcp-header\"", ",0", "]}", 19000, true },
		{ "{\"$comment\":[\"x-mcp-header\"", ",0", "]}", 20000, false },
		{ "{\"$comment\":\"x-mcp-header\"", ",\"a\":true", "}", 19000, true },
		{ "{\"$comment\":\"x-mcp-header\"", ",\"a\":true", "}", 20000, false },
		{ "{\"$comment\":\"x-mcp-header\"", ",\"not\":{\"a\":[1,2]}", "}", 4000, true },
		{ "{\"$comment\":\"x-mcp-header\"", ",\"not\":{\"a\":[1,2]}", "}", 6000, false },
		{ "{\"$comment\":\"x-mcp-header\"", ",\"not\":{\"a\":1", "", 62, true },
		{ "{\"$comment\":\"x-mcp-header\"", ",\"not\":{\"a\":1", "", 65, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf out = { 0 };

		buf_append_str(&out, rows[i].begin);
		repeat(&out, rows[i].repeated, rows[i].count);
		buf_append_str(&out, rows[i].end);
		if (rows[i].end[0] == '\0')
			repeat(&out, "}", rows[i].count + 1);
		if ((param_headers_check(buf_slice(&out)) == NULL) != rows[i].is_fine)
			fail_msg("row %zu", i);
		buf_fini(&out);
	}
}

/* ---- calls ---- */

struct call_row {
	const char *schema;
	const char *arguments; /* NULL: absent */
	const char *lines;     /* of the head, each with CRLF */
	int code;              /* 0: it passes */
};

static void check_calls(const struct call_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct call_row *row = &rows[i];
		struct modern_head head = { .params = slice_str(row->lines) };
		struct modern_problem problem = { .status = 0 };
		struct buf out = { 0 };
		struct envelope env;
		struct error err;
		char *text;

		buf_append_str(&out, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
				     "\"params\":{\"name\":\"t\"");
		if (row->arguments != NULL)
			buf_printf(&out, ",\"arguments\":%s", row->arguments);
		buf_append_str(&out, "}}");
		text = copy_text(buf_slice(&out));
		assert_int_equal(scan_envelope(slice_of(text, out.len), &limits, 0, &env, &err), 0);
		if (modern_check_params(&head, &env, slice_str(row->schema), &problem) !=
			    (row->code == 0) ||
		    problem.code != row->code || problem.status != (row->code == 0 ? 0 : 400))
			fail_msg("row %zu: %s %s: %d %s", i, row->arguments, row->lines,
				 problem.code, problem.text != NULL ? problem.text : "passes");
		buf_fini(&out);
		free(text);
	}
}

#define S PROPERTIES("\"a\":" STRING("Aa"))
#define I PROPERTIES("\"a\":" TYPED("\"integer\"", "\"Aa\""))
#define B PROPERTIES("\"a\":" TYPED("\"boolean\"", "\"Aa\""))
#define FIELD(value) "Mcp-Param-Aa: " value "\r\n"
#define MISMATCH MCP_HEADER_MISMATCH

/* MOD-HDR-02 to MOD-HDR-05, FRONT-HTTP-08 */
static void strings_are_mirrored(void **state)
{
	static const struct call_row rows[] = {
		{ S, "{\"a\":\"x\"}", FIELD("x"), 0 },
		{ S, "{\"a\":\"x\"}", "mcp-param-aA:x\r\n", 0 },
		{ S, "{\"a\":\"x\"}", "MCP-PARAM-AA:\t x \t\r\n", 0 },
		{ S, "{\"a\":\"x\"}", FIELD("y"), MISMATCH },
		{ S, "{\"a\":\"x\"}", FIELD("X"), MISMATCH },
		{ S, "{\"a\":\"x\"}", FIELD(""), MISMATCH },
		{ S, "{\"a\":\"x\"}", "", MISMATCH },
		{ S, "{\"a\":\"x\"}", "Mcp-Param-A: x\r\n", MISMATCH },
		{ S, "{\"a\":\"x\"}", "Mcp-Param-Aaa: x\r\n", MISMATCH },
		{ S, "{\"a\":\"\"}", FIELD(""), 0 },
		{ S, "{\"a\":\"\"}", "", MISMATCH },
		{ S, "{\"a\":\"\"}", FIELD("=?base64?\?="), 0 },
		{ S, "{\"a\":\" x\"}", FIELD(" x"), MISMATCH },
		{ S, "{\"a\":\" x\"}", FIELD("=?base64?IHg=?="), 0 },
		{ S, "{\"a\":\"x\"}", FIELD("=?base64?eA==?="), 0 },
		{ S, "{\"a\":\"x\"}", FIELD("=?base64?eA=?="), MISMATCH },
		{ S, "{\"a\":\"=?base64?eA==?=\"}", FIELD("=?base64?eA==?="), MISMATCH },
		{ S, "{\"a\":\"\xc3\xa4\"}", FIELD("\xc3\xa4"), MISMATCH },
		{ S, "{\"a\":\"\\u00e4\"}", FIELD("=?base64?w6Q=?="), 0 },
		{ S, "{\"a\":\"\\u0078\"}", FIELD("x"), 0 },
		{ S, "{\"\\u0061\":\"x\"}", FIELD("x"), 0 },
		{ S, "{\"\\u0061\":\"x\"}", "", MISMATCH },
		{ S, "{\"a\":\"\\ud800\"}", FIELD("x"), MISMATCH },
		{ S, "{\"a\":null}", "", 0 },
		{ S, "{\"a\":null}", FIELD("x"), MISMATCH },
		{ S, "{\"a\":null}", FIELD("null"), MISMATCH },
		{ S, "{\"a\":null}", FIELD(""), MISMATCH },
		{ S, "{}", "", 0 },
		{ S, "{}", FIELD("x"), MISMATCH },
		{ S, NULL, "", 0 },
		{ S, NULL, FIELD("x"), MISMATCH },
		{ S, "{\"b\":\"x\"}", "Mcp-Param-B: \xff\r\nMcp-Param-B: 2\r\n", 0 },
		{ S, "{\"a\":\"x\"}", FIELD("x") "Other: y\r\n" FIELD("x"), MISMATCH },
		{ S, "{\"a\":\"x\"}", FIELD("x") "mcp-param-AA: y\r\n", MISMATCH },
		{ S, "{\"a\":\"x\"}", "Other: y\r\nMcp-Param-B: y\r\n" FIELD("x"), 0 },
		{ S, "{\"a\":\"x\",\"a\":\"x\"}", FIELD("x"), MCP_INVALID_REQUEST },
		{ S, "{\"a\":\"x\",\"\\u0061\":\"y\"}", FIELD("x"), MCP_INVALID_REQUEST },
		{ S, "{\"a\":\"x\",\"b\":1,\"b\":2}", FIELD("x"), 0 },
		{ S, "{\"a\":\"x\",\"\\ud800\":1}", FIELD("x"), 0 },
		{ S, "{\"a\":[\"x\"]}", FIELD("x"), MISMATCH },
		{ S, "{\"a\":{}}", FIELD("x"), MISMATCH },
		{ S, "{\"a\":7}", FIELD("7"), 0 },
	};

	check_calls(rows, ARRAY_LEN(rows));
}

/* MOD-HDR-04 */
static void numbers_and_booleans_are_mirrored(void **state)
{
	static const struct call_row rows[] = {
		{ I, "{\"a\":42}", FIELD("42"), 0 },
		{ I, "{\"a\":42}", FIELD("42.0"), 0 },
		{ I, "{\"a\":42.0}", FIELD("42"), 0 },
		{ I, "{\"a\":42}", FIELD("42.000"), 0 },
		{ I, "{\"a\":42}", FIELD("4.2e1"), 0 },
		{ I, "{\"a\":42}", FIELD("420E-1"), 0 },
		{ I, "{\"a\":1000}", FIELD("1e+3"), 0 },
		{ I, "{\"a\":42}", FIELD("=?base64?NDI=?="), 0 },
		{ I, "{\"a\":-7}", FIELD("-7"), 0 },
		{ I, "{\"a\":0}", FIELD("-0"), 0 },
		{ I, "{\"a\":0}", FIELD("0.0e5"), 0 },
		{ I, "{\"a\":9007199254740993}", FIELD("9007199254740993"), 0 },
		{ I, "{\"a\":9007199254740993}", FIELD("9007199254740992"), MISMATCH },
		{ I, "{\"a\":42}", FIELD("-42"), MISMATCH },
		{ I, "{\"a\":42}", FIELD("43"), MISMATCH },
		{ I, "{\"a\":42}", FIELD("420"), MISMATCH },
		{ I, "{\"a\":42}", FIELD("4.2"), MISMATCH },
		{ I, "{\"a\":42}", FIELD("42.1"), MISMATCH },
		{ I, "{\"a\":42}", FIELD("+42"), MISMATCH },
		{ I, "{\"a\":42}", FIELD("042"), MISMATCH },
		{ I, "{\"a\":42}", FIELD("42."), MISMATCH },
		{ I, "{\"a\":42}", FIELD("0x2a"), MISMATCH },
		{ I, "{\"a\":42}",
		  FIELD("42 "
			"1"),
		  MISMATCH },
		{ I, "{\"a\":42}", FIELD("\"42\""), MISMATCH },
		{ I, "{\"a\":42}", FIELD("42e"), MISMATCH },
		{ I, "{\"a\":42}", FIELD("42e0000000000"), MISMATCH },
		{ I, "{\"a\":42}", FIELD("-"), MISMATCH },
		{ I, "{\"a\":0}", FIELD(""), MISMATCH },
		{ I, "{\"a\":0}", FIELD(".0"), MISMATCH },
		{ I, "{\"a\":42}", "", MISMATCH },
		{ I, "{\"a\":\"42\"}", FIELD("42.0"), MISMATCH },
		{ I, "{\"a\":\"42\"}", FIELD("42"), 0 },
		{ I, "{\"a\":null}", "", 0 },
		{ I, "{\"a\":null}", FIELD("0"), MISMATCH },
		{ B, "{\"a\":true}", FIELD("true"), 0 },
		{ B, "{\"a\":false}", FIELD("false"), 0 },
		{ B, "{\"a\":true}", FIELD("True"), MISMATCH },
		{ B, "{\"a\":true}", FIELD("1"), MISMATCH },
		{ B, "{\"a\":true}", FIELD("false"), MISMATCH },
		{ B, "{\"a\":false}", FIELD("true"), MISMATCH },
		{ B, "{\"a\":false}", "", MISMATCH },
		{ B, "{}", FIELD("false"), MISMATCH },
	};

	check_calls(rows, ARRAY_LEN(rows));
}

#define NESTED PROPERTIES("\"a\":" PROPERTIES("\"b\":" STRING("Aa")) ",\"b\":" STRING("Bb"))
#define BOTH PROPERTIES("\"a\":" STRING("Aa") ",\"b\":" STRING("Bb"))
#define BROKEN PROPERTIES("\"a\":" STRING("Aa") ",\"b\":" TYPED("\"number\"", "\"Bb\""))
#define ESCAPED PROPERTIES("\"\\u0061+\":" STRING("A\\u0061"))
#define B_FIELD(value) "Mcp-Param-Bb: " value "\r\n"

/* MOD-HDR-04, MOD-HDR-06, FRONT-HTTP-11 */
static void paths_are_followed(void **state)
{
	static const struct call_row rows[] = {
		{ NESTED, "{\"a\":{\"b\":\"x\"},\"b\":\"y\"}", FIELD("x") B_FIELD("y"), 0 },
		{ NESTED, "{\"a\":{\"b\":\"x\"},\"b\":\"y\"}", FIELD("y") B_FIELD("x"), MISMATCH },
		{ NESTED, "{\"a\":{\"b\":\"x\"}}", FIELD("x"), 0 },
		{ NESTED, "{\"a\":{\"b\":\"x\"}}", "", MISMATCH },
		{ NESTED, "{\"a\":{\"b\":null}}", "", 0 },
		{ NESTED, "{\"a\":{}}", FIELD("x"), MISMATCH },
		{ NESTED, "{\"a\":\"x\"}", "", 0 },
		{ NESTED, "{\"a\":\"x\"}", FIELD("x"), MISMATCH },
		{ NESTED, "{\"a\":[{\"b\":\"x\"}]}", "", 0 },
		{ NESTED, "{\"c\":{\"b\":\"x\"}}", "", 0 },
		{ NESTED, "{\"a\":{\"b\":\"x\"},\"a\":{}}", FIELD("x"), MCP_INVALID_REQUEST },
		{ NESTED, "{\"a\":{},\"\\u0061\":{}}", "", MCP_INVALID_REQUEST },
		{ NESTED, "{\"a\":{\"b\":1,\"b\":1}}", FIELD("1"), MCP_INVALID_REQUEST },
		{ NESTED, "{\"a\":{\"c\":1,\"c\":1}}", "", 0 },
		{ BOTH, "{\"a\":\"x\",\"b\":\"y\"}", FIELD("x") B_FIELD("y"), 0 },
		{ BOTH, "{\"b\":\"y\",\"a\":\"x\"}", B_FIELD("y") FIELD("x"), 0 },
		{ BOTH, "{\"a\":\"x\",\"b\":\"y\"}", FIELD("x"), MISMATCH },
		{ BOTH, "{\"a\":\"x\",\"b\":\"y\"}", B_FIELD("y"), MISMATCH },
		/* none of them counts */
		{ BROKEN, "{\"a\":\"x\",\"b\":1}", "", 0 },
		{ BROKEN, "{\"a\":\"x\",\"b\":1}", FIELD("y") B_FIELD("2"), 0 },
		{ "{}", "{\"a\":\"x\"}", FIELD("y"), 0 },
		{ "", "{\"a\":\"x\"}", FIELD("y"), 0 },
		{ ESCAPED, "{\"a+\":\"x\"}", FIELD("x"), 0 },
		{ ESCAPED, "{\"a\\u002b\":\"x\"}", FIELD("x"), 0 },
		{ ESCAPED, "{\"a\\u002B\":\"x\"}", "", MISMATCH },
	};

	check_calls(rows, ARRAY_LEN(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marked_values_are_decoded),
		cmocka_unit_test(other_values_are_literal),
		cmocka_unit_test(annotations_have_a_type_and_a_name),
		cmocka_unit_test(annotations_stand_at_properties),
		cmocka_unit_test(the_search_has_bounds),
		cmocka_unit_test(the_search_has_bounds_without_annotations),
		cmocka_unit_test(strings_are_mirrored),
		cmocka_unit_test(numbers_and_booleans_are_mirrored),
		cmocka_unit_test(paths_are_followed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
