/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of logs, whatever the store answers. CLU-SESS-04 */
#include "cluster/log_copies.h"

#include "cluster/store_stage.h"
#include "session/stream_log.h"

static struct stream_log_owner *on_found(void *arg, struct slice text)
{
	return NULL;
}

/* EVAL SCRIPT 3 SESSION STREAMS STREAM NODE NUMBER FROM TEXT LIFE ID */
static void store_is_given_text(const char *from, const char *text)
{
	TURN_UNTIL(has_order(&world.commands));
	assert_non_null(strstr(word(&world.commands, 1), "APPEND"));
	assert_string_equal(word(&world.commands, 3), "p:s:" ID_A);
	assert_string_equal(word(&world.commands, 4), "p:e:" ID_A);
	assert_string_equal(word(&world.commands, 5), "p:e:" ID_A ":3");
	assert_string_equal(word(&world.commands, 6), "a");
	assert_string_equal(word(&world.commands, 7), "3");
	assert_string_equal(word(&world.commands, 8), from);
	assert_string_equal(word(&world.commands, 9), text);
	assert_string_equal(word(&world.commands, 11), ID_A);
}

#define FIRST "of " ID_A " 7 3 1 9"

static void store_removes(const char *log)
{
	TURN_UNTIL(has_order(&world.commands));
	assert_non_null(strstr(word(&world.commands, 1), "DEL"));
	assert_string_equal(word(&world.commands, 5), log);
	answers(&world.commands, ":1\r\n");
}

/* CLU-SESS-04: as they grow, each byte once; anew if the store has lost them; and they go. */
static void logs_are_copied(void **state)
{
	static struct stream_log *log, *odd;
	struct stream_log_owner owner;
	struct stream_logs logs;

	stream_logs_open(&logs, world.streams, on_found, NULL);
	stream_log_owner_init(&owner);
	hears(asks(FETCH_STORE_LOGGED, ""), 503, "");
	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	stream_log_new(&logs, &owner, &odd);
	stream_log_append(&odd, SLICE_LIT("of nobody 1 1 1 "), SLICE_LIT(""));
	stream_log_new(&logs, &owner, &log);
	stream_log_append(&log, SLICE_LIT(FIRST), SLICE_LIT(""));
	asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("0", FIRST "\n");
	/* Nothing more, and no answer, before the store has answered. */
	stream_log_append(&log, SLICE_LIT("waits 1 4 "), SLICE_LIT("{}"));
	hears(asks(FETCH_STORE_SAVED, ""), 200, "");
	assert_false(has_order(&world.commands));
	asks(FETCH_STORE_LOGGED, "");
	store_is_given_nothing();
	answers(&world.commands, ":1\r\n");
	store_is_given_text("55", "waits 1 4 {}\n");
	answers(&world.commands, "$5\r\nother\r\n");
	store_is_given_text("0", FIRST "\nwaits 1 4 {}\n");
	answers(&world.commands, ":1\r\n");
	hears(world.last_id - 1, 200, "");
	store_is_given_nothing();
	/* Another one of the same stream takes its place: nothing is removed. */
	stream_log_replace(&log, SLICE_LIT(FIRST "\n"));
	asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, ":1\r\n");
	hears(world.last_id, 200, "");
	store_is_given_nothing();
	store_accepts();
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, "-OOM\r\n");
	hears(asks(FETCH_STORE_LOGGED, ""), 200, "");
	store_is_given_nothing(); /* before all is looked at again */
	pass(5000);
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, ":1\r\n");
	store_is_given_nothing();
	pass(1200000); /* before it expires */
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, ":1\r\n");
	store_is_given_nothing();
	store_accepts();
	asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, ":1\r\n");
	hears(world.last_id, 200, "");
	stream_log_free(&log);
	stream_log_free(&odd);
	asks(FETCH_STORE_LOGGED, "");
	store_removes("p:e:" ID_A ":3");
	hears(world.last_id, 200, "");
	store_is_given_nothing();
	stream_logs_fini(&logs);
}

/* CLU-SESS-04: what the store has not answered is written anew; what nobody would take goes, as does what another node has. */
static void a_log_may_be_written_in_vain(void **state)
{
	static const char *const odd[] = { "of " ID_A " 7 x 1 9", "of " ID_A " 7",
					   "to " ID_A " 7 3 1 9" };
	static struct stream_log *log, *other;
	struct stream_log_owner owner;
	struct stream_logs logs;
	at_end(mem_free) char *text = mem_alloc(LOG_COPY_BYTES_MAX);
	uint32_t id;

	memset(text, 'x', LOG_COPY_BYTES_MAX);
	stream_logs_open(&logs, world.streams, on_found, NULL);
	stream_log_owner_init(&owner);
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		stream_log_new(&logs, &owner, &other);
		stream_log_append(&other, slice_str(odd[i]), SLICE_LIT(""));
		other->holder = NULL;
	}
	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	hears(asks(FETCH_STORE_LOGGED, ""), 200, "");
	stream_log_new(&logs, &owner, &log);
	stream_log_append(&log, SLICE_LIT(FIRST), SLICE_LIT(""));
	id = asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("0", FIRST "\n");
	end_close(&world.commands);
	hears(id, 503, "");
	hears(asks(FETCH_STORE_LOGGED, ""), 503, "");
	end_close(&world.channel);
	store_accepts();
	store_is_given_text("0", FIRST "\n");
	answers(&world.commands, ":1\r\n");
	hears(asks(FETCH_STORE_LOGGED, ""), 200, "");
	stream_log_append(&log, SLICE_LIT("x"), SLICE_LIT(""));
	id = asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("55", "x\n");
	/* As long as may be; then longer. */
	stream_log_append(&log, slice_of(text, LOG_COPY_BYTES_MAX - 58), SLICE_LIT(""));
	answers(&world.commands, ":1\r\n");
	hears(id, 200, "");
	id = asks(FETCH_STORE_LOGGED, "");
	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 8), "57");
	answers(&world.commands, ":1\r\n");
	hears(id, 200, "");
	stream_log_append(&log, SLICE_LIT(""), SLICE_LIT(""));
	id = asks(FETCH_STORE_LOGGED, "");
	store_removes("p:e:" ID_A ":3");
	hears(id, 200, "");
	store_is_given_nothing();
	stream_log_replace(&log, SLICE_LIT(FIRST "\n"));
	id = asks(FETCH_STORE_LOGGED, "");
	store_is_given_text("0", FIRST "\n");
	stream_log_owner_fini(&owner); /* it is answered when there is none */
	answers(&world.commands, "-OOM\r\n");
	hears(id, 200, "");
	id = asks(FETCH_STORE_LOGGED, "");
	store_removes("p:e:" ID_A ":3");
	hears(id, 200, "");
	store_is_given_nothing();
	stream_logs_fini(&logs);
}

/* CLU-SESS-04: no more than the store has answered for, and what is gone goes when all else is there. */
static void many_logs_are_copied(void **state)
{
	enum {
		EACH = 256 * 1024,
		FIRST_BYTES = sizeof(FIRST),
		TEXT_BYTES = EACH - FIRST_BYTES - 1
	};
	static struct stream_log *many[5]; /* a fourth of what is sent at once each */
	struct stream_log_owner owner;
	struct stream_logs logs;
	at_end(mem_free) char *text = mem_alloc(TEXT_BYTES + 1);

	memset(text, 'x', TEXT_BYTES);
	text[TEXT_BYTES] = '\0';
	stream_logs_open(&logs, world.streams, on_found, NULL);
	stream_log_owner_init(&owner);
	store_accepts();
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	for (int i = 0; i < 5; i++) {
		at_end(mem_free) char *first = mem_printf("of " ID_A " 7 %d 1 9\n", i + 1);

		stream_log_new(&logs, &owner, &many[i]);
		stream_log_append(&many[i], slice_str(first), slice_str(text));
		assert_int_equal(many[i]->size, EACH);
	}
	asks(FETCH_STORE_LOGGED, "");
	for (int i = 0; i < 4; i++)
		TURN_UNTIL(has_order(&world.commands));
	stream_log_free(&many[0]);
	for (int i = 0; i < 50; i++) {
		turn();
		assert_false(has_order(&world.commands));
	}
	for (int i = 0; i < 4; i++)
		answers(&world.commands, ":1\r\n");
	TURN_UNTIL(has_order(&world.commands));
	assert_string_equal(word(&world.commands, 5), "p:e:" ID_A ":5");
	answers(&world.commands, ":1\r\n");
	store_removes("p:e:" ID_A ":1");
	hears(world.last_id, 200, "");
	stream_log_owner_fini(&owner);
	stream_logs_fini(&logs);
}

/* Whatever is under way, it leaves nothing: by teardown. */
static void a_gateway_may_end_at_any_time(void **state)
{
	static struct stream_log *log;
	struct stream_log_owner owner;
	struct stream_logs logs;

	keeps(LINE(ID_A, ""));
	stream_logs_open(&logs, world.streams, on_found, NULL);
	stream_log_owner_init(&owner);
	stream_log_new(&logs, &owner, &log);
	stream_log_append(&log, SLICE_LIT(FIRST), SLICE_LIT(""));
	store_accepts();
	store_is_given(ID_A, LINE(ID_A, ""));
	hears(asks(FETCH_STORE_WATCH, ""), 200, "up\n");
	store_announces("denial 0001700000000000 1 18446744073709551615\tsub\ti\tx");
	asks(FETCH_STORE_LOGGED, "");
	TURN_UNTIL(has_order(&world.commands));
	for (int i = 0; i < STORE_TAKING_MAX + 2; i++)
		asks(FETCH_STORE_TAKE, OWNER "\n" ID_A);
	TURN_UNTIL(has_order(&world.commands));
	stream_log_owner_fini(&owner);
	stream_logs_fini(&logs);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_stage_open, store_stage_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(logs_are_copied),
		CASE(a_log_may_be_written_in_vain),
		CASE(many_logs_are_copied),
		CASE(a_gateway_may_end_at_any_time),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
