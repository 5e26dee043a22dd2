/* SPDX-License-Identifier: Apache-2.0 */
/* What rules are called, and where they stand. SEC-63 */
#include "policy/rule.h"

#include "base/mem.h"
#include "base/unit_test.h"

static struct rule_places places;

static int end(void **state)
{
	rule_places_free(&places);
	return 0;
}

static const struct rule denied = { .key = RULE_TOOLS_DENY, .has_entry = true, .entry = 2 };
static const struct rule pattern = { .key = RULE_DENY_PATTERNS,
				     .member = SLICE("run_*.x"),
				     .has_entry = true,
				     .entry = 1 };
static const struct rule of_role = { .key = RULE_ROLE_PROMPTS_DENY,
				     .name = SLICE("dev"),
				     .member = SLICE("*"),
				     .has_entry = true };
static const struct rule of_token = { .key = RULE_TOKEN_TOOLS,
				      .number = 3,
				      .member = SLICE("main") };

static const struct rule none = { .key = RULE_NONE };

static void rules_have_the_name_of_their_key(void **state)
{
	static const struct {
		const struct rule *rule;
		const char *name;
	} rows[] = {
		{ &denied, "servers.main.tools.deny[2]" },
		{ &pattern, "servers.main.tools.arguments.deny_patterns.run_*.x[1]" },
		{ &of_role, "roles.dev.prompts.deny.*[0]" },
		{ &of_token, "auth.tokens[3].tools.main" },
		{ &none, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf text = { 0 };

		rule_append(rows[i].rule, SLICE_LIT("main"), &text);
		assert_string_equal(buf_terminate(&text), rows[i].name);
		buf_fini(&text);
	}
}

static void add(const char *key, const char *file, unsigned int line)
{
	rule_places_add(&places, slice_str(key), slice_str(file), line);
}

static void assert_at(const struct rule *rule, const char *expected)
{
	struct buf text = { 0 };
	bool is_known = rule_places_append(&places, rule, SLICE_LIT("main"), &text);

	assert_string_equal(buf_terminate(&text), expected);
	assert_int_equal(is_known, text.len > 0);
	buf_fini(&text);
}

static void the_nearest_that_is_known_is_told(void **state)
{
	assert_at(&denied, "");
	add("defaults.tools.deny", "a.yaml", 5);
	add("servers.main.tools", "a.yaml", 70); /* not a rule, and not the place of one */
	rule_places_finish(&places);
	assert_at(&denied, "a.yaml:5");
	assert_at(&pattern, "");
	add("defaults.tools.deny[2]", "a.yaml", 6);
	add("servers.main", "b.yaml", 1);
	rule_places_finish(&places);
	assert_at(&denied, "a.yaml:6");
	assert_at(&pattern, "b.yaml:1");
	add("servers.main.tools.deny", "b.yaml", 2);
	add("servers.main.tools.arguments.deny_patterns", "b.yaml", 9);
	rule_places_finish(&places);
	assert_at(&denied, "b.yaml:2");
	assert_at(&pattern, "b.yaml:9");
	add("servers.main.tools.deny[2]", "b.yaml", 4);
	add("servers.main.tools.arguments.deny_patterns.run_*.x", "b.yaml", 10);
	add("roles.dev", "a.yaml", 20);
	add("roles.main", "a.yaml", 21);
	rule_places_finish(&places);
	assert_at(&denied, "b.yaml:4");
	assert_at(&pattern, "b.yaml:10");
	assert_at(&of_role, "a.yaml:20");
	assert_at(&of_token, "");
	assert_at(&none, "");
}

static void they_are_the_same_when_they_are_read_again(void **state)
{
	struct rule_places again = { .items = NULL };
	struct buf first = { 0 }, second = { 0 };

	for (unsigned int i = 1; i < 100; i++) {
		char key[40];

		snprintf(key, sizeof(key), "servers.s%u.tools.deny[0]", i * 37 % 100);
		add(key, i % 3 == 0 ? "/etc/a file" : "b", i);
	}
	rule_places_finish(&places);
	rule_places_write(&places, &first);
	rule_places_read(&again, buf_slice(&first));
	assert_int_equal(again.count, 99);
	rule_places_write(&again, &second);
	assert_string_equal(buf_terminate(&first), buf_terminate(&second));
	rule_places_free(&again);
	buf_fini(&first);
	buf_fini(&second);
}

static void what_is_no_place_is_left_out(void **state)
{
	char long_key[RULE_PLACE_KEY_MAX + 2];

	memset(long_key, 'k', sizeof(long_key));
	long_key[RULE_PLACE_KEY_MAX + 1] = '\0';
	add(long_key, "f", 1);
	add("a\nb", "f", 1);
	add("a", "f\n9 b", 1);
	add("a", "f", 0);
	add("", "f", 1);
	assert_int_equal(places.count, 0);
	long_key[RULE_PLACE_KEY_MAX] = '\0';
	add(long_key, "f", 1);
	assert_int_equal(places.count, 1);
	rule_places_read(&places, SLICE_LIT("7 before.any.file\n@f\nx y\n-1 k\n4294967296 k\n8\n"
					    "\n 9 k\n12 the.key with space\n@\n1 k\n@g\n5 last"));
	assert_int_equal(places.count, 3);
	assert_int_equal(places.items[2].line, 12);
	assert_true(slice_is_equal(places.items[2].key, SLICE_LIT("the.key with space")));
	assert_int_equal(places.items[1].line, 5);
}

static void there_is_room_for_so_many(void **state)
{
	char text[64];

	for (unsigned int i = 0; i < RULE_PLACES_MAX + 10; i++) {
		snprintf(text, sizeof(text), "k%u", i);
		add(text, "f", 1);
	}
	assert_int_equal(places.count, RULE_PLACES_MAX);
	rule_places_free(&places);
	for (unsigned int i = 0; i < RULE_PLACE_FILES_MAX + 10; i++) {
		snprintf(text, sizeof(text), "file%u", i);
		add(text, text, 1);
	}
	assert_int_equal(places.count, RULE_PLACE_FILES_MAX);
	assert_int_equal(places.file_count, RULE_PLACE_FILES_MAX);
}

static void of_a_long_name_the_end_is_told(void **state)
{
	char name[] =
		"/home/somebody/a directory with a long name/\xc3\xa4nother one that is not shorter"
		"/and one more/mcpgated.yaml";
	char *expected;

	add("servers.main.tools.deny[2]", name, 3);
	assert_int_equal(strlen(places.files[0]), RULE_PLACE_FILE_MAX);
	expected = mem_printf("%s:3", name + strlen(name) - RULE_PLACE_FILE_MAX);
	assert_at(&denied, expected);
	free(expected);
	/* A character that would be cut is left out. */
	add("x", name + 1, 3);
	memset(name, 'x', 46);
	name[strlen(name) - RULE_PLACE_FILE_MAX] = '\xa4';
	name[strlen(name) - RULE_PLACE_FILE_MAX - 1] = '\xc3';
	add("y", name, 3);
	assert_int_equal(strlen(places.files[1]), RULE_PLACE_FILE_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_have_the_name_of_their_key),
		cmocka_unit_test_teardown(the_nearest_that_is_known_is_told, end),
		cmocka_unit_test_teardown(they_are_the_same_when_they_are_read_again, end),
		cmocka_unit_test_teardown(what_is_no_place_is_left_out, end),
		cmocka_unit_test_teardown(there_is_room_for_so_many, end),
		cmocka_unit_test_teardown(of_a_long_name_the_end_is_told, end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
