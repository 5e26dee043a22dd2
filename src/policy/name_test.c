/* SPDX-License-Identifier: Apache-2.0 */
/* Spellings of one name, and what is no name. AUTH-SCP-12, SEC-42, SEC-50 */
#include "policy/name.h"

#include <utf8proc.h>

#include "base/check.h"
#include "base/text.h"
#include "base/unicode.h"
#include "base/unit_test.h"

#define CODES 0x110000

static struct buf folded;

/* Terminated; NULL: it is no name. */
static const char *fold(struct slice name)
{
	struct buf room = { 0 };
	struct slice form;
	const char *why;

	folded.len = 0;
	why = name_fold(name, &folded);
	assert_ptr_equal(name_read_form(name, &room, &form), why);
	assert_true(slice_is_equal(form, buf_slice(&folded)));
	assert_true(form.n == 0 || form.p == name.p || form.p == room.data);
	buf_fini(&room);
	return why == NULL ? buf_terminate(&folded) : NULL;
}

static void spellings_are_one(void **state)
{
	static const struct {
		const char *name;
		const char *folded;
	} rows[] = {
		{ "echo", "echo" },
		{ "ECHO", "echo" },
		{ "eCHo", "echo" },
		{ " echo ", "echo" },
		{ "\u3000echo\u2003\u00a0\u1680", "echo" },
		{ "e ch o", "echo" },
		{ "\uff25\uff43\uff48\uff2f", "echo" },                 /* full width */
		{ "\U0001d41e\U0001d520\U0001d5c1\U0001d698", "echo" }, /* mathematical */
		{ "\u24d4\u24b8\u24d7\u24c4", "echo" },                 /* in circles */
		{ "\u1d49\u1d9c\u02b0\u1d52", "echo" },                 /* raised */
		{ "\u2147cho", "echo" },
		{ "of\ufb01ce", "office" },
		{ "o\ufb03ce", "office" },
		{ "LI\u017fT", "list" }, /* long s */
		{ "\ufb05ep", "step" },
		{ "\u212aill", "kill" },                          /* the Kelvin sign */
		{ "\u212bngstr\u00f6m", "a\u030angstro\u0308m" }, /* the Angstrom sign */
		{ "L\u0130ST", "list" },                          /* Turkish */
		{ "l\u0131st", "list" },
		{ "LI\u0307ST", "list" },
		{ "LI\u0323\u0307ST", "li\u0323st" }, /* the dot is still of the i */
		{ "stra\u00dfe", "strasse" },
		{ "STRA\u1e9eE", "strasse" },
		{ "caf\u00e9", "cafe\u0301" },
		{ "CAFE\u0301", "cafe\u0301" },
		{ "\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c3" }, /* a final sigma */
		{ "\u03bf\u03b4\u03bf\u03c2", "\u03bf\u03b4\u03bf\u03c3" },
		{ "\uff76\uff9e", "\u30ab\u3099" }, /* half width */
		{ "\u30ac", "\u30ab\u3099" },
		{ "\uac00", "\u1100\u1161" },
		{ "a\u2024b", "a.b" },
		{ "a\uff3fb", "a_b" },
		{ "\u2460\u00b2\uff13", "123" },
		{ "\u13a0\uab70", "\u13a0\u13a0" }, /* Cherokee folds upwards */
		{ "\u0435cho",
		  "\u0435cho" }, /* a Cyrillic letter is another one, to servers as well */
		{ "e\u0301cho", "e\u0301cho" },
		{ "*\uff0a", "**" },
		{ "a\u0301 \u0323", "a\u0323\u0301" }, /* without the space between them */
		{ "I\u0315 \u0307", "i\u0315" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *is = fold(slice_str(rows[i].name));

		assert_non_null(is);
		assert_string_equal(is, rows[i].folded);
	}
}

static const char *const not_seen[] = {
	"\x01",       "\t",         "\n",           "\r",         "\x1b",       "\x7f",
	"\xc2\x85",   "\u00ad",     "\u034f",       "\u061c",     "\u115f",     "\u1160",
	"\u17b4",     "\u180b",     "\u180e",       "\u200b",     "\u200c",     "\u200d",
	"\u200e",     "\u200f",     "\u2028",       "\u2029",     "\u202a",     "\u202e",
	"\u2060",     "\u2063",     "\u2065",       "\u2066",     "\u2069",     "\u3164",
	"\ufe00",     "\ufe0f",     "\ufeff",       "\uffa0",     "\ufff0",     "\ufff9",
	"\U0001bca0", "\U0001d173", "\U000e0001",   "\U000e0041", "\U000e007f", "\U000e0100",
	"\U000e0fff", "\ue000",     "\ufdd0",       "\ufffe",     "\uffff",     "\u0378",
	"\U0010ffff",                                           /* of no meaning */
	"\xff",       "\xc3",       "\xed\xa0\x80", "\xc0\x80", /* no UTF-8 */
};

static void what_is_not_seen_is_no_name(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(not_seen); i++) {
		for (size_t at = 0; at <= strlen("echo"); at++) {
			char name[32];

			snprintf(name, sizeof(name), "%.*s%s%s", (int)at, "echo", not_seen[i],
				 "echo" + at);
			assert_null(fold(slice_str(name)));
		}
		assert_null(fold(slice_str(not_seen[i])));
	}
	assert_null(fold(SLICE_LIT("\u1fb3"))); /* iota subscripts */
	assert_null(fold(SLICE_LIT("\u03b1\u0345\u0301")));
	assert_null(fold(SLICE_LIT("\u037a")));
	assert_null(fold(SLICE_LIT("echo\0")));
	assert_null(fold(SLICE_LIT("\0echo")));
	assert_null(fold(SLICE_LIT("echo\0write")));
	assert_null(fold(SLICE_LIT("")));
	assert_null(fold(SLICE_LIT(" \u3000")));
}

/* DEF-11 */
static void names_are_bounded(void **state)
{
	char name[NAME_BYTES_MAX + 2];

	memset(name, 'a', sizeof(name));
	assert_non_null(fold(slice_of(name, NAME_BYTES_MAX)));
	assert_int_equal(folded.len, NAME_BYTES_MAX);
	assert_null(fold(slice_of(name, NAME_BYTES_MAX + 1)));
	for (size_t i = 0; i + 3 <= sizeof(name); i += 3)
		memcpy(name + i, "\ufdfa", 3); /* of 18 characters */
	assert_null(fold(slice_of(name, 85 * 3)));
	assert_string_equal(name_fold(slice_of(name, 85 * 3), &folded), "is too long");
	assert_non_null(fold(slice_of(name, 56 * 3)));
}

static struct slice encode(utf8proc_int32_t code, utf8proc_uint8_t bytes[4])
{
	return slice_of((const char *)bytes, (size_t)utf8proc_encode_char(code, bytes));
}

static void assert_folds_alike(struct slice a, struct slice b)
{
	char *form = strdup(fold(a));

	if (fold(b) == NULL || strcmp(form, buf_terminate(&folded)) != 0)
		fail_msg("%.*s and %.*s: %s", SLICE_ARG(a), SLICE_ARG(b), form);
	free(form);
}

static void assert_form_folds_alike(struct slice name, utf8proc_option_t form)
{
	utf8proc_uint8_t *mapped = NULL;
	utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)name.p,
					  (utf8proc_ssize_t)name.n, &mapped, form);

	assert_true(n > 0);
	assert_folds_alike(name, slice_of((const char *)mapped, (size_t)n));
	free(mapped);
}

/* Whatever a server makes of a character: its case, a normal form, both, and the folded form itself. */
static void all_that_servers_make_of_it_folds_alike(void **state)
{
	utf8proc_uint8_t bytes[4], other[4];
	size_t count = 0, iotas = 0;

	for (utf8proc_int32_t code = ' ' + 1; code < CODES; code++) {
		struct slice name = encode(code, bytes);
		char *again;

		if (unicode_is_hidden((uint32_t)code) || unicode_is_unknown((uint32_t)code) ||
		    utf8proc_category(code) == UTF8PROC_CATEGORY_ZS)
			continue;
		if (fold(name) == NULL) {
			iotas++;
			continue;
		}
		assert_folds_alike(name, encode(utf8proc_toupper(code), other));
		assert_folds_alike(name, encode(utf8proc_tolower(code), other));
		assert_folds_alike(name, encode(utf8proc_totitle(code), other));
		assert_form_folds_alike(name, UTF8PROC_COMPOSE);
		assert_form_folds_alike(name, UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
		assert_form_folds_alike(name, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
		assert_form_folds_alike(name, UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
		assert_form_folds_alike(name,
					UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD);
		again = strdup(fold(name));
		assert_folds_alike(name, slice_str(again));
		free(again);
		count++;
	}
	assert_int_equal(iotas, 65); /* with a subscript */
	assert_true(count > 140000); /* of the 149000 that Unicode 15 has */
}

/* What fits a pattern fits its folded form: the parts around a star fold by themselves (unless marks change places). */
static void parts_fold_by_themselves(void **state)
{
	static const char *const parts[] = { "e",      "\u0301x", "\uac00", "\u11a8", "\u00df", "I",
					     "\ufb01", "\u017f",  "S",      "\uff76", "\uff9e" };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		for (size_t j = 0; j < ARRAY_LEN(parts); j++) {
			char whole[32], apart[64];

			snprintf(apart, sizeof(apart), "%s", fold(slice_str(parts[i])));
			strcat(apart, fold(slice_str(parts[j])));
			snprintf(whole, sizeof(whole), "%s%s", parts[i], parts[j]);
			assert_string_equal(fold(slice_str(whole)), apart);
		}
	}
}

static int forget(void **state)
{
	buf_fini(&folded);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spellings_are_one),
		cmocka_unit_test(what_is_not_seen_is_no_name),
		cmocka_unit_test(names_are_bounded),
		cmocka_unit_test(all_that_servers_make_of_it_folds_alike),
		cmocka_unit_test(parts_fold_by_themselves),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, forget);
}
