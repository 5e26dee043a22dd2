/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks hidden characters by the ranges the Unicode Standard names and by what all its versions
 * have in common.
 */
#include "base/unicode.h"

#include "base/check.h"
#include "base/text.h"
#include "base/unit_test.h"

#define CODES 0x110000

struct range {
	uint32_t first, last;
};

static void characters_are_decoded(void **state)
{
	static const struct {
		const char *text;
		uint32_t code;
	} rows[] = {
		{ "\x01", 1 },
		{ "a", 'a' },
		{ "\x7f", 0x7F },
		{ "\xc2\x80", 0x80 },
		{ "\u07ff", 0x7FF },
		{ "\u0800", 0x800 },
		{ "\uffff", 0xFFFF },
		{ "\U00010000", 0x10000 },
		{ "\U0010ffff", 0x10FFFF },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice s = slice_str(rows[i].text);

		assert_int_equal(text_utf8_length(s), s.n);
		assert_int_equal(unicode_decode(s), rows[i].code);
	}
	assert_int_equal(unicode_decode(slice_of("", 1)), 0);
}

/*
 * REL-48: Cc, Cf, Zl, Zp and Default_Ignorable_Code_Point, except format characters added by later
 * versions.
 */
static void what_is_not_seen_is_hidden(void **state)
{
	static const struct range hidden[] = {
		{ 0x0000, 0x001F },   { 0x007F, 0x009F },   { 0x00AD, 0x00AD },
		{ 0x034F, 0x034F },   { 0x0600, 0x0605 },   { 0x061C, 0x061C },
		{ 0x06DD, 0x06DD },   { 0x070F, 0x070F },   { 0x08E2, 0x08E2 },
		{ 0x115F, 0x1160 },   { 0x17B4, 0x17B5 },   { 0x180B, 0x180E },
		{ 0x200B, 0x200F },   { 0x2028, 0x202E },   { 0x2060, 0x206F },
		{ 0x3164, 0x3164 },   { 0xD800, 0xDFFF },   { 0xFE00, 0xFE0F },
		{ 0xFEFF, 0xFEFF },   { 0xFFA0, 0xFFA0 },   { 0xFFF0, 0xFFFB },
		{ 0x110BD, 0x110BD }, { 0x110CD, 0x110CD }, { 0x1BCA0, 0x1BCA3 },
		{ 0x1D173, 0x1D17A }, { 0xE0000, 0xE0FFF },
	};

	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		for (uint32_t code = hidden[i].first; code <= hidden[i].last; code++)
			assert_true(unicode_is_hidden(code));
}

static void what_is_seen_is_not(void **state)
{
	static const struct range seen[] = {
		{ 0x0020, 0x007E }, { 0x00A0, 0x00AC }, { 0x00AE, 0x034E }, { 0x0410, 0x044F },
		{ 0x05D0, 0x05EA }, { 0x2000, 0x200A }, { 0x2010, 0x2027 }, { 0x202F, 0x205F },
		{ 0x2800, 0x28FF }, { 0x3000, 0x303F }, { 0x4E00, 0x9FFC }, { 0xAC00, 0xD7A3 },
		{ 0xE000, 0xF8FF }, { 0xFF01, 0xFF9F }, { 0xFFFC, 0xFFFD }, { 0x1F600, 0x1F64F },
		{ 0x378, 0x379 }, /* unassigned: an older table must not hide a new character */
	};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_LEN(seen); i++)
		for (uint32_t code = seen[i].first; code <= seen[i].last; code++)
			assert_false(unicode_is_hidden(code));
	for (uint32_t code = 0; code < CODES; code++)
		count += unicode_is_hidden(code);
	/* Unicode 15 has 6321; the few that later versions add are format characters. */
	assert_in_range(count, 6321, 6500);
}

/* Whether Python's str.strip (3.12) or JavaScript's trim (ES2024) takes it off, and what others take off besides. SEC-55 */
static bool is_stripped(uint32_t code)
{
	static const struct range stripped[] = {
		{ 0x09, 0x0D },
		{ 0x1C, 0x20 },
		{ 0x85, 0x85 },
		{ 0xA0, 0xA0 },
		{ 0x1680, 0x1680 },
		{ 0x2000, 0x200A },
		{ 0x2028, 0x2029 },
		{ 0x202F, 0x202F },
		{ 0x205F, 0x205F },
		{ 0x3000, 0x3000 },
		{ 0xFEFF, 0xFEFF },
		/* Java's trim, .NET, what was White_Space before */
		{ 0x00, 0x1F },
		{ 0x180E, 0x180E },
		{ 0x200B, 0x200B },
	};

	for (size_t i = 0; i < ARRAY_LEN(stripped); i++)
		if (code >= stripped[i].first && code <= stripped[i].last)
			return true;
	return false;
}

static void what_trim_takes_off_is_space(void **state)
{
	for (uint32_t code = 0; code <= CODES; code++)
		assert_int_equal(unicode_is_space(code), is_stripped(code));
}

static void spaces_and_quotes_wrap(void **state)
{
	static const uint32_t quotes[] = { '"',    '\'',   '`',    0xAB,   0xBB,   0x2018, 0x2019,
					   0x201A, 0x201B, 0x201C, 0x201D, 0x201E, 0x201F, 0x203A };
	static const uint32_t others[] = { 'a', '.', ',', 0xB4, 0x2032, 0x300C, CODES };

	for (size_t i = 0; i < ARRAY_LEN(quotes); i++)
		assert_true(unicode_is_wrapping(quotes[i]));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(unicode_is_wrapping(others[i]));
	for (uint32_t code = 0; code < CODES; code++)
		assert_true(unicode_is_wrapping(code) || !unicode_is_space(code));
}

static void what_has_no_meaning_is_unknown(void **state)
{
	static const uint32_t unknown[] = { 0x378,   0xFDD0,  0xFFFE,   0xFFFF,   0xE000, 0xF8FF,
					    0xF0000, 0x1FFFE, 0x10FFFD, 0x10FFFF, CODES };
	static const uint32_t known[] = { 0, ' ', 'a', 0xE9, 0x4E00, 0xAC00, 0x1F600, 0xE0041 };

	for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
		assert_true(unicode_is_unknown(unknown[i]));
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		assert_false(unicode_is_unknown(known[i]));
}

static void emoji_are_pictographs(void **state)
{
	static const uint32_t pictographs[] = { 0xA9,   0x203C,  0x2640,  0x2764,
						0x303D, 0x1F468, 0x1F600, 0x1F680 };
	static const uint32_t others[] = {
		'a', '1', '#', 0x200D, 0xFE0F, 0x4E00, 0x1F1E9, 0x1F3FB
	};

	for (size_t i = 0; i < ARRAY_LEN(pictographs); i++)
		assert_true(unicode_is_pictograph(pictographs[i]));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(unicode_is_pictograph(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(characters_are_decoded),
		cmocka_unit_test(what_is_not_seen_is_hidden),
		cmocka_unit_test(what_is_seen_is_not),
		cmocka_unit_test(what_trim_takes_off_is_space),
		cmocka_unit_test(spaces_and_quotes_wrap),
		cmocka_unit_test(what_has_no_meaning_is_unknown),
		cmocka_unit_test(emoji_are_pictographs),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
