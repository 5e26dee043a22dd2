/* SPDX-License-Identifier: Apache-2.0 */
/* Under which names an endpoint over several servers shows what they have. END-02, END-03 */
#include "endpoint/catalogue.h"

#include <string.h>

#include "base/unit_test.h"

static struct catalogue catalogue;

static const char *shown(const char *prefix, const char *name)
{
	static struct buf out;

	out.len = 0;
	catalogue_show_name(&out, slice_str(prefix), slice_str(name));
	return buf_terminate(&out);
}

/* END-03 */
static void test_names(void **state)
{
	char name[80], first[80];

	(void)state;
	assert_string_equal(shown("a__", "read"), "a__read");
	assert_string_equal(shown("", "read-file_2"), "read-file_2");
	memset(name, 'n', sizeof(name));
	name[61] = '\0';
	assert_int_equal(strlen(shown("a__", name)), CATALOGUE_NAME_MAX);
	assert_int_equal(shown("a__", name)[63], 'n');
	name[61] = 'n';
	name[62] = '\0';
	strcpy(first, shown("a__", name));
	assert_int_equal(strlen(first), CATALOGUE_NAME_MAX);
	assert_int_equal(first[55], '_');
	assert_string_equal(first, shown("a__", name));
	name[61] = 'm';
	assert_string_not_equal(first, shown("a__", name));
	assert_memory_equal(shown("a__", "x.y"), "a__x_y_", 7);
	assert_int_equal(strlen(shown("a__", "x.y")), 15);
	strcpy(first, shown("a__", "x.y"));
	assert_string_not_equal(first, shown("a__", "x/y"));
	assert_memory_equal(shown("", ""), "_", 1);
}

static void add(enum catalogue_kind kind, size_t leg, const char *prefix, const char *json)
{
	catalogue_add(&catalogue, kind, leg, slice_str(prefix), slice_str(json));
}

static void assert_list(enum catalogue_kind kind, const char *expected)
{
	struct buf out = { 0 };

	catalogue_append(&catalogue, kind, &out);
	assert_string_equal(buf_terminate(&out), expected);
	buf_fini(&out);
}

/* END-02, END-03 */
static void test_tools(void **state)
{
	const struct catalogue_item *item;

	(void)state;
	catalogue_clear(&catalogue);
	add(CATALOGUE_TOOLS, 0, "a_", "{\"x\":1,\"name\":\"read\",\"title\":\"name\"}");
	add(CATALOGUE_TOOLS, 0, "a_", "{\"name\":\"r\\u0065ad2\"}");
	add(CATALOGUE_TOOLS, 0, "a_", "{\"title\":\"without a name\"}");
	add(CATALOGUE_TOOLS, 0, "a_", "{\"name\":7}");
	add(CATALOGUE_TOOLS, 1, "", "{\"name\":\"write\"}");
	assert_list(CATALOGUE_TOOLS, "{\"x\":1,\"name\":\"a_read\",\"title\":\"name\"},"
				     "{\"name\":\"a_read2\"},{\"name\":\"write\"}");
	item = catalogue_find(&catalogue, slice_str("a_read2"));
	assert_non_null(item);
	assert_true(slice_is_equal(item->real, slice_str("read2")) && item->leg == 0);
	assert_null(catalogue_find(&catalogue, slice_str("read2")));
	/* Two of one name: neither. */
	add(CATALOGUE_TOOLS, 1, "", "{\"name\":\"a_read\"}");
	assert_list(CATALOGUE_TOOLS, "{\"name\":\"a_read2\"},{\"name\":\"write\"}");
	assert_true(catalogue_find(&catalogue, slice_str("a_read"))->is_double);
	assert_int_equal(catalogue.doubles, 1);
	catalogue_forget_plain(&catalogue);
	assert_null(catalogue_find(&catalogue, slice_str("write")));
	assert_non_null(catalogue_find(&catalogue, slice_str("a_read")));
	catalogue_clear(&catalogue);
	assert_list(CATALOGUE_TOOLS, "");
}

/* END-03 */
static void test_resources(void **state)
{
	(void)state;
	catalogue_clear(&catalogue);
	add(CATALOGUE_RESOURCES, 0, "a_", "{\"uri\":\"res://1\",\"name\":\"n\"}");
	add(CATALOGUE_RESOURCES, 1, "b_", "{\"uri\":\"res://1\"}");
	add(CATALOGUE_RESOURCES, 1, "b_", "{\"uri\":\"res://2\"}");
	assert_list(CATALOGUE_RESOURCES,
		    "{\"uri\":\"res://1\",\"name\":\"n\"},{\"uri\":\"res://2\"}");
	assert_int_equal(catalogue_find(&catalogue, slice_str("res://1"))->leg, 0);
	catalogue_clear(&catalogue);
	add(CATALOGUE_TEMPLATES, 0, "", "{\"uriTemplate\":\"file:///{path}\"}");
	add(CATALOGUE_TEMPLATES, 1, "", "{\"uriTemplate\":\"file:///srv/{path}\"}");
	add(CATALOGUE_TEMPLATES, 2, "", "{\"uriTemplate\":\"file:///srv/{other}\"}");
	assert_int_equal(catalogue_find_template(&catalogue, slice_str("file:///srv/a"))->leg, 1);
	assert_int_equal(catalogue_find_template(&catalogue, slice_str("file:///etc"))->leg, 0);
	assert_null(catalogue_find_template(&catalogue, slice_str("http://a")));
	catalogue_clear(&catalogue);
}

static void fill(struct catalogue *some, size_t mebibytes)
{
	static char json[(1 << 20) + 20];

	memset(json, 'u', sizeof(json));
	memcpy(json, "{\"uri\":\"", 8);
	memcpy(json + sizeof(json) - 2, "\"}", 2);
	catalogue_clear(some);
	for (size_t i = 0; i < mebibytes / 2; i++) {
		json[8] = (char)('A' +
				 i); /* its URI is kept twice: as its server has it, and as shown */
		catalogue_add(some, CATALOGUE_RESOURCES, 0, slice_str(""),
			      slice_of(json, sizeof(json)));
	}
}

static void fill_and_keep(struct catalogue *some, size_t mebibytes, struct catalogues *all,
			  struct catalogue *left)
{
	struct catalogue from = { 0 };

	catalogue_clear(some->items.next == NULL ? some : &from);
	fill(&from, mebibytes);
	catalogue_trim(&from);
	catalogue_keep(some, &from, all, left);
	assert_false(some->is_known);
}

/* REL-46: one client's long lists do not take the room of all. */
static void test_room(void **state)
{
	static struct catalogue small, large[5], other[2], left;
	struct catalogues all;

	(void)state;
	catalogues_init(&all);
	fill_and_keep(&small, 4, &all, &left);
	for (size_t i = 0; i < 5; i++) { /* the long lists of one session have room together */
		fill_and_keep(&large[i], 40, &all, &left);
		assert_in_range(large[i].bytes, 9 << 20, CATALOGUE_BYTES_MAX);
		large[i].is_known = true;
	}
	assert_in_range(all.bytes, 54 << 20, 64 << 20);
	small.is_known = true;
	assert_true(list_is_empty(&left.items));
	fill_and_keep(&other[0], 8, &all, &left);
	assert_true(list_is_empty(&left.items));
	fill_and_keep(&other[1], 4, &all, &left);
	assert_false(list_is_empty(&left.items)); /* of the one that gave way */
	catalogue_clear(&left);
	assert_true(small.is_known && !small.is_forgotten && !other[1].is_forgotten);
	assert_true(large[0].is_forgotten && !large[0].is_known && list_is_empty(&large[0].items));
	assert_true(large[4].is_known && !large[4].is_forgotten);
	fill_and_keep(&other[1], 2, &all, &left);
	assert_false(list_is_empty(&left.items)); /* what it had before */
	catalogue_clear(&left);
	catalogue_clear(&small);
	for (size_t i = 0; i < 5; i++)
		catalogue_clear(&large[i]);
	catalogue_clear(&other[0]);
	catalogue_clear(&other[1]);
	assert_int_equal(all.bytes, 0);
	assert_true(list_is_empty(&all.all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_tools),
		cmocka_unit_test(test_resources),
		cmocka_unit_test(test_room),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
