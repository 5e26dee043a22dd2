/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer. An all-zero struct is an empty buffer and needs no init; buf_fini frees
 * the memory and leaves the buffer empty and reusable. Allocation failure aborts the process;
 * callers bound what they append.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/at_end.h"
#include "base/check.h"
#include "base/slice.h"

struct buf {
	char *data;
	size_t len;
	size_t cap;
};

/* Slow path of buf_reserve: reallocates. Not called directly. */
char *buf_grow(struct buf *buf, size_t size);

/*
 * Ensures room for `size` more bytes and returns where to write them. The caller then adds the
 * number of bytes written to ->len. The pointer is valid until the next change of the buffer.
 */
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

/*
 * Appends `size` bytes of `from`, then overwrites them there. If the buffer grows, the old memory
 * is overwritten before it is freed. For data that may hold secrets.
 */
void buf_move(struct buf *buf, char *from, size_t size);
/* Appends `text` as valid UTF-8: each byte that is not part of a valid character becomes U+FFFD. */
void buf_append_utf8(struct buf *buf, struct slice text);
/* Appends `value` in decimal. */
void buf_append_u64(struct buf *buf, uint64_t value);
void buf_printf(struct buf *buf, const char *format, ...) printf_like(2, 3);
/* Drops the first `size` bytes (at most len) and moves the rest to the front. */
void buf_consume(struct buf *buf, size_t size);
/*
 * Writes a NUL after the last byte, not counted in len, and returns data. Valid until the next
 * change of the buffer.
 */
const char *buf_terminate(struct buf *buf);
/* The content; valid until the next change of the buffer. */
struct slice buf_slice(const struct buf *buf);
void buf_fini(struct buf *buf);
/* Like buf_fini, but overwrites the memory first. For data that may hold secrets. */
void buf_wipe(struct buf *buf);
