/* SPDX-License-Identifier: Apache-2.0 */
/* AUTH-SCP-04, AUTH-SCP-10 */
#include "policy/rights.h"

#include "base/unit_test.h"

static struct scope_table table;
static char texts[SCOPES_MAX + 1][8];

static struct slice name(size_t number)
{
	return slice_str(texts[number]);
}

/* A table with all the scopes that there is room for; returns them. */
static struct scope_set fill(void)
{
	struct scope_set all = { { 0 } };

	table = (struct scope_table){ .count = 0 };
	for (size_t i = 0; i <= SCOPES_MAX; i++)
		(void)snprintf(texts[i], sizeof(texts[i]), "s%zu", i);
	for (size_t i = 0; i < SCOPES_MAX; i++)
		scope_table_add(&table, name(i), &all);
	return all;
}

/* Each counts, whatever its number; one that there is no room for is held by nobody. */
static void each_scope_counts(void **state)
{
	struct scope_set all = fill(), none = { { 0 } }, nobodys = none;

	for (size_t i = 0; i < SCOPES_MAX; i++) {
		struct scope_set needed = { { 0 } }, others = all;

		scope_table_find(&table, name(i), &needed);
		others.words[i / 64] &= ~needed.words[i / 64];
		assert_false(scope_set_is_empty(&needed));
		assert_true(scope_set_covers(&all, &needed));
		assert_true(scope_set_covers(&needed, &needed));
		assert_false(scope_set_covers(&others, &needed));
		assert_false(scope_set_covers(&none, &needed));
	}
	assert_false(table.lacks_some);
	scope_table_find(&table, name(SCOPES_MAX), &nobodys);
	scope_table_add(&table, name(SCOPES_MAX), &nobodys);
	assert_true(scope_set_is_empty(&nobodys));
	assert_true(table.lacks_some);
}

/* Over any number of steps, also in a circle, and in one direction. */
static void scopes_imply_others(void **state)
{
	struct scope_set held = { { 0 } }, wanted = { { 0 } }, closed;
	struct buf text = { 0 };

	(void)fill();
	scope_table_imply(&table, name(200), name(100));
	scope_table_imply(&table, name(100), name(7));
	scope_table_imply(&table, name(7), name(200));
	scope_table_imply(&table, name(8), name(7));
	scope_table_add(&table, name(100), &held);
	scope_table_add(&table, name(200), &wanted);
	assert_false(scope_set_covers(&held, &wanted));
	closed = scope_table_close(&table, &held);
	assert_true(scope_set_covers(&closed, &wanted));
	scope_table_append(&table, &closed, &text);
	assert_string_equal(buf_terminate(&text), "s7 s100 s200");
	assert_true(scope_table_implies(&table, name(8), name(200)));
	assert_false(scope_table_implies(&table, name(200), name(8)));
	assert_false(scope_table_implies(&table, name(200), name(SCOPES_MAX)));
	buf_fini(&text);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(each_scope_counts),
	cmocka_unit_test(scopes_imply_others),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
