/* SPDX-License-Identifier: Apache-2.0 */
/* What is done aside, turn by turn, by a clock that stands still unless something takes long. */
#include "io/aside.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "base/clock.h"
#include "base/pause.h"
#include "base/unit_test.h"
#include "io/loop.h"

#define LONG_MS 100

static struct loop *loop;
static struct aside first, second, third, fourth;
static struct task other;
static uint64_t now_ms = 1000;
static char told[64]; /* what has happened, a letter each */
static void *garbage;

static void tell(char c)
{
	size_t n = strlen(told);

	assert_true(n + 1 < sizeof(told));
	told[n] = c;
}

/* The turn is long now: whoever may gives way soon. */
static void take_long(void)
{
	now_ms += LONG_MS;
	clock_freeze(now_ms);
	for (int i = 0; i < 10000; i++)
		pause_point();
}

static void on_other(struct task *task)
{
	tell('o');
}

static int setup(void **state)
{
	struct error err;

	clock_freeze(now_ms);
	loop = loop_new(&err);
	assert_non_null(loop);
	task_init(&other, on_other);
	memset(told, 0, sizeof(told));
	garbage = NULL;
	return 0;
}

static int teardown(void **state)
{
	assert_false(aside_is_busy(loop));
	loop_free(&loop);
	return 0;
}

static void turn(void)
{
	task_schedule(loop, &other);
	loop_turn(loop, false);
}

static struct aside *begun[2];

/* All of one owner. */
static void on_begin(struct task *task)
{
	for (size_t i = 0; i < 2 && begun[i] != NULL; i++)
		aside_start(loop, begun[i], 1);
}

/* In one turn. */
static void begin(struct aside *aside, struct aside *next)
{
	struct task task;

	begun[0] = aside;
	begun[1] = next;
	task_init(&task, on_begin);
	task_schedule(loop, &task);
	loop_turn(loop, false);
}

static bool is_in_full; /* aside_finish has been called */

static void on_finish(struct timer *timer)
{
	is_in_full = true;
	aside_finish(loop);
	is_in_full = false;
}

/* In a turn, as a reload does. */
static void finish(void)
{
	struct timer timer;

	timer_init(&timer, on_finish);
	timer_start(loop, &timer, 0);
	loop_turn(loop, false);
}

/* Three pieces of work, of which the first is closed. */
static void in_pieces(struct aside *aside)
{
	assert_true(aside_is_here() && aside_is_pending(aside));
	tell('a');
	take_long();
	aside_open();
	tell('b');
	take_long();
	tell('c');
	assert_true(is_in_full || aside_away_ns() > 0);
	take_long();
	assert_true(aside_close() || is_in_full);
	aside_open();
	assert_false(aside_close());
	tell('d');
	take_long();
	tell('.');
}

static void in_one(struct aside *aside)
{
	assert_int_equal(aside_away_ns(), 0);
	tell('1');
}

static void gives_way_where_it_is_open(void **state)
{
	aside_init(&first, in_pieces);
	assert_false(aside_is_pending(&first));
	begin(&first, NULL);
	assert_string_equal(told, "ab");
	assert_false(aside_is_here());
	assert_false(pause_is_allowed);
	turn();
	assert_string_equal(told, "abco");
	turn();
	assert_string_equal(told, "abcod.o");
	assert_false(aside_is_pending(&first));
	turn();
	assert_string_equal(told, "abcod.oo");
}

static void one_after_the_other(void **state)
{
	aside_init(&first, in_pieces);
	aside_init(&second, in_one);
	begin(&first, &second);
	assert_true(aside_is_pending(&second));
	while (aside_is_busy(loop))
		loop_turn(loop, false);
	assert_string_equal(told, "abcd.1");
	aside_start(loop, &second, 0);
	assert_string_equal(told, "abcd.11");
}

static void in_two(struct aside *aside)
{
	tell('2');
}

static void in_three(struct aside *aside)
{
	tell('3');
}

static void who_has_much_lets_others_go_first(void **state)
{
	aside_init(&first, in_pieces);
	aside_init(&second, in_one);
	aside_init(&third, in_two);
	aside_init(&fourth, in_three);
	begin(&first, &second);
	aside_start(loop, &third, 1);
	aside_start(loop, &fourth, 2);
	while (aside_is_busy(loop))
		loop_turn(loop, false);
	assert_string_equal(told, "abcd.312");
	begin(&first, NULL); /* it is his again */
	aside_start(loop, &second, 2);
	aside_start(loop, &third, 1);
	aside_start(loop, &fourth, 2);
	while (aside_is_busy(loop))
		loop_turn(loop, false);
	assert_string_equal(told, "abcd.312abcd.123");
}

static void in_many_points(struct aside *aside)
{
	aside_open();
	take_long();
	tell('b');
	for (int i = 0; i < 10000; i++)
		pause_point();
	aside_close();
	tell('.');
}

static void on_slow(struct timer *timer)
{
	tell('s');
	now_ms += LONG_MS;
	clock_freeze(now_ms);
}

/* Or it would hardly get on while the loop has much to do. */
static void has_its_share_of_a_turn_that_is_long(void **state)
{
	struct timer slow;

	aside_init(&first, in_many_points);
	begin(&first, NULL);
	assert_string_equal(told, "");
	timer_init(&slow, on_slow);
	timer_start(loop, &slow, 0);
	loop_turn(loop, false);
	assert_string_equal(told, "sb.");
}

static void waiting_work_can_be_cancelled(void **state)
{
	aside_init(&first, in_pieces);
	aside_init(&second, in_one);
	begin(&first, &second);
	aside_cancel(&second);
	assert_false(aside_is_pending(&second));
	aside_cancel(&first); /* it has begun */
	while (aside_is_busy(loop))
		loop_turn(loop, false);
	assert_string_equal(told, "abcd.");
	assert_int_equal(aside_away_ns(), 0);
}

static void finishing_does_the_rest_of_what_has_begun(void **state)
{
	aside_finish(loop);
	aside_init(&first, in_pieces);
	aside_init(&second, in_one);
	begin(&first, &second);
	assert_string_equal(told, "ab");
	is_in_full = true;
	aside_finish(loop);
	is_in_full = false;
	assert_string_equal(told, "abcd.");
	assert_true(aside_is_pending(&second));
	turn();
	assert_string_equal(told, "abcd.1o");
	begin(&first, NULL);
	finish();
	assert_string_equal(told, "abcd.1oabcd.");
}

static void with_garbage(struct aside *aside)
{
	char *kept = malloc(1);

	*kept = 'k';
	garbage = kept;
	aside_open();
	take_long();
	aside_close();
	tell(*kept); /* the sanitizer sees if it has been freed */
}

static void what_it_holds_is_not_freed(void **state)
{
	aside_init(&first, with_garbage);
	begin(&first, NULL);
	loop_defer_free(loop, garbage);
	loop_turn(loop, false);
	assert_string_equal(told, "k");
	assert_false(aside_is_busy(loop));
}

static bool is_freed(const void *p)
{
#ifdef __SANITIZE_ADDRESS__
	return __asan_address_is_poisoned(p);
#else
	return p != NULL; /* only the sanitizer knows */
#endif
}

static void on_waste(struct task *task)
{
	garbage = malloc(1);
	loop_defer_free(loop, garbage);
	aside_start(loop, &first, 0);
	aside_start(loop, &second, 0);
}

/* One after the other may be done aside for hours. */
static void only_what_it_may_hold_stays(void **state)
{
	void *later = malloc(1), *large = malloc(1);
	struct task task;

	aside_init(&first, in_pieces);
	aside_init(&second, in_pieces);
	task_init(&task, on_waste);
	task_schedule(loop, &task);
	loop_turn(loop, false);
	assert_string_equal(told, "ab");
	assert_true(is_freed(garbage)); /* it was passed before */
	loop_defer_free(loop, later);
	loop_free_with_turn(loop, large);
	loop_turn(loop, false);
	assert_string_equal(told, "abc");
	assert_true(is_freed(large));
#ifdef __SANITIZE_ADDRESS__
	assert_false(is_freed(later));
#endif
	loop_turn(loop, false);
	loop_turn(loop, false);
	assert_string_equal(told, "abcd.ab");
	assert_true(is_freed(later));
	while (aside_is_busy(loop))
		loop_turn(loop, false);
}

static void on_the_loop_nothing_gives_way(void **state)
{
	aside_init(&first, in_one);
	aside_start(loop, &first, 0);
	aside_open();
	assert_false(pause_is_allowed);
	take_long();
	aside_close();
	assert_string_equal(told, "1");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(gives_way_where_it_is_open),
		TEST(one_after_the_other),
		TEST(who_has_much_lets_others_go_first),
		TEST(has_its_share_of_a_turn_that_is_long),
		TEST(waiting_work_can_be_cancelled),
		TEST(finishing_does_the_rest_of_what_has_begun),
		TEST(what_it_holds_is_not_freed),
		TEST(only_what_it_may_hold_stays),
		TEST(on_the_loop_nothing_gives_way),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
