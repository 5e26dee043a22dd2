/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text in memory that processes share, one of which writes it and may be killed at any byte: it
 * goes into the half that is not valid, and one store makes that the valid one. Another process
 * that reads it finds what was written before, or what is written now, whole. Whoever wrote it may
 * have been compromised: the head is validated, and the text is the reader's to judge.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"

/* Zeroed initially. */
struct halves {
	uint64_t half;     /* the valid one */
	uint64_t bytes[2]; /* in each; 0: nothing was written */
	char text[];       /* two of `room` bytes */
};

/* The size of the memory for texts of at most `room` bytes. */
#define HALVES_BYTES(room) (sizeof(struct halves) + 2 * (room))

/* Where the text in the valid half begins, in bytes from that of `halves`. */
size_t halves_find_text(const struct halves *halves, size_t room);
/*
 * Whether the head is valid; then *text_r is what was written last, in place (empty: nothing was),
 * and another process may change it at any time.
 */
bool halves_read(const struct halves *halves, size_t room, struct slice *text_r) must_check;
/* Where to write the next text; what is valid stays so until halves_end. */
char *halves_begin(struct halves *halves, size_t room);
/* It has been written, and is the valid one from now on. */
void halves_end(struct halves *halves, size_t room, size_t bytes);
