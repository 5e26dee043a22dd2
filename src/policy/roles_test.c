/* SPDX-License-Identifier: Apache-2.0 */
/* What roles allow and deny, together and beside the rules of the server. SEC-56 */
#include "policy/roles.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/unit_test.h"

static const struct slice all[] = { SLICE("*") };
static const struct slice some[] = { SLICE("get_*"), SLICE("Search") };
static const struct slice others[] = { SLICE("delete_*"), SLICE("get_secret") };
static const struct slice files[] = { SLICE("res://data/*") };
static const struct slice private[] = { SLICE("res://data/Private/*") };

static const struct named_slices all_of_github[] = { { SLICE("github"), { all, 1 } } };
static const struct named_slices some_of_github[] = { { SLICE("github"), { some, 2 } } };
static const struct named_slices others_of_github[] = { { SLICE("github"), { others, 2 } } };
static const struct named_slices some_of_all[] = { { SLICE("*"), { some, 2 } } };
static const struct named_slices files_of_github[] = { { SLICE("github"), { files, 1 } } };
static const struct named_slices private_of_all[] = { { SLICE("*"), { private, 1 } } };

enum { READER, WRITER, CAREFUL, EVERYWHERE, FILES, NAMED, OF_TOKEN = NAMED };

static struct roles roles;
static struct permissions github, other;

/* The server github denies wipe_*; `other` has no rules. */
static int setup(void **state)
{
	static const struct slice wipe[] = { SLICE("wipe_*") };
	static struct role items[NAMED] = {
		[READER] = { .name = SLICE("reader"),
			     .kinds = { [PERMISSION_TOOL] = { .allow = { some_of_github, 1 } } } },
		[WRITER] = { .name = SLICE("writer"),
			     .kinds = { [PERMISSION_TOOL] = { .allow = { all_of_github, 1 } } } },
		[CAREFUL] = { .name = SLICE("careful"),
			      .kinds = { [PERMISSION_TOOL] = { .deny = { others_of_github,
									 1 } } } },
		[EVERYWHERE] = { .name = SLICE("everywhere"),
				 .kinds = { [PERMISSION_TOOL] = { .allow = { some_of_all, 1 } } } },
		[FILES] = { .name = SLICE("files"),
			    .kinds = { [PERMISSION_RESOURCE] = { { files_of_github, 1 },
								 { private_of_all, 1 } } } },
	};

	roles = (struct roles){ .count = 0 };
	for (size_t i = 0; i < NAMED; i++)
		roles_add(&roles, &items[i]);
	assert_int_equal(roles_add_of_token(&roles, 7, SLICE_LIT("ci"),
					    (struct slice_map){ some_of_github, 1 }),
			 OF_TOKEN);
	github = other = (struct permissions){ .has_rules = false };
	for (size_t i = 0; i < PERMISSION_KINDS; i++)
		github.kinds[i].allow = other.kinds[i].allow = (struct slices){ all, 1 };
	github.kinds[PERMISSION_TOOL].deny = (struct slices){ wipe, 1 };
	roles_give(&roles, SLICE_LIT("github"), &github);
	roles_give(&roles, SLICE_LIT("other"), &other);
	permissions_finish(&github);
	permissions_finish(&other);
	return 0;
}

static int teardown(void **state)
{
	permissions_free(&github);
	permissions_free(&other);
	free(roles.items);
	return 0;
}

/* Who has the roles whose bits are set. */
static struct rights rights_of(unsigned int bits)
{
	return (struct rights){ .needs_roles = true, .roles = { { bits } } };
}

static void roles_are_joined_and_deny_wins(void **state)
{
	static const struct {
		unsigned int roles;
		enum permission_kind kind;
		const char *name;
		enum permission_ground ground;
	} rows[] = {
		{ 0, PERMISSION_TOOL, "get_a", PERMISSION_NO_ROLE },
		{ 1 << READER, PERMISSION_TOOL, "get_a", PERMISSION_ALLOWED },
		{ 1 << READER, PERMISSION_TOOL, "GET_ a", PERMISSION_ALLOWED },
		{ 1 << READER, PERMISSION_TOOL, "search", PERMISSION_ALLOWED },
		{ 1 << READER, PERMISSION_TOOL, "delete_a", PERMISSION_NO_ROLE },
		{ 1 << READER, PERMISSION_TOOL, "get_\xE2\x80\x8B", PERMISSION_NO_NAME },
		{ 1 << READER, PERMISSION_PROMPT, "get_a", PERMISSION_NO_ROLE },
		{ 1 << READER, PERMISSION_RESOURCE, "res://a", PERMISSION_NO_ROLE },
		{ 1 << WRITER, PERMISSION_TOOL, "delete_a", PERMISSION_ALLOWED },
		{ 1 << WRITER, PERMISSION_TOOL, "wipe_a", PERMISSION_DENIED },
		{ 1 << CAREFUL, PERMISSION_TOOL, "get_a", PERMISSION_NO_ROLE },
		{ 1 << WRITER | 1 << CAREFUL, PERMISSION_TOOL, "x", PERMISSION_ALLOWED },
		{ 1 << WRITER | 1 << CAREFUL, PERMISSION_TOOL, "Delete_a", PERMISSION_DENIED },
		{ 1 << READER | 1 << CAREFUL, PERMISSION_TOOL, "get_secret", PERMISSION_DENIED },
		{ 1 << EVERYWHERE, PERMISSION_TOOL, "get_a", PERMISSION_ALLOWED },
		{ 1 << FILES, PERMISSION_RESOURCE, "res://data/a", PERMISSION_ALLOWED },
		{ 1 << FILES, PERMISSION_RESOURCE, "res://data/private/a", PERMISSION_DENIED },
		{ 1 << FILES, PERMISSION_RESOURCE, "res://data/x/%2e%2e/privATE/a",
		  PERMISSION_DENIED },
		{ 1 << FILES, PERMISSION_TEMPLATE, "res://data/a", PERMISSION_NO_ROLE },
		{ 1 << OF_TOKEN, PERMISSION_TOOL, "get_a", PERMISSION_ALLOWED },
		{ 1 << OF_TOKEN, PERMISSION_TOOL, "put_a", PERMISSION_NO_ROLE },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rights rights = rights_of(rows[i].roles);
		struct permission_verdict verdict =
			permissions_judge(&github, &rights, rows[i].kind, slice_str(rows[i].name));

		if (verdict.ground != rows[i].ground)
			fail_msg("row %zu: %s: %d", i, rows[i].name, verdict.ground);
	}
}

static void who_needs_no_role_has_none(void **state)
{
	const struct rights operator= { .needs_roles = false };

	assert_int_equal(permissions_judge(&github, &operator, PERMISSION_TOOL, SLICE_LIT("x"))
				 .ground,
			 PERMISSION_ALLOWED);
	assert_int_equal(permissions_judge(&other, &operator, PERMISSION_TOOL, SLICE_LIT("x"))
				 .ground,
			 PERMISSION_FREE);
	assert_true(permissions_allow_any(&github, &operator));
}

static void no_role_goes_beyond_the_server(void **state)
{
	struct permissions narrow = { .has_rules = false };
	struct rights rights = rights_of(1 << WRITER);

	for (size_t i = 0; i < PERMISSION_KINDS; i++)
		narrow.kinds[i].allow = (struct slices){ all, 1 };
	narrow.kinds[PERMISSION_TOOL].allow = (struct slices){ some, 1 };
	roles_give(&roles, SLICE_LIT("github"), &narrow);
	permissions_finish(&narrow);
	assert_true(permissions_allow(&narrow, &rights, PERMISSION_TOOL, SLICE_LIT("get_a")));
	assert_int_equal(permissions_judge(&narrow, &rights, PERMISSION_TOOL, SLICE_LIT("put_a"))
				 .ground,
			 PERMISSION_NOT_ALLOWED);
	permissions_free(&narrow);
}

static void a_role_is_for_the_servers_that_it_names(void **state)
{
	struct rights rights = rights_of(1 << WRITER | 1 << FILES);

	assert_false(permissions_allow(&other, &rights, PERMISSION_TOOL, SLICE_LIT("get_a")));
	assert_true(permissions_allow_any(&github, &rights));
	assert_false(permissions_allow_any(&other, &rights));
	rights = rights_of(1 << CAREFUL);
	assert_false(permissions_allow_any(&github, &rights));
	rights = rights_of(1 << EVERYWHERE);
	assert_true(permissions_allow_any(&other, &rights));
}

static void rules_are_told(void **state)
{
	static const struct {
		unsigned int roles;
		enum permission_kind kind;
		const char *name;
		const char *rule;
	} rows[] = {
		{ 1 << READER, PERMISSION_TOOL, "search", "roles.reader.allow.github[1]" },
		{ 1 << WRITER | 1 << CAREFUL, PERMISSION_TOOL, "get_secret",
		  "roles.careful.deny.github[1]" },
		{ 1 << FILES, PERMISSION_RESOURCE, "res://data/private/x",
		  "roles.files.resources.deny.*[0]" },
		{ 1 << OF_TOKEN, PERMISSION_TOOL, "get_a", "auth.tokens[7].tools.github[0]" },
		{ 1 << OF_TOKEN, PERMISSION_TOOL, "put_a", "auth.tokens[7].tools.github" },
		{ 1 << FILES, PERMISSION_RESOURCE, "res://other",
		  "roles.files.resources.allow.github" },
		{ 1 << FILES, PERMISSION_PROMPT, "p", "roles.files" }, /* without an allow */
		{ 1 << READER | 1 << FILES, PERMISSION_TOOL, "put_a", "roles" },
		{ 1 << WRITER, PERMISSION_TOOL, "wipe_a", "servers.github.tools.deny[0]" },
		{ 1 << WRITER, PERMISSION_TOOL, "a\xff", "servers.github.tools.allow" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rights rights = rights_of(rows[i].roles);
		struct permission_verdict verdict =
			permissions_judge(&github, &rights, rows[i].kind, slice_str(rows[i].name));
		struct rule rule = permission_rule(rows[i].kind, &verdict);
		struct buf text = { 0 };

		rule_append(&rule, SLICE_LIT("github"), &text);
		assert_string_equal(buf_terminate(&text), rows[i].rule);
		buf_fini(&text);
	}
}

static void roles_are_found_by_name(void **state)
{
	assert_int_equal(roles_find(&roles, SLICE_LIT("careful")), CAREFUL);
	assert_int_equal(roles_find(&roles, SLICE_LIT("Careful")), ROLES_MAX);
	assert_int_equal(roles_find(&roles, SLICE_LIT("ci")), ROLES_MAX);
}

/* A full table takes no more: nothing is given instead. */
static void there_is_no_role_beyond_the_last(void **state)
{
	struct roles many = { .count = 0 };

	for (size_t i = 0; i <= ROLES_MAX; i++)
		assert_int_equal(roles_add_of_token(&many, i, SLICE_LIT("t"),
						    (struct slice_map){ NULL, 0 }),
				 i);
	assert_int_equal(many.count, ROLES_MAX);
	assert_true(many.lacks_some);
	free(many.items);
}

/* What holds a number from before a reload must not get another role's rights. */
static void numbers_stay_what_they_were(void **state)
{
	static const struct slice values[] = { SLICE("dev"), SLICE("ops") };
	static const struct named_slices dev = { SLICE("groups"), { values, 1 } };
	static const struct named_slices ops = { SLICE("groups"), { values + 1, 1 } };
	const struct slice_map none = { NULL, 0 };
	struct roles first = { .count = 0 }, second = { .count = 0 }, third = { .count = 0 };

	roles_add(&first, &(struct role){ .name = SLICE("a"), .when = { &dev, 1 } });
	roles_add(&first, &(struct role){ .name = SLICE("b"), .when = { &dev, 1 } });
	roles_add(&first, &(struct role){ .name = SLICE("c"), .when = { &dev, 1 } });
	assert_int_equal(roles_add_of_token(&first, 0, SLICE_LIT("ci"), none), 3);
	roles_keep_numbers(&second, &first);
	roles_add(&second, &(struct role){ .name = SLICE("new"), .when = { &dev, 1 } });
	roles_add(&second, &(struct role){ .name = SLICE("c"), .when = { &dev, 1 } });
	roles_add(&second, &(struct role){ .name = SLICE("b"), .when = { &ops, 1 } });
	assert_int_equal(second.named, 3);
	assert_int_equal(roles_find(&second, SLICE_LIT("a")), ROLES_MAX);
	assert_int_equal(roles_find(&second, SLICE_LIT("c")), 2);
	assert_int_equal(roles_find(&second, SLICE_LIT("new")), 4);
	/* Others have it now. */
	assert_int_equal(roles_find(&second, SLICE_LIT("b")), 5);
	assert_int_equal(roles_add_of_token(&second, 0, SLICE_LIT("ci"), none), 3);
	/* One that comes again begins anew. */
	roles_keep_numbers(&third, &second);
	roles_add(&third, &(struct role){ .name = SLICE("a"), .when = { &dev, 1 } });
	assert_int_equal(roles_find(&third, SLICE_LIT("a")), 6);
	/* One that is written down is not that of a token with its name. */
	roles_add(&third, &(struct role){ .name = SLICE("ci") });
	assert_int_equal(roles_find(&third, SLICE_LIT("ci")), 7);
	free(first.items);
	free(second.items);
	free(third.items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(roles_are_joined_and_deny_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(who_needs_no_role_has_none, setup, teardown),
		cmocka_unit_test_setup_teardown(a_role_is_for_the_servers_that_it_names, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_role_goes_beyond_the_server, setup, teardown),
		cmocka_unit_test_setup_teardown(rules_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(roles_are_found_by_name, setup, teardown),
		cmocka_unit_test(there_is_no_role_beyond_the_last),
		cmocka_unit_test(numbers_stay_what_they_were),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
