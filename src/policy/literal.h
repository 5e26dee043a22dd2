/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The letters that all begins with that fits a regular expression: they are found much more quickly than it. Whatever of an
 * expression is not surely such a letter ends them.
 */
#ifndef MCPGATED_POLICY_LITERAL_H
#define MCPGATED_POLICY_LITERAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/slice.h"

#define LITERAL_MAX 16

struct literal {
	char text[LITERAL_MAX]; /* ASCII; small letters, if is_caseless */
	size_t length;          /* 0: nothing is known */
	bool is_caseless;
};

/* `expression`: one that PCRE2 has compiled, without options of its own but for UTF and UCP. */
void literal_read(struct literal *literal, struct slice expression);
/*
 * Whether something that fits may begin in `text` at *from_r or behind; then *from_r is the first place where it may. `text` is
 * UTF-8. True if nothing is known.
 */
bool literal_find(const struct literal *literal, struct slice text, size_t *from_r) must_check;

#endif
