/* SPDX-License-Identifier: Apache-2.0 */
/* What is approved at first sight, what waits, and how much is kept. SEC-65 */
#include "policy/pins.c"

#include "base/unit_test.h"
#include "jsonrpc/scan.h"

static struct pins pins;

static int begin(void **state)
{
	pins_init(&pins);
	return 0;
}

static int end(void **state)
{
	pins_fini(&pins);
	return 0;
}

/* An item whose digest is all of this character. */
static enum pin_news note(const char *name, char digest, struct slice text)
{
	struct pin_item item = { .kind = PERMISSION_TOOL,
				 .name = slice_str(name),
				 .folded = slice_str(name),
				 .definition = { .text = text } };

	memset(item.definition.digest, digest, sizeof(item.definition.digest));
	return pins_note(&pins, &item);
}

static enum pin_news see(const char *name, char digest)
{
	return note(name, digest, SLICE_LIT("{}"));
}

static struct pin *find(const char *name)
{
	return pins_find(&pins, PERMISSION_TOOL, slice_str(name));
}

/* A whole list of tools: names of one character, each with its digest. */
static void look(const char *list)
{
	char name[2] = "";

	pins_begin_look(&pins);
	for (; list[0] != '\0'; list += 2) {
		name[0] = list[0];
		(void)see(name, list[1]);
	}
	pins_end_page(&pins, PERMISSION_TOOL, 0, 0);
}

static enum pin_state state_of(const char *name)
{
	struct pin *pin = find(name);

	return pin != NULL ? pin->state : PIN_UNSEEN;
}

static void the_first_list_is_approved(void **state)
{
	pins_begin_look(&pins);
	assert_int_equal(see("a", '1'), PIN_FIRST);
	pins_end_page(&pins, PERMISSION_TOOL, 0, 7);
	pins_begin_look(&pins); /* another page */
	assert_int_equal(see("b", '1'), PIN_FIRST);
	assert_int_equal(see("b", '1'), PIN_SAME);
	pins_end_page(&pins, PERMISSION_TOOL, 7, 0);
	assert_int_equal(see("c", '1'), PIN_CAME);
	assert_int_equal(see("c", '1'), PIN_SAME);
	assert_int_equal(state_of("a"), PIN_APPROVED);
	assert_int_equal(state_of("b"), PIN_APPROVED);
	assert_int_equal(state_of("c"), PIN_NEW);
	assert_int_equal(state_of("d"), PIN_UNSEEN);
	assert_int_equal(pins.waiting, 1);
	/* The lists of other kinds are still to be seen. */
	assert_false(pins.is_known[PERMISSION_PROMPT]);
}

/* A client may ask for any page, and servers answer with an empty list where they know none. */
static void only_pages_in_a_row_end_the_first_list(void **state)
{
	pins_end_page(&pins, PERMISSION_TOOL, 9, 0);
	assert_int_equal(see("a", '1'), PIN_FIRST);
	pins_end_page(&pins, PERMISSION_TOOL, 0, 7);
	pins_end_page(&pins, PERMISSION_TOOL, 9, 0);
	assert_int_equal(see("b", '1'), PIN_FIRST);
	pins_end_page(&pins, PERMISSION_TOOL, 7, 8);
	pins_end_page(&pins, PERMISSION_TOOL, 7, 0);
	assert_false(pins.is_known[PERMISSION_TOOL]);
	assert_int_equal(pins.changes, 2);
	pins_end_page(&pins, PERMISSION_TOOL, 8, 0);
	assert_true(pins.is_known[PERMISSION_TOOL]);
	assert_false(pins.is_known[PERMISSION_PROMPT]);
	assert_int_equal(pins.changes, 3);
	pins_end_page(&pins, PERMISSION_TOOL, 0, 0);
	assert_int_equal(pins.changes, 3);
	assert_int_equal(see("c", '1'), PIN_CAME);
}

/* Else a server could add tools for ever. */
static void a_list_that_never_ends_does(void **state)
{
	for (uint64_t i = 0; i < PINS_PAGES_MAX; i++) {
		assert_false(pins.is_known[PERMISSION_TOOL]);
		pins_end_page(&pins, PERMISSION_TOOL, 0, i + 1);
	}
	assert_true(pins.is_known[PERMISSION_TOOL]);
}

static void a_change_waits_whatever_comes_after_it(void **state)
{
	look("a1b1");
	assert_int_equal(see("a", '2'), PIN_DIFFERS);
	assert_int_equal(see("a", '2'), PIN_SAME);
	assert_int_equal(see("a", '1'), PIN_SAME);
	assert_int_equal(state_of("a"), PIN_CHANGED);
	assert_int_equal(state_of("b"), PIN_APPROVED);
	pins.changes = 0;
	assert_int_equal(see("a", '3'), PIN_DIFFERS);
	assert_int_equal(pins.changes, 1); /* that is to be remembered, too */
	assert_int_equal(find("a")->waiting.digest[0], '3');
	pins_approve(&pins, find("a"));
	assert_int_equal(state_of("a"), PIN_APPROVED);
	assert_int_equal(see("a", '3'), PIN_SAME);
	assert_int_equal(see("a", '1'), PIN_DIFFERS);
	pins_reject(&pins, find("a"));
	assert_int_equal(see("a", '3'), PIN_SAME);
	assert_int_equal(state_of("a"), PIN_APPROVED);
	assert_int_equal(pins.decisions, 2);
	assert_int_equal(pins.waiting, 0);
}

static void a_new_one_waits_or_is_forgotten(void **state)
{
	look("a1");
	assert_int_equal(see("n", '1'), PIN_CAME);
	assert_int_equal(see("n", '2'), PIN_DIFFERS);
	assert_int_equal(state_of("n"), PIN_NEW);
	pins_reject(&pins, find("n"));
	assert_null(find("n"));
	assert_int_equal(see("n", '2'), PIN_CAME);
	pins_approve(&pins, find("n"));
	assert_int_equal(see("n", '2'), PIN_SAME);
	assert_int_equal(state_of("n"), PIN_APPROVED);
}

static void what_has_gone_is_told_once_and_may_come_back(void **state)
{
	look("a1b1c1");
	assert_null(pins_take_gone(&pins, PERMISSION_TOOL, NULL));
	pins_begin_look(&pins);
	assert_null(pins_take_gone(&pins, PERMISSION_PROMPT, NULL)); /* a list of others */
	look("b1");
	assert_ptr_equal(pins_take_gone(&pins, PERMISSION_TOOL, NULL), find("a"));
	assert_ptr_equal(pins_take_gone(&pins, PERMISSION_TOOL, NULL), find("c"));
	assert_null(pins_take_gone(&pins, PERMISSION_TOOL, NULL));
	look("b1");
	assert_null(pins_take_gone(&pins, PERMISSION_TOOL, NULL));
	assert_int_equal(see("a", '1'), PIN_CAME_BACK);
	assert_int_equal(see("c", '2'), PIN_DIFFERS);
	assert_int_equal(state_of("a"), PIN_APPROVED);
}

static void two_of_one_name_are_a_change(void **state)
{
	look("a1a2");
	assert_int_equal(state_of("a"), PIN_CHANGED);
	look("a1a2");
	assert_int_equal(state_of("a"), PIN_CHANGED);
}

static void texts_are_bounded(void **state)
{
	static char text[PIN_TEXT_BYTES_MAX + 1];
	char name[16];

	memset(text, 'x', sizeof(text));
	assert_int_equal(note("long", '1', slice_of(text, sizeof(text))), PIN_FIRST);
	assert_int_equal(find("long")->approved.text.n, 0);
	assert_int_equal(note("long", '2', slice_of(text, sizeof(text))), PIN_DIFFERS);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(note(name, '1', slice_of(text, PIN_TEXT_BYTES_MAX)), PIN_FIRST);
	}
	assert_int_equal(pins.text_bytes, PINS_TEXT_BYTES_MAX);
	assert_int_equal(find("n0")->approved.text.n, PIN_TEXT_BYTES_MAX);
	assert_int_equal(find("n999")->approved.text.n, 0);
	/* The digest is there all the same. */
	assert_int_equal(see("n999", '2'), PIN_DIFFERS);
}

static void items_are_bounded(void **state)
{
	static char name[PIN_NAME_BYTES_MAX + 2];

	memset(name, 'x', PIN_NAME_BYTES_MAX + 1);
	assert_int_equal(see(name, '1'), PIN_NO_ROOM);
	assert_int_equal(see("", '1'), PIN_NO_ROOM);
	for (int i = 0; i < PINS_MAX; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(see(name, '1'), PIN_FIRST);
	}
	assert_int_equal(see("more", '1'), PIN_NO_ROOM);
	assert_int_equal(pins.with_text, PINS_WITH_TEXT_MAX);
	assert_int_equal(see("n0", '2'), PIN_DIFFERS);
	pins_approve(&pins, find("n0"));
	assert_int_equal(pins.with_text, PINS_WITH_TEXT_MAX);
}

static void names_are_bounded(void **state)
{
	static char name[PIN_NAME_BYTES_MAX + 1];
	const int room = (int)(PINS_NAME_BYTES_MAX / PIN_NAME_BYTES_MAX);

	look("");
	memset(name, 'x', PIN_NAME_BYTES_MAX);
	for (int i = 0; i <= room; i++) {
		memcpy(name, (char[]){ (char)('a' + i % 26), (char)('a' + i / 26) }, 2);
		assert_int_equal(see(name, '1'), i < room ? PIN_CAME : PIN_NO_ROOM);
	}
	assert_int_equal(pins.name_bytes, PINS_NAME_BYTES_MAX);
	/* What is forgotten makes room. */
	pins_reject(&pins, container_of(pins.all.next, struct pin, link));
	assert_int_equal(see(name, '1'), PIN_CAME);
}

static void names_mean_what_they_mean_in_rules(void **state)
{
	const struct json spelled = { JSON_STRING, true, SLICE("\"\\u0041 \"") };
	const struct json number = { JSON_NUMBER, false, SLICE("1") };

	look("a1");
	assert_int_equal(pins_state_json(&pins, PERMISSION_TOOL, spelled), PIN_APPROVED);
	assert_int_equal(pins_state_json(&pins, PERMISSION_PROMPT, spelled), PIN_UNSEEN);
	assert_int_equal(pins_state_json(&pins, PERMISSION_TOOL, number), PIN_UNSEEN);
}

static void what_was_remembered_is_as_it_was(void **state)
{
	struct pin from = { .kind = PERMISSION_PROMPT,
			    .state = PIN_CHANGED,
			    .name = SLICE("P"),
			    .folded = SLICE("p"),
			    .approved = { .digest = "1", .text = SLICE("{1}") },
			    .waiting = { .digest = "2", .text = SLICE("{2}") } };
	struct pin *pin;

	assert_true(pins_restore(&pins, &from));
	assert_false(pins_restore(&pins, &from));
	pin = pins_find(&pins, PERMISSION_PROMPT, SLICE_LIT("p"));
	assert_int_equal(pin->state, PIN_CHANGED);
	assert_true(slice_is_equal(pin->approved.text, SLICE_LIT("{1}")));
	assert_true(slice_is_equal(pin->waiting.text, SLICE_LIT("{2}")));
	assert_int_equal(pins.waiting, 1);
}

/* Without a mode, what was seen last is approved; it is the first sight when a mode is set. */
static void what_is_followed_is_the_first_sight(void **state)
{
	pins.follows = true;
	look("a1b1");
	look("a2c1");
	assert_int_equal(pins.waiting, 0);
	pins.follows = false;
	assert_int_equal(see("a", '2'), PIN_SAME);
	assert_int_equal(see("c", '1'), PIN_SAME);
	assert_int_equal(see("b", '2'), PIN_DIFFERS);
	assert_int_equal(see("d", '1'), PIN_CAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_followed_is_the_first_sight, begin, end),
		cmocka_unit_test_setup_teardown(the_first_list_is_approved, begin, end),
		cmocka_unit_test_setup_teardown(a_change_waits_whatever_comes_after_it, begin, end),
		cmocka_unit_test_setup_teardown(a_new_one_waits_or_is_forgotten, begin, end),
		cmocka_unit_test_setup_teardown(what_has_gone_is_told_once_and_may_come_back, begin,
						end),
		cmocka_unit_test_setup_teardown(two_of_one_name_are_a_change, begin, end),
		cmocka_unit_test_setup_teardown(texts_are_bounded, begin, end),
		cmocka_unit_test_setup_teardown(items_are_bounded, begin, end),
		cmocka_unit_test_setup_teardown(names_are_bounded, begin, end),
		cmocka_unit_test_setup_teardown(only_pages_in_a_row_end_the_first_list, begin, end),
		cmocka_unit_test_setup_teardown(a_list_that_never_ends_does, begin, end),
		cmocka_unit_test_setup_teardown(names_mean_what_they_mean_in_rules, begin, end),
		cmocka_unit_test_setup_teardown(what_was_remembered_is_as_it_was, begin, end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
