/* SPDX-License-Identifier: Apache-2.0 */
#include "router/wait_queue.h"

#include "base/unit_test.h"

static struct waiter *timed_out, *left;

static void on_timeout(struct wait_queue *queue, struct waiter *waiter)
{
	assert_ptr_equal(waiter->queue, queue);
	timed_out = waiter;
}

static void on_left(struct wait_queue *queue, struct waiter *waiter)
{
	assert_null(waiter->queue);
	left = waiter;
}

static const struct wait_queue_ops ops = { .on_timeout = on_timeout, .on_left = on_left };
static const struct wait_queue_ops quiet_ops = { .on_timeout = on_timeout };

static void is_at(const struct wait_queue *queue, size_t count, size_t bytes)
{
	assert_int_equal(queue->count, count);
	assert_int_equal(queue->bytes, bytes);
	assert_int_equal(wait_queue_is_empty(queue), count == 0);
}

static void count_and_bytes_are_kept(void **state)
{
	struct waiter waiters[3] = { { .bytes = 0 } };
	struct wait_queue queue;

	wait_queue_init(&queue, &ops);
	is_at(&queue, 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(waiters); i++)
		wait_queue_append(&queue, &waiters[i], 10 + i);
	is_at(&queue, 3, 33);
	assert_ptr_equal(wait_queue_first(&queue), &waiters[0]);
	assert_ptr_equal(wait_queue_last(&queue), &waiters[2]);
	wait_queue_remove(&waiters[1]);
	is_at(&queue, 2, 22);
	wait_queue_append(&queue, &waiters[1], 1);
	is_at(&queue, 3, 23);
	assert_ptr_equal(wait_queue_last(&queue), &waiters[1]);
	for (size_t i = 0; i < ARRAY_LEN(waiters); i++)
		wait_queue_remove(&waiters[i]);
	is_at(&queue, 0, 0);
}

static void owner_hears_of_who_leaves(void **state)
{
	struct waiter waiter = { .bytes = 0 };
	struct wait_queue queue, quiet;

	wait_queue_init(&queue, &ops);
	wait_queue_init(&quiet, &quiet_ops);
	left = NULL;
	waiter_leave(&waiter); /* of no queue */
	wait_queue_append(&quiet, &waiter, 5);
	waiter_leave(&waiter);
	is_at(&quiet, 0, 0);
	assert_null(left);
	wait_queue_append(&queue, &waiter, 7);
	waiter_time_out(&waiter);
	assert_ptr_equal(timed_out, &waiter);
	is_at(&queue, 1, 7); /* what becomes of it is the owner's to say */
	waiter_leave(&waiter);
	assert_ptr_equal(left, &waiter);
	assert_int_equal(left->bytes, 7);
	is_at(&queue, 0, 0);
}

static void on_turn_over(struct fair_queue *queue, struct waiter *waiter)
{
	timed_out = waiter;
}

static const struct fair_queue_ops fair_ops = { .on_timeout = on_turn_over };

/* Turns go round among callers; who has left has had its turn. */
static void callers_take_turns(void **state)
{
	static const int a, b, c;
	const void *const keys[] = { &a, &a, &a, &b, &b, &c };
	static const size_t order[] = { 3, 5, 1, 4, 2 };
	struct waiter waiters[6] = { { .bytes = 0 } };
	struct fair_queue queue;

	fair_queue_init(&queue, &fair_ops);
	for (size_t i = 0; i < ARRAY_LEN(waiters); i++)
		fair_queue_push(&queue, &waiters[i], keys[i], i);
	assert_true(queue.count == 6 && queue.bytes == 15 && !fair_queue_is_empty(&queue));
	waiter_time_out(&waiters[5]);
	assert_ptr_equal(timed_out, &waiters[5]);
	waiter_leave(&waiters[0]);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		assert_ptr_equal(fair_queue_first(&queue), &waiters[order[i]]);
		assert_ptr_equal(fair_queue_take(&queue), &waiters[order[i]]);
	}
	assert_true(queue.count == 0 && queue.bytes == 0 && fair_queue_is_empty(&queue));
}

/* The newest of the caller with most, if the one who comes would have fewer; nobody's otherwise. */
static void who_has_most_gives_way(void **state)
{
	static const int a, b, c;
	const void *const keys[] = { &b, &a, &a };
	static const size_t bytes[] = { 100, 10, 20 };
	static const struct {
		const void *key;
		enum fair_queue_measure measure;
		size_t more;
		int gives; /* -1: nobody */
	} rows[] = {
		{ &c, FAIR_QUEUE_COUNT, 1, 2 },  { &b, FAIR_QUEUE_COUNT, 1, -1 },
		{ &a, FAIR_QUEUE_COUNT, 1, -1 }, { &c, FAIR_QUEUE_COUNT, 2, -1 },
		{ &c, FAIR_QUEUE_BYTES, 99, 0 }, { &c, FAIR_QUEUE_BYTES, 100, -1 },
		{ &a, FAIR_QUEUE_BYTES, 69, 0 }, { &a, FAIR_QUEUE_BYTES, 70, -1 },
	};
	struct waiter waiters[3] = { { .bytes = 0 } };
	struct fair_queue queue;

	fair_queue_init(&queue, &fair_ops);
	assert_null(fair_queue_find_excess(&queue, &c, FAIR_QUEUE_COUNT, 0));
	for (size_t i = 0; i < ARRAY_LEN(waiters); i++)
		fair_queue_push(&queue, &waiters[i], keys[i], bytes[i]);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_ptr_equal(fair_queue_find_excess(&queue, rows[i].key, rows[i].measure,
							rows[i].more),
				 rows[i].gives < 0 ? NULL : &waiters[rows[i].gives]);
	waiter_leave(&waiters[2]); /* each has one now */
	assert_null(fair_queue_find_excess(&queue, &c, FAIR_QUEUE_COUNT, 1));
	for (size_t i = 0; i < 2; i++)
		waiter_leave(&waiters[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(count_and_bytes_are_kept),
		cmocka_unit_test(owner_hears_of_who_leaves),
		cmocka_unit_test(callers_take_turns),
		cmocka_unit_test(who_has_most_gives_way),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
