/* SPDX-License-Identifier: Apache-2.0 */
/* Which heads name a trace. W3C Trace Context §3.2, §3.3. */
#include "endpoint/caller.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/unit_test.h"
#include "mcp/trace_context.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

#define REST "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"

static void parents_have_one_form(void **state)
{
	static const struct {
		const char *text;
		bool is_valid, is_sampled;
	} rows[] = {
		{ "00-" REST "01", true, true },
		{ "00-" REST "00", true, false },
		{ "00-" REST "02", true, false },
		{ "00-" REST "0f", true, true },
		{ "00-" REST "fe", true, false },
		{ "fe-" REST "01", true, true },
		{ "cc-" REST "01-more", true, true },
		{ "cc-" REST "01more", false, false },
		{ "00-" REST "01-more", false, false },
		{ "ff-" REST "01", false, false },
		{ "00-" REST "0A", false, false },
		{ "00-" REST "0", false, false },
		{ "00_" REST "01", false, false },
		{ "00-00000000000000000000000000000000-b7ad6b7169203331-01", false, false },
		{ "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false, false },
		{ "", false, false },
	};
	struct buf future = { 0 };
	struct trace_parent parent;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice text = slice_str(rows[i].text);

		if (trace_parent_read(text, &parent) != rows[i].is_valid ||
		    (rows[i].is_valid && parent.is_sampled != rows[i].is_sampled))
			fail_msg("'%s'", rows[i].text);
	}
	buf_append_str(&future, "cc-" REST "01-");
	while (future.len < TRACE_PARENT_BYTES_MAX)
		buf_append_char(&future, 'x');
	assert_true(trace_parent_read(buf_slice(&future), &parent));
	buf_append_char(&future, 'x');
	assert_false(trace_parent_read(buf_slice(&future), &parent));
	buf_fini(&future);
}

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
		cmocka_unit_test(parents_have_one_form),
		cmocka_unit_test(states_are_lists_of_members),
		cmocka_unit_test(states_are_bounded),
		cmocka_unit_test(heads_name_it_once),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
