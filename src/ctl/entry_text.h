/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an entry in a client's file, laid out as the one that it takes the place of. Knows no files. */
#ifndef MCPGATED_CTL_ENTRY_TEXT_H
#define MCPGATED_CTL_ENTRY_TEXT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

#define ENTRY_MEMBERS_MAX 8

struct entry_member {
	const char *name; /* needs no escapes */
	char *text;       /* JSON on one line */
};

/*
 * value     an object, scanned as valid, with spaces in place of comments and trailing commas
 * original  the same bytes as they stand in the file
 *
 * Appends an object with these members in place of those that say how the server is reached; all others stay as they are written. Line
 * ends and indentation are those of the original. -1: it has a name with escapes, which might be either.
 */
int entry_text_write(struct slice value, const char *original, const struct entry_member *members,
		     size_t count, struct buf *out) must_check;

#endif
