/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of a newer Unicode version are unassigned for an older utf8proc. */
#include "base/unicode.h"

#include <utf8proc.h>

#include "base/check.h"

#define NEXT_LINE 0x85
#define MONGOLIAN_VOWEL_SEPARATOR 0x180E /* White_Space until Unicode 6.3 */
#define ZERO_WIDTH_SPACE 0x200B          /* until Unicode 4.0.1; .NET Framework 3.5 trims it */
#define BYTE_ORDER_MARK 0xFEFF
#define LOW_QUOTE 0x201A
#define LOW_DOUBLE_QUOTE 0x201E

uint32_t unicode_decode(struct slice s)
{
	static const unsigned char masks[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
	uint32_t code;

	CHECK(s.n > 0 && s.n < ARRAY_LEN(masks));
	code = (unsigned char)s.p[0] & masks[s.n];
	for (size_t i = 1; i < s.n; i++)
		code = code << 6 | ((unsigned char)s.p[i] & 0x3F);
	return code;
}

/*
 * Unassigned code points that Unicode reserves as Default_Ignorable; utf8proc knows the property
 * only for assigned ones.
 */
static bool is_reserved_as_hidden(uint32_t code)
{
	return code == 0x2065 || (code >= 0xFFF0 && code <= 0xFFF8) ||
	       (code >= 0xE0000 && code <= 0xE0FFF);
}

bool unicode_is_hidden(uint32_t code)
{
	const utf8proc_property_t *property = utf8proc_get_property((utf8proc_int32_t)code);
	const unsigned int hidden = 1u << UTF8PROC_CATEGORY_CC | 1u << UTF8PROC_CATEGORY_CF |
				    1u << UTF8PROC_CATEGORY_CS | 1u << UTF8PROC_CATEGORY_ZL |
				    1u << UTF8PROC_CATEGORY_ZP;

	return (hidden >> property->category & 1) != 0 || property->ignorable ||
	       is_reserved_as_hidden(code);
}

bool unicode_is_space(uint32_t code)
{
	const utf8proc_property_t *property = utf8proc_get_property((utf8proc_int32_t)code);
	const unsigned int separators = 1u << UTF8PROC_CATEGORY_ZS | 1u << UTF8PROC_CATEGORY_ZL |
					1u << UTF8PROC_CATEGORY_ZP;

	return code <= ' ' || code == NEXT_LINE || code == MONGOLIAN_VOWEL_SEPARATOR ||
	       code == ZERO_WIDTH_SPACE || code == BYTE_ORDER_MARK ||
	       (separators >> property->category & 1) != 0;
}

bool unicode_is_wrapping(uint32_t code)
{
	utf8proc_propval_t category = utf8proc_get_property((utf8proc_int32_t)code)->category;

	return unicode_is_space(code) || code == '"' || code == '\'' || code == '`' ||
	       code == LOW_QUOTE || code == LOW_DOUBLE_QUOTE || category == UTF8PROC_CATEGORY_PI ||
	       category == UTF8PROC_CATEGORY_PF;
}

bool unicode_is_unknown(uint32_t code)
{
	utf8proc_propval_t category = utf8proc_get_property((utf8proc_int32_t)code)->category;

	return category == UTF8PROC_CATEGORY_CN || category == UTF8PROC_CATEGORY_CO;
}

bool unicode_is_pictograph(uint32_t code)
{
	return utf8proc_get_property((utf8proc_int32_t)code)->boundclass ==
	       UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC;
}
