/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers of servers mean from one configuration to the next, and for how long those of earlier ones may be started. */
#include "keeper/server_slots.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"

#define DRAIN_MS 7000
#define STOP_MS 500 /* grace and term */

static struct server_slots slots;
static uint64_t now_ms;

/* `servers` in YAML's flow style, without the braces. */
static unsigned int drain_s = 7;

static struct config *make(const char *servers)
{
	char *text = mem_printf("drain_timeout: %us\n"
				"defaults: {command: cat, stop: {grace: 300ms, term: 200ms}}\n"
				"servers: {%s}\n",
				drain_s, servers);
	struct error err = { ERROR_NONE, "" };
	struct config *config = config_read_checked(slice_str(text), &err);

	if (config == NULL)
		fail_msg("refused: %s", err.text);
	free(text);
	return config;
}

static void pass(uint64_t ms)
{
	clock_freeze(now_ms += ms);
}

static void begin_with(const char *servers)
{
	clock_freeze(now_ms = 1000000);
	drain_s = 7;
	server_slots_init(&slots, &server_slots_keeper);
	server_slots_begin(&slots, make(servers));
}

/* Returns the number of the last server. */
static uint32_t use(const char *servers)
{
	struct config *next = make(servers);
	size_t count = next->server_count;
	uint32_t numbers[64];
	struct error err;

	assert_true(count <= ARRAY_LEN(numbers));
	assert_int_equal(server_slots_plan(&slots, next, numbers, &err), 0);
	server_slots_use(&slots, next, numbers);
	server_slots_bound(&slots);
	assert_ptr_equal(server_slots_config(&slots), next);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(slots.numbers[i], numbers[i]);
		assert_int_equal(slots.table.servers[numbers[i]].conf.server, numbers[i]);
		assert_string_equal(slots.table.servers[numbers[i]].conf.name,
				    next->servers[i].conf.name);
	}
	return numbers[count - 1];
}

static int teardown(void **state)
{
	struct config *config = server_slots_fini(&slots);

	(void)state;
	config_free(&config);
	return 0;
}

static bool may_start(uint32_t number)
{
	return slots.table.servers[number].enabled;
}

static void unchanged_servers_keep_their_numbers(void **state)
{
	begin_with("a: {}, b: {}, c: {}");
	assert_int_equal(use("c: {}, a: {}, b: {}"), 1);
	assert_int_equal(slots.numbers[0], 2);
	assert_int_equal(slots.numbers[1], 0);
	/* A rule is none of the processes' business. */
	assert_int_equal(use("b: {tools: {deny: [x]}}"), 1);
	assert_int_equal(use("b: {}, d: {}"), 3);
	assert_int_equal(slots.table.server_count, 4);
	assert_int_equal(slots.slots[1].state, SERVER_SLOT_CURRENT);
}

/* A number is used anew only when the gateway has let go of it, and no process is left. */
static void numbers_mean_one_thing(void **state)
{
	begin_with("a: {}");
	assert_int_equal(use("a: {env: {N: '1'}}"), 1);
	assert_int_equal(slots.slots[0].state, SERVER_SLOT_RETIRING);
	assert_true(may_start(0) && may_start(1));
	assert_int_equal(use("a: {env: {N: '2'}}"), 2);
	assert_true(server_slots_release(&slots, 0));
	assert_true(server_slots_is_released(&slots, 0));
	assert_false(may_start(0));
	assert_int_equal(use("a: {env: {N: '3'}}"), 3);
	server_slots_free_one(&slots, 0);
	assert_int_equal(slots.slots[0].state, SERVER_SLOT_FREE);
	assert_null(slots.table.servers[0].conf.name);
	assert_int_equal(use("a: {env: {N: '4'}}"), 0);
	assert_true(may_start(0) && may_start(1) && may_start(2) && may_start(3));
}

static void only_what_retires_is_released(void **state)
{
	begin_with("a: {}, b: {}");
	use("a: {}");
	assert_false(server_slots_release(&slots, 0));
	assert_false(server_slots_release(&slots, 2));
	assert_false(server_slots_release(&slots, SERVERS_MAX));
	assert_false(server_slots_release(&slots, UINT32_MAX));
	assert_false(server_slots_is_released(&slots, 1));
	assert_true(server_slots_release(&slots, 1));
	assert_false(server_slots_release(&slots, 1));
	assert_true(may_start(0));
}

/* Another gateway knows of none but those in use. */
static void next_gateway_has_none_of_them(void **state)
{
	begin_with("a: {}, b: {}");
	use("b: {env: {N: '1'}}");
	server_slots_release_all(&slots);
	assert_true(server_slots_is_released(&slots, 0) && server_slots_is_released(&slots, 1));
	assert_int_equal(slots.slots[2].state, SERVER_SLOT_CURRENT);
	assert_true(may_start(2));
}

/* Whatever the gateway says. mcpgated.yaml(5) */
static void removed_servers_have_the_drain_time(void **state)
{
	begin_with("a: {}, b: {}");
	use("a: {}");
	assert_int_equal(server_slots_do_due(&slots), now_ms + DRAIN_MS + SERVER_SLOTS_RESERVE_MS);
	pass(5000);
	use("a: {tools: {deny: [x]}}"); /* from then on, not anew */
	pass(DRAIN_MS + SERVER_SLOTS_RESERVE_MS - 5001);
	assert_int_equal(server_slots_do_due(&slots), now_ms + 1);
	assert_true(may_start(1));
	pass(1);
	assert_int_equal(server_slots_do_due(&slots), now_ms + STOP_MS + SERVER_SLOTS_RESERVE_MS);
	assert_false(may_start(1));
	assert_true(may_start(0));
	assert_int_equal(slots.slots[1].state, SERVER_SLOT_OVER);
	/* Its processes have their time, too; its number stays the gateway's. */
	pass(STOP_MS + SERVER_SLOTS_RESERVE_MS - 1);
	assert_false(server_slots_is_overdue(&slots, 1));
	pass(1);
	assert_true(server_slots_is_overdue(&slots, 1));
	assert_int_equal(server_slots_do_due(&slots), UINT64_MAX);
	assert_false(server_slots_is_released(&slots, 1));
	assert_int_equal(use("a: {}, b: {}"), 2);
	assert_true(server_slots_release(&slots, 1));
	assert_true(server_slots_is_overdue(&slots, 1));
	assert_false(server_slots_is_overdue(&slots, 0));
}

/* An operator may end what lingers, or give it more time, by another reload. */
static void the_drain_time_of_now_counts(void **state)
{
	begin_with("a: {}, b: {}");
	use("a: {}");
	drain_s = 100;
	pass(5000);
	use("a: {}");
	assert_int_equal(server_slots_do_due(&slots), now_ms + 95000 + SERVER_SLOTS_RESERVE_MS);
	drain_s = 0;
	pass(SERVER_SLOTS_RESERVE_MS);
	use("a: {}");
	assert_true(may_start(1));
	(void)server_slots_do_due(&slots);
	assert_false(may_start(1));
}

static void changed_servers_have_no_limit_in_time(void **state)
{
	begin_with("a: {}");
	use("a: {env: {N: '1'}}");
	assert_int_equal(server_slots_do_due(&slots), UINT64_MAX);
	pass(UINT64_C(1000) * 3600 * 24);
	assert_int_equal(server_slots_do_due(&slots), UINT64_MAX);
	assert_true(may_start(0));
	/* Until the name has gone: all that had it. One that is not enabled is none. */
	use("a: {enabled: false}, b: {}");
	assert_int_equal(slots.slots[0].until_ms, now_ms + DRAIN_MS + SERVER_SLOTS_RESERVE_MS);
	assert_int_equal(slots.slots[1].until_ms, now_ms + DRAIN_MS + SERVER_SLOTS_RESERVE_MS);
	pass(1000);
	use("a: {env: {N: '3'}}, b: {}");
	assert_int_equal(slots.slots[0].until_ms, 0);
	assert_int_equal(slots.slots[1].until_ms, 0);
	assert_true(may_start(0) && may_start(1));
}

/* What was not enabled no gateway has ever heard of, and so it would never say that it lets go of it. */
static void servers_that_were_not_enabled_leave_nothing(void **state)
{
	begin_with("a: {}, b: {enabled: false}");
	use("a: {}, b: {}");
	assert_true(server_slots_is_released(&slots, 1));
	server_slots_free_one(&slots, 1);
	assert_int_equal(use("a: {}, b: {enabled: false}"), 1);
	assert_int_equal(use("a: {}, b: {enabled: false}"), 1); /* unchanged */
	assert_int_equal(slots.slots[2].state, SERVER_SLOT_RETIRING);
}

static void of_one_name_some_are_kept(void **state)
{
	char text[64];

	begin_with("a: {}, b: {}");
	for (int i = 1; i <= SERVER_SLOTS_RETIRING_MAX; i++) {
		snprintf(text, sizeof(text), "a: {env: {N: '%d'}}, b: {}", i);
		use(text);
	}
	assert_int_equal(server_slots_do_due(&slots), UINT64_MAX);
	use("a: {}, b: {env: {N: '1'}}");
	assert_int_equal(server_slots_do_due(&slots), now_ms + SERVER_SLOTS_RESERVE_MS);
	pass(SERVER_SLOTS_RESERVE_MS / 2);
	use("a: {}, b: {env: {N: '2'}}"); /* a reload does not give more time */
	pass(SERVER_SLOTS_RESERVE_MS - SERVER_SLOTS_RESERVE_MS / 2);
	server_slots_do_due(&slots);
	assert_int_equal(slots.slots[0].state, SERVER_SLOT_OVER); /* the oldest */
	assert_false(may_start(0));
	assert_int_equal(slots.slots[1].state, SERVER_SLOT_RETIRING);
	assert_true(may_start(1) && may_start(2));
	/* One that is over does not count. */
	use("a: {}, b: {}");
	assert_int_equal(slots.slots[2].until_ms, 0);
}

static unsigned int used; /* a bit for each number */
static unsigned int over;

static bool is_used(const struct server_slots *of, uint32_t number)
{
	return (used >> number & 1) != 0;
}

static void on_over(struct server_slots *of, uint32_t number)
{
	over |= 1u << number;
}

/* As a gateway keeps them: those without sessions do not count, and there is no reserve. */
static void only_those_in_use_count(void **state)
{
	static const struct server_slots_conf conf = { .retiring_max = 2,
						       .is_used = is_used,
						       .on_over = on_over };

	begin_with("a: {}");
	slots.conf = &conf;
	used = 0xfd; /* all but 1 */
	over = 0;
	use("a: {env: {N: '1'}}");
	use("a: {env: {N: '2'}}");
	use("a: {env: {N: '3'}}");
	assert_int_equal(server_slots_do_due(&slots), UINT64_MAX);
	assert_int_equal(over, 0);
	use("a: {env: {N: '4'}}");
	server_slots_do_due(&slots);
	assert_int_equal(over, 1 << 0);
	assert_int_equal(slots.slots[1].state, SERVER_SLOT_RETIRING);
	use("a: {env: {N: '5'}}");
	server_slots_do_due(&slots);
	server_slots_do_due(&slots);
	assert_int_equal(over, 1 << 0 | 1 << 2);
}

static size_t count_configurations(void)
{
	size_t count = 0;

	LIST_FOREACH(node, &slots.generations)
		count++;
	return count;
}

/* One that nothing refers to any more may still be pointed into for a while. */
static void configurations_stay_for_a_while(void **state)
{
	static const struct server_slots_conf conf = { .retiring_max = 2, .kept_ms = 1000 };
	struct generation *held = NULL;

	begin_with("a: {}");
	slots.conf = &conf;
	use("a: {tools: {deny: [x]}}");
	server_slots_hold(&held, server_slots_generation(&slots));
	use("a: {tools: {deny: [y]}}");
	assert_int_equal(server_slots_do_due(&slots), now_ms + 1000);
	pass(999);
	assert_int_equal(server_slots_do_due(&slots), now_ms + 1);
	assert_int_equal(count_configurations(), 3);
	pass(1);
	assert_int_equal(server_slots_do_due(&slots), UINT64_MAX);
	assert_int_equal(count_configurations(), 2);
	server_slots_hold(&held, NULL);
	server_slots_do_due(&slots);
	assert_int_equal(count_configurations(), 1);
	/* The keeper's go at once. */
	slots.conf = &server_slots_keeper;
	use("a: {}");
	server_slots_do_due(&slots);
	assert_int_equal(count_configurations(), 1);
}

static void there_are_not_more_numbers(void **state)
{
	uint32_t number = 0;
	struct config *next;
	struct error err = { ERROR_NONE, "" };

	begin_with("a: {}");
	for (size_t i = 1; i < SERVERS_MAX; i++)
		slots.slots[i].state = SERVER_SLOT_OVER;
	next = make("a: {tools: {deny: [x]}}");
	assert_int_equal(server_slots_plan(&slots, next, &number, &err), 0);
	config_free(&next);
	next = make("a: {env: {N: '1'}}");
	assert_int_equal(server_slots_plan(&slots, next, &number, &err), -1);
	assert_non_null(strstr(err.text, "too many servers of earlier configurations"));
	slots.slots[SERVERS_MAX - 1].state = SERVER_SLOT_FREE;
	assert_int_equal(server_slots_plan(&slots, next, &number, &err), 0);
	assert_int_equal(number, SERVERS_MAX - 1);
	config_free(&next);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(unchanged_servers_keep_their_numbers),
		TEST(numbers_mean_one_thing),
		TEST(only_what_retires_is_released),
		TEST(next_gateway_has_none_of_them),
		TEST(removed_servers_have_the_drain_time),
		TEST(the_drain_time_of_now_counts),
		TEST(changed_servers_have_no_limit_in_time),
		TEST(servers_that_were_not_enabled_leave_nothing),
		TEST(of_one_name_some_are_kept),
		TEST(only_those_in_use_count),
		TEST(configurations_stay_for_a_while),
		TEST(there_are_not_more_numbers),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
