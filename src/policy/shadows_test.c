/* SPDX-License-Identifier: Apache-2.0 */
/* What two servers say of each other's tools. SEC-12 */
#include "policy/shadows.h"

#include "base/buf.h"
#include "base/unit_test.h"

static struct pins pins[2];
static const struct shadow_side sides[] = { { "a", &pins[0] }, { "b", &pins[1] } };
static struct buf told;
static size_t count;

static int begin(void **state)
{
	pins_init(&pins[0]);
	pins_init(&pins[1]);
	count = 0;
	return 0;
}

static int end(void **state)
{
	pins_fini(&pins[0]);
	pins_fini(&pins[1]);
	buf_fini(&told);
	return 0;
}

static void add(size_t side, enum permission_kind kind, const char *name, const char *text)
{
	const struct pin_item item = { .kind = kind,
				       .name = slice_str(name),
				       .folded = slice_str(name),
				       .definition.text = slice_str(text) };

	assert_int_equal(pins_note(&pins[side], &item), PIN_FIRST);
}

static void on_shadow(const struct shadow *shadow, void *arg)
{
	count++;
	buf_printf(&told, "%s %.*s %s %s %.*s;", shadow->side->server, SLICE_ARG(shadow->pin->name),
		   shadow->is_mention ? "names" : "is", shadow->other->server,
		   SLICE_ARG(shadow->tool->name));
}

static void assert_told(const char *text)
{
	told.len = 0;
	shadows_find(sides, ARRAY_LEN(sides), on_shadow, NULL);
	assert_string_equal(buf_terminate(&told), text);
}

static void one_name_twice_is_told_once(void **state)
{
	assert_told("");
	add(0, PERMISSION_TOOL, "search", "{}");
	add(0, PERMISSION_TOOL, "other", "{}");
	add(1, PERMISSION_TOOL, "search", "{}");
	add(1, PERMISSION_PROMPT, "other", "{}");
	assert_told("b search is a search;");
}

static void descriptions_name_whole_words(void **state)
{
	add(0, PERMISSION_TOOL, "send_mail", "{}");
	add(0, PERMISSION_TOOL, "cat", "{}");
	add(0, PERMISSION_TOOL, "own", "{\"description\":\"before send_mail\"}");
	add(1, PERMISSION_TOOL, "x1",
	    "{\"description\":\"Before SEND_mail. after \\u0073end_mail\"}");
	add(1, PERMISSION_PROMPT, "x2", "{\"description\":\"use 'send_mail'\"}");
	add(1, PERMISSION_TOOL, "x3", "{\"description\":\"send_mails resend_mail send mail cat\"}");
	add(1, PERMISSION_TOOL, "x4", "{\"title\":\"send_mail\",\"description\":7}");
	add(1, PERMISSION_RESOURCE, "x5", "{\"description\":\"send_mail\"}");
	assert_told("b x1 names a send_mail;b x2 names a send_mail;");
}

static void words_hold_every_letter_and_digit(void **state)
{
	add(0, PERMISSION_TOOL, "a0z9", "{}");
	add(1, PERMISSION_TOOL, "x1", "{\"description\":\"A0Z9\"}");
	add(1, PERMISSION_TOOL, "x2", "{\"description\":\"@a0z9[\"}");
	add(1, PERMISSION_TOOL, "x3", "{\"description\":\"/a0z9:`a0z9{\"}");
	assert_told("b x1 names a a0z9;b x2 names a a0z9;b x3 names a a0z9;");
}

static void what_waits_counts_and_what_has_gone_does_not(void **state)
{
	struct pin *pin;
	struct pin_item item = { .kind = PERMISSION_TOOL,
				 .name = SLICE("x"),
				 .folded = SLICE("x"),
				 .definition = { "1",
						 SLICE("{\"description\":\"first send_mail\"}") } };

	add(0, PERMISSION_TOOL, "send_mail", "{}");
	add(1, PERMISSION_TOOL, "x", "{}");
	assert_int_equal(pins_note(&pins[1], &item), PIN_DIFFERS);
	assert_told("b x names a send_mail;");
	pin = pins_find(&pins[0], PERMISSION_TOOL, SLICE_LIT("send_mail"));
	pin->is_gone = true;
	assert_told("");
}

static void they_are_bounded(void **state)
{
	char name[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "tool%d", i);
		add(0, PERMISSION_TOOL, name, "{}");
		add(1, PERMISSION_TOOL, name, "{\"description\":\"tool1 tool2\"}");
	}
	shadows_find(sides, ARRAY_LEN(sides), on_shadow, NULL);
	assert_int_equal(count, SHADOWS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_name_twice_is_told_once, begin, end),
		cmocka_unit_test_setup_teardown(descriptions_name_whole_words, begin, end),
		cmocka_unit_test_setup_teardown(words_hold_every_letter_and_digit, begin, end),
		cmocka_unit_test_setup_teardown(what_waits_counts_and_what_has_gone_does_not, begin,
						end),
		cmocka_unit_test_setup_teardown(they_are_bounded, begin, end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
