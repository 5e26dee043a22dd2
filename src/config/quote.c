/* SPDX-License-Identifier: Apache-2.0 */
/* YAML 1.1 §5.1 printable characters, §5.6 escapes. */
#include "config/quote.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/slice.h"
#include "base/text.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool needs_quotes(const char *text)
{
	/* Texts that need none begin with one of LETTERS or '/', and go on with these. */
	static const char plain[] = LETTERS "/0123456789_-.";
	/* Words that a YAML reader might take for something else than a text. */
	static const char *const words[] = { "null", "true", "false", "yes", "no",
					     "on",   "off",  "y",     "n" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return text[0] == '\0' || strchr(LETTERS "/", text[0]) == NULL ||
	       text[strspn(text, plain)] != '\0';
}

/* The number of the character; `length` is what text_utf8_length said. */
static uint32_t code_point(const char *p, size_t length)
{
	static const unsigned char first_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t code;

	CHECK(length >= 1 && length < sizeof(first_bits));
	code = (unsigned char)p[0] & first_bits[length];
	for (size_t i = 1; i < length; i++)
		code = code << 6 | ((unsigned char)p[i] & 0x3f);
	return code;
}

static bool is_printable(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code < 0xa0))
		return false;
	/* Line ends and what YAML does not allow as it is. */
	return code != 0x2028 && code != 0x2029 && code != 0xfeff && code != 0xfffe &&
	       code != 0xffff;
}

void quote_append(struct buf *out, const char *text)
{
	struct slice rest = slice_str(text);

	if (!needs_quotes(text)) {
		buf_append_str(out, text);
		return;
	}
	buf_append_char(out, '"');
	while (rest.n > 0) {
		size_t length = text_utf8_length(rest);
		uint32_t code = length > 0 ? code_point(rest.p, length) : 0xfffd;

		if (code == '"' || code == '\\')
			buf_append_char(out, '\\');
		if (length == 0)
			buf_append_str(out, "\\uFFFD");
		else if (is_printable(code))
			buf_append(out, rest.p, length);
		else
			buf_printf(out, "\\u%04X", (unsigned)code);
		length = length > 0 ? length : 1;
		rest = slice_of(rest.p + length, rest.n - length);
	}
	buf_append_char(out, '"');
}
