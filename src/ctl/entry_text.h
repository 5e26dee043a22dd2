/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an entry in a client's file, laid out as the one that it takes the place of. Knows no files. */
#pragma once

#include <stdbool.h>
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
 * original  the entry, of a file that has been read as valid: an object of JSON with comments; or of TOML, a table in braces, or all lines
 *           from the first to the last that say it
 *
 * Appends an entry with these members in place of those that say how the server is reached; all others stay as they are written. Line
 * ends and indentation are those of the original. -1: it cannot be done: a name has escapes in JSON, and might be either; what says a
 * member of TOML stands in several places.
 */
int entry_text_write(struct slice original, bool is_toml, const struct entry_member *members,
		     size_t count, struct buf *out) must_check;

/*
 * was, is  the entry before and after entry_text_write, as they were written
 *
 * Appends what the entry is to be again. That is `was`, to the byte, if it still says what `is` says, however it is laid out. If only the
 * client's own members have been changed, those stay as they are now; so they do where lines of TOML with keys that begin in a table
 * above them have been laid out anew. -1: it leads elsewhere by now.
 */
int entry_text_restore(struct slice original, bool is_toml, struct slice was, struct slice is,
		       struct buf *out) must_check;
