/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that aborts instead of failing. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static void *mem_checked(void *p)
{
	if (p == NULL) {
		fprintf(stderr, "mcpgated: out of memory\n");
		abort();
	}
	return p;
}

void *mem_alloc(size_t size)
{
	return mem_checked(malloc(size > 0 ? size : 1));
}

void *mem_zalloc(size_t size)
{
	void *p;

	/* Up to there malloc uses the cache, but calloc does not. */
	if (size > MEM_CACHED_MAX)
		return mem_checked(calloc(1, size));
	p = mem_alloc(size);
	__asm__("" : "+r"(p)); /* or the compiler makes calloc of both */
	return memset(p, 0, size);
}

void *mem_resize(void *p, size_t size)
{
	return mem_checked(realloc(p, size > 0 ? size : 1));
}

char *mem_strdup(const char *text)
{
	return mem_dup_slice(slice_str(text));
}

char *mem_dup_slice(struct slice s)
{
	char *copy = mem_alloc(s.n + 1);

	if (s.n > 0)
		memcpy(copy, s.p, s.n);
	copy[s.n] = '\0';
	return copy;
}

struct slice mem_put_slice(char **at, struct slice s)
{
	struct slice copy = slice_of(*at, s.n);

	CHECK(*at != NULL);
	if (s.n > 0)
		memcpy(*at, s.p, s.n);
	*at += s.n;
	return copy;
}

char *mem_printf(const char *format, ...)
{
	va_list args;
	char *text = NULL;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	return mem_checked(length < 0 ? NULL : text);
}

/* ---- streams into memory ---- */

/*
 * Not open_memstream: when it has no memory for a chunk, it drops the chunk and continues with the
 * next, and neither ferror nor fclose reports it.
 */
struct text {
	char **text_r;
	size_t *size_r;
	char *bytes;
	size_t size;
	size_t room;
};

/* Growing leaves no copy of the text in freed memory: it may be a secret. */
static void text_grow(struct text *text, size_t size)
{
	size_t room = 2 * (text->size + size) + MEM_CACHED_MAX;
	char *bytes = mem_alloc(room);

	memcpy(bytes, text->bytes, text->size);
	explicit_bzero(text->bytes, text->size);
	free(text->bytes);
	text->bytes = bytes;
	text->room = room;
}

static ssize_t text_write(void *cookie, const char *bytes, size_t size)
{
	struct text *text = cookie;

	if (text->room - text->size <= size)
		text_grow(text, size);
	memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
	return (ssize_t)size;
}

static int text_close(void *cookie)
{
	struct text *text = cookie;

	text->bytes[text->size] = '\0';
	*text->text_r = text->bytes;
	*text->size_r = text->size;
	free(text);
	return 0;
}

FILE *mem_open_text(char **text_r, size_t *size_r)
{
	static const cookie_io_functions_t functions = { .write = text_write, .close = text_close };
	struct text *text = mem_zalloc(sizeof(*text));
	FILE *out;

	*text = (struct text){ .text_r = text_r,
			       .size_r = size_r,
			       .bytes = mem_alloc(MEM_CACHED_MAX),
			       .room = MEM_CACHED_MAX };
	out = mem_checked(fopencookie(text, "w", functions));
	setvbuf(out, NULL, _IONBF, 0);
	return out;
}

void mem_close_text(FILE *out)
{
	CHECK(ferror(out) == 0);
	CHECK(fclose(out) == 0);
}
