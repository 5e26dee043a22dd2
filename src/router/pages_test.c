/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of lists, as servers write them; with ' for ". bridging.md §1.8 */
#include "router/pages.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/unit_test.h"

static const struct scan_limits limits = { .depth_max = 64, .id_max = 256 };
static struct pages pages;

static int setup(void **state)
{
	pages = (struct pages){ .member = SLICE_LIT("tools") };
	return 0;
}

static int teardown(void **state)
{
	pages_reset(&pages);
	return 0;
}

/* The text with its quotes; has to be freed. */
static char *quoted(const char *text)
{
	char *copy = mem_printf("%s", text);

	for (char *p = copy; *p != '\0'; p++) {
		if (*p == '\'')
			*p = '"';
	}
	return copy;
}

static enum pages_outcome add(const char *result)
{
	char *text = quoted(result);
	enum pages_outcome outcome = pages_add(&pages, slice_str(text));

	free(text);
	return outcome;
}

static void are(const char *expected)
{
	char *text = quoted(expected);
	struct slice have = pages.joined[0]->env->result.text;

	assert_int_equal(pages.count, 1);
	assert_int_equal(have.n, strlen(text));
	assert_memory_equal(have.p, text, have.n);
	free(text);
}

/* What stands around the items is that of the first page, in its order; nothing is there twice. */
static void first_page_is_the_frame(void **state)
{
	assert_int_equal(add("{'tools':[1],'a':[2],'nextCursor':'x','tools':[9],'nextCursor':'z'}"),
			 PAGES_MORE);
	assert_int_equal(add("{'b':1,'nextCursor':null,'tools' : [ \r\n 3, {'tools':[4]} ]}"),
			 PAGES_COMPLETE);
	pages_join(&pages, &limits);
	are("{'tools':[1,3, {'tools':[4]}],'a':[2]}");
	assert_true(pages.head.data == NULL && pages.tail.data == NULL &&
		    pages.items[0].data == NULL);
	assert_null(pages.cursor.data); /* nothing is kept twice */
}

static void empty_pages_leave_no_commas(void **state)
{
	assert_int_equal(add("{ 'a' : 1 ,\n 'tools' : [ ] , 'nextCursor' : 'x' }"), PAGES_MORE);
	assert_int_equal(add("{'tools':[1],'nextCursor':'y'}"), PAGES_MORE);
	assert_int_equal(add("{'tools':[],'nextCursor':''}"), PAGES_MORE); /* UTIL-PAGE-01 */
	assert_int_equal(add("{'tools':[2]}"), PAGES_COMPLETE);
	pages_join(&pages, &limits);
	are("{'a' : 1,'tools' : [1,2]}");
}

/* No raw line break stands in a line or an event. */
static void line_breaks_go(void **state)
{
	assert_int_equal(add("{'a':\r1,'tools':[1,\n2],'b':{\n}}"), PAGES_COMPLETE);
	pages_join(&pages, &limits);
	are("{'a': 1,'tools':[1, 2],'b':{ }}");
	assert_false(pages.joined[0]->env->has_line_break);
}

static void what_is_no_list_is_unfit(void **state)
{
	static const char *const results[] = {
		"{}", "{'tools':{}}", "{'tools':null}", "[]", "7", "{'tools':[],'nextCursor':7}"
	};

	for (size_t i = 0; i < ARRAY_LEN(results); i++) {
		assert_int_equal(add(results[i]), PAGES_UNFIT);
		pages_reset(&pages);
	}
	assert_int_equal(add("{'tools':[],'nextCursor':'x'}"), PAGES_MORE);
	assert_int_equal(add("{'tools':[],'nextCursor':'x'}"), PAGES_UNFIT); /* no end */
}

static void pages_are_counted(void **state)
{
	char text[100];

	for (size_t i = 1; i < PAGES_TAKEN_MAX; i++) {
		snprintf(text, sizeof(text), "{'tools':[%zu],'nextCursor':'%zu'}", i, i);
		assert_int_equal(add(text), PAGES_MORE);
	}
	assert_int_equal(add("{'tools':[]}"), PAGES_COMPLETE);
	pages_reset(&pages);
	for (size_t i = 1; i < PAGES_TAKEN_MAX; i++) {
		snprintf(text, sizeof(text), "{'tools':[%zu],'nextCursor':'%zu'}", i, i);
		assert_int_equal(add(text), PAGES_MORE);
	}
	assert_int_equal(add("{'tools':[],'nextCursor':'and on'}"), PAGES_UNFIT);
}

static enum pages_outcome add_large(size_t frame, size_t item, const char *end)
{
	struct buf text = { 0 };
	enum pages_outcome outcome;

	buf_append_str(&text, "{\"a\":\"");
	memset(buf_reserve(&text, frame), 'f', frame);
	text.len += frame;
	buf_append_str(&text, "\",\"tools\":[\"");
	memset(buf_reserve(&text, item), 'x', item);
	text.len += item;
	buf_append_str(&text, "\"]");
	buf_append_str(&text, end);
	buf_append_char(&text, '}');
	outcome = pages_add(&pages, buf_slice(&text));
	buf_fini(&text);
	return outcome;
}

/* UTIL-PAGE-01: an empty cursor is one; but who begins from the start has meant none. */
static void empty_cursors(void **state)
{
	assert_int_equal(add("{'tools':[1],'nextCursor':'x'}"), PAGES_MORE);
	assert_int_equal(add("{'tools':[2],'nextCursor':''}"), PAGES_MORE);
	assert_int_equal(add("{'tools':[1],'nextCursor':'x'}"), PAGES_MORE);
	assert_int_equal(add("{'tools':[2],'nextCursor':''}"), PAGES_COMPLETE);
	pages_join(&pages, &limits);
	are("{'tools':[1,2]}");
	pages_reset(&pages);
	assert_int_equal(add("{'tools':[1],'nextCursor':'x'}"), PAGES_MORE);
	assert_int_equal(pages_end(&pages), PAGES_UNFIT);
	pages_reset(&pages);
	assert_int_equal(add("{'tools':[1],'nextCursor':''}"), PAGES_MORE);
	assert_int_equal(pages_end(&pages), PAGES_COMPLETE); /* it has refused the cursor */
	pages_join(&pages, &limits);
	are("{'tools':[1]}");
	pages_reset(&pages);
	assert_int_equal(add_large(3000000, 3000000, ",\"nextCursor\":\"\""), PAGES_MORE);
	assert_int_equal(add_large(3000000, 3000000, ",\"nextCursor\":\"\""), PAGES_COMPLETE);
	pages_join(&pages, &limits);
	assert_int_equal(pages.count, 1);
	assert_int_equal(pages.items[1].len, 0); /* what was begun anew is nowhere */
}

/* However the sizes lie: there are few pages, each but a large one of the server's own is small, none is lost. */
static void pages_are_large_and_few(void **state)
{
	static const size_t sizes[][2] = {
		{ 1000000, 3300000 }, { 4200000, 1 }, { 4100000, 4100000 }, { 70000, 70000 }
	};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		size_t total = 0;
		char end[40];

		for (size_t n = 0; n < 150 && total < 15000000; n++) {
			size_t size = sizes[i][n % 2];

			if (total + size + 4 > PAGES_BYTES_MAX)
				break;
			snprintf(end, sizeof(end), ",\"nextCursor\":\"%zu\"", n);
			assert_int_equal(add_large(10, size, end), PAGES_MORE);
			total += size;
		}
		assert_int_equal(add("{'tools':[1]}"), PAGES_COMPLETE);
		pages_join(&pages, &limits);
		assert_in_range(pages.bytes, total, total + 10000);
		assert_in_range(pages.count, 2, PAGES_JOINED_MAX);
		for (size_t n = 0; n < pages.count; n++)
			assert_true(pages.joined[n]->text.n < (4 << 20) + 20000);
		pages_reset(&pages);
	}
}

/* A page of a list is no page of one that differs in its last item only. */
static void numbers_are_of_all_items(void **state)
{
	static const char *const lasts[] = { "{'tools':[1]}", "{'tools':[2]}", "{'tools':[1]}" };
	uint64_t numbers[ARRAY_LEN(lasts)];

	for (size_t i = 0; i < ARRAY_LEN(lasts); i++) {
		assert_int_equal(add_large(1, PAGES_JOINED_BYTES, ",\"nextCursor\":\"0\""),
				 PAGES_MORE);
		assert_int_equal(add(lasts[i]), PAGES_COMPLETE);
		pages_join(&pages, &limits);
		assert_int_equal(pages.count, 2);
		numbers[i] = pages.number;
		pages_reset(&pages);
	}
	assert_true(numbers[0] != numbers[1] && numbers[0] == numbers[2]);
}

static void long_cursors_are_unfit(void **state)
{
	for (int length = 64 * 1024 - 2; length < 64 * 1024; length++) {
		char *text = mem_printf("{'tools':[1],'nextCursor':'%0*d'}", length, 0);

		assert_int_equal(add(text), length == 64 * 1024 - 2 ? PAGES_MORE : PAGES_UNFIT);
		free(text);
		pages_reset(&pages);
	}
}

static void long_lists_are_unfit(void **state)
{
	for (size_t i = 0; i < 3; i++) {
		const char *const ends[] = { ",\"nextCursor\":\"0\"", ",\"nextCursor\":\"1\"",
					     ",\"nextCursor\":\"2\"" };

		assert_int_equal(add_large(0, 5000000, ends[i]), PAGES_MORE);
	}
	assert_int_equal(add_large(0, 5000000, ""), PAGES_UNFIT);
	pages_reset(&pages);
	assert_int_equal(add_large(PAGES_BYTES_MAX, 1, ""), PAGES_UNFIT);
	pages_reset(&pages);
	/* What surrounds the items counts for each page. */
	assert_int_equal(add_large(9000000, 3000000, ",\"nextCursor\":\"1\""), PAGES_MORE);
	assert_int_equal(add_large(0, 3000000, ""), PAGES_UNFIT);
}

static void errors_are_a_page(void **state)
{
	static const char error[] = "{\"id\":4,\"error\":{\"code\":1,\"message\":\"m\"}}";

	assert_int_equal(add("{'tools':[],'nextCursor':'x'}"), PAGES_MORE);
	assert_int_equal(pages_set_error(&pages, slice_str(error), &limits), 0);
	assert_int_equal(pages.count, 1);
	assert_int_equal(pages.joined[0]->env->kind, ENVELOPE_ERROR);
}

static void is_found(const char *name, const char *written, const char *schema)
{
	struct json wanted = { .type = JSON_STRING,
			       .text = slice_str(name),
			       .has_escape = strchr(name, '\\') != NULL };
	char *text = quoted(written);
	const struct named_item *found = pages_find(&pages, wanted);

	assert_non_null(found);
	assert_true(slice_is_equal(found->name.text, slice_str(text)));
	assert_true(slice_is_equal(found->schema, slice_str(schema)));
	free(text);
}

static void is_not_found(const char *name)
{
	assert_null(
		pages_find(&pages, (struct json){ .type = JSON_STRING, .text = slice_str(name) }));
}

static void items_are_found_by_what_their_names_mean(void **state)
{
	assert_int_equal(
		add("{'tools':[{'name':'a','inputSchema':{}},7,{'title':'b'},{'name':['a']},"
		    "{'name':'a','inputSchema':2},{'name':'\\u0062'}],'nextCursor':'x'}"),
		PAGES_MORE);
	assert_int_equal(add("{'tools':[{'name':'c'},{'name':'b','inputSchema':3}]}"),
			 PAGES_COMPLETE);
	pages_join(&pages, &limits);
	is_found("\"a\"", "'a'", "{}");
	is_found("\"\\u0061\"", "'a'", "{}");
	is_found("\"b\"", "'\\u0062'", "");
	is_found("\"c\"", "'c'", "");
	is_not_found("\"d\"");
	is_not_found("\"\"");
	pages_reset(&pages);
	assert_int_equal(add("{'tools':[{'name':'d'}]}"), PAGES_COMPLETE);
	pages_join(&pages, &limits);
	is_found("\"d\"", "'d'", "");
	is_not_found("\"a\"");
}

/* Pages of ours are several; not all items of a very long list are found. */
static void items_of_long_lists_are_found(void **state)
{
	struct buf text = { 0 };

	assert_int_equal(add_large(0, PAGES_JOINED_BYTES - 10, ",\"nextCursor\":\"x\""),
			 PAGES_MORE);
	buf_append_str(&text, "{\"tools\":[{\"name\":\"0\"}");
	for (size_t i = 1; i <= PAGES_NAMED_MAX; i++)
		buf_printf(&text, ",{\"name\":\"%zu\"}", i);
	buf_append_str(&text, "]}");
	assert_int_equal(pages_add(&pages, buf_slice(&text)), PAGES_COMPLETE);
	pages_join(&pages, &limits);
	assert_int_equal(pages.count, 2);
	is_found("\"0\"", "'0'", "");
	is_found("\"65535\"", "'65535'", "");
	is_not_found("\"65536\"");
	buf_fini(&text);
}

/* ---- cursors ---- */

#define CHILD UINT64_C(0x0123456789abcdef)

static struct json string_of(struct slice text)
{
	return (struct json){ .type = JSON_STRING, .text = text };
}

/* What is kept of a cursor is exactly what the server wrote, however long, and whose it is. bridging.md §1.1 (7) */
static void cursors_lead_back(void **state)
{
	struct buf texts[4] = { { 0 } };

	buf_append_str(&texts[0], "\"a\"");
	buf_append_str(&texts[1], "\"a\\u0022\\\\b\"");
	buf_append_str(&texts[2], "\"\xC3\xA9\"");
	buf_printf(&texts[3], "\"%05000d\"", 7);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct buf sealed = { 0 }, out = { 0 };
		uint64_t child, list, number;

		cursor_append_sealed(&sealed, CHILD + i, string_of(buf_slice(&texts[i])));
		assert_false(cursor_is_empty(string_of(buf_slice(&sealed))));
		assert_int_equal(cursor_open(string_of(buf_slice(&sealed)), &child, &out), 0);
		assert_int_equal(child, CHILD + i);
		assert_true(slice_is_equal(buf_slice(&out), buf_slice(&texts[i])));
		assert_int_equal(cursor_open_page(string_of(buf_slice(&sealed)), &list, &number),
				 -1);
		buf_fini(&sealed);
		buf_fini(&out);
		buf_fini(&texts[i]);
	}
}

static void empty_cursors_stay_empty(void **state)
{
	struct buf sealed = { 0 };

	cursor_append_sealed(&sealed, CHILD, string_of(SLICE_LIT("\"\"")));
	assert_string_equal(buf_terminate(&sealed), "\"\"");
	assert_true(cursor_is_empty(string_of(buf_slice(&sealed))));
	buf_fini(&sealed);
}

static void cursors_of_pages_lead_back(void **state)
{
	struct buf sealed = { 0 }, out = { 0 };
	uint64_t list, number, child;

	cursor_append_page(&sealed, CHILD, 258);
	assert_int_equal(cursor_open_page(string_of(buf_slice(&sealed)), &list, &number), 0);
	assert_true(list == CHILD && number == 258);
	assert_int_equal(cursor_open(string_of(buf_slice(&sealed)), &child, &out), -1);
	sealed.data[sealed.len - 2] = '"'; /* a digit less */
	assert_int_equal(cursor_open_page(string_of(slice_of(sealed.data, sealed.len - 1)), &list,
					  &number),
			 -1);
	buf_fini(&sealed);
	buf_fini(&out);
}

/* Nothing is told a server that could be more than a cursor. BACK-SEC-01 */
static void made_up_cursors_do_not_open(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		bool opens;
	} rows[] = {
		{ "\1\0\0\0\0\0\0\0\1x", 10, true },
		{ "\1\0\0\0\0\0\0\0\1", 9, true },
		{ "\1\0\0\0\0\0\0\0", 8, false },
		{ "\1\0\0\0\0\0\0\0\0x", 10, false },
		{ "\3\0\0\0\0\0\0\0\1x", 10, false },
		{ "\1\0\0\0\0\0\0\0\1\",\"x\":\"", 16, false },
		{ "\1\0\0\0\0\0\0\0\1\\", 10, false },
		{ "\1\0\0\0\0\0\0\0\1\n", 10, false },
		{ "\1\0\0\0\0\0\0\0\1\xE2\x80\xA8", 12, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf sealed = { 0 }, out = { 0 };
		uint64_t child;

		buf_append_char(&sealed, '"');
		sealed.len += text_base64url(rows[i].bytes, rows[i].n, buf_reserve(&sealed, 40));
		buf_append_char(&sealed, '"');
		if ((cursor_open(string_of(buf_slice(&sealed)), &child, &out) == 0) !=
		    rows[i].opens)
			fail_msg("%zu", i);
		buf_fini(&sealed);
		buf_fini(&out);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(first_page_is_the_frame),
	TEST(empty_pages_leave_no_commas),
	TEST(empty_cursors),
	TEST(line_breaks_go),
	TEST(what_is_no_list_is_unfit),
	TEST(pages_are_counted),
	TEST(pages_are_large_and_few),
	TEST(numbers_are_of_all_items),
	TEST(long_cursors_are_unfit),
	TEST(long_lists_are_unfit),
	TEST(errors_are_a_page),
	TEST(items_are_found_by_what_their_names_mean),
	TEST(items_of_long_lists_are_found),
	cmocka_unit_test(cursors_lead_back),
	cmocka_unit_test(empty_cursors_stay_empty),
	cmocka_unit_test(cursors_of_pages_lead_back),
	cmocka_unit_test(made_up_cursors_do_not_open),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
