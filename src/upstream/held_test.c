/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for a token: in order, without what was given up. */
#include "upstream/held.h"

#include "base/mem.h"
#include "base/unit_test.h"

#define MANY 200000

static struct held held;

static void add(uint64_t id, const char *text)
{
	struct buf message = { 0 };

	buf_append_str(&message, text);
	held_add(&held, id, &message);
	assert_int_equal(message.len, 0);
}

static void assert_next(const char *text)
{
	at_end(buf_fini) struct buf message = { 0 };

	assert_true(held_take(&held, &message));
	assert_int_equal(message.len, strlen(text));
	assert_memory_equal(message.data, text, message.len);
}

static int setup(void **state)
{
	held_init(&held);
	return 0;
}

static int teardown(void **state)
{
	held_fini(&held);
	return held.bytes != 0;
}

static void order_stays(void **state)
{
	struct buf none;

	assert_true(held_is_empty(&held));
	assert_false(held_take(&held, &none));
	add(1, "a\n");
	add(0, "note\n");
	add(2, "b\n");
	add(3, "c\n");
	assert_true(held_give_up(&held, 2));
	assert_false(held_give_up(&held, 2));
	assert_false(held_give_up(&held, 0));
	assert_false(held_give_up(&held, 4));
	assert_next("a\n");
	assert_false(held_give_up(&held, 1));
	assert_next("note\n");
	add(1, "d\n");
	assert_next("c\n");
	assert_next("d\n");
	assert_true(held_is_empty(&held));
	assert_int_equal(held.bytes, 0);
}

static void all_can_be_moved(void **state)
{
	struct held to;
	size_t bytes;

	add(1, "a\n");
	add(2, "b\n");
	bytes = held.bytes;
	assert_true(bytes > 4);
	held_move(&to, &held);
	assert_true(held_is_empty(&held));
	assert_int_equal(to.bytes, bytes);
	assert_false(held_give_up(&held, 1));
	assert_true(held_give_up(&to, 1));
	add(2, "other\n");
	assert_next("other\n");
	held_fini(&to);
	add(5, "left\n");
}

/* REL-54: one with a walk over the others for each would take many minutes. */
static void giving_up_walks_over_none(void **state)
{
	for (uint64_t id = 1; id <= MANY; id++)
		add(id, "{\"jsonrpc\":\"2.0\"}\n");
	for (uint64_t id = MANY; id > 1; id--)
		assert_true(held_give_up(&held, id));
	assert_next("{\"jsonrpc\":\"2.0\"}\n");
	assert_int_equal(held.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(order_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(all_can_be_moved, setup, teardown),
		cmocka_unit_test_setup_teardown(giving_up_walks_over_none, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
