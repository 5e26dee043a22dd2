/* SPDX-License-Identifier: Apache-2.0 */
/* One character at a time. Widths are the C library's, for which main has set a locale with UTF-8. */
#include "ctl/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

#include "base/check.h"
#include "base/text.h"

static uint32_t decode(struct slice character)
{
	static const unsigned char masks[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
	uint32_t code;

	CHECK(character.n > 0 && character.n < ARRAY_LEN(masks));
	code = (unsigned char)character.p[0] & masks[character.n];
	for (size_t i = 1; i < character.n; i++)
		code = code << 6 | ((unsigned char)character.p[i] & 0x3F);
	return code;
}

/* What is not seen, or changes how others are seen. */
static const struct {
	uint32_t first;
	uint32_t last;
} hidden[] = {
	{ 0x0000, 0x001F }, { 0x007F, 0x009F }, { 0x00AD, 0x00AD },   { 0x061C, 0x061C },
	{ 0x180E, 0x180E }, { 0x200B, 0x200F }, { 0x2028, 0x202E },   { 0x2060, 0x206F },
	{ 0xFEFF, 0xFEFF }, { 0xFFF9, 0xFFFB }, { 0xE0000, 0xE007F },
};

static bool is_hidden(uint32_t code)
{
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++) {
		if (code >= hidden[i].first && code <= hidden[i].last)
			return true;
	}
	return false;
}

void escape_append(struct buf *out, struct slice text, const char *keep)
{
	while (text.n > 0) {
		size_t n = text_utf8_length(text);
		uint32_t code = n > 0 ? decode(slice_of(text.p, n)) : 0;

		if (n == 0)
			buf_append_str(out, "\xEF\xBF\xBD");
		else if (!is_hidden(code) || (n == 1 && code != 0 && strchr(keep, *text.p) != NULL))
			buf_append(out, text.p, n);
		else if (code < 0x80)
			buf_printf(out, "\\x%02x", (unsigned int)code);
		else
			buf_printf(out, "\\u%04x", (unsigned int)code);
		n = n > 0 ? n : 1;
		text = slice_of(text.p + n, text.n - n);
	}
}

void escape_print(FILE *out, const char *before, struct slice text, const char *keep)
{
	struct buf clean = { 0 };

	escape_append(&clean, text, keep);
	fprintf(out, "%s%s\n", before, buf_terminate(&clean));
	buf_fini(&clean);
}

size_t escape_width(struct slice text)
{
	size_t width = 0;

	while (text.n > 0) {
		size_t n = text_utf8_length(text);
		int columns = n > 0 ? wcwidth((wchar_t)decode(slice_of(text.p, n))) : 1;

		n = n > 0 ? n : 1;
		width += columns > 0 ? (size_t)columns : 0;
		text = slice_of(text.p + n, text.n - n);
	}
	return width;
}
