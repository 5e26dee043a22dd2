/* SPDX-License-Identifier: Apache-2.0 */
/* Relies on what the scanner has checked: escapes are whole, the rest is UTF-8, and a quote ends the string. */
#include "policy/characters.h"

#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "base/unicode.h"

#define REPLACEMENT 0xFFFD

static uint32_t hex_value(const char *digits)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++) {
		unsigned char c = (unsigned char)digits[i];

		value = value << 4 | (c <= '9' ? c - (unsigned int)'0' : (c | 0x20u) - 'a' + 10u);
	}
	return value;
}

bool characters_is_high_half(uint32_t code)
{
	return (code & ~0x3FFu) == 0xD800;
}

bool characters_is_low_half(uint32_t code)
{
	return (code & ~0x3FFu) == 0xDC00;
}

static size_t read_escape(const char *p, uint32_t *code_r)
{
	static const char letters[] = "bfnrt";
	static const char meanings[] = "\b\f\n\r\t";
	const char *letter = strchr(letters, p[1]);
	uint32_t low;

	if (p[1] != 'u') {
		*code_r = (unsigned char)(letter != NULL ? meanings[letter - letters] : p[1]);
		return 2;
	}
	*code_r = hex_value(p + 2);
	if (!characters_is_high_half(*code_r) || p[6] != '\\' || p[7] != 'u')
		return 6;
	low = hex_value(p + 8);
	if (!characters_is_low_half(low))
		return 6;
	*code_r = 0x10000 + ((*code_r & 0x3FF) << 10) + (low & 0x3FF);
	return 12;
}

size_t characters_read(const char *p, uint32_t *code_r)
{
	unsigned char first = (unsigned char)*p;
	size_t n = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;

	if (first == '\\')
		return read_escape(p, code_r);
	*code_r = n == 1 ? first : unicode_decode(slice_of(p, n));
	return n;
}

const char *characters_find_end(const char *p)
{
	const char *quote = rawmemchr(p, '"');
	const char *escape;

	/* The next quote ends the string, unless an escape before it is that quote. */
	while ((escape = memchr(p, '\\', (size_t)(quote - p))) != NULL) {
		p = escape + 2;
		if (p > quote)
			quote = rawmemchr(p, '"');
	}
	return quote;
}

void characters_decode(struct slice between_quotes, struct buf *out)
{
	const char *p = between_quotes.p, *end = p + between_quotes.n;

	while (p < end) {
		const char *escape = memchr(p, '\\', (size_t)(end - p));
		utf8proc_uint8_t bytes[4];
		uint32_t code;

		buf_append(out, p, (size_t)((escape != NULL ? escape : end) - p));
		if (escape == NULL)
			return;
		p = escape + characters_read(escape, &code);
		if (characters_is_high_half(code) || characters_is_low_half(code))
			code = REPLACEMENT;
		buf_append(out, bytes, (size_t)utf8proc_encode_char((utf8proc_int32_t)code, bytes));
	}
}
