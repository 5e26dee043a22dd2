/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A literal prefix that every match of a regular expression must begin with. Searching for it is
 * much faster than matching. The prefix ends at anything in the expression that is not certainly a
 * literal character.
 */
#ifndef MCPGATED_POLICY_LITERAL_H
#define MCPGATED_POLICY_LITERAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/slice.h"

#define LITERAL_MAX 16

struct literal {
	char text[LITERAL_MAX]; /* ASCII; lower case if is_caseless */
	size_t length;          /* 0: no prefix is known */
	bool is_caseless;
};

/* `expression` must have compiled with PCRE2 without options other than UTF and UCP. */
void literal_read(struct literal *literal, struct slice expression);
/*
 * Whether a match may begin in `text` at *from_r or later; *from_r is then set to the first such
 * position. `text` is UTF-8. True if no prefix is known.
 */
bool literal_find(const struct literal *literal, struct slice text, size_t *from_r) must_check;

#endif
