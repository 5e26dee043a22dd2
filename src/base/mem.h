/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation of small objects of fixed size: aborts when memory runs out. Sizes that a peer chooses
 * are capped before they get here. The caller owns the result and frees it with free().
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/at_end.h"
#include "base/check.h"
#include "base/slice.h"

/*
 * What is allocated for each call is no larger: the C library then serves it from its per-thread
 * cache, in a tenth of the time.
 */
#define MEM_CACHED_MAX 1032

void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull)); /* not zeroed */
void *mem_zalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_resize(void *p, size_t size) __attribute__((returns_nonnull));
/* A NUL-terminated copy. */
char *mem_strdup(const char *text) __attribute__((malloc, returns_nonnull));
/* A NUL-terminated copy. */
char *mem_dup_slice(struct slice s) __attribute__((malloc, returns_nonnull));
/*
 * Copies s to *at, advances *at past it and returns the copy: for texts stored right after a struct
 * in the same allocation.
 */
struct slice mem_put_slice(char **at, struct slice s);
/* A NUL-terminated, formatted text. */
char *mem_printf(const char *format, ...) printf_like(1, 2)
	__attribute__((malloc, returns_nonnull));
/*
 * A stream that writes to memory. After mem_close_text, *text_r is the complete, NUL-terminated
 * text, owned by the caller, and *size_r its length without the NUL. Both must stay valid until
 * then.
 */
FILE *mem_open_text(char **text_r, size_t *size_r) __attribute__((returns_nonnull));
void mem_close_text(FILE *out);
