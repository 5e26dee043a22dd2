/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the gateway writes: exact bytes, and that scan_envelope accepts them. RPC-01. */
#include "jsonrpc/write.h"

#include "base/unit_test.h"
#include "jsonrpc/scan.h"

#define NONE slice_of(NULL, 0)

static void assert_written(struct buf *out, const char *want)
{
	assert_string_equal(buf_terminate(out), want);
	assert_int_equal(out->len, strlen(want));
	out->len = 0;
}

static void assert_kind(struct buf *out, enum envelope_kind kind)
{
	const struct scan_limits limits = { .depth_max = 8, .id_max = 64 };
	struct envelope envelope;
	struct error err;

	assert_int_equal(scan_envelope(buf_slice(out), &limits, 0, &envelope, &err), 0);
	assert_int_equal(envelope.kind, kind);
}

static void strings(void **state)
{
	static const struct {
		struct slice text;
		const char *want;
	} cases[] = {
		{ SLICE(""), "\"\"" },
		{ SLICE("plain /text"), "\"plain /text\"" },
		{ SLICE("\"\\"), "\"\\\"\\\\\"" },
		{ SLICE("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"" },
		{ SLICE("\0\x01\x1F\x7F"), "\"\\u0000\\u0001\\u001f\\u007f\"" },
		{ SLICE("\xC2\x80\xC2\x85\xC2\x9F\xC2\xA0"), "\"\\u0080\\u0085\\u009f\xC2\xA0\"" },
		{ SLICE("\xE2\x80\xA7\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA"),
		  "\"\xE2\x80\xA7\\u2028\\u2029\xE2\x80\xAA\"" },
		{ SLICE("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\"" },
		{ SLICE("a\xFFz"), "\"a\xEF\xBF\xBDz\"" },
		{ SLICE("\xC0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"" },
		{ SLICE("a\xE2\x82"), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"" },
		{ SLICE("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"" },
	};
	struct buf out = { NULL, 0, 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		write_string(&out, cases[i].text);
		assert_written(&out, cases[i].want);
	}
	buf_fini(&out);
}

/* Whatever bytes come in, what is written is JSON. */
static void any_bytes_make_a_valid_message(void **state)
{
	struct buf out = { NULL, 0, 0 };

	for (unsigned int i = 0; i < 0x10000; i++) {
		char text[5] = { 'a', (char)(i >> 8), (char)i, (char)0xA8, 'z' };

		out.len = 0;
		write_error(&out, NONE, -32603, slice_of(text, sizeof(text)), NONE);
		assert_kind(&out, ENVELOPE_ERROR);
		assert_null(memchr(out.data, '\n', out.len));
	}
	buf_fini(&out);
}

static void errors(void **state)
{
	struct buf out = { NULL, 0, 0 };

	write_error(&out, SLICE_LIT("\"a\\u0062\""), -32602, SLICE_LIT("no \"name\""),
		    SLICE_LIT("{\"reason\":1}"));
	assert_kind(&out, ENVELOPE_ERROR);
	assert_written(&out, "{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0062\",\"error\":{\"code\":-32602,"
			     "\"message\":\"no \\\"name\\\"\",\"data\":{\"reason\":1}}}");
	write_error(&out, NONE, -32700, SLICE_LIT(""), NONE);
	assert_kind(&out, ENVELOPE_ERROR);
	assert_written(&out, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"\"}}");
	buf_fini(&out);
}

static void results(void **state)
{
	struct buf out = { NULL, 0, 0 };

	write_result(&out, SLICE_LIT("7"), SLICE_LIT("{}"));
	assert_kind(&out, ENVELOPE_RESULT);
	assert_written(&out, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}");
	buf_fini(&out);
}

static void calls(void **state)
{
	struct buf out = { NULL, 0, 0 };

	write_call(&out, SLICE_LIT("1"), SLICE_LIT("ping"), NONE);
	assert_kind(&out, ENVELOPE_REQUEST);
	assert_written(&out, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	write_call(&out, NONE, SLICE_LIT("notifications/cancelled"),
		   SLICE_LIT("{\"requestId\":1}"));
	assert_kind(&out, ENVELOPE_NOTIFICATION);
	assert_written(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
			     "\"params\":{\"requestId\":1}}");
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings), cmocka_unit_test(any_bytes_make_a_valid_message),
		cmocka_unit_test(errors),  cmocka_unit_test(results),
		cmocka_unit_test(calls),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
