/* SPDX-License-Identifier: Apache-2.0 */
/* Who is one and the same holder. All have one key in the table, so that every part is compared. */
#include "session/principal.h"

#include "base/unit_test.h"

#define map_find_link(map, key) map_find_link(map, 0 * (key))
#define map_insert_link(map, key, link) map_insert_link(map, 0 * (key), link)
#include "session/principal.c"
#undef map_find_link
#undef map_insert_link

static struct holder_set holders;
static struct principal_set principals;
static struct principal *alice, *bob;
static const int one_scope, other_scope;

static int setup(void **state)
{
	static const struct identity a = { .issuer = SLICE("i"), .subject = SLICE("alice") };
	static const struct identity b = { .issuer = SLICE("i"), .subject = SLICE("bob") };

	holder_set_init(&holders);
	principal_set_init(&principals);
	alice = principal_get(&principals, &a);
	bob = principal_get(&principals, &b);
	return 0;
}

static int teardown(void **state)
{
	principal_unref(&alice);
	principal_unref(&bob);
	assert_int_equal(holders.by_key.count, 0);
	return 0;
}

static struct peer peer_at(const char *address)
{
	struct peer peer = { .family = 0 };

	if (address != NULL)
		assert_true(peer_parse(slice_str(address), &peer));
	return peer;
}

static struct holder *get(const void *scope, const struct principal *principal, const char *address)
{
	const struct peer peer = peer_at(address);

	return holder_get(&holders, scope, principal, &peer);
}

/* Whether nobody in particular is the same at both addresses. */
static bool is_one(const char *one, const char *other)
{
	struct holder *a = get(&one_scope, &principals.anonymous, one);
	struct holder *b = get(&one_scope, &principals.anonymous, other);
	bool result = a == b;

	holder_unref(&a);
	holder_unref(&b);
	return result;
}

static void callers_without_a_name_are_told_by_address(void **state)
{
	assert_true(is_one("192.0.2.1", "192.0.2.1"));
	assert_false(is_one("192.0.2.1", "192.0.2.2"));
	assert_false(is_one("192.0.2.1", "193.0.2.1"));
	assert_true(is_one("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"));
	assert_false(is_one("2001:db8:1:2::1", "2001:db8:1:3::1"));
	assert_true(is_one(NULL, NULL)); /* of a unix socket */
	assert_false(is_one("192.0.2.1", NULL));
	/* The network has the same bytes as the address. */
	assert_false(is_one("1.2.3.4", "0:0:102:304::1"));
	assert_false(is_one("0.0.0.0", NULL));
}

static void others_are_who_they_are_anywhere(void **state)
{
	struct holder *hers = get(&one_scope, alice, "192.0.2.1");
	struct holder *again = get(&one_scope, alice, "2001:db8::1");
	struct holder *his = get(&one_scope, bob, "192.0.2.1");
	struct holder *elsewhere = get(&other_scope, alice, "192.0.2.1");

	assert_ptr_equal(hers, again);
	assert_ptr_not_equal(hers, his);
	assert_ptr_not_equal(hers, elsewhere);
	hers->count = 3;
	assert_int_equal(his->count + elsewhere->count, 0);
	holder_unref(&his);
	holder_unref(&again);
	assert_null(again);
	again = get(&one_scope, alice, NULL);
	assert_int_equal(again->count, 3); /* somebody still had it */
	hers->count = 0;
	holder_unref(&again);
	holder_unref(&hers);
	hers = get(&one_scope, alice, NULL);
	assert_int_equal(hers->count, 0);
	holder_unref(&hers);
	holder_unref(&elsewhere);
	holder_unref(&elsewhere); /* of nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(callers_without_a_name_are_told_by_address, setup,
						teardown),
		cmocka_unit_test_setup_teardown(others_are_who_they_are_anywhere, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
