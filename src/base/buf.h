/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing run of bytes. All zeros is an empty one, so it needs no init; buf_fini frees it and
 * leaves it empty again. Callers bound what they append.
 */
#ifndef MCPGATED_BASE_BUF_H
#define MCPGATED_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"

struct buf {
	char *data;
	size_t len;
	size_t cap;
};

/* buf_reserve, where there is no room yet. */
char *buf_grow(struct buf *buf, size_t size);

/* Room for `size` more bytes: returns where to write them; the caller then adds to ->len. */
static inline char *buf_reserve(struct buf *buf, size_t size)
{
	CHECK(buf->len <= buf->cap);
	if (buf->cap - buf->len >= size && buf->data != NULL)
		return buf->data + buf->len;
	return buf_grow(buf, size);
}

static inline void buf_append(struct buf *buf, const void *data, size_t size)
{
	if (size == 0)
		return;
	memcpy(buf_reserve(buf, size), data, size);
	buf->len += size;
}

static inline void buf_append_slice(struct buf *buf, struct slice s)
{
	buf_append(buf, s.p, s.n);
}

static inline void buf_append_str(struct buf *buf, const char *text)
{
	buf_append(buf, text, strlen(text));
}

static inline void buf_append_char(struct buf *buf, char c)
{
	*buf_reserve(buf, 1) = c;
	buf->len++;
}

/* Appends, and overwrites the bytes in `from` and in memory that became too small: for what may hold secrets. */
void buf_move(struct buf *buf, char *from, size_t size);
/* Appends valid UTF-8: each byte of text that belongs to no character becomes U+FFFD. */
void buf_append_utf8(struct buf *buf, struct slice text);
/* Decimal digits. */
void buf_append_u64(struct buf *buf, uint64_t value);
void buf_printf(struct buf *buf, const char *format, ...) printf_like(2, 3);
/* Drops the first `size` bytes (at most len) and moves the rest to the front. */
void buf_consume(struct buf *buf, size_t size);
/* NUL after the last byte, not counted; returns data. Valid until the next append. */
const char *buf_terminate(struct buf *buf);
/* Borrowed until buf changes. */
struct slice buf_slice(const struct buf *buf);
void buf_fini(struct buf *buf);
/* As buf_fini, for what may hold secrets: the memory is overwritten first. */
void buf_wipe(struct buf *buf);

#endif
