/* SPDX-License-Identifier: Apache-2.0 */
/* Entries and those who hold something for a token: who is found, who is told, when it is over. */
#include "session/deny_list.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"

#define ISSUER SLICE_LIT("https://id.example")
#define FOR_GOOD UINT64_MAX

static struct deny_list deny_list;

static int setup(void **state)
{
	deny_list_init(&deny_list);
	return 0;
}

static int teardown(void **state)
{
	deny_list_fini(&deny_list);
	return deny_list.count != 0 || deny_list.by_key.slots != NULL;
}

static const struct denial_marks alice = {
	SLICE("https://id.example"),
	{ SLICE("alice"), SLICE("app"), SLICE("token-1"), SLICE("login-1") },
};

static const struct denial *find(const struct denial_marks *marks)
{
	return deny_list_find(&deny_list, marks);
}

static uint64_t add(enum denial_by by, const char *name, uint64_t until_ms)
{
	const struct denial *denial =
		deny_list_add(&deny_list, ISSUER, by, slice_str(name), until_ms);

	assert_non_null(denial);
	return denial->number;
}

/* AUTH-SES-07 */
static void each_name_is_found(void **state)
{
	static const char *const names[] = { "alice", "app", "token-1", "login-1" };

	assert_null(find(&alice));
	for (size_t i = 0; i < DENIAL_BY_COUNT; i++) {
		uint64_t number = add((enum denial_by)i, names[i], FOR_GOOD);

		assert_non_null(find(&alice));
		assert_int_equal(find(&alice)->number, number);
		assert_true(deny_list_remove(&deny_list, number));
		assert_null(find(&alice));
		assert_false(deny_list_remove(&deny_list, number));
	}
}

/* AUTH-SES-07: nothing but the same bytes, of the same issuer, in the same place. AUTH-JWT-14 */
static void nothing_else_is_found(void **state)
{
	static const struct denial_marks others[] = {
		{ SLICE("https://ID.example"), { SLICE("alice") } },
		{ SLICE("https://id.example/"), { SLICE("alice") } },
		{ SLICE("https://id.example"), { SLICE("Alice") } },
		{ SLICE("https://id.example"), { SLICE("alice ") } },
		{ SLICE("https://id.example"), { SLICE("alic") } },
		{ SLICE("https://id.example"), { SLICE("alice\0") } },
		{ SLICE("https://id.example"), { SLICE(""), SLICE("alice") } },
		{ SLICE("https://id.examplea"), { SLICE("lice") } },
		{ SLICE(""), { SLICE("alice") } },
	};

	add(DENIAL_BY_SUB, "alice", FOR_GOOD);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_null(find(&others[i]));
	assert_non_null(find(&alice));
}

static void entries_end(void **state)
{
	uint64_t now_ms = clock_wall_ms();
	uint64_t number = add(DENIAL_BY_JTI, "token-1", now_ms + 3600000);

	assert_non_null(find(&alice));
	assert_int_equal(add(DENIAL_BY_JTI, "token-1", now_ms), number);
	assert_null(find(&alice));
	assert_int_equal(deny_list.count, 1);
	deny_list_sweep(&deny_list);
	assert_int_equal(deny_list.count, 0);
	assert_int_not_equal(add(DENIAL_BY_JTI, "token-1", FOR_GOOD), number);
}

static void number_is_bounded(void **state)
{
	char name[32];

	for (unsigned int i = 0; i < DENY_LIST_MAX; i++) {
		snprintf(name, sizeof(name), "token-%u", i);
		/* The first one is over at once, and makes room. */
		add(DENIAL_BY_JTI, name, i == 0 ? 1 : FOR_GOOD);
	}
	add(DENIAL_BY_JTI, "one more", FOR_GOOD);
	assert_null(
		deny_list_add(&deny_list, ISSUER, DENIAL_BY_JTI, SLICE_LIT("too many"), FOR_GOOD));
	add(DENIAL_BY_JTI, "token-77", 1);
	add(DENIAL_BY_JTI, "a place", FOR_GOOD);
	assert_int_equal(deny_list.count, DENY_LIST_MAX);
}

/* ---- the configuration ---- */

struct entry {
	const char *name; /* of a person */
	uint64_t until_ms;
};

/* Whether there was a place for all. */
static bool configure(const struct entry *entries, size_t count)
{
	bool has_place = true;

	deny_list_configure_begin(&deny_list);
	for (size_t i = 0; i < count; i++)
		deny_list_configure_keep(&deny_list, ISSUER, DENIAL_BY_SUB,
					 slice_str(entries[i].name), entries[i].until_ms);
	for (size_t i = 0; i < count; i++)
		has_place &= deny_list_configure(&deny_list, ISSUER, DENIAL_BY_SUB,
						 slice_str(entries[i].name), entries[i].until_ms);
	deny_list_configure_end(&deny_list);
	return has_place;
}

#define CONFIGURE(...)                                           \
	assert_true(                                             \
		configure((const struct entry[]){ __VA_ARGS__ }, \
			  sizeof((const struct entry[]){ __VA_ARGS__ }) / sizeof(struct entry)))

/* 0: tokens of this person are not refused. */
static uint64_t number_of(const char *name)
{
	const struct denial *denial = find(&(struct denial_marks){ ISSUER, { slice_str(name) } });

	return denial != NULL ? denial->number : 0;
}

static void configured_entries_are_those_of_the_configuration(void **state)
{
	uint64_t alice_s;

	CONFIGURE({ "alice", FOR_GOOD }, { "bob", FOR_GOOD }, { "over", clock_wall_ms() });
	assert_int_equal(deny_list.count, 2);
	alice_s = number_of("alice");
	assert_true(alice_s > 0 && number_of("bob") > 0 && number_of("over") == 0);
	CONFIGURE({ "carol", FOR_GOOD }, { "alice", FOR_GOOD });
	assert_int_equal(number_of("alice"), alice_s);
	assert_true(number_of("bob") == 0 && number_of("carol") > 0);
	/* Twice in one configuration: for the longer time, in whatever order. */
	CONFIGURE({ "alice", clock_wall_ms() + 60000 }, { "alice", FOR_GOOD },
		  { "alice", clock_wall_ms() + 90000 });
	assert_int_equal(deny_list.count, 1);
	assert_true(find(&alice)->until_ms == FOR_GOOD);
	assert_true(configure(NULL, 0));
	assert_int_equal(deny_list.count, 0);
}

static void orders_and_configuration_do_not_touch(void **state)
{
	uint64_t order = add(DENIAL_BY_SUB, "alice", FOR_GOOD);

	CONFIGURE({ "alice", clock_wall_ms() + 60000 });
	assert_int_equal(deny_list.count, 2);
	assert_true(configure(NULL, 0));
	assert_int_equal(number_of("alice"), order);
	assert_true(find(&alice)->until_ms == FOR_GOOD && find(&alice)->origin == DENIAL_ORDERED);
	CONFIGURE({ "alice", FOR_GOOD });
	assert_true(deny_list_remove(&deny_list, order));
	assert_true(find(&alice)->origin == DENIAL_CONFIGURED);
	/* What ends of the one leaves the other. */
	assert_int_not_equal(add(DENIAL_BY_SUB, "alice", 1), find(&alice)->number);
	assert_true(find(&alice)->origin == DENIAL_CONFIGURED);
}

static void what_was_taken_away_comes_back_when_it_is_another(void **state)
{
	CONFIGURE({ "alice", FOR_GOOD }, { "bob", FOR_GOOD });
	assert_true(deny_list_remove(&deny_list, number_of("alice")));
	assert_int_equal(number_of("alice"), 0);
	assert_false(deny_list_remove(&deny_list, 1)); /* it is away */
	CONFIGURE({ "bob", FOR_GOOD }, { "alice", FOR_GOOD });
	assert_true(number_of("alice") == 0 && number_of("bob") > 0);
	/* The operator may order what he took away of the configuration. */
	assert_true(deny_list_remove(&deny_list, add(DENIAL_BY_SUB, "alice", FOR_GOOD)));
	assert_int_equal(number_of("alice"), 0);
	CONFIGURE({ "alice", clock_wall_ms() + 60000 });
	assert_true(number_of("alice") > 0);
	assert_true(deny_list_remove(&deny_list, number_of("alice")));
	assert_true(configure(NULL, 0));
	CONFIGURE({ "alice", FOR_GOOD });
	assert_true(number_of("alice") > 0);
}

static void no_place_for_the_configuration(void **state)
{
	char name[32];

	for (unsigned int i = 0; i < DENY_LIST_MAX; i++) {
		snprintf(name, sizeof(name), "token-%u", i);
		add(DENIAL_BY_JTI, name, FOR_GOOD);
	}
	assert_false(configure(&(struct entry){ "alice", FOR_GOOD }, 1));
	assert_int_equal(number_of("alice"), 0);
	assert_true(deny_list_remove(&deny_list, 77));
	CONFIGURE({ "alice", FOR_GOOD });
	assert_true(number_of("alice") > 0);
	CONFIGURE({ "alice", FOR_GOOD });
}

/* Those that it replaces make room for its own, also where all places are taken. */
static void a_full_configuration_is_replaced(void **state)
{
	struct entry *entries = mem_zalloc(2 * DENY_LIST_MAX * sizeof(*entries));
	char(*names)[16] = mem_zalloc(2 * DENY_LIST_MAX * sizeof(*names));

	for (unsigned int i = 0; i < 2 * DENY_LIST_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "person-%u", i);
		entries[i] = (struct entry){ names[i], FOR_GOOD };
	}
	assert_true(configure(entries, DENY_LIST_MAX));
	assert_int_equal(deny_list.count, DENY_LIST_MAX);
	/* The last of the first are the first of the second. */
	assert_true(configure(entries + DENY_LIST_MAX - 5, DENY_LIST_MAX));
	assert_int_equal(deny_list.count, DENY_LIST_MAX);
	assert_int_equal(number_of(names[0]), 0);
	assert_true(number_of(names[DENY_LIST_MAX - 1]) > 0);
	assert_true(number_of(names[2 * DENY_LIST_MAX - 6]) > 0);
	assert_false(configure(entries, DENY_LIST_MAX + 1));
	assert_int_equal(deny_list.count, DENY_LIST_MAX);
	assert_true(number_of(names[DENY_LIST_MAX]) > 0); /* it was there before */
	assert_int_equal(number_of(names[DENY_LIST_MAX - 6]), 0);
	free(entries);
	free(names);
}

/* ---- watchers ---- */

struct watcher {
	struct deny_watcher watcher;
	struct denial_marks marks;
	struct watcher *takes_along;
	unsigned int told;
};

static void show(const struct deny_watcher *watcher, struct denial_marks *marks_r)
{
	*marks_r = container_of(watcher, struct watcher, watcher)->marks;
}

static void on_denied(struct deny_watcher *base)
{
	struct watcher *watcher = container_of(base, struct watcher, watcher);

	watcher->told++;
	if (watcher->takes_along != NULL)
		deny_list_unwatch(&watcher->takes_along->watcher);
}

static const struct deny_watcher_ops ops = { .show = show, .on_denied = on_denied };

static void join(struct watcher *watcher, const char *subject)
{
	*watcher = (struct watcher){ .marks = { ISSUER, { slice_str(subject) } } };
	deny_watcher_init(&watcher->watcher, &ops);
	deny_list_watch(&deny_list, &watcher->watcher);
}

/* AUTH-SES-07 */
static void watchers_are_told(void **state)
{
	struct watcher a, b, c, bob, namesake;

	join(&a, "alice");
	join(&bob, "bob");
	join(&namesake, "alice");
	namesake.marks.issuer = SLICE_LIT("https://another.example");
	join(&b, "alice");
	join(&c, "alice");
	a.takes_along = &b;
	add(DENIAL_BY_SUB, "alice", FOR_GOOD);
	assert_int_equal(a.told, 1);
	assert_int_equal(b.told, 0);
	assert_int_equal(c.told, 1);
	assert_int_equal(bob.told, 0);
	add(DENIAL_BY_SUB, "alice", FOR_GOOD);
	assert_int_equal(a.told, 1);
	add(DENIAL_BY_SUB, "bob", FOR_GOOD);
	assert_int_equal(bob.told, 1);
	assert_int_equal(namesake.told, 0); /* of another issuer it is another person */
	deny_list_unwatch(&bob.watcher);
	deny_list_unwatch(&namesake.watcher);
}

static void watchers_are_told_of_the_configuration(void **state)
{
	struct watcher a, bob;

	CONFIGURE({ "alice", FOR_GOOD });
	assert_true(deny_list_remove(&deny_list, 1));
	join(&a, "alice");
	join(&bob, "bob");
	CONFIGURE({ "alice", FOR_GOOD });
	assert_int_equal(a.told, 0); /* it is away */
	CONFIGURE({ "alice", clock_wall_ms() + 60000 }, { "bob", FOR_GOOD });
	assert_int_equal(a.told, 1);
	assert_int_equal(bob.told, 1);
}

/* ---- shared with other nodes ---- */

/* What another node says; whether it changed anything. */
static bool take(const char *name, bool is_lifted, uint64_t changed_ms, uint64_t until_ms)
{
	bool is_full = false;
	const struct denial *denial = deny_list_take(&deny_list,
						     &(struct denial){ .by = DENIAL_BY_SUB,
								       .issuer = ISSUER,
								       .name = slice_str(name),
								       .is_lifted = is_lifted,
								       .changed_ms = changed_ms,
								       .until_ms = until_ms },
						     &is_full);

	assert_false(is_full);
	return denial != NULL;
}

/* CLU-DENY-01: the last word about a token counts, in whatever order they arrive. */
static void last_word_counts(void **state)
{
	static const struct {
		bool is_lifted;
		uint64_t changed_ms, until_ms;
		bool changes, is_denied;
	} rows[] = {
		{ false, 1000, FOR_GOOD - 1, true, true },
		{ false, 1000, FOR_GOOD - 1, false, true },
		{ true, 1000, FOR_GOOD, false, true },
		{ false, 1000, FOR_GOOD, true, true },
		{ true, 999, FOR_GOOD, false, true },
		{ true, 1001, FOR_GOOD, true, false },
		{ true, 1001, FOR_GOOD, false, false },
		{ false, 1000, FOR_GOOD, false, false },
		{ false, 1001, 1, true, false },
		{ false, 1002, FOR_GOOD, true, true },
	};
	struct watcher a;

	deny_list.is_shared = true;
	join(&a, "alice");
	assert_false(take("alice", true, 1000, 1)); /* it is over, and was not known */
	assert_int_equal(deny_list.count, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(take("alice", rows[i].is_lifted, rows[i].changed_ms,
				      rows[i].until_ms),
				 rows[i].changes);
		assert_int_equal(find(&alice) != NULL, rows[i].is_denied);
		assert_int_equal(a.told, 1);
	}
	assert_int_equal(deny_list.count, 1);
}

/* What is ordered here is later than all that is known, and is to be told; what others say is not. */
static void orders_here_are_later(void **state)
{
	const uint64_t future_ms = clock_wall_ms() + 3600000;
	const struct denial *denial;
	uint64_t number;

	deny_list.is_shared = true;
	assert_true(take("alice", false, future_ms, FOR_GOOD));
	denial = find(&alice);
	assert_false(denial->is_untold);
	number = denial->number;
	assert_true(deny_list_remove(&deny_list, number));
	assert_null(find(&alice));
	assert_true(denial->is_lifted && denial->is_untold);
	assert_int_equal(denial->changed_ms, future_ms + 1);
	assert_false(deny_list_remove(&deny_list, number));
	assert_false(take("alice", false, future_ms, FOR_GOOD));
	assert_int_equal(add(DENIAL_BY_SUB, "alice", FOR_GOOD), number);
	assert_ptr_equal(find(&alice), denial);
	assert_int_equal(denial->changed_ms, future_ms + 2);
	add(DENIAL_BY_SUB, "bob", FOR_GOOD);
	assert_true(take("bob", false, future_ms, FOR_GOOD));
	CONFIGURE({ "carol", FOR_GOOD });
	deny_list_untell(&deny_list);
	LIST_FOREACH(node, &deny_list.entries) {
		const struct denial *one = container_of(node, struct denial, link);

		assert_int_equal(one->is_untold, one->origin == DENIAL_ORDERED);
	}
}

/* What was taken away, and is only remembered, takes no room; nor can others take all of it. */
static void what_was_taken_away_gives_way(void **state)
{
	const struct denial other = {
		.issuer = ISSUER, .name = SLICE("bob"), .changed_ms = 1, .until_ms = FOR_GOOD
	};
	char name[32];
	bool is_full = false;

	deny_list.is_shared = true;
	for (int i = 0; i < DENY_LIST_MAX - DENY_LIST_OWN; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_true(take(name, false, 1000, FOR_GOOD));
	}
	assert_null(deny_list_take(&deny_list, &other, &is_full));
	assert_true(is_full);
	for (int i = 0; i < DENY_LIST_OWN; i++) {
		snprintf(name, sizeof(name), "own%d", i);
		add(DENIAL_BY_SUB, name, FOR_GOOD);
	}
	assert_null(deny_list_add(&deny_list, ISSUER, DENIAL_BY_SUB, SLICE_LIT("bob"), FOR_GOOD));
	assert_true(deny_list_remove(&deny_list, 1)); /* which others have not been told */
	assert_null(deny_list_add(&deny_list, ISSUER, DENIAL_BY_SUB, SLICE_LIT("bob"), FOR_GOOD));
	assert_true(take("n1", true, 1001, FOR_GOOD));
	add(DENIAL_BY_SUB, "bob", FOR_GOOD);
	assert_true(take("n2", true, 1001, FOR_GOOD));
	CONFIGURE({ "alice", FOR_GOOD });
	assert_non_null(find(&alice));
	assert_int_equal(deny_list.count, DENY_LIST_MAX);
}

static void marks_are_copied(void **state)
{
	struct denial_marks *copy = denial_marks_copy(&alice);

	assert_ptr_not_equal(copy->issuer.p, alice.issuer.p);
	assert_true(slice_is_equal(copy->issuer, alice.issuer));
	for (size_t i = 0; i < DENIAL_BY_COUNT; i++)
		assert_true(slice_is_equal(copy->names[i], alice.names[i]));
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_name_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_else_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(entries_end, setup, teardown),
		cmocka_unit_test_setup_teardown(number_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(configured_entries_are_those_of_the_configuration,
						setup, teardown),
		cmocka_unit_test_setup_teardown(orders_and_configuration_do_not_touch, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_was_taken_away_comes_back_when_it_is_another,
						setup, teardown),
		cmocka_unit_test_setup_teardown(no_place_for_the_configuration, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_configuration_is_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(watchers_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(watchers_are_told_of_the_configuration, setup,
						teardown),
		cmocka_unit_test_setup_teardown(last_word_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(orders_here_are_later, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_taken_away_gives_way, setup, teardown),
		cmocka_unit_test(marks_are_copied),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
