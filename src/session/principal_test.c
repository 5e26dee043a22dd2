/* SPDX-License-Identifier: Apache-2.0 */
/* Identities alone: equal ones are one pointer, others never, and nothing stays behind. */
#include "session/principal.h"

#include "base/check.h"
#include "base/unit_test.h"

static struct principal_set set;

static int setup(void **state)
{
	principal_set_init(&set);
	return 0;
}

static int teardown(void **state)
{
	return set.by_key.count != 0 || set.by_key.slots != NULL || set.anonymous.refs != 1;
}

static struct principal *get(struct slice issuer, struct slice subject, struct slice client)
{
	const struct identity identity = { issuer, subject, client };

	return principal_get(&set, &identity);
}

/* Nobody outside can tell which keys fall together. */
static void seeds_are_secret(void **state)
{
	struct principal_set other;

	principal_set_init(&other);
	assert_true(other.seed != set.seed);
}

/* AUTH-SES-01 */
static void equal_identities_are_one_pointer(void **state)
{
	struct principal *a = get(SLICE_LIT("i"), SLICE_LIT("s"), SLICE_LIT("c"));
	struct principal *b = get(SLICE_LIT("i"), SLICE_LIT("s"), SLICE_LIT("c"));

	assert_ptr_equal(a, b);
	assert_false(principal_is_anonymous(a));
	principal_unref(&a);
	assert_null(a);
	assert_true(slice_is_equal(b->identity.subject, SLICE_LIT("s")));
	principal_unref(&b);
	principal_unref(&b);
}

/* AUTH-SES-01, AUTH-JWT-14: where one part ends and the next begins matters, and so does a NUL. */
static void other_identities_are_others(void **state)
{
	struct principal *all[] = {
		get(SLICE_LIT("i"), SLICE_LIT("ab"), SLICE_LIT("c")),
		get(SLICE_LIT("i"), SLICE_LIT("a"), SLICE_LIT("bc")),
		get(SLICE_LIT("ia"), SLICE_LIT("b"), SLICE_LIT("c")),
		get(SLICE_LIT("i"), SLICE_LIT("ab"), SLICE_LIT("")),
		get(SLICE_LIT("i"), SLICE_LIT("ab\0"), SLICE_LIT("c")),
		get(SLICE_LIT(""), SLICE_LIT("ab"), SLICE_LIT("c")),
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		for (size_t j = 0; j < i; j++)
			assert_ptr_not_equal(all[i], all[j]);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		principal_unref(&all[i]);
}

/* AUTH-DWN-02, -03: of the last token, by name; what no server may be told is none. */
static void claims_are_those_of_the_last_token(void **state)
{
	static const struct slice names[] = { SLICE("sub"), SLICE("team") };
	struct principal *a, *b;

	set.claim_names = (struct slices){ names, 2 };
	a = get(SLICE_LIT("i"), SLICE_LIT("a"), SLICE_LIT(""));
	b = get(SLICE_LIT("i"), SLICE_LIT("b"), SLICE_LIT(""));
	assert_null(principal_claim(a, SLICE_LIT("sub")));
	principal_set_claim(a, 0, SLICE_LIT("alice"));
	principal_set_claim(a, 0, SLICE_LIT("alice"));
	assert_string_equal(principal_claim(a, SLICE_LIT("sub")), "alice");
	assert_null(principal_claim(a, SLICE_LIT("team")));
	assert_null(principal_claim(b, SLICE_LIT("sub")));
	principal_set_claim(a, 0, SLICE_LIT("a\n"));
	assert_null(principal_claim(a, SLICE_LIT("sub")));
	principal_set_claim(a, 1, SLICE_LIT("t"));
	principal_set_claim(a, 1, (struct slice){ NULL, 0 });
	assert_null(principal_claim(a, SLICE_LIT("team")));
	principal_set_claim(a, 1, SLICE_LIT("kept to the end"));
	principal_unref(&a);
	principal_unref(&b);
}

static struct principal *numbered(int i)
{
	char name[16];
	int n = snprintf(name, sizeof(name), "%d", i);

	return get(SLICE_LIT("i"), slice_of(name, (size_t)n), SLICE_LIT(""));
}

static void many_come_and_go(void **state)
{
	struct principal *all[500];

	for (int i = 0; i < 500; i++)
		all[i] = numbered(i);
	for (int i = 0; i < 500; i += 2)
		principal_unref(&all[i]);
	for (int i = 1; i < 500; i += 2) {
		struct principal *again = numbered(i);

		assert_ptr_equal(again, all[i]);
		principal_unref(&again);
		principal_unref(&all[i]);
	}
}

/* Identities whose hash is equal stand in one chain: first, middle and last of it are found and removed. */
static void equal_keys_are_told_apart(void **state)
{
	struct principal *a = get(SLICE_LIT("i"), SLICE_LIT("a"), SLICE_LIT(""));
	struct principal *b = get(SLICE_LIT("i"), SLICE_LIT("b"), SLICE_LIT(""));
	struct principal *c = get(SLICE_LIT("i"), SLICE_LIT("c"), SLICE_LIT(""));
	struct principal *again;

	map_remove_link(&set.by_key, &b->by_key);
	map_remove_link(&set.by_key, &c->by_key);
	map_insert_link(&set.by_key, a->by_key.key, &b->by_key);
	map_insert_link(&set.by_key, a->by_key.key, &c->by_key);
	principal_unref(&b);
	assert_ptr_equal(c->by_key.next, &a->by_key);
	again = get(SLICE_LIT("i"), SLICE_LIT("a"), SLICE_LIT(""));
	assert_ptr_equal(again, a);
	principal_unref(&again);
	principal_unref(&a);
	assert_int_equal(set.by_key.count, 1);
	principal_unref(&c);
}

static void anonymous_stays(void **state)
{
	struct principal *anonymous = principal_ref(&set.anonymous);

	assert_true(principal_is_anonymous(anonymous));
	principal_unref(&anonymous);
	assert_int_equal(set.anonymous.refs, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(equal_identities_are_one_pointer),
	TEST(other_identities_are_others),
	TEST(claims_are_those_of_the_last_token),
	TEST(many_come_and_go),
	TEST(equal_keys_are_told_apart),
	TEST(anonymous_stays),
	TEST(seeds_are_secret),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
