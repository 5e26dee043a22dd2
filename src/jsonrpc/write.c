/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON-RPC messages of our own. Never writes again what a peer wrote; that is splice.
 *
 * JSON-RPC 2.0 §4, §5; requirements.md §0.
 */
#include "jsonrpc/write.h"

#include <string.h>

#include "base/text.h"

static void write_ascii(struct buf *out, char c)
{
	static const char escaped[] = "\"\\\b\f\n\r\t";
	static const char letters[] = "\"\\bfnrt";
	const char *at = (unsigned char)c < 0x20 || c == '"' || c == '\\' ?
				 memchr(escaped, c, sizeof(escaped) - 1) :
				 NULL;

	if (at != NULL)
		buf_append(out, (char[]){ '\\', letters[at - escaped] }, 2);
	else if ((unsigned char)c < 0x20 || c == 0x7F)
		buf_printf(out, "\\u%04x", (unsigned int)c);
	else
		buf_append_char(out, c);
}

/* One valid character of two bytes or more. C1 controls and the line separators are escaped. */
static void write_foreign(struct buf *out, struct slice character)
{
	const unsigned char *u = (const unsigned char *)character.p;

	CHECK(character.n >= 2 && u[0] >= 0xC2);
	if (character.n == 2 && u[0] == 0xC2 && u[1] < 0xA0)
		buf_printf(out, "\\u00%02x", u[1]);
	else if (character.n == 3 && u[0] == 0xE2 && u[1] == 0x80 && (u[2] & 0xFE) == 0xA8)
		buf_printf(out, "\\u20%02x", u[2] - 0x80u);
	else
		buf_append_slice(out, character);
}

void write_string(struct buf *out, struct slice text)
{
	buf_reserve(out, text.n + 2); /* as most need it */
	buf_append_char(out, '"');
	while (text.n > 0) {
		size_t run = text_verbatim_length(text);
		size_t length = run > 0 ? run : text_utf8_length(text);

		if (run > 0)
			buf_append(out, text.p, run);
		else if (length == 0)
			buf_append_str(out, "\xEF\xBF\xBD");
		else if (length == 1)
			write_ascii(out, *text.p);
		else
			write_foreign(out, slice_of(text.p, length));
		if (length == 0)
			length = 1;
		text = slice_of(text.p + length, text.n - length);
	}
	buf_append_char(out, '"');
}

static void write_begin(struct buf *out, struct slice id)
{
	buf_append_str(out, "{\"jsonrpc\":\"2.0\"");
	if (id.n == 0)
		return;
	buf_append_str(out, ",\"id\":");
	buf_append_slice(out, id);
}

void write_error(struct buf *out, struct slice id, int code, struct slice message,
		 struct slice data)
{
	write_begin(out, id);
	buf_printf(out, ",\"error\":{\"code\":%d,\"message\":", code);
	write_string(out, message);
	if (data.n > 0) {
		buf_append_str(out, ",\"data\":");
		buf_append_slice(out, data);
	}
	buf_append_str(out, "}}");
}

void write_result(struct buf *out, struct slice id, struct slice result)
{
	CHECK(result.n > 0);
	write_begin(out, id);
	buf_append_str(out, ",\"result\":");
	buf_append_slice(out, result);
	buf_append_char(out, '}');
}

void write_call(struct buf *out, struct slice id, struct slice method, struct slice params)
{
	CHECK(method.n > 0);
	write_begin(out, id);
	buf_append_str(out, ",\"method\":");
	write_string(out, method);
	if (params.n > 0) {
		buf_append_str(out, ",\"params\":");
		buf_append_slice(out, params);
	}
	buf_append_char(out, '}');
}
