/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64url of: a version byte, the child's number in eight bytes, the child's text as it wrote it. It is no
 * secret and not signed: whoever makes one up asks his own child for a cursor that it does not know. But what
 * comes out of it stands in a line for the child, so it must be the inside of a JSON string.
 */
#include "router/cursor.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>

#define CURSOR_VERSION 1
#define HEAD_BYTES 9

void cursor_append_sealed(struct buf *out, uint64_t child, struct json cursor)
{
	struct slice inside = slice_of(cursor.text.p + 1, cursor.text.n - 2);
	struct buf plain = { 0 };
	char *to;

	buf_append_char(&plain, CURSOR_VERSION);
	for (int shift = 56; shift >= 0; shift -= 8)
		buf_append_char(&plain, (char)(child >> shift & 0xff));
	buf_append_slice(&plain, inside);
	buf_append_char(out, '"');
	to = buf_reserve(out, plain.len * 4 / 3 + 3);
	out->len += text_base64url(plain.data, plain.len, to);
	buf_append_char(out, '"');
	buf_fini(&plain);
}

/* Whether `text` with quotes around it is one JSON string. */
static bool is_inside_of_string(struct slice text)
{
	static const struct scan_limits limits = { .depth_max = 4, .id_max = 8 };
	struct buf message = { 0 };
	struct envelope env;
	struct error err;
	bool is_one;

	buf_append_str(&message, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"uri\":\"");
	buf_append_slice(&message, text);
	buf_append_str(&message, "\"}}");
	is_one = scan_envelope(buf_slice(&message), &limits, 0, &env, &err) == 0 &&
		 env.uri.text.n == text.n + 2 && !env.has_separator;
	buf_fini(&message);
	return is_one;
}

int cursor_open(struct json sealed, uint64_t *child_r, struct buf *out)
{
	struct slice text = scan_plain_string(sealed);
	unsigned char *plain = mem_alloc(text.n + 1);
	size_t n = 0;
	struct slice inside;
	int result = -1;

	if (text_from_base64url(text, plain, &n) < 0 || n < HEAD_BYTES ||
	    plain[0] != CURSOR_VERSION)
		goto out;
	inside = slice_of((const char *)plain + HEAD_BYTES, n - HEAD_BYTES);
	if (!is_inside_of_string(inside))
		goto out;
	*child_r = 0;
	for (size_t i = 1; i < HEAD_BYTES; i++)
		*child_r = *child_r << 8 | plain[i];
	buf_append_char(out, '"');
	buf_append_slice(out, inside);
	buf_append_char(out, '"');
	result = 0;
out:
	free(plain);
	return result;
}
