/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one program leaves to the next that is executed in the same process (keeper/upgrade.h): lines,
 * and descriptors that stay open. A line is a word for what it is, a space, and its values; a program
 * skips words that it does not know. Each unit writes its own lines, and takes them.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"

struct handover {
	struct buf text; /* lines, each ended by '\0'; empty: there is nothing */
	int *fds;        /* open descriptors that go with it; -1: taken */
	size_t fd_count;
};

/* This descriptor, which is borrowed, goes with it. Returns it. */
int handover_give(struct handover *handover, int fd);
/* Adds a line. */
void handover_write(struct handover *handover, const char *format, ...) printf_like(2, 3);

/*
 * The values of the next line with this word, from *at on (at first 0), which goes behind it; NULL:
 * there is none.
 */
const char *handover_next(const struct handover *handover, const char *word, size_t *at);
/* The caller owns the descriptor from now on. -1: it did not come with it, or was taken before. */
int handover_take(struct handover *handover, int fd);
/* The same for the first line "WORD FD NAME" whose descriptor is there still. */
int handover_take_named(struct handover *handover, const char *word, const char *name);
/*
 * The same for the memory file of a line "memory FD NAME". 0: there is none. -1: it has another size, so that it
 * cannot be read.
 */
int handover_take_memory(struct handover *handover, const char *name, size_t size,
			 struct error *err) must_check;
/* Adds the lines with this word, of another program, and the descriptors that they begin with. */
void handover_copy(struct handover *handover, const struct handover *from, const char *word);
/* Closes what was not taken. No-op if there is nothing. */
void handover_fini(struct handover *handover);
