/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of what is subscribed to, held against a plain list. Its hash is replaced by one that nearly all texts have
 * in common: what the real one hides is then on every path.
 */
#include "router/subscriptions.h"

#include "base/text.h"
#include "base/unit_test.h"

static size_t hashed; /* bytes */

static uint64_t weak_hash(uint64_t hash, struct slice text)
{
	hashed += text.n;
	for (size_t i = 0; i < text.n; i++)
		hash += (unsigned char)text.p[i];
	return hash % 8;
}

#define text_hash weak_hash
#include "router/subscriptions.c"
#undef text_hash

static struct subscriptions subscriptions;

static int setup(void **state)
{
	subscriptions_init(&subscriptions);
	return 0;
}

static int teardown(void **state)
{
	subscriptions_fini(&subscriptions);
	return 0;
}

static void add(const char *uri)
{
	subscriptions_add(&subscriptions, slice_str(uri), NULL);
}

static bool concern(const char *uri)
{
	return subscriptions_concern(&subscriptions, slice_str(uri));
}

/* UTIL-SUBS-01: the URI itself, or one above it. */
static void what_is_above_concerns(void **state)
{
	assert_false(concern("res://a"));
	add("res://a");
	assert_true(concern("res://a"));
	assert_true(concern("res://a/"));
	assert_true(concern("res://a/b/c"));
	assert_false(concern("res://ab"));
	assert_false(concern("res://"));
	assert_false(concern(""));
	add("dir/");
	assert_true(concern("dir/x"));
	assert_true(concern("dir/"));
	assert_false(concern("dir"));
	subscriptions_remove(&subscriptions,
			     subscriptions_find(&subscriptions, SLICE_LIT("res://a")));
	assert_false(concern("res://a/b"));
	assert_true(concern("dir/x"));
}

static unsigned int random_state = 7;

static unsigned int any(unsigned int below)
{
	random_state = random_state * 1103515245 + 12345;
	return (random_state >> 16) % below;
}

static struct slice any_uri(char out[8])
{
	size_t n = 1 + any(7);

	for (size_t i = 0; i < n; i++)
		out[i] = "ab//"[any(4)];
	return slice_of(out, n);
}

static bool is_above(struct slice parent, struct slice uri)
{
	return slice_has_prefix(uri, parent) &&
	       (uri.n == parent.n || parent.p[parent.n - 1] == '/' || uri.p[parent.n] == '/');
}

static void check(struct slice uri)
{
	bool is_there = false;
	size_t lengths[2] = { 0, 0 };
	size_t above = 0;
	size_t bytes = 0;

	LIST_FOREACH(node, &subscriptions.all) {
		struct slice subscription =
			subscription_uri(container_of(node, struct subscription, link));

		is_there |= slice_is_equal(subscription, uri);
		above += is_above(subscription, uri);
		bytes += subscription.n;
	}
	assert_int_equal(subscriptions_find(&subscriptions, uri) != NULL, is_there);
	assert_int_equal(subscriptions_concern(&subscriptions, uri), above > 0);
	assert_int_equal(subscriptions_find_above(&subscriptions, uri, lengths, 2), above);
	for (size_t i = 0; i < above && i < 2; i++)
		assert_non_null(subscriptions_find(&subscriptions, slice_of(uri.p, lengths[i])));
	assert_int_equal(subscriptions.bytes, bytes);
}

static void it_is_as_a_list(void **state)
{
	char text[8];

	for (int i = 0; i < 20000; i++) {
		struct slice uri = any_uri(text);
		struct subscription *subscription = subscriptions_find(&subscriptions, uri);

		if (subscription != NULL)
			subscriptions_remove(&subscriptions, subscription);
		else if (subscriptions.count < 20)
			subscriptions_add(&subscriptions, uri, NULL);
		check(any_uri(text));
	}
	assert_in_range(subscriptions.count, 5, 20);
}

/* REL-54: what a server names is read no further than a subscription can reach. */
static void what_is_long_costs_no_more(void **state)
{
	static char uri[1 << 20];

	memset(uri, '/', sizeof(uri));
	add("a/b");
	add("///");
	hashed = 0;
	assert_true(subscriptions_concern(&subscriptions, slice_of(uri, sizeof(uri))));
	assert_int_equal(hashed, 3);
	subscriptions_remove(&subscriptions, subscriptions_find(&subscriptions, SLICE_LIT("///")));
	assert_false(subscriptions_concern(&subscriptions, slice_of(uri, sizeof(uri))));
}

/* The URI itself, or one below it in its path. */
static void what_is_within_another(void **state)
{
	static const struct {
		const char *uri, *parent;
		bool is_within;
	} rows[] = {
		{ "r://a", "r://a", true },
		{ "r://a/b", "r://a", true },
		{ "dir/x", "dir/", true },
		{ "dir/", "dir/", true },
		{ "r://ab", "r://a", false },
		{ "r://b", "r://a", false },
		{ "r://", "r://a", false },
		{ "x", "", false },
		{ "", "", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (subscriptions_is_within(slice_str(rows[i].uri), slice_str(rows[i].parent)) !=
		    rows[i].is_within)
			fail_msg("%s in %s", rows[i].uri, rows[i].parent);
}

static void there_is_only_so_much_room(void **state)
{
	assert_true(subscriptions_have_room(&subscriptions, SUBSCRIPTIONS_BYTES_MAX));
	assert_false(subscriptions_have_room(&subscriptions, SUBSCRIPTIONS_BYTES_MAX + 1));
	add("abc");
	assert_true(subscriptions_have_room(&subscriptions, SUBSCRIPTIONS_BYTES_MAX - 3));
	assert_false(subscriptions_have_room(&subscriptions, SUBSCRIPTIONS_BYTES_MAX - 2));
	subscriptions.count = SUBSCRIPTIONS_MAX;
	assert_false(subscriptions_have_room(&subscriptions, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(what_is_above_concerns),     TEST(it_is_as_a_list),
	TEST(what_is_long_costs_no_more), TEST(there_is_only_so_much_room),
	TEST(what_is_within_another),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
