/* SPDX-License-Identifier: Apache-2.0 */
#include "obs/line.h"

#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "base/text.h"
#include "base/unicode.h"

#define SHOWN_MAX_BYTES 16 /* `\udbff\udfff` is the longest escape */

void line_init(struct text_line *line, size_t max)
{
	CHECK(max <= sizeof(line->bytes));
	line->max = max;
	line->length = 0;
}

bool line_has_room(const struct text_line *line, size_t size)
{
	return line->length + size <= line->max;
}

/* Callers check for room first; what does not fit is dropped. */
void line_put(struct text_line *line, struct slice text)
{
	CHECK(line->length <= line->max);
	if (text.n == 0 || !line_has_room(line, text.n))
		return;
	memcpy(line->bytes + line->length, text.p, text.n);
	line->length += text.n;
}

void line_puts(struct text_line *line, const char *text)
{
	line_put(line, slice_str(text));
}

void line_put_number(struct text_line *line, int64_t number)
{
	char text[20];
	uint64_t positive = number < 0 ? -(uint64_t)number : (uint64_t)number;

	if (number < 0)
		line_puts(line, "-");
	line_put(line, slice_of(text, text_format_u64(positive, text)));
}

void line_put_time(struct text_line *line, uint64_t wall_ms)
{
	static time_t last = -1;
	static char stamp[32]; /* of that second */
	time_t seconds = (time_t)(wall_ms / 1000);
	unsigned int ms = (unsigned int)(wall_ms % 1000);
	struct tm utc;

	if (seconds != last) {
		gmtime_r(&seconds, &utc);
		strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
		last = seconds;
	}
	line_puts(line, stamp);
	line_put(line, slice_of((char[]){ '.', (char)('0' + ms / 100), (char)('0' + ms / 10 % 10),
					  (char)('0' + ms % 10), 'Z' },
				5));
}

/* Writes the first character of s in its displayed form; returns its length in s. */
static size_t show_first(struct slice s, char shown_r[SHOWN_MAX_BYTES])
{
	size_t n = text_utf8_length(s);
	uint32_t code = n > 0 ? unicode_decode(slice_of(s.p, n)) : (unsigned char)s.p[0];

	CHECK(s.n > 0 && n <= s.n);
	if (code == '"' || code == '\\')
		snprintf(shown_r, SHOWN_MAX_BYTES, "\\%c", (int)code);
	else if (n > 0 && !unicode_is_hidden(code))
		snprintf(shown_r, SHOWN_MAX_BYTES, "%.*s", (int)n, s.p);
	else if (code < 0x10000)
		snprintf(shown_r, SHOWN_MAX_BYTES, "\\u%04x", code);
	else /* a surrogate pair: JSON has no longer escapes */
		snprintf(shown_r, SHOWN_MAX_BYTES, "\\u%04x\\u%04x", 0xD7C0 + (code >> 10),
			 0xDC00 + (code & 0x3FF));
	return n > 0 ? n : 1;
}

bool line_put_shown(struct text_line *line, struct slice text, size_t bytes_max)
{
	/* Most texts need no escaping. */
	size_t plain =
		text_verbatim_length(slice_of(text.p, text.n < bytes_max ? text.n : bytes_max));
	struct slice rest = text;

	if (line_has_room(line, plain + TEXT_LINE_END_BYTES)) {
		line_put(line, slice_of(text.p, plain));
		rest = slice_of(text.p + plain, text.n - plain);
	}
	while (rest.n > 0) {
		char shown[SHOWN_MAX_BYTES];
		size_t n = show_first(rest, shown);

		if (text.n - rest.n + n > bytes_max ||
		    !line_has_room(line, strlen(shown) + TEXT_LINE_END_BYTES))
			break;
		line_puts(line, shown);
		rest = slice_of(rest.p + n, rest.n - n);
	}
	if (rest.n > 0)
		line_puts(line, "...");
	return rest.n == 0;
}

bool line_is_seen(struct slice text)
{
	while (text.n > 0) {
		size_t plain = text_plain_length(text);
		size_t n = plain > 0 ? plain : text_utf8_length(text);

		if (plain == 0 &&
		    (n == 0 || unicode_is_hidden(unicode_decode(slice_of(text.p, n)))))
			return false;
		text = slice_of(text.p + n, text.n - n);
	}
	return true;
}
