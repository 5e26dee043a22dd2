/* SPDX-License-Identifier: Apache-2.0 */
/* What a head's trace makes of a message, and which heads name one. W3C Trace Context §3.2, §3.3. */
#include "endpoint/trace.h"

#include "base/check.h"
#include "base/unit_test.h"
#include "mcp/trace_context.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define HEAD "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\""

static const struct scan_limits limits = { .depth_max = 8, .id_max = 64 };

static void states_are_lists_of_members(void **state)
{
	static const struct {
		const char *text;
		bool is_valid;
	} rows[] = {
		{ "a=1", true },
		{ "a=1,b=2", true },
		{ " a=1 ,\t, b=2 ", true },
		{ "0a@b=x y", true },
		{ "a_-*/0=!~", true },
		{ "", false },
		{ " , ", false },
		{ "a", false },
		{ "a=", false },
		{ "=1", false },
		{ "0a=1", false },
		{ "A=1", false },
		{ "a@=1", false },
		{ "@a=1", false },
		{ "a@0=1", false },
		{ "a@b@c=1", false },
		{ "a@bcdefghijklmnop=1", false },
		{ "a=1=2", false },
		{ "a=\t1", false },
		{ "a=\x7f", false },
		{ "a=\xC3\xA9", false },
		{ "a=1,b=2,a=3", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (trace_state_is_valid(slice_str(rows[i].text)) != rows[i].is_valid)
			fail_msg("'%s'", rows[i].text);
}

static void states_are_bounded(void **state)
{
	struct buf text = { 0 };

	for (int i = 0; i < 32; i++)
		buf_printf(&text, "%sk%d=v", i > 0 ? "," : "", i);
	assert_true(trace_state_is_valid(buf_slice(&text)));
	buf_append_str(&text, ",more=v");
	assert_false(trace_state_is_valid(buf_slice(&text)));
	text.len = 0;
	buf_append_str(&text, "a=");
	for (int i = 0; i < 256; i++)
		buf_append_char(&text, 'x');
	assert_true(trace_state_is_valid(buf_slice(&text)));
	buf_append_char(&text, 'x');
	assert_false(trace_state_is_valid(buf_slice(&text)));
	buf_fini(&text);
}

static void messages_get_it(void **state)
{
	static const struct {
		const char *rest; /* of the message, behind its method */
		const char *with; /* the same with the trace; NULL: it stays as it is */
	} rows[] = {
		{ "}", NULL },
		{ ",\"params\":{}}", ",\"params\":{\"_meta\":{T}}}" },
		{ ",\"params\":{ \"a\":1}}", ",\"params\":{\"_meta\":{T}, \"a\":1}}" },
		{ ",\"params\":{\"_meta\":{}}}", ",\"params\":{\"_meta\":{T}}}" },
		{ ",\"params\":{\"_meta\":{\n}}}", ",\"params\":{\"_meta\":{T\n}}}" },
		{ ",\"params\":{\"_meta\":{\"x\":1}}}", ",\"params\":{\"_meta\":{T,\"x\":1}}}" },
		{ ",\"params\":[]}", NULL },
		{ ",\"params\":{\"_meta\":7}}", NULL },
		{ ",\"params\":{\"_meta\":{\"traceparent\":7}}}", NULL },
		{ ",\"params\":{\"_meta\":{\"tracestate\":\"a=1\"}}}", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf text = { 0 }, out = { 0 };
		struct envelope env;
		struct error err;
		bool is_added;

		buf_printf(&text, HEAD "%s", rows[i].rest);
		assert_int_equal(scan_envelope(buf_slice(&text), &limits, 0, &env, &err), 0);
		is_added = trace_add(&out, &env, "T");
		if (i == 0) { /* without params */
			assert_true(is_added);
			assert_string_equal(buf_terminate(&out),
					    "{\"params\":{\"_meta\":{T}},\"jsonrpc\":\"2.0\","
					    "\"id\":1,\"method\":\"m\"}");
		} else {
			assert_int_equal(is_added, rows[i].with != NULL);
		}
		if (rows[i].with != NULL)
			assert_string_equal(buf_terminate(&out) + sizeof(HEAD) - 1, rows[i].with);
		buf_fini(&text);
		buf_fini(&out);
	}
}

static void others_do_not(void **state)
{
	static const char *const texts[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct buf out = { 0 };
		struct envelope env;
		struct error err;

		assert_int_equal(scan_envelope(slice_str(texts[i]), &limits, 0, &env, &err), 0);
		assert_false(trace_add(&out, &env, "T"));
		assert_int_equal(out.len, 0);
	}
}

static void assert_members(const struct http_request *http, const char *members)
{
	char *text = trace_of_head(http);

	if (members == NULL)
		assert_null(text);
	else
		assert_string_equal(text, members);
	free(text);
}

static void heads_name_it_once(void **state)
{
	struct http_request http = { .seen = 0 };

	assert_members(&http, NULL);
	http.seen = 1u << HTTP_TRACEPARENT;
	http.fields[HTTP_TRACEPARENT] = SLICE_LIT(PARENT);
	assert_members(&http, "\"traceparent\":\"" PARENT "\"");
	http.seen |= 1u << HTTP_TRACESTATE;
	http.fields[HTTP_TRACESTATE] = SLICE_LIT("a=\"\\");
	assert_members(&http, "\"traceparent\":\"" PARENT "\",\"tracestate\":\"a=\\\"\\\\\"");
	http.repeated = 1u << HTTP_TRACESTATE;
	assert_members(&http, "\"traceparent\":\"" PARENT "\"");
	http.repeated = 1u << HTTP_TRACEPARENT;
	assert_members(&http, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_are_lists_of_members),
		cmocka_unit_test(states_are_bounded),
		cmocka_unit_test(messages_get_it),
		cmocka_unit_test(others_do_not),
		cmocka_unit_test(heads_name_it_once),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
