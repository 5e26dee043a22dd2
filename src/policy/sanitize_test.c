/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is taken out, what is marked, and what stays. Each text is looked at in a block of exactly its size, and again after
 * the change: a second time nothing is found. SEC-52
 */
#include "policy/sanitize.c"

#include <stdlib.h>

#include "base/unit_test.h"

static const struct sanitize_rules strip = { SANITIZE_STRIP, SANITIZE_STRIP };
static const struct sanitize_rules mark = { SANITIZE_MARK, SANITIZE_MARK };
static struct sanitize_counts counts;

/* Caller owns; NULL: nothing was changed. */
static char *sanitize(const struct sanitize_rules *rules, struct slice text)
{
	struct buf out = { 0 };
	char *copy = malloc(text.n); /* exact: a read behind it is seen */
	bool is_changed;

	memcpy(copy, text.p, text.n);
	counts = (struct sanitize_counts){ 0 };
	is_changed = sanitize_text(rules, slice_of(copy, text.n), &out, &counts);
	free(copy);
	assert_int_equal(is_changed, out.len > 0);
	assert_int_equal(is_changed, counts.controls + counts.invisible > 0);
	if (is_changed)
		buf_terminate(&out);
	return out.data;
}

static void assert_becomes(const struct sanitize_rules *rules, const char *text,
			   const char *expected)
{
	char *is = sanitize(rules, slice_str(text));
	char *again;

	if (is == NULL || strcmp(is, expected) != 0)
		fail_msg("%s: %s, not %s", text, is != NULL ? is : "no change", expected);
	again = sanitize(rules, slice_str(is));
	assert_null(again);
	free(is);
}

static void assert_stays(const struct sanitize_rules *rules, struct slice text)
{
	char *is = sanitize(rules, text);

	if (is != NULL)
		fail_msg("%.*s: %s", SLICE_ARG(text), is);
}

static const struct {
	const char *text;
	const char *stripped;
	const char *marked;
	uint64_t controls; /* when stripped */
	uint64_t invisible;
} rows[] = {
	/* controls */
	{ "\"a\\u0000b\"", "\"ab\"", "\"a\\\\u{0}b\"", 1, 0 },
	{ "\"a\\bb\"", "\"ab\"", "\"a\\\\u{8}b\"", 1, 0 },
	{ "\"a\\fb\"", "\"ab\"", "\"a\\\\u{c}b\"", 1, 0 },
	{ "\"a\x7f"
	  "b\"",
	  "\"ab\"", "\"a\\\\u{7f}b\"", 1, 0 },
	{ "\"a\xc2\x85 b\"", "\"a b\"", "\"a\\\\u{85} b\"", 1, 0 },
	{ "\"a\\u0085b\\u009F\"", "\"ab\"", "\"a\\\\u{85}b\\\\u{9f}\"", 2, 0 },
	{ "\"a\\n\\t\\r\\u000a\\u001fb\"", "\"a\\n\\t\\r\\u000ab\"",
	  "\"a\\n\\t\\r\\u000a\\\\u{1f}b\"", 1, 0 },
	/* escape sequences */
	{ "\"\\u001b[31mred\\u001b[0m\"", "\"red\"", "\"\\\\u{1b}[31mred\\\\u{1b}[0m\"", 2, 0 },
	{ "\"\\u001b[38;5;1 qx\"", "\"x\"", "\"\\\\u{1b}[38;5;1 qx\"", 1, 0 },
	{ "\"\\u009b2Jx\"", "\"x\"", "\"\\\\u{9b}2Jx\"", 1, 0 },
	{ "\"\xc2\x9b"
	  "2Jx\"",
	  "\"x\"", "\"\\\\u{9b}2Jx\"", 1, 0 },
	{ "\"\\u001b]0;title\\u0007x\"", "\"x\"", "\"\\\\u{1b}]0;title\\\\u{7}x\"", 1, 0 },
	{ "\"\\u001b]8;;http://a\\u001b\\\\x\"", "\"x\"", "\"\\\\u{1b}]8;;http://a\\\\u{1b}\\\\x\"",
	  1, 0 },
	{ "\"\\u001bPq\u00e9\\u009cx\"", "\"x\"", "\"\\\\u{1b}Pq\u00e9\\\\u{9c}x\"", 1, 0 },
	{ "\"\\u009d0;t\\u001b\\\\x\"", "\"x\"", "\"\\\\u{9d}0;t\\\\u{1b}\\\\x\"", 1, 0 },
	{ "\"\\u001b(Bx\"", "\"x\"", "\"\\\\u{1b}(Bx\"", 1, 0 },
	{ "\"\\u001bcx\"", "\"x\"", "\"\\\\u{1b}cx\"", 1, 0 },
	{ "\"\\u001b7x\\u001bMy\"", "\"xy\"", "\"\\\\u{1b}7x\\\\u{1b}My\"", 2, 0 },
	{ "\"\\u001b\\u005b31mx\"", "\"x\"", "\"\\\\u{1b}\\u005b31mx\"", 1, 0 },
	/* sequences that are none, or do not end: what can be seen stays */
	{ "\"\\u001b\"", "\"\"", "\"\\\\u{1b}\"", 1, 0 },
	{ "\"\\u001b[\"", "\"\"", "\"\\\\u{1b}[\"", 1, 0 },
	{ "\"\\u001b[3\"", "\"\"", "\"\\\\u{1b}[3\"", 1, 0 },
	{ "\"\\u001b[3\u00e9\"", "\"\u00e9\"", "\"\\\\u{1b}[3\u00e9\"", 1, 0 },
	{ "\"\\u001b\u00e9\"", "\"\u00e9\"", "\"\\\\u{1b}\u00e9\"", 1, 0 },
	{ "\"\\u001b]0;all of it\"", "\"0;all of it\"", "\"\\\\u{1b}]0;all of it\"", 1, 0 },
	{ "\"\\u001b]0;a\\nb\\u0007\"", "\"0;a\\nb\"", "\"\\\\u{1b}]0;a\\nb\\\\u{7}\"", 2, 0 },
	{ "\"\\u001b]a\\u001b]b\"", "\"ab\"", "\"\\\\u{1b}]a\\\\u{1b}]b\"", 2, 0 },
	{ "\"\\u001b\\u001b[1mx\"", "\"x\"", "\"\\\\u{1b}\\\\u{1b}[1mx\"", 2, 0 },
	{ "[\"\\u001b[\",\"1m\"]", "[\"\",\"1m\"]", "[\"\\\\u{1b}[\",\"1m\"]", 1, 0 },
	/* direction */
	{ "\"a\u202eb\u202c\"", "\"ab\"", "\"a\\\\u{202e}b\\\\u{202c}\"", 0, 2 },
	{ "\"a\\u202Eb\"", "\"ab\"", "\"a\\\\u{202e}b\"", 0, 1 },
	{ "\"\u2066a\u2069\u200e\u200f\u061c\"", "\"a\"",
	  "\"\\\\u{2066}a\\\\u{2069}\\\\u{200e}\\\\u{200f}\\\\u{61c}\"", 0, 5 },
	/* nothing to see */
	{ "\"a\u200bb\ufeff\u2060\u00ad\u180e\"", "\"ab\"",
	  "\"a\\\\u{200b}b\\\\u{feff}\\\\u{2060}\\\\u{ad}\\\\u{180e}\"", 0, 5 },
	{ "\"\u2061\u2064\u034f\u115f\u3164\uffa0\u17b4\ufff9\"", "\"\"",
	  "\"\\\\u{2061}\\\\u{2064}\\\\u{34f}\\\\u{115f}\\\\u{3164}\\\\u{ffa0}\\\\u{17b4}\\\\u{fff9}\"",
	  0, 8 },
	{ "\"a\U000e0041\U000e0042\"", "\"a\"", "\"a\\\\u{e0041}\\\\u{e0042}\"", 0, 2 },
	{ "\"a\\udb40\\udc41\"", "\"a\"", "\"a\\\\u{e0041}\"", 0, 1 },
	{ "\"a\\uDB40\\uDC41\U0001d173\U0001bca0\"", "\"a\"",
	  "\"a\\\\u{e0041}\\\\u{1d173}\\\\u{1bca0}\"", 0, 3 },
	/* joiners and selectors where nobody needs them */
	{ "\"a\u200db\u200cc\"", "\"abc\"", "\"a\\\\u{200d}b\\\\u{200c}c\"", 0, 2 },
	{ "\"\u0645\u200c\u200c\u0645\"", "\"\u0645\u200c\u0645\"",
	  "\"\u0645\u200c\\\\u{200c}\u0645\"", 0, 1 },
	{ "\"\U0001f468\u200da\"", "\"\U0001f468a\"", "\"\U0001f468\\\\u{200d}a\"", 0, 1 },
	{ "\"\U0001f468\u200d\u200d\U0001f469\"", "\"\U0001f468\u200d\U0001f469\"",
	  "\"\U0001f468\\\\u{200d}\\\\u{200d}\U0001f469\"", 0, 1 },
	{ "\"\U0001f3ff\u200d\U0001f469\U00020000\u200d\U0001f469\"",
	  "\"\U0001f3ff\u200d\U0001f469\U00020000\U0001f469\"",
	  "\"\U0001f3ff\u200d\U0001f469\U00020000\\\\u{200d}\U0001f469\"", 0, 1 },
	{ "[\"\u2764\",\"\ufe0f\"]", "[\"\u2764\",\"\"]", "[\"\u2764\",\"\\\\u{fe0f}\"]", 0, 1 },
	{ "\"a\ufe0f\u2764\ufe0f\ufe0f\"", "\"a\u2764\ufe0f\"",
	  "\"a\\\\u{fe0f}\u2764\ufe0f\\\\u{fe0f}\"", 0, 2 },
	{ "\"\U0001f600\U000e0100\U000e0101\"", "\"\U0001f600\"",
	  "\"\U0001f600\\\\u{e0100}\\\\u{e0101}\"", 0, 2 },
	{ "\"\u8fbb\U000e0100\U000e0101\"", "\"\u8fbb\U000e0100\"",
	  "\"\u8fbb\U000e0100\\\\u{e0101}\"", 0, 1 },
	/* tags that make another flag, or more of it */
	{ "\"\U0001f3f4\U000e0067\U000e0062\U000e007f\"", "\"\U0001f3f4\"",
	  "\"\U0001f3f4\\\\u{e0067}\\\\u{e0062}\\\\u{e007f}\"", 0, 3 },
	{ "\"\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f\U000e0041\"",
	  "\"\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f\"",
	  "\"\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f\\\\u{e0041}\"",
	  0, 1 },
	/* halves do not become a pair; one that pairs with nothing stays */
	{ "\"\\ud83d\u200b\\ude00\"", "\"\\ud83d\\ufffd\"", "\"\\ud83d\\\\u{200b}\\ude00\"", 0, 1 },
	{ "\"\\udb40\\u0007\\udc41\"", "\"\\udb40\\ufffd\"", "\"\\udb40\\\\u{7}\\udc41\"", 1, 0 },
	{ "\"\\ude00\\ud83d\u200b\"", "\"\\ude00\\ud83d\"", "\"\\ude00\\ud83d\\\\u{200b}\"", 0, 1 },
	/* wherever strings are */
	{ "{\"a\u200b\":[1,\"b\u202e\",{\"c\":\"\\u0007\"}]}", "{\"a\":[1,\"b\",{\"c\":\"\"}]}",
	  "{\"a\\\\u{200b}\":[1,\"b\\\\u{202e}\",{\"c\":\"\\\\u{7}\"}]}", 1, 2 },
	{ "{\"a\":1,\"a\u200b\":2}", "{\"a\":1,\"a\":2}", "{\"a\":1,\"a\\\\u{200b}\":2}", 0, 1 },
	{ " [ \"\\\\u200b\" ,\n\t\"\\\"\u200b\\\"\" ] ", " [ \"\\\\u200b\" ,\n\t\"\\\"\\\"\" ] ",
	  " [ \"\\\\u200b\" ,\n\t\"\\\"\\\\u{200b}\\\"\" ] ", 0, 1 },
};

static void what_is_meant_goes(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct sanitize_rules controls = { SANITIZE_STRIP, SANITIZE_KEEP };
		const struct sanitize_rules invisible = { SANITIZE_KEEP, SANITIZE_STRIP };
		char *is = sanitize(&strip, slice_str(rows[i].text));

		free(is);
		if (counts.controls != rows[i].controls)
			fail_msg("%s: %d", rows[i].text, (int)counts.controls);
		assert_int_equal(counts.invisible, rows[i].invisible);
		assert_becomes(&strip, rows[i].text, rows[i].stripped);
		assert_becomes(&mark, rows[i].text, rows[i].marked);
		is = sanitize(&controls, slice_str(rows[i].text));
		assert_int_equal(is != NULL, rows[i].controls > 0);
		assert_int_equal(counts.controls, rows[i].controls);
		free(is);
		is = sanitize(&invisible, slice_str(rows[i].text));
		assert_int_equal(is != NULL, rows[i].invisible > 0);
		assert_int_equal(counts.invisible, rows[i].invisible);
		free(is);
	}
}

static const char *const innocent[] = {
	"\"\"",
	"{}",
	"[1,-2.5e7,null,true]",
	"\"plain \\\"ASCII\\\", \\/ \\\\ \\u0041 \\n\\t\\r\"",
	"\"\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645\"", /* Persian */
	"\"\u0646\u0627\u0645\u0647\u200c\u0647\u0627\"",
	"\"\u0647\u200d .\u0634\"",
	"\"\u0915\u094d\u200d\u0937 \u0915\u094d\u200c\u0937\"", /* Hindi */
	"\"\\u0915\\u094d\\u200d\\u0937\"",
	"\"\u0db6\u0dd4\u0daf\u0dca\u200d\u0db0\"", /* Sinhala */
	"\"\u0d05\u0d35\u0d28\u0d4d\u200d\"",       /* Malayalam */
	"\"\u0986\u09b0\u200d\u09cd\u09af\"",       /* Bengali */
	"\"\u1820\u180b\u180e\u1820\"",             /* Mongolian */
	"\"\u4e2d\u6587 \u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4 \u3000\"",
	"\"\u8fbb\U000e0100\u845b\U000e0101 \u8fbb\ufe00\"", /* variants of ideographs */
	"\"\u0600\u06dd\u00a0\u2003\u2028\u2029\u2800\"",
	"\"\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466\"", /* a family */
	"\"\\ud83d\\udc68\\u200d\\ud83d\\udc69\\u200D\\uD83D\\uDC67\"",
	"\"\U0001f469\U0001f3fd\u200d\U0001f4bb\U0001f3f3\ufe0f\u200d\U0001f308\"",
	"\"\U0001f3f4\u200d\u2620\ufe0f\"", /* a pirate's flag */
	"\"\u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3 #\ufe0f\u20e3 \u263a\ufe0e\"",
	"\"\U0001f926\U0001f3fc\u200d\u2642\ufe0f\U0001f1e9\U0001f1ea\"",
	"\"\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f\"", /* Scotland */
	"\"\\ud83d cut \\ude00 \\ud83d\"",
	"\"\u03b1\u0301 \u05d0\u05b7 \u0e01\u0e33 \u00e9\"",
};

static void what_is_needed_stays(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(innocent); i++) {
		assert_stays(&strip, slice_str(innocent[i]));
		assert_stays(&mark, slice_str(innocent[i]));
	}
}

/* The quick look finds the same, wherever it stands in a long text, and nothing in one without. */
static void found_wherever_it_is(void **state)
{
	static const char *const meant[] = { "\x7f",    "\\b",      "\\u0001",    "\u200b",
					     "\\u202e", "\xc2\x90", "\U000e0041", "\\udb40\\udc41",
					     "\u00ad",  "\u115f" };
	char text[96], expected[96];

	for (size_t i = 0; i < ARRAY_LEN(meant); i++) {
		for (size_t at = 0; at < 40; at++) {
			snprintf(text, sizeof(text), "\"%.*s%s%.*s\"", (int)at,
				 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", meant[i], 40 - (int)at,
				 "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy");
			snprintf(expected, sizeof(expected), "\"%.*s%.*s\"", (int)at,
				 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 40 - (int)at,
				 "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy");
			assert_becomes(&strip, text, expected);
		}
	}
}

/* Every character by itself: what the rules mean is taken out, raw and as an escape; all others stay. */
static void every_character_is_judged(void **state)
{
	size_t taken = 0;

	for (uint32_t code = 1; code < 0x110000; code++) {
		struct buf raw = { 0 };
		char text[40];
		char *is;
		bool goes;

		if (code >= 0xD800 && code <= 0xDFFF)
			continue;
		if (code < 0x10000)
			snprintf(text, sizeof(text), "\"a\\u%04xb\"", code);
		else
			snprintf(text, sizeof(text), "\"a\\u%04x\\u%04xb\"",
				 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + (code & 0x3FF));
		is = sanitize(&strip, slice_str(text));
		goes = is != NULL;
		/* An escape takes the letter behind it along. */
		if (goes)
			assert_string_equal(is, code == 0x1B ? "\"a\"" :
						code == 0x9B ? "\"a\"" :
							       "\"ab\"");
		free(is);
		taken += goes;
		if (code < 0x20 || code == '"' || code == '\\')
			continue;
		buf_append_str(&raw, "\"a");
		characters_decode(slice_of(text + 2, strlen(text) - 4), &raw);
		buf_append_str(&raw, "b\"");
		is = sanitize(&strip, buf_slice(&raw));
		assert_int_equal(is != NULL, goes);
		free(is);
		buf_fini(&raw);
	}
	assert_true(taken > 4000 && taken < 4300);
}

/* A mark is longer than what it marks; a server cannot make a text grow without end. */
static void marks_are_bounded(void **state)
{
	enum { CONTROLS = 3 * SANITIZE_MARKS_MAX };
	char *text = malloc(CONTROLS + 2);
	char *is;

	memset(text, '\x7f', CONTROLS + 2);
	text[0] = text[CONTROLS + 1] = '"';
	is = sanitize(&mark, slice_of(text, CONTROLS + 2));
	assert_non_null(is);
	assert_int_equal(strlen(is), 2 + SANITIZE_MARKS_MAX * strlen("\\\\u{7f}"));
	assert_int_equal(counts.controls, CONTROLS);
	free(is);
	free(text);
}

/* Sequences that never end, one in the other, are looked at once each. */
static void unfinished_sequences_take_no_time(void **state)
{
	static const struct slice begin = SLICE("\\u001b]a");
	struct buf text = { 0 };
	char *is;

	buf_append_char(&text, '"');
	for (size_t i = 0; i < 200000; i++)
		buf_append_slice(&text, begin);
	buf_append_char(&text, '"');
	is = sanitize(&strip, buf_slice(&text));
	assert_int_equal(strlen(is), 200002);
	assert_int_equal(counts.controls, 200000);
	free(is);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_meant_goes),
		cmocka_unit_test(what_is_needed_stays),
		cmocka_unit_test(found_wherever_it_is),
		cmocka_unit_test(every_character_is_judged),
		cmocka_unit_test(marks_are_bounded),
		cmocka_unit_test(unfinished_sequences_take_no_time),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
