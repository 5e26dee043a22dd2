/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever names come: as many series as there may be, and every call in one of them. */
#include "process/call_stats.h"

#include "base/check.h"
#include "base/unit_test.h"

static struct call_stats stats;
static size_t series_count;
static uint64_t ended;

static int teardown(void **state)
{
	call_stats_fini(&stats);
	return 0;
}

static void count(const struct call_series *series, void *arg)
{
	series_count++;
	for (size_t i = 0; i < CALL_STATUSES; i++)
		ended += series->ended[i];
}

static void tally(void)
{
	series_count = 0;
	ended = 0;
	call_stats_visit(&stats, count, NULL);
}

static struct call_series *call_tool(const char *tool)
{
	struct call_series *series =
		call_stats_get(&stats, method_find(SLICE_LIT("tools/call")), slice_str(tool));

	call_series_end(series, CALL_OK, REASON_NONE, 1, 1);
	return series;
}

static void listed_tools_have_their_own(void **state)
{
	struct call_series *other = call_tool("a"), *own;

	assert_true(slice_is_equal(other->tool, SLICE_LIT("other")));
	call_stats_note_tool(&stats, SLICE_LIT("a"));
	own = call_tool("a");
	assert_ptr_not_equal(own, other);
	assert_true(slice_is_equal(own->tool, SLICE_LIT("a")));
	call_stats_note_tool(&stats, SLICE_LIT("a"));
	assert_ptr_equal(call_tool("a"), own);
	assert_ptr_equal(call_tool("b"), other);
	assert_ptr_equal(call_tool(""), other);
	assert_int_equal(own->ended[CALL_OK], 2);
	assert_int_equal(own->duration.count, 2);
	tally();
	assert_int_equal(series_count, 2);
}

static void names_are_bounded(void **state)
{
	char name[CALL_STATS_NAME_BYTES + 2];
	const struct call_series *first;

	memset(name, 'x', sizeof(name));
	name[CALL_STATS_NAME_BYTES + 1] = '\0';
	call_stats_note_tool(&stats, slice_str(name));
	call_stats_note_tool(&stats, SLICE_LIT(""));
	call_stats_note_tool(&stats, SLICE_LIT("other"));
	assert_int_equal(stats.tool_count, 0);
	name[CALL_STATS_NAME_BYTES] = '\0';
	call_stats_note_tool(&stats, slice_str(name));
	assert_int_equal(stats.tool_count, 1);
	first = call_tool(name);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "tool-%d", i);
		call_stats_note_tool(&stats, slice_str(name));
		call_tool(name);
	}
	assert_false(call_stats_has_room(&stats));
	tally();
	assert_int_equal(series_count, CALL_STATS_TOOLS + 1);
	assert_int_equal(ended, 1001);
	assert_int_equal(first->ended[CALL_OK], 1);
}

/* Of methods that MCP does not have there is one series. */
static void methods_are_bounded(void **state)
{
	static const char *const names[] = { "ping", "x/y", "z", "tasks/get", "" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		call_series_end(call_stats_get(&stats, method_find(slice_str(names[i])),
					       slice_of(NULL, 0)),
				CALL_FAILED, REASON_TIMEOUT, i, 1);
	tally();
	assert_int_equal(series_count, 3);
	assert_int_equal(ended, 5);
	assert_int_equal(stats.methods[0]->failed[REASON_TIMEOUT], 3);
	assert_true(slice_is_equal(stats.methods[0]->method, SLICE_LIT("other")));
}

static void refusals_are_counted_by_word(void **state)
{
	static const char *const words[] = { "no_token", "", "no_token", "malformed", "" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		call_stats_note_refusal(&stats, words[i]);
	assert_int_equal(stats.refused_count, 3);
	assert_string_equal(stats.refused[0].word, "no_token");
	assert_int_equal(stats.refused[0].count, 2);
	assert_string_equal(stats.refused[1].word, "other");
	assert_int_equal(stats.refused[1].count, 2);
	assert_int_equal(stats.refused[2].count, 1);
}

#define TEST(function) cmocka_unit_test_teardown(function, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(listed_tools_have_their_own),
		TEST(names_are_bounded),
		TEST(methods_are_bounded),
		TEST(refusals_are_counted_by_word),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
