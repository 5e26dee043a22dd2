/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the envelope: kinds, spans, every refusal of the header, ids, repeated names and names
 * that look like ours. RPC-01, FRONT-HTTP-10, FRONT-HTTP-11, FRONT-POST-11, SEC-40 to SEC-45.
 */
#include "jsonrpc/scan.h"

#include <time.h>

#include "base/buf.h"
#include "base/unit_test.h"

#define V "\"jsonrpc\":\"2.0\","
#define SIXTY "012345678901234567890123456789012345678901234567890123456789"

static const struct scan_limits limits = { .depth_max = 32, .id_max = 64 };

static void assert_slice(struct slice have, const char *want)
{
	if (!slice_is_equal(have, slice_str(want)))
		fail_msg("have <%.*s>, want <%s>", SLICE_ARG(have), want);
}

static struct envelope scan_good(const char *text, unsigned int flags)
{
	struct envelope envelope;
	struct error err;

	if (scan_envelope(slice_str(text), &limits, flags, &envelope, &err) < 0)
		fail_msg("refused (%s): %s", err.text, text);
	return envelope;
}

/* Must be refused with that kind and a text with that part; returns what the envelope holds. */
static struct envelope scan_bad(const char *text, unsigned int flags, enum error_kind kind,
				const char *part)
{
	struct envelope envelope;
	struct error err;

	if (scan_envelope(slice_str(text), &limits, flags, &envelope, &err) == 0)
		fail_msg("not refused: %s", text);
	if (err.kind != kind)
		fail_msg("kind %d (%s): %s", (int)err.kind, err.text, text);
	if (strstr(err.text, part) == NULL)
		fail_msg("text <%s> without <%s>: %s", err.text, part, text);
	return envelope;
}

static void request_spans_are_exact(void **state)
{
	struct envelope e = scan_good(
		" {" V
		"\"id\" : 17 ,\"method\":\"tools/call\",\"x\":[1.0],\"params\": {\"name\":\"e\\u0063ho\","
		"\"uri\":\"file:///a\",\"arguments\":{\"name\":\"inner\"},"
		"\"_meta\":{\"progressToken\" : \"t\",\"k\":{\"progressToken\":2}}}}\n",
		0);

	assert_int_equal(e.kind, ENVELOPE_REQUEST);
	assert_int_equal(e.text.p[0], '{');
	assert_int_equal(e.text.p[e.text.n - 1], '}');
	assert_slice(e.method, "tools/call");
	assert_int_equal(e.id.type, JSON_NUMBER);
	assert_slice(e.id.text, "17");
	assert_int_equal(e.params.type, JSON_OBJECT);
	assert_int_equal(e.params.text.p[0], '{');
	assert_ptr_equal(e.params.text.p + e.params.text.n + 1, e.text.p + e.text.n);
	assert_slice(e.name.text, "\"e\\u0063ho\"");
	assert_true(e.name.has_escape);
	assert_slice(e.uri.text, "\"file:///a\"");
	assert_false(e.uri.has_escape);
	assert_slice(e.meta.text, "{\"progressToken\" : \"t\",\"k\":{\"progressToken\":2}}");
	assert_true(e.has_more_meta);
	assert_slice(e.progress_token.text, "\"t\"");
	assert_int_equal(e.progress_token.type, JSON_STRING);
	assert_int_equal(e.result.type, JSON_ABSENT);
	assert_int_equal(e.error.type, JSON_ABSENT);
	assert_false(e.has_line_break);
	assert_false(e.has_separator);
}

static void members_are_found_in_any_order(void **state)
{
	struct envelope e =
		scan_good("{\"params\":{\"_meta\":{},\"name\":7},\"method\":\"m\",\"id\":\"\","
			  "\"jsonrpc\":\"2.0\"}",
			  0);

	assert_int_equal(e.kind, ENVELOPE_REQUEST);
	assert_slice(e.id.text, "\"\"");
	assert_int_equal(e.name.type, JSON_NUMBER);
	assert_slice(e.meta.text, "{}");
	assert_int_equal(e.progress_token.type, JSON_ABSENT);
}

/* MOD-META-02 */
static void what_a_request_says_of_itself_is_found(void **state)
{
	struct envelope e = scan_good(
		"{" V "\"id\":1,\"method\":\"tools/call\",\"params\":{\"cursor\":\"c\",\"task\":{},"
		"\"inputResponses\":{\"r\":1},\"requestState\":\"s\",\"arguments\":[2],"
		"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
		"\"io.modelcontextprotocol/clientCapabilities\":{\"sampling\":{}},"
		"\"io.modelcontextprotocol/clientInfo\":{\"name\":\"c\"},"
		"\"io.modelcontextprotocol/logLevel\":\"info\"}}}",
		0);

	assert_slice(e.arguments.text, "[2]");
	assert_slice(e.cursor.text, "\"c\"");
	assert_slice(e.task.text, "{}");
	assert_slice(e.input_responses.text, "{\"r\":1}");
	assert_slice(e.request_state.text, "\"s\"");
	assert_slice(e.protocol_version.text, "\"2026-07-28\"");
	assert_slice(e.client_capabilities.text, "{\"sampling\":{}}");
	assert_slice(e.client_info.text, "{\"name\":\"c\"}");
	assert_slice(e.log_level.text, "\"info\"");
	assert_int_equal(e.progress_token.type, JSON_ABSENT);
	assert_false(e.has_more_meta);
}

static void only_strings_have_escapes(void **state)
{
	struct envelope e = scan_good("{" V "\"id\":\"\\n\",\"result\":[\"\\n\",{\"\\n\":1}]}", 0);

	assert_true(e.id.has_escape);
	assert_int_equal(e.result.type, JSON_ARRAY);
	assert_false(e.result.has_escape);
}

/* RPC-01 */
static void kinds(void **state)
{
	static const struct {
		const char *text;
		enum envelope_kind kind;
	} cases[] = {
		{ "{" V "\"id\":1,\"method\":\"ping\"}", ENVELOPE_REQUEST },
		{ "{" V "\"id\":1,\"method\":\"\"}", ENVELOPE_REQUEST },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":[1,{\"name\":1}]}",
		  ENVELOPE_REQUEST },
		{ "{" V "\"method\":\"notifications/initialized\"}", ENVELOPE_NOTIFICATION },
		{ "{" V "\"id\":1,\"result\":{}}", ENVELOPE_RESULT },
		{ "{" V "\"id\":1,\"result\":null}", ENVELOPE_RESULT },
		{ "{" V "\"id\":1,\"error\":{\"code\":-1,\"message\":\"m\"}}", ENVELOPE_ERROR },
		{ "{" V
		  "\"id\":1,\"error\":{\"data\":[{\"code\":\"x\"}],\"message\":\"\\n\",\"code\":0}}",
		  ENVELOPE_ERROR },
		{ "{" V "\"error\":{\"code\":-32700,\"message\":\"m\"}}", ENVELOPE_ERROR },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(scan_good(cases[i].text, 0).kind, cases[i].kind);
		assert_int_equal(scan_good(cases[i].text, SCAN_LENIENT).kind, cases[i].kind);
	}
}

/* FRONT-HTTP-10, RPC-01: JSON, but no message; for clients and children alike. */
static void what_is_no_message_is_refused(void **state)
{
	static const struct {
		const char *text;
		const char *part;
	} cases[] = {
		{ "[]", "not a JSON object" },
		{ "null", "not a JSON object" },
		{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}", "\"jsonrpc\" is not" },
		{ "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"m\"}", "\"jsonrpc\" is not" },
		{ "{\"jsonrpc\":\"2\\u002e0\",\"id\":1,\"method\":\"m\"}", "\"jsonrpc\" is not" },
		{ "{\"jsonrpc\":null,\"id\":1,\"method\":\"m\"}", "\"jsonrpc\" is not" },
		{ "{\"jsonrpc\":\"2.0\"}", "neither a method" },
		{ "{" V "\"id\":1}", "neither a method" },
		{ "{" V "\"id\":1,\"params\":{}}", "neither a method" },
		{ "{" V "\"id\":1,\"result\":1,\"error\":{\"code\":1,\"message\":\"\"}}", "both" },
		{ "{" V "\"id\":1,\"method\":\"m\",\"result\":1}", "beside a method" },
		{ "{" V "\"method\":\"m\",\"error\":{\"code\":1,\"message\":\"\"}}",
		  "beside a method" },
		{ "{" V "\"result\":{}}", "without an id" },
		{ "{" V "\"id\":1,\"method\":7}", "not a string" },
		{ "{" V "\"id\":1,\"method\":null}", "not a string" },
		{ "{" V "\"id\":1,\"method\":\"\\u006d\"}", "with an escape" },
		{ "{" V "\"id\":1,\"method\":\"ping\\u0000x\"}", "with an escape" }, /* SEC-42 */
		{ "{" V "\"id\":1,\"method\":\"" SIXTY SIXTY "123456789\"}", "longer than 128" },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":\"x\"}", "params" },
		{ "{" V "\"method\":\"m\",\"params\":1}", "params" },
		{ "{" V "\"id\":1,\"error\":null}", "integer code" },
		{ "{" V "\"id\":1,\"error\":\"x\"}", "integer code" },
		{ "{" V "\"id\":1,\"error\":[1]}", "integer code" },
		{ "{" V "\"id\":1,\"error\":{}}", "integer code" },
		{ "{" V "\"id\":1,\"error\":{\"code\":1}}", "integer code" },
		{ "{" V "\"id\":1,\"error\":{\"message\":\"m\"}}", "integer code" },
		{ "{" V "\"id\":1,\"error\":{\"code\":1.5,\"message\":\"m\"}}", "integer code" },
		{ "{" V "\"id\":1,\"error\":{\"code\":1e-2,\"message\":\"m\"}}", "integer code" },
		{ "{" V "\"id\":1,\"error\":{\"code\":\"1\",\"message\":\"m\"}}", "integer code" },
		{ "{" V "\"id\":1,\"error\":{\"code\":1,\"message\":null}}", "integer code" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scan_bad(cases[i].text, 0, ERROR_INVALID, cases[i].part);
		scan_bad(cases[i].text, SCAN_LENIENT, ERROR_INVALID, cases[i].part);
	}
}

/* DEF-11: it is kept for as long as the call runs, as the id is. */
static void progress_tokens_are_short(void **state)
{
#define TOKEN_CALL(token) \
	"{" V "\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\"progressToken\":" token "}}}"

	assert_int_equal(scan_good(TOKEN_CALL("\"" SIXTY "12\""), 0).progress_token.text.n, 64);
	scan_bad(TOKEN_CALL("\"" SIXTY "123\""), 0, ERROR_LIMIT, "the progress token");
	scan_bad(TOKEN_CALL("1" SIXTY "1234"), SCAN_LENIENT, ERROR_LIMIT, "the progress token");
}

/* Some servers write members that have nothing to say; clients have no excuse. BACK-FRAME-04 */
static void nulls_of_servers_are_overlooked(void **state)
{
	static const char both[] = "{" V "\"id\":1,\"result\":1,\"error\":null}";
	static const char failed[] =
		"{" V "\"id\":1,\"result\":null,\"error\":{\"code\":1,\"message\":\"\"}}";
	static const char call[] = "{" V "\"id\":1,\"method\":\"m\",\"params\":null}";
	struct envelope env;

	scan_bad(both, 0, ERROR_INVALID, "both");
	scan_bad(failed, 0, ERROR_INVALID, "both");
	scan_bad(call, 0, ERROR_INVALID, "params");
	env = scan_good(both, SCAN_LENIENT);
	assert_int_equal(env.kind, ENVELOPE_RESULT);
	assert_true(env.is_unusual);
	env = scan_good(failed, SCAN_LENIENT);
	assert_int_equal(env.kind, ENVELOPE_ERROR);
	assert_true(env.is_unusual);
	env = scan_good(call, SCAN_LENIENT);
	assert_int_equal(env.kind, ENVELOPE_REQUEST);
	assert_int_equal(env.params.type, JSON_ABSENT);
	assert_true(env.is_unusual);
	env = scan_good("{" V "\"id\":1,\"result\":null}", SCAN_LENIENT);
	assert_int_equal(env.kind, ENVELOPE_RESULT);
	assert_false(env.is_unusual);
}

static void method_of_128_bytes_passes(void **state)
{
	assert_int_equal(scan_good("{" V "\"id\":1,\"method\":\"" SIXTY SIXTY "12345678\"}", 0)
				 .method.n,
			 128);
}

/* FRONT-POST-11, SEC-45: type and lexeme are kept. */
static void legal_ids(void **state)
{
	static const char *const ids[] = {
		"0",
		"-0",
		"-1",
		"9223372036854775807",
		"-9223372036854775808",
		"\"\"",
		"\"7\"",
		"\"a b\"",
		"\"\\u0041\\u0000\"",
		"\"\\uD800\"",
		"\"\xC3\xA9\xE2\x80\xA8\"",
		"\"" SIXTY "12\"",
	};

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct buf text = { NULL, 0, 0 };
		struct envelope e;

		buf_printf(&text, "{" V "\"id\":%s,\"method\":\"m\"}", ids[i]);
		e = scan_good(buf_terminate(&text), 0);
		assert_int_equal(e.kind, ENVELOPE_REQUEST);
		assert_slice(e.id.text, ids[i]);
		assert_int_equal(e.id.type, ids[i][0] == '"' ? JSON_STRING : JSON_NUMBER);
		buf_fini(&text);
	}
}

/* FRONT-POST-11, SEC-45; with SCAN_LENIENT: BACK-FRAME-05. */
static void illegal_ids(void **state)
{
	static const struct {
		const char *id;
		enum error_kind kind;
		bool is_absent_if_lenient;
	} cases[] = {
		{ "null", ERROR_INVALID, true },
		{ "1.5", ERROR_INVALID, true },
		{ "0.5", ERROR_INVALID, true },
		{ "1e-2", ERROR_INVALID, true },
		{ "1E99", ERROR_INVALID, true },
		{ "true", ERROR_INVALID, false },
		{ "false", ERROR_INVALID, false },
		{ "{}", ERROR_INVALID, false },
		{ "[1]", ERROR_INVALID, false },
		{ "9223372036854775808", ERROR_INVALID, false },
		{ "-9223372036854775809", ERROR_INVALID, false },
		{ "99999999999999999999", ERROR_INVALID, false },
		{ "\"" SIXTY "123\"", ERROR_LIMIT, false },
		{ "1" SIXTY "1234", ERROR_LIMIT, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf text = { NULL, 0, 0 };
		const char *message;
		struct envelope e;

		buf_printf(&text, "{" V "\"id\":%s,\"method\":\"m\"}", cases[i].id);
		message = buf_terminate(&text);
		if (scan_bad(message, 0, cases[i].kind, "id").id.type != JSON_ABSENT)
			fail_msg("illegal id was handed out: %s", message);
		if (!cases[i].is_absent_if_lenient) {
			scan_bad(message, SCAN_LENIENT, cases[i].kind, "id");
		} else {
			e = scan_good(message, SCAN_LENIENT);
			assert_int_equal(e.kind, ENVELOPE_NOTIFICATION);
			assert_int_equal(e.id.type, JSON_ABSENT);
			assert_true(e.is_unusual);
		}
		buf_fini(&text);
	}
}

/* BACK-FRAME-05: some have floating-point numbers only; requests of clients have plain ids. */
static void integers_with_a_fraction(void **state)
{
	static const char *const ids[] = { "1.0", "1e2", "1E2", "10e-1", "-0.50e+1" };

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct buf text = { 0 };

		buf_printf(&text, "{" V "\"id\":%s,\"method\":\"m\"}", ids[i]);
		scan_bad(buf_terminate(&text), 0, ERROR_INVALID, "id");
		assert_slice(scan_good(buf_terminate(&text), SCAN_LENIENT).id.text, ids[i]);
		text.len = 0;
		buf_printf(&text, "{" V "\"id\":%s,\"result\":{}}", ids[i]);
		assert_slice(scan_good(buf_terminate(&text), 0).id.text, ids[i]);
		assert_slice(scan_good(buf_terminate(&text), SCAN_LENIENT).id.text, ids[i]);
		buf_fini(&text);
	}
	scan_bad("{" V "\"id\":1.5,\"result\":{}}", 0, ERROR_INVALID, "id");
}

/* FRONT-HTTP-10: the error names the id wherever in the message the fault stands. */
static void id_survives_a_refusal(void **state)
{
	static const char *const invalid[] = {
		"{\"id\":\"abc\",\"method\":\"m\"}",
		"{\"jsonrpc\":\"1\",\"id\":\"abc\",\"method\":\"m\"}",
		"{" V "\"method\":7,\"id\":\"abc\"}",
		"{" V "\"params\":{\"a\":1,\"a\":1},\"method\":\"m\",\"id\":\"abc\"}",
		"{" V "\"method\":\"m\",\"method\":\"n\",\"id\":\"abc\"}",
		"{" V "\"id\":\"abc\"}",
	};
	static const char *const without[] = {
		"{" V "\"id\":\"abc\",\"id\":\"abc\",\"method\":\"m\"}",
		"{" V "\"id\":\"abc\",\"method\":\"m\",\"id\":null}",
		"{" V "\"\\u0069d\":\"abc\",\"method\":\"m\"}",
		"[{" V "\"id\":\"abc\",\"method\":\"m\"}]",
	};
	struct envelope e;

	for (size_t i = 0; i < ARRAY_LEN(invalid); i++) {
		e = scan_bad(invalid[i], 0, ERROR_INVALID, "");
		assert_int_equal(e.id.type, JSON_STRING);
		assert_slice(e.id.text, "\"abc\"");
	}
	for (size_t i = 0; i < ARRAY_LEN(without); i++)
		assert_int_equal(scan_bad(without[i], 0, ERROR_INVALID, "").id.type, JSON_ABSENT);
	e = scan_bad("{" V "\"id\":\"abc\",\"method\":\"m\",}", 0, ERROR_SYNTAX, "not JSON");
	assert_int_equal(e.id.type, JSON_ABSENT);
	e = scan_bad(
		"{" V
		"\"id\":5,\"method\":\"m\",\"params\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
		0, ERROR_LIMIT, "nested deeper than 32 levels");
	assert_slice(e.id.text, "5");
}

/* Syntax comes before everything else, so one text always gets one code. */
static void syntax_wins_over_rules(void **state)
{
	scan_bad("{\"jsonrpc\":\"1\",\"id\":null,\"id\":1,\"Method\":1,\"x\":}", 0, ERROR_SYNTAX,
		 "");
	scan_bad("[1,{\"a\":tru}]", 0, ERROR_SYNTAX, "");
}

/* FRONT-HTTP-11 */
static void repeated_names_are_refused(void **state)
{
	static const struct {
		const char *text;
		const char *part;
		bool also_lenient;
	} cases[] = {
		{ "{" V V "\"id\":1,\"method\":\"m\"}", "\"jsonrpc\" stands twice in the message",
		  true },
		{ "{" V "\"id\":1,\"method\":\"m\",\"id\":1}", "\"id\" stands twice", true },
		{ "{" V "\"id\":1,\"method\":\"m\",\"method\":\"m\"}", "\"method\" stands twice",
		  true },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":{},\"params\":{}}", "\"params\"",
		  true },
		{ "{" V "\"id\":1,\"result\":1,\"result\":1}", "\"result\" stands twice", true },
		{ "{" V "\"id\":1,\"method\":\"m\",\"x\":1,\"x\":1}", "\"x\" stands twice", true },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":{\"name\":\"a\",\"name\":\"a\"}}",
		  "\"name\" stands twice in params", false },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":{\"\":1,\"\":1}}",
		  "stands twice in params", false },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{},\"_meta\":{}}}",
		  "\"_meta\" stands twice in params", false },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\"k\":1,\"k\":2}}}",
		  "\"k\" stands twice in params._meta", false },
		{ "{" V
		  "\"method\":\"m\",\"params\":{\"_meta\":{\"progressToken\":1,\"progressToken\":1}}}",
		  "stands twice in params._meta", false },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":{\"\xC3\xA9\":1,\"\xC3\xA9\":1}}",
		  "\"(a name beyond ASCII)\" stands twice", false },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":{\"" SIXTY SIXTY "\":1,\"" SIXTY SIXTY
		  "\":1}}",
		  "\"(a long name)\" stands twice", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scan_bad(cases[i].text, 0, ERROR_INVALID, cases[i].part);
		if (cases[i].also_lenient)
			scan_bad(cases[i].text, SCAN_LENIENT, ERROR_INVALID, cases[i].part);
		else
			scan_good(cases[i].text, SCAN_LENIENT);
	}
}

static void repeated_names_elsewhere_pass(void **state)
{
	scan_good("{" V "\"id\":1,\"method\":\"m\",\"params\":{\"arguments\":{\"a\":1,\"a\":2}}}",
		  0);
	scan_good("{" V "\"id\":1,\"method\":\"m\",\"params\":[{\"a\":1,\"a\":2}]}", 0);
	scan_good("{" V
		  "\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\"k\":{\"a\":1,\"a\":2}}}}",
		  0);
	scan_good("{" V "\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":[{\"a\":1,\"a\":2}]}}", 0);
	scan_good("{" V "\"id\":1,\"result\":{\"name\":1,\"name\":2,\"_meta\":{\"k\":1,\"k\":2}}}",
		  0);
	/* The same name on each level is not a repetition. */
	scan_good("{" V
		  "\"id\":1,\"method\":\"m\",\"x\":1,\"params\":{\"x\":1,\"_meta\":{\"x\":1}}}",
		  0);
}

static void lenient_takes_the_first_of_repeated_names(void **state)
{
	struct envelope e =
		scan_good("{\"method\":\"m\",\"params\":{\"name\":1,\"name\":2,\"_meta\":{},"
			  "\"_meta\":{\"progressToken\":3}}}",
			  SCAN_LENIENT);

	assert_slice(e.name.text, "1");
	assert_slice(e.meta.text, "{}");
	assert_int_equal(e.progress_token.type, JSON_ABSENT);
}

/* FRONT-HTTP-11, SEC-42 */
static void escaped_names_are_refused(void **state)
{
	scan_bad("{" V "\"id\":1,\"m\\u0065thod\":\"m\"}", 0, ERROR_INVALID,
		 "in the message is written");
	scan_bad("{" V "\"id\":1,\"m\\u0065thod\":\"m\"}", SCAN_LENIENT, ERROR_INVALID, "escape");
	scan_bad("{" V "\"id\":1,\"method\":\"m\",\"id\\u0000\":2}", 0, ERROR_INVALID, "escape");
	scan_bad("{" V "\"id\":1,\"method\":\"m\",\"params\":{\"n\\u0061me\":1}}", 0, ERROR_INVALID,
		 "in params is written");
	scan_bad("{" V "\"id\":1,\"method\":\"m\",\"params\":{\"name\\u0000x\":1}}", 0,
		 ERROR_INVALID, "in params is written");
	scan_bad("{" V "\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\"a\\/b\":1}}}", 0,
		 ERROR_INVALID, "in params._meta is written");
	scan_good("{" V "\"id\":1,\"method\":\"m\",\"params\":{\"arguments\":{\"\\u0061\":1}}}", 0);
	assert_int_equal(scan_good("{\"method\":\"m\",\"params\":{\"n\\u0061me\":1}}", SCAN_LENIENT)
				 .name.type,
			 JSON_ABSENT);
}

/* SEC-41: a child that compares names without case must not find what we did not see. */
static void lookalike_names_are_refused(void **state)
{
	static const char *const envelope[] = {
		"Id",
		"ID",
		"iD",
		"JSONRPC",
		"Jsonrpc",
		"Method",
		"METHOD",
		"Params",
		"pARAMS",
		"Result",
		"Error",
		"j\xC5\xBFonrpc",
		"param\xC5\xBF",
		"re\xC5\xBFult",
		"\xC4\xB1"
		"d",
		"\xC4\xB0"
		"d",
	};
	static const char *const params[] = { "Name",   "NAME",           "URI",
					      "Uri",    "ur\xC4\xB1",     "_Meta",
					      "_META",  "Arguments",      "Cursor",
					      "TASK",   "inputresponses", "RequestState",
					      "TaskId", "ProgressToken" };
	static const char *const meta[] = { "progresstoken",
					    "ProgressToken",
					    ("progressTo\xE2\x84\xAA"
					     "en"),
					    "progre\xC5\xBF\xC5\xBFToken",
					    "io.modelcontextprotocol/LogLevel",
					    "IO.modelcontextprotocol/clientCapabilities" };
	static const struct {
		const char *const *names;
		size_t count;
		const char *format;
	} levels[] = {
		{ envelope, ARRAY_LEN(envelope), "{" V "\"id\":1,\"method\":\"m\",\"%s\":1}" },
		{ params, ARRAY_LEN(params),
		  "{" V "\"id\":1,\"method\":\"m\",\"params\":{\"%s\":1}}" },
		{ meta, ARRAY_LEN(meta),
		  "{" V "\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\"%s\":1}}}" },
	};

	for (size_t level = 0; level < ARRAY_LEN(levels); level++) {
		for (size_t i = 0; i < levels[level].count; i++) {
			const char *hole = strstr(levels[level].format, "%s");
			struct buf text = { NULL, 0, 0 };

			buf_append_slice(&text, slice_between(levels[level].format, hole));
			buf_append_str(&text, levels[level].names[i]);
			buf_append_str(&text, hole + 2);
			scan_bad(buf_terminate(&text), 0, ERROR_INVALID, "letter case");
			if (level == 0)
				scan_bad(buf_terminate(&text), SCAN_LENIENT, ERROR_INVALID,
					 "letter case");
			else
				scan_good(buf_terminate(&text), SCAN_LENIENT);
			buf_fini(&text);
		}
	}
}

static void other_names_pass(void **state)
{
	static const char *const names[] = {
		"i",       "idd",       "ids",     "id ",          "\xC5\xBF",  "method_",
		"methods", "re",        "",        "i\xC3\xA4",    "e\x7Frror", "Name",
		"_meta",   "arguments", "results", "\xE2\x84\xAA",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct buf text = { NULL, 0, 0 };

		buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"%s\":1}",
			   names[i]);
		scan_good(buf_terminate(&text), 0);
		buf_fini(&text);
	}
	/* Of progress, what servers say is read, and no client's. */
	scan_good("{" V "\"id\":1,\"method\":\"m\",\"params\":{\"Progress\":1,\"progress\":2}}", 0);
}

/* BACK-FRAME-03, BACK-FRAME-04, BACK-FRAME-05: what children may do. */
static void lenient_rules(void **state)
{
	static const char error_text[] =
		"{\"id\":null,\"error\":{\"code\":-32700,\"message\":\"m\"}}";
	struct envelope e;

	assert_int_equal(scan_good("{\"id\":1,\"result\":{}}", SCAN_LENIENT).kind, ENVELOPE_RESULT);
	e = scan_good(error_text, SCAN_LENIENT);
	assert_int_equal(e.kind, ENVELOPE_ERROR);
	assert_int_equal(e.id.type, JSON_ABSENT);
	scan_bad(error_text, 0, ERROR_INVALID, "the id is neither");
	assert_slice(scan_good("{\"id\":\"7\",\"result\":1}", SCAN_LENIENT).id.text, "\"7\"");
	/* A struct whose empty members are written, too. */
	e = scan_good("{" V "\"id\":1,\"method\":\"\",\"params\":null,\"result\":{}}",
		      SCAN_LENIENT);
	assert_int_equal(e.kind, ENVELOPE_RESULT);
	assert_true(e.is_unusual);
	e = scan_good("{" V "\"id\":1,\"method\":null,\"result\":null,\"error\":{\"code\":1,"
		      "\"message\":\"\"}}",
		      SCAN_LENIENT);
	assert_int_equal(e.kind, ENVELOPE_ERROR);
	e = scan_good("{" V "\"id\":1,\"method\":\"m\",\"result\":null,\"error\":null}",
		      SCAN_LENIENT);
	assert_int_equal(e.kind, ENVELOPE_REQUEST);
	scan_bad("{" V "\"id\":1,\"error\":{\"code\":1.0,\"message\":\"m\"}}", 0, ERROR_INVALID,
		 "integer code");
	scan_good("{" V "\"id\":1,\"error\":{\"code\":-32601.0,\"message\":\"\"}}", SCAN_LENIENT);
	scan_bad("{" V "\"id\":1,\"error\":{\"code\":-32601.5,\"message\":\"\"}}", SCAN_LENIENT,
		 ERROR_INVALID, "integer code");
	scan_bad("{" V "\"id\":1,\"method\":\"m\",\"result\":null}", 0, ERROR_INVALID, "beside");
	scan_bad("{" V "\"id\":1,\"method\":\"m\",\"result\":{}}", SCAN_LENIENT, ERROR_INVALID,
		 "beside");
	scan_bad("{\"id\":null,\"result\":{}}", SCAN_LENIENT, ERROR_INVALID, "without an id");
	scan_bad("{\"id\":1.5,\"result\":{}}", SCAN_LENIENT, ERROR_INVALID, "without an id");
	scan_bad("{}", SCAN_LENIENT, ERROR_INVALID, "neither a method");
	scan_bad("{\"level\":\"info\",\"msg\":\"started\"}", SCAN_LENIENT, ERROR_INVALID,
		 "neither a method");
	scan_bad("Listening", SCAN_LENIENT, ERROR_SYNTAX, "not JSON");
	scan_bad("12", SCAN_LENIENT, ERROR_INVALID, "not a JSON object");
}

/* BACK-FRAME-01 */
static void line_breaks_are_reported(void **state)
{
	static const struct {
		const char *text;
		bool has;
	} cases[] = {
		{ "\r\n {" V "\"id\":1,\"method\":\"m\"}\r\n", false },
		{ "{ " V "\t\"id\":\"a\\nb\\r\",\"method\":\"m\",\"params\":{}}", false },
		{ "{\n" V "\"id\":1,\"method\":\"m\"}", true },
		{ "{" V "\"id\":1,\"method\":\"m\"\r}", true },
		{ "{" V "\"id\"\n:1,\"method\":\"m\"}", true },
		{ "{" V "\"id\":\n1,\"method\":\"m\"}", true },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":[\n]}", true },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\r}}}", true },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":[1 \n,2]}", true },
		{ "{" V "\"id\":1,\"method\":\"m\",\"params\":[{\"a\": \n[]}]}", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(scan_good(cases[i].text, 0).has_line_break, cases[i].has);
}

/* MOD-RES-01: a result that says something of itself is not passed on as it is, however it writes the name. */
static void plain_results_are_reported(void **state)
{
	static const struct {
		const char *result;
		bool is_plain;
	} cases[] = {
		{ "{}", true },
		{ "{\"content\":[{\"_meta\":{}}],\"structuredContent\":{\"ttlMs\":1}}", true },
		{ "{\"content\":[\"\\n\"],\"a\":1,\"a\":2}", true },
		{ "{\"isError\":true,\"task\":{}}", true },
		{ "{\"isError\":true,\"ISERROR\":false}", false },
		{ "{\"a\":1,\"_META\":{}}", false }, /* SEC-41 */
		{ "{\"resultType\":null}", false },
		{ "{\"content\":[],\"ttlMs\":1}", false },
		{ "{\"cacheScope\":\"public\",\"content\":[]}", false },
		{ "{\"a\":1,\"inputRequests\":{},\"b\":2}", false },
		{ "{\"requestState\":\"s\"}", false },
		{ "{\"_meta\":{}}", false },
		{ "{\"resultTyp\\u0065\":\"task\"}", false },
		{ "{\"content\":[],\"\\u0061\":1}", false },
		{ "[]", false },
		{ "null", false },
		{ "\"content\"", false },
	};
	char text[256];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (unsigned int flags = 0; flags <= SCAN_LENIENT; flags++) {
			snprintf(text, sizeof(text), "{%s\"id\":1,\"result\":%s}", V,
				 cases[i].result);
			assert_int_equal(scan_good(text, flags).is_plain_result, cases[i].is_plain);
		}
	assert_false(
		scan_good("{" V "\"id\":1,\"method\":\"m\",\"params\":{}}", 0).is_plain_result);
}

#define MODERN "io.modelcontextprotocol/"

/* MOD-RES-02: what a result says of itself is found; a second member of such a name, or an escape, is reported. */
static void members_of_results_are_found(void **state)
{
	static const struct {
		const char *result;
		bool is_odd;
	} cases[] = {
		{ "{\"content\":[],\"a\":1,\"a\":2}", false },
		{ "{\"resultType\":\"complete\",\"ttlMs\":1}", false },
		{ "{\"_meta\":{\"a\":1,\"a\":2,\"b\":{\"\\u0061\":1}}}", false },
		{ "{\"resultType\":\"complete\",\"resultType\":\"task\"}", true },
		{ "{\"_meta\":{},\"_meta\":{}}", true },
		{ "{\"isError\":true,\"isError\":false}", true },
		{ "{\"task\":{},\"task\":{}}", true },
		{ "{\"ttlMs\":1,\"content\":[],\"ttlMs\":1}", true },
		{ "{\"cacheScope\":1,\"cacheScope\":1}", true },
		{ "{\"requestState\":\"\",\"requestState\":\"\"}", true },
		{ "{\"inputRequests\":{},\"inputRequests\":{}}", true },
		{ "{\"_meta\":{\"" MODERN "serverInfo\":{},\"" MODERN "serverInfo\":{}}}", true },
		{ "{\"_meta\":{\"" MODERN "server\\u0049nfo\":{}}}", true },
		{ "{\"result\\u0054ype\":\"task\"}", true },
	};
	struct envelope env = scan_good(
		"{" V "\"id\":1,\"result\":{\"resultType\":\"complete\",\"ttlMs\":5,\"content\":[],"
		"\"isError\":true,\"task\":{\"taskId\":\"t\"},"
		"\"cacheScope\":\"public\",\"inputRequests\":{},\"requestState\":\"s\",\"_meta\":{"
		"\"" MODERN "related-task\":{\"taskId\":\"t\"},\"" MODERN
		"serverInfo\":{\"name\":\"n\"}}}}",
		SCAN_LENIENT);
	char text[256];

	assert_int_equal(env.is_error.type, JSON_TRUE);
	assert_slice(env.made_task.text, "{\"taskId\":\"t\"}");
	assert_slice(env.result_type.text, "\"complete\"");
	assert_slice(env.ttl_ms.text, "5");
	assert_slice(env.cache_scope.text, "\"public\"");
	assert_slice(env.input_requests.text, "{}");
	assert_slice(env.resumable_state.text, "\"s\"");
	assert_slice(env.related_task.text, "{\"taskId\":\"t\"}");
	assert_slice(env.server_info.text, "{\"name\":\"n\"}");
	assert_int_equal(env.result_meta.type, JSON_OBJECT);
	assert_false(env.is_odd_result || env.is_plain_result);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(text, sizeof(text), "{%s\"id\":1,\"result\":%s}", V, cases[i].result);
		assert_int_equal(scan_good(text, SCAN_LENIENT).is_odd_result, cases[i].is_odd);
	}
}

static void separators_are_reported(void **state)
{
	static const struct {
		const char *string;
		bool has;
	} cases[] = {
		{ "plain", false },
		{ "\\u2028\\u0085", false },
		{ "\xC2\x85", true },
		{ "abc\xE2\x80\xA8", true },
		{ "\xE2\x80\xA9xyz", true },
		{ "\xC2\x84\xC2\x86", false },
		{ "\xE2\x80\xA7\xE2\x80\xAA", false },
		{ "\xE2\x81\xA8", false },
		{ "\xE3\x80\xA8", false },
		{ "\xF0\x9F\x80\xA8", false },
		{ "\xD0\x96\xD0\x96\xE2\x80\xA8", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf value = { NULL, 0, 0 };
		struct buf name = { NULL, 0, 0 };

		buf_printf(&value, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[\"%s\"]}",
			   cases[i].string);
		buf_printf(&name, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"%s\":1}}",
			   cases[i].string);
		assert_int_equal(scan_good(buf_terminate(&value), 0).has_separator, cases[i].has);
		assert_int_equal(scan_good(buf_terminate(&name), 0).has_separator, cases[i].has);
		buf_fini(&value);
		buf_fini(&name);
	}
}

/* `count` members k0, k1, … in params, and the name of number `twice` once more at the end. */
static struct buf many_members(size_t count, long twice)
{
	struct buf text = { NULL, 0, 0 };

	buf_append_str(&text, "{" V "\"id\":1,\"method\":\"m\",\"params\":{");
	for (size_t i = 0; i < count; i++)
		buf_printf(&text, "%s\"k%zu\":%zu", i > 0 ? "," : "", i, i);
	if (twice >= 0)
		buf_printf(&text, ",\"k%ld\":0", twice);
	buf_append_str(&text, "}}");
	return text;
}

static void one_repeated_among_many(void **state)
{
	static const size_t counts[] = { 1, 2, 63, 64, 65, 66, 255, 256, 257, 1000 };

	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		struct buf text = many_members(counts[i], -1);

		scan_good(buf_terminate(&text), 0);
		buf_fini(&text);
		for (size_t twice = 0; twice < counts[i]; twice += 1 + counts[i] / 40) {
			char part[64];

			text = many_members(counts[i], (long)twice);
			snprintf(part, sizeof(part), "\"k%zu\" stands twice", twice);
			scan_bad(buf_terminate(&text), 0, ERROR_INVALID, part);
			buf_fini(&text);
		}
	}
}

static double cpu_ms(void)
{
	return (double)clock() * 1000 / CLOCKS_PER_SEC;
}

/* SEC-44: fifty thousand members, also with names made to be slow to compare; not quadratic. */
static void many_members_are_fast(void **state)
{
	struct buf text = many_members(50000, 49999);
	double before = cpu_ms();

	scan_bad(buf_terminate(&text), 0, ERROR_INVALID, "\"k49999\" stands twice");
	buf_fini(&text);
	buf_append_str(&text, "{" V "\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{");
	for (unsigned int i = 0; i < 50000; i++)
		buf_printf(&text, "%s\"" SIXTY "%05u\":0", i > 0 ? "," : "", i * 7919 % 50000);
	buf_append_str(&text, "}}}");
	scan_good(buf_terminate(&text), 0);
	buf_fini(&text);
	/* Measured: 10 ms, 60 with sanitizers. One comparison of each with each takes seconds. */
	assert_true(cpu_ms() - before < 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_spans_are_exact),
		cmocka_unit_test(members_are_found_in_any_order),
		cmocka_unit_test(only_strings_have_escapes),
		cmocka_unit_test(kinds),
		cmocka_unit_test(what_is_no_message_is_refused),
		cmocka_unit_test(what_a_request_says_of_itself_is_found),
		cmocka_unit_test(progress_tokens_are_short),
		cmocka_unit_test(nulls_of_servers_are_overlooked),
		cmocka_unit_test(method_of_128_bytes_passes),
		cmocka_unit_test(legal_ids),
		cmocka_unit_test(illegal_ids),
		cmocka_unit_test(integers_with_a_fraction),
		cmocka_unit_test(id_survives_a_refusal),
		cmocka_unit_test(syntax_wins_over_rules),
		cmocka_unit_test(repeated_names_are_refused),
		cmocka_unit_test(repeated_names_elsewhere_pass),
		cmocka_unit_test(lenient_takes_the_first_of_repeated_names),
		cmocka_unit_test(escaped_names_are_refused),
		cmocka_unit_test(lookalike_names_are_refused),
		cmocka_unit_test(other_names_pass),
		cmocka_unit_test(lenient_rules),
		cmocka_unit_test(line_breaks_are_reported),
		cmocka_unit_test(plain_results_are_reported),
		cmocka_unit_test(members_of_results_are_found),
		cmocka_unit_test(separators_are_reported),
		cmocka_unit_test(one_repeated_among_many),
		cmocka_unit_test(many_members_are_fast),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
