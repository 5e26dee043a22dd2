/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for things of small, fixed size: these abort when there is none. Sizes that a peer chooses
 * are capped before they come here. Free with free().
 */
#ifndef MCPGATED_BASE_MEM_H
#define MCPGATED_BASE_MEM_H

#include <stddef.h>
#include <stdio.h>

#include "base/check.h"
#include "base/slice.h"

void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull)); /* not zeroed */
void *mem_zalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_resize(void *p, size_t size) __attribute__((returns_nonnull));
/* A terminated copy. */
char *mem_strdup(const char *text) __attribute__((malloc, returns_nonnull));
char *mem_dup_slice(struct slice s) __attribute__((malloc, returns_nonnull));
/* Copies s to *at, moves *at behind it, and returns the copy: for texts that lie behind a struct. */
struct slice mem_put_slice(char **at, struct slice s);
/* A terminated, formatted text. */
char *mem_printf(const char *format, ...) printf_like(1, 2)
	__attribute__((malloc, returns_nonnull));
/* What is written there becomes a text: terminated and whole in *text_r and *size_r when it is closed. */
FILE *mem_open_text(char **text_r, size_t *size_r) __attribute__((returns_nonnull));
void mem_close_text(FILE *out);

#endif
