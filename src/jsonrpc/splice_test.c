/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of splicing: what is not edited stays byte for byte. RPC-04, SEC-43, BACK-FRAME-01. */
#include "jsonrpc/write.h"

#include "base/unit_test.h"
#include "jsonrpc/scan.h"

#define MESSAGE                                                                               \
	"{ \"params\":{\"_meta\":{\"progressToken\":\"abc\",\"x\":1E2},\"n\":[1.0,-0,1e400,"  \
	"123456789012345678901234567890],\"s\":\"\\uD800 \\u0000 \xC3\xA9\"} ,\r\n\"id\":%s," \
	"\"method\":\"m\",\"jsonrpc\":\"2.0\"}"

static const struct scan_limits limits = { .depth_max = 32, .id_max = 64 };

static void assert_spliced(struct slice text, const struct splice_edit *edits, size_t count,
			   unsigned int flags, const char *want)
{
	struct buf out = { NULL, 0, 0 };

	buf_append_str(&out, "before");
	splice_append(&out, text, edits, count, flags);
	assert_string_equal(buf_terminate(&out), want);
	assert_int_equal(out.len, strlen(want));
	buf_fini(&out);
}

static struct buf message_with_id(const char *id)
{
	struct buf text = { NULL, 0, 0 };

	buf_printf(&text, MESSAGE, id);
	return text;
}

static void without_edits_nothing_changes(void **state)
{
	struct buf text = message_with_id("7");
	struct buf want = { NULL, 0, 0 };

	buf_append_str(&want, "before");
	buf_append_slice(&want, buf_slice(&text));
	assert_spliced(buf_slice(&text), NULL, 0, 0, buf_terminate(&want));
	buf_fini(&text);
	buf_fini(&want);
}

/* RPC-04, SEC-43: number lexemes and escapes survive; the id goes out and comes back. */
static void id_is_replaced_and_restored(void **state)
{
	struct buf text = message_with_id("\"client \\u0069d\"");
	struct buf there = { NULL, 0, 0 };
	struct buf back = { NULL, 0, 0 };
	struct splice_edit edit;
	struct envelope envelope;
	struct error err;

	assert_int_equal(scan_envelope(buf_slice(&text), &limits, 0, &envelope, &err), 0);
	edit = (struct splice_edit){ envelope.id.text, SLICE("41") };
	splice_append(&there, envelope.text, &edit, 1, 0);
	assert_int_equal(scan_envelope(buf_slice(&there), &limits, 0, &envelope, &err), 0);
	assert_true(slice_is_equal(envelope.id.text, SLICE_LIT("41")));
	edit = (struct splice_edit){ envelope.id.text, SLICE("\"client \\u0069d\"") };
	splice_append(&back, envelope.text, &edit, 1, 0);
	assert_true(slice_is_equal(buf_slice(&back), buf_slice(&text)));
	buf_fini(&text);
	buf_fini(&there);
	buf_fini(&back);
}

static void edits_at_all_places(void **state)
{
	struct slice text = SLICE_LIT("0123456789");
	const struct splice_edit edits[] = {
		{ slice_of(text.p, 1), SLICE("first") },    /* at the front */
		{ slice_of(text.p + 1, 0), SLICE("-in-") }, /* an insertion, next to it */
		{ slice_of(text.p + 3, 2), { NULL, 0 } },   /* a removal */
		{ slice_of(text.p + 5, 1), SLICE("5") },
		{ slice_of(text.p + 10, 0), SLICE("end") },
	};

	assert_spliced(text, edits, ARRAY_LEN(edits), 0, "beforefirst-in-1256789end");
	assert_spliced(text, edits, 1, 0, "beforefirst123456789");
	assert_spliced(text, edits + 4, 1, 0, "before0123456789end");
	assert_spliced(slice_of(NULL, 0), NULL, 0, 0, "before");
	assert_spliced(text, &(struct splice_edit){ text, SLICE("all") }, 1, 0, "beforeall");
}

/* BACK-FRAME-01 */
static void one_line(void **state)
{
	struct slice text = SLICE_LIT("{\r\n\"a\":\n1,\"b\":\"\\n\\r\"\r}");
	struct slice one = slice_of(strchr(text.p, '1'), 1);
	const struct splice_edit edit = { one, SLICE("[\n2]") };

	assert_spliced(text, &edit, 1, SPLICE_ONE_LINE, "before{  \"a\": [ 2],\"b\":\"\\n\\r\" }");
	assert_spliced(text, NULL, 0, 0, "before{\r\n\"a\":\n1,\"b\":\"\\n\\r\"\r}");
}

static void line_breaks_of_earlier_output_stay(void **state)
{
	struct buf out = { NULL, 0, 0 };

	buf_append_str(&out, "{}\n");
	splice_append(&out, SLICE_LIT("{\n}"), NULL, 0, SPLICE_ONE_LINE);
	assert_true(slice_is_equal(buf_slice(&out), SLICE_LIT("{}\n{ }")));
	buf_fini(&out);
}

/* BACK-FRAME-01: the neighbours in the code chart are not touched. */
static void separators_are_escaped(void **state)
{
	struct slice text =
		SLICE_LIT("[\"\xC2\x85|\xE2\x80\xA8\xE2\x80\xA9|\xC2\x84\xC2\x86|"
			  "\xE2\x80\xA7\xE2\x80\xAA|\xE2\x81\xA8|\xF0\x9F\x98\x80\",\n1]");
	struct slice one = slice_of(strchr(text.p, '1'), 1);
	const struct splice_edit edit = { one, SLICE("\"\xE2\x80\xA8\"") };

	assert_spliced(text, &edit, 1, SPLICE_ESCAPE_SEPARATORS,
		       "before[\"\\u0085|\\u2028\\u2029|\xC2\x84\xC2\x86|"
		       "\xE2\x80\xA7\xE2\x80\xAA|\xE2\x81\xA8|\xF0\x9F\x98\x80\",\n\"\\u2028\"]");
	assert_spliced(slice_of(text.p, 6), NULL, 0, SPLICE_ESCAPE_SEPARATORS | SPLICE_ONE_LINE,
		       "before[\"\\u0085|\xE2");
}

static void assert_with_meta(const char *rest, const char *want)
{
	at_end(buf_fini) struct buf text = { 0 }, out = { 0 };
	struct envelope env;

	buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"%s}", rest);
	assert_int_equal(scan_envelope(buf_slice(&text), &limits, 0, &env, NULL), 0);
	write_with_meta(&out, &env, "\"k\":1");
	assert_string_equal(buf_terminate(&out), want);
	assert_int_equal(scan_envelope(buf_slice(&out), &limits, 0, &env, NULL), 0);
}

/* BACK-MSG-10: each request has room for it. */
static void members_of_meta_are_added(void **state)
{
	static const char head[] = "\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"";
	const struct {
		const char *rest, *params, *before;
	} cases[] = {
		{ "", "", "\"params\":{\"_meta\":{\"k\":1}}," },
		{ ",\"params\":{}", ",\"params\":{\"_meta\":{\"k\":1}}", "" },
		{ ",\"params\":{\"a\":1}", ",\"params\":{\"_meta\":{\"k\":1},\"a\":1}", "" },
		{ ",\"params\":{\"_meta\":{ }}", ",\"params\":{\"_meta\":{\"k\":1 }}", "" },
		{ ",\"params\":{\"_meta\":{\"b\":2}}", ",\"params\":{\"_meta\":{\"k\":1,\"b\":2}}",
		  "" },
		{ ",\"params\":{\"_meta\":[2]}", ",\"params\":{\"_meta\":{\"k\":1}}", "" },
		{ ",\"params\":[1]", ",\"params\":{\"_meta\":{\"k\":1}}", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		at_end(buf_fini) struct buf want = { 0 };

		buf_printf(&want, "{%s%s%s}", cases[i].before, head, cases[i].params);
		assert_with_meta(cases[i].rest, buf_terminate(&want));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_edits_nothing_changes),
		cmocka_unit_test(id_is_replaced_and_restored),
		cmocka_unit_test(edits_at_all_places),
		cmocka_unit_test(one_line),
		cmocka_unit_test(line_breaks_of_earlier_output_stay),
		cmocka_unit_test(separators_are_escaped),
		cmocka_unit_test(members_of_meta_are_added),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
