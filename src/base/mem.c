/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that cannot fail. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* calloc of the C library does not take what it has at hand of these sizes. */
#define SMALL 1024

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
	return size > SMALL ? mem_checked(calloc(1, size)) : memset(mem_alloc(size), 0, size);
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

FILE *mem_open_text(char **text_r, size_t *size_r)
{
	return mem_checked(open_memstream(text_r, size_r));
}

void mem_close_text(FILE *out)
{
	bool is_whole = ferror(out) == 0;

	if (fclose(out) != 0 || !is_whole)
		mem_checked(NULL);
}
