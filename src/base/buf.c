/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte buffer. Its capacity doubles, so that appending takes amortized constant time. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define BUF_SMALLEST 256

char *buf_grow(struct buf *buf, size_t size)
{
	size_t cap = buf->cap;

	CHECK(size < SIZE_MAX / 4 && buf->len < SIZE_MAX / 4);
	if (cap < BUF_SMALLEST)
		cap = BUF_SMALLEST;
	while (cap - buf->len < size)
		cap *= 2;
	buf->data = mem_resize(buf->data, cap);
	buf->cap = cap;
	return buf->data + buf->len;
}

void buf_move(struct buf *buf, char *from, size_t size)
{
	struct buf grown = { 0 };

	CHECK(from != buf->data || size == 0);
	if (buf->len > 0 && buf->cap - buf->len < size) {
		buf_reserve(&grown, buf->len + size);
		buf_append(&grown, buf->data, buf->len);
		explicit_bzero(buf->data, buf->len);
		buf_fini(buf);
		*buf = grown;
	}
	buf_append(buf, from, size);
	explicit_bzero(from, size);
}

void buf_append_utf8(struct buf *buf, struct slice text)
{
	while (text.n > 0) {
		size_t length = text_utf8_length(text);

		if (length > 0)
			buf_append(buf, text.p, length);
		else
			buf_append_str(buf, "\xEF\xBF\xBD");
		if (length == 0)
			length = 1;
		text = slice_of(text.p + length, text.n - length);
	}
}

void buf_append_u64(struct buf *buf, uint64_t value)
{
	buf->len += text_format_u64(value, buf_reserve(buf, 20));
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	size_t room = 128;

	for (;;) {
		va_list args;
		int length;

		buf_reserve(buf, room);
		room = buf->cap - buf->len;
		va_start(args, format);
		length = vsnprintf(buf->data + buf->len, room, format, args);
		va_end(args);
		CHECK(length >= 0);
		if ((size_t)length < room) {
			buf->len += (size_t)length;
			return;
		}
		room = (size_t)length + 1;
	}
}

void buf_consume(struct buf *buf, size_t size)
{
	CHECK(size <= buf->len);
	buf->len -= size;
	if (buf->len > 0 && size > 0)
		memmove(buf->data, buf->data + size, buf->len);
}

const char *buf_terminate(struct buf *buf)
{
	*buf_reserve(buf, 1) = '\0';
	return buf->data;
}

struct slice buf_slice(const struct buf *buf)
{
	return slice_of(buf->data, buf->len);
}

void buf_fini(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf){ NULL, 0, 0 };
}

void buf_wipe(struct buf *buf)
{
	if (buf->cap > 0)
		explicit_bzero(buf->data, buf->cap);
	buf_fini(buf);
}
