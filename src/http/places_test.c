/* SPDX-License-Identifier: Apache-2.0 */
/* Who gives way: items that hold places of several addresses, and leave, or come into use, when they are asked to. */
#include "http/places.h"

#include <sys/socket.h>

#include "base/unit_test.h"

#define MAX 16
#define MANY 4000

struct item {
	struct conn_place place;
	int number;
	bool is_awake; /* it comes into use instead of leaving */
};

static struct places places;
static struct peer_net proxy;
static struct http_trust trust = { &proxy, 1 };
static struct item items[MANY];
static int item_count;
static int left[MANY]; /* their numbers, in order */
static int left_count;

static void item_give_way(struct conn_place *place)
{
	struct item *item = container_of(place, struct item, place);

	if (item->is_awake) {
		place_set_use(place, PLACE_USED);
		return;
	}
	left[left_count++] = item->number;
	place_leave(place);
}

static struct peer peer_at(const char *address)
{
	struct peer peer = { 0 };

	if (strcmp(address, "unix") != 0)
		assert_true(peer_parse(slice_str(address), &peer));
	return peer;
}

/* NULL: it was turned away. */
static struct item *come(const char *address)
{
	struct item *item = &items[item_count];
	const struct peer peer = peer_at(address);

	if (places_make_room(&places, &peer) != NULL)
		return NULL;
	item->number = item_count++;
	place_enter(&item->place, &places, &peer, item_give_way);
	return item;
}

static void come_all(const char *address, int count, enum place_use use)
{
	for (int i = 0; i < count; i++) {
		struct item *item = come(address);

		assert_non_null(item);
		place_set_use(&item->place, use);
	}
}

static void start(uint64_t max)
{
	memset(items, 0, sizeof(items));
	item_count = left_count = 0;
	places_init(&places, max, &trust);
}

static int setup(void **state)
{
	assert_true(peer_net_parse(SLICE_LIT("10.0.0.1"), &proxy));
	start(MAX);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < item_count; i++)
		place_leave(&items[i].place);
	places_fini(&places);
	return 0;
}

static void the_longest_wait_goes_first(void **state)
{
	come_all("127.0.0.1", MAX, PLACE_FRESH);
	place_set_use(&items[0].place, PLACE_USED);
	place_set_use(&items[0].place, PLACE_FRESH); /* its wait has begun anew */
	for (int i = 1; i < MAX; i++) {
		assert_non_null(come("127.0.0.1"));
		assert_int_equal(left[i - 1], i);
	}
	assert_non_null(come("127.0.0.1"));
	assert_int_equal(left[MAX - 1], 0);
	assert_int_equal(places.count, MAX);
}

static void what_is_used_stays(void **state)
{
	come_all("127.0.0.1", MAX, PLACE_USED);
	assert_null(come("127.0.0.1"));
	assert_null(come("192.0.2.1"));
	assert_int_equal(left_count, 0);
	place_set_use(&items[7].place, PLACE_KEPT);
	assert_non_null(come("192.0.2.1"));
	assert_int_equal(left[0], 7);
}

/* Neither kind of flood ends connections of the other one. */
static void the_more_frequent_kind_goes(void **state)
{
	struct item *item;

	come_all("127.0.0.1", 2, PLACE_KEPT);
	come_all("127.0.0.1", MAX - 2, PLACE_FRESH);
	for (int i = 0; i < MAX; i++)
		assert_non_null(come("127.0.0.1"));
	assert_ptr_equal(items[0].place.places, &places);
	assert_non_null(items[0].place.address);
	assert_non_null(items[1].place.address);
	teardown(NULL);

	start(MAX);
	come_all("127.0.0.1", MAX, PLACE_KEPT);
	item = come("127.0.0.1");
	for (int i = 0; i < MAX; i++) {
		struct item *more = come("127.0.0.1");

		assert_non_null(more);
		place_set_use(&more->place, PLACE_USED);
		place_set_use(&more->place, PLACE_KEPT);
	}
	assert_non_null(item->place.address);
}

static void the_address_with_most_goes_first(void **state)
{
	come_all("192.0.2.1", 1, PLACE_KEPT); /* longest of all */
	come_all("192.0.2.2", 3, PLACE_KEPT);
	come_all("192.0.2.3", 4, PLACE_USED); /* more, but nothing to give */
	come_all("192.0.2.4", 4, PLACE_KEPT);
	come_all("127.0.0.1", 4, PLACE_USED);
	for (int i = 0; i < 3; i++)
		assert_non_null(come("198.51.100.1"));
	/* One of four, then one of three each in turn. */
	assert_int_equal(left[0], 8);
	assert_true(left[1] == 1 || left[1] == 9);
	assert_true(left[2] == 1 || left[2] == 9);
	assert_int_not_equal(left[1], left[2]);
	/* The newcomer now holds most. */
	assert_non_null(come("198.51.100.2"));
	assert_int_equal(left[3], 16);
}

/* With one each the longest wait decides. */
static void equals_go_by_their_wait(void **state)
{
	char address[32];

	for (int i = 0; i < MAX; i++) {
		snprintf(address, sizeof(address), "192.0.2.%d", i + 1);
		come_all(address, 1, PLACE_KEPT);
	}
	place_set_use(&items[0].place, PLACE_USED);
	place_set_use(&items[0].place, PLACE_KEPT);
	assert_non_null(come("198.51.100.1"));
	assert_non_null(come("198.51.100.2"));
	assert_int_equal(left[0], 1);
	assert_int_equal(left[1], 2);
}

static void trusted_proxy_does_not_hold_much(void **state)
{
	come_all("10.0.0.1", MAX - 2, PLACE_KEPT);
	come_all("192.0.2.1", 2, PLACE_KEPT);
	assert_non_null(come("198.51.100.1"));
	assert_int_equal(left[0], MAX - 2);
}

/* Also if one of them works, and another does not. */
static void equals_take_turns(void **state)
{
	come_all("10.0.0.1", MAX - 2, PLACE_KEPT); /* counts like one place */
	come_all("192.0.2.1", 1, PLACE_KEPT);
	come_all("192.0.2.2", 1, PLACE_KEPT);
	place_set_use(&items[3].place, PLACE_USED);
	place_set_use(&items[3].place, PLACE_KEPT);
	for (int i = 0; i < 4; i++) {
		struct item *item = come("127.0.0.1");

		assert_non_null(item);
		place_set_use(&item->place, PLACE_USED);
	}
	assert_int_equal(left[0], 0);
	assert_int_equal(left[1], MAX - 2);
	assert_int_equal(left[2], MAX - 1);
	assert_int_equal(left[3], 1);
}

/* Its neighbours are not. */
static void proxy_is_trusted_alone(void **state)
{
	assert_true(peer_net_parse(SLICE_LIT("2001:db8::1"), &proxy));
	come_all("2001:db8::1", MAX / 2, PLACE_USED);
	come_all("2001:db8::2", MAX / 4, PLACE_USED);
	assert_null(come("2001:db8::2"));
	assert_non_null(come("2001:db8::1"));
}

static void an_address_has_its_share(void **state)
{
	come_all("192.0.2.1", MAX / 2, PLACE_USED); /* while nobody else needs them */
	assert_true(places_are_scarce(&places));
	assert_null(come("192.0.2.1"));
	come_all("192.0.2.2", MAX / 4, PLACE_USED);
	assert_null(come("192.0.2.2"));
	assert_int_equal(left_count, 0);
	/* What it does not use itself gives way, and nobody else's. */
	place_set_use(&items[MAX / 2 + 1].place, PLACE_KEPT);
	come_all("192.0.2.3", 1, PLACE_KEPT);
	assert_non_null(come("192.0.2.2"));
	assert_int_equal(left_count, 1);
	assert_int_equal(left[0], MAX / 2 + 1);
	assert_non_null(come("192.0.2.4"));
}

/* A share is not asked for before half of the places are held. */
static void an_address_may_have_half(void **state)
{
	come_all("192.0.2.1", MAX / 2 - 1, PLACE_USED);
	assert_false(places_are_scarce(&places));
	come_all("192.0.2.1", 1, PLACE_USED);
	assert_true(places_are_scarce(&places));
	assert_null(come("192.0.2.1"));
}

static void shared_addresses_have_no_share(void **state)
{
	static const char *const addresses[] = { "127.0.0.1", "127.0.0.9", "::1", "unix",
						 "10.0.0.1" };

	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		come_all(addresses[i], MAX, PLACE_USED);
		assert_null(come("192.0.2.1"));
		teardown(NULL);
		start(MAX);
	}
}

static void an_ipv6_network_is_one_address(void **state)
{
	come_all("127.0.0.1", MAX / 2, PLACE_USED);
	come_all("2001:db8::1", 1, PLACE_USED);
	come_all("2001:db8::2", 1, PLACE_USED);
	come_all("2001:db8:0:0:1::", 1, PLACE_USED);
	come_all("2001:db8::ffff:ffff:ffff:ffff", 1, PLACE_USED);
	assert_null(come("2001:db8::3"));
	assert_non_null(come("2001:db8:0:1::1"));
}

static void the_smallest_share_is_one(void **state)
{
	teardown(NULL);
	start(2);
	assert_non_null(come("192.0.2.1"));
	place_set_use(&items[0].place, PLACE_USED);
	assert_null(come("192.0.2.1"));
	assert_non_null(come("192.0.2.2"));
}

/* Something had come that was not read yet: the next one is asked, but not all of them for one newcomer. */
static void who_comes_into_use_stays(void **state)
{
	teardown(NULL);
	start(64);
	come_all("127.0.0.1", 64, PLACE_KEPT);
	items[0].is_awake = items[1].is_awake = true;
	assert_non_null(come("127.0.0.1"));
	assert_int_equal(left_count, 1);
	assert_int_equal(left[0], 2);
	assert_int_equal(items[0].place.use, PLACE_USED);
	for (int i = 0; i < 64; i++)
		items[i].is_awake = true;
	assert_null(come("127.0.0.1"));
	assert_int_equal(items[5].place.use, PLACE_USED);
	assert_int_equal(items[40].place.use, PLACE_KEPT);
}

/* Some addresses come more often than others. */
static int address_of(int number)
{
	return number * number % 7;
}

static size_t held_by(int address)
{
	size_t held = 0;

	for (int i = 0; i < item_count; i++)
		held += items[i].place.address != NULL && address_of(i) == address;
	return held;
}

static bool has_waiting(int address)
{
	for (int i = 0; i < item_count; i++) {
		if (items[i].place.address != NULL && address_of(i) == address &&
		    items[i].place.use != PLACE_USED)
			return true;
	}
	return false;
}

/* Whoever comes, goes and works meanwhile: an address that holds most, to an eighth, is the one that loses. */
static void any_history_leaves_the_order(void **state)
{
	static const enum place_use uses[] = { PLACE_FRESH, PLACE_KEPT, PLACE_USED };
	char address[32];
	size_t held, most;
	int before;

	teardown(NULL);
	start(200);
	srand(1);
	while (item_count < MANY) {
		struct item *item = &items[rand() % (item_count + 1)];

		if (item->place.address != NULL && item_count > 200)
			place_set_use(&item->place, uses[rand() % 3]);
		if (item->place.address != NULL && rand() % 20 == 0)
			place_leave(&item->place);
		snprintf(address, sizeof(address), "127.0.0.%d", address_of(item_count));
		before = left_count;
		most = 0;
		for (int i = 0; i < 7; i++) {
			held = has_waiting(i) ? held_by(i) : 0;
			most = held > most ? held : most;
		}
		if (come(address) == NULL) {
			items[item_count].number = item_count;
			item_count++;
			assert_int_equal(most, 0);
		} else if (left_count > before) {
			assert_int_equal(left_count, before + 1);
			held = held_by(address_of(left[before])) + 1; /* before it left */
			if (address_of(left[before]) == address_of(item_count - 1))
				held--; /* the newcomer */
			assert_true(held * 8 + 8 > most * 7);
		}
		assert_true(places.count <= 200);
	}
	assert_true(left_count > 500);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_longest_wait_goes_first),
		TEST(what_is_used_stays),
		TEST(the_more_frequent_kind_goes),
		TEST(the_address_with_most_goes_first),
		TEST(equals_go_by_their_wait),
		TEST(trusted_proxy_does_not_hold_much),
		TEST(equals_take_turns),
		TEST(proxy_is_trusted_alone),
		TEST(an_address_has_its_share),
		TEST(an_address_may_have_half),
		TEST(shared_addresses_have_no_share),
		TEST(an_ipv6_network_is_one_address),
		TEST(the_smallest_share_is_one),
		TEST(who_comes_into_use_stays),
		TEST(any_history_leaves_the_order),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
