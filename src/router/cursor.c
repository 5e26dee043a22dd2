/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64url of: a byte for the form, a number in eight bytes, and
 * 	CHILD   the number is the child's; its cursor as it wrote it
 * 	PAGE    the number is the list's; the page's number in eight bytes
 * It is neither secret nor signed: whoever makes one up asks their own child, or for their own
 * list, about something that is not known there. But the child's text becomes part of a line for
 * the child, so it must be the inside of a JSON string.
 */
#include "router/cursor.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>

enum form { FORM_CHILD = 1, FORM_PAGE = 2 };

#define HEAD_BYTES 9
#define PAGE_BYTES 8

static void append_number(struct buf *out, uint64_t number)
{
	for (int shift = 56; shift >= 0; shift -= 8)
		buf_append_char(out, (char)(number >> shift & 0xff));
}

static uint64_t read_number(const unsigned char *from)
{
	uint64_t number = 0;

	for (size_t i = 0; i < 8; i++)
		number = number << 8 | from[i];
	return number;
}

static void append_string(struct buf *out, const struct buf *plain)
{
	char *to;

	buf_append_char(out, '"');
	to = buf_reserve(out, plain->len * 4 / 3 + 3);
	out->len += text_base64url(plain->data, plain->len, to);
	buf_append_char(out, '"');
}

bool cursor_is_empty(struct json cursor)
{
	return slice_is_equal(cursor.text, SLICE_LIT("\"\""));
}

void cursor_append_sealed(struct buf *out, uint64_t child, struct json cursor)
{
	struct buf plain = { 0 };

	if (cursor_is_empty(cursor)) {
		buf_append_slice(out, cursor.text);
		return;
	}
	buf_append_char(&plain, FORM_CHILD);
	append_number(&plain, child);
	buf_append_slice(&plain, slice_of(cursor.text.p + 1, cursor.text.n - 2));
	append_string(out, &plain);
	buf_fini(&plain);
}

void cursor_append_page(struct buf *out, uint64_t list, uint64_t page)
{
	struct buf plain = { 0 };

	buf_append_char(&plain, FORM_PAGE);
	append_number(&plain, list);
	append_number(&plain, page);
	append_string(out, &plain);
	buf_fini(&plain);
}

/* Whether `text`, put in quotes, is exactly one JSON string. */
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

	if (text_from_base64url(text, plain, &n) < 0 || n < HEAD_BYTES || plain[0] != FORM_CHILD)
		goto out;
	inside = slice_of((const char *)plain + HEAD_BYTES, n - HEAD_BYTES);
	*child_r = read_number(plain + 1);
	if (*child_r == 0 || !is_inside_of_string(inside))
		goto out;
	buf_append_char(out, '"');
	buf_append_slice(out, inside);
	buf_append_char(out, '"');
	result = 0;
out:
	free(plain);
	return result;
}

int cursor_open_page(struct json sealed, uint64_t *list_r, uint64_t *page_r)
{
	struct slice text = scan_plain_string(sealed);
	unsigned char plain[HEAD_BYTES + PAGE_BYTES];
	size_t n = 0;

	if (text.n != (sizeof(plain) * 4 + 2) / 3 || text_from_base64url(text, plain, &n) < 0 ||
	    plain[0] != FORM_PAGE)
		return -1;
	*list_r = read_number(plain + 1);
	*page_r = read_number(plain + HEAD_BYTES);
	return 0;
}
