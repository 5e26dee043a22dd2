/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace makes of a message. W3C Trace Context §3.2, §3.3. */
#include "trace/span.h"

#include "base/check.h"
#include "base/unit_test.h"
#include "jsonrpc/scan.h"

#define HEAD "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\""
#define OURS "00-0af7651916cd43dd8448eb211c80319c-00000000000000ab-01"

static const struct scan_limits limits = { .depth_max = 8, .id_max = 64 };

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
		is_added = trace_message_add(&out, &env, "T");
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
		assert_false(trace_message_add(&out, &env, "T"));
		assert_int_equal(out.len, 0);
	}
}

/* Whatever parent it named, the server gets ours, and everything else as it was. */
static void our_parent_takes_the_place_of_another(void **state)
{
	static const struct {
		const char *before, *after; /* behind the method */
	} rows[] = {
		{ ",\"params\":{\"a\":1}}",
		  ",\"params\":{\"_meta\":{\"traceparent\":\"" OURS "\"},\"a\":1}}" },
		{ ",\"params\":{\"_meta\":{\"x\":1,\"traceparent\":\"00-\",\"y\":2}}}",
		  ",\"params\":{\"_meta\":{\"x\":1,\"traceparent\":\"" OURS "\",\"y\":2}}}" },
		{ ",\"params\":{\"_meta\":{\"traceparent\":{\"a\":[]},\"tracestate\":\"a=1\"}}}",
		  ",\"params\":{\"_meta\":{\"traceparent\":\"" OURS
		  "\",\"tracestate\":\"a=1\"}}}" },
		{ ",\"params\":{\"_meta\":{\"tracestate\":\"a=1\"}}}", NULL },
		{ ",\"params\":[]}", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf text = { 0 }, out = { 0 };
		struct envelope env, again;
		struct error err;

		buf_printf(&text, HEAD "%s", rows[i].before);
		assert_int_equal(scan_envelope(buf_slice(&text), &limits, 0, &env, &err), 0);
		assert_int_equal(trace_message_set_parent(&out, &env, OURS), rows[i].after != NULL);
		if (rows[i].after != NULL) {
			assert_string_equal(buf_terminate(&out) + sizeof(HEAD) - 1, rows[i].after);
			assert_int_equal(scan_envelope(buf_slice(&out), &limits, 0, &again, &err),
					 0);
		} else {
			assert_int_equal(out.len, 0);
		}
		buf_fini(&text);
		buf_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_get_it),
		cmocka_unit_test(others_do_not),
		cmocka_unit_test(our_parent_takes_the_place_of_another),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
