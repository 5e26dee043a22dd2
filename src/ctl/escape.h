/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes foreign texts safe for a terminal: they cannot move the cursor, change colors or change the
 * writing direction.
 */
#ifndef MCPGATED_CTL_ESCAPE_H
#define MCPGATED_CTL_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/slice.h"

/*
 * Appends `text` in UTF-8. Control, invisible and direction characters become escapes like \x1b and
 * \u202e, except the ASCII ones in `keep`; invalid UTF-8 becomes U+FFFD.
 */
void escape_append(struct buf *out, struct slice text, const char *keep);
/* Prints a line: `before` unchanged, then the text as escape_append writes it. */
void escape_print(FILE *out, const char *before, struct slice text, const char *keep);
/* The number of columns of an escaped text. */
size_t escape_width(struct slice text);

#endif
