/* SPDX-License-Identifier: Apache-2.0 */
/* One character at a time. Widths are the C library's, for which main has set a locale with UTF-8. */
#include "ctl/escape.h"

#include <stdint.h>
#include <wchar.h>

#include "base/text.h"
#include "base/unicode.h"

void escape_append(struct buf *out, struct slice text, const char *keep)
{
	while (text.n > 0) {
		size_t n = text_utf8_length(text);
		uint32_t code = n > 0 ? unicode_decode(slice_of(text.p, n)) : 0;

		if (n == 0)
			buf_append_str(out, "\xEF\xBF\xBD");
		else if (!unicode_is_hidden(code) ||
			 (n == 1 && code != 0 && strchr(keep, *text.p) != NULL))
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
		int columns = n > 0 ? wcwidth((wchar_t)unicode_decode(slice_of(text.p, n))) : 1;

		n = n > 0 ? n : 1;
		width += columns > 0 ? (size_t)columns : 0;
		text = slice_of(text.p + n, text.n - n);
	}
	return width;
}
