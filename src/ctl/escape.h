/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that others wrote, made fit for a terminal: nothing in them moves the cursor, changes colours or
 * turns the direction of writing.
 */
#ifndef MCPGATED_CTL_ESCAPE_H
#define MCPGATED_CTL_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/slice.h"

/*
 * Appends `text` in UTF-8. Controls, invisible and direction characters become escapes like \x1b and \u202e,
 * except the ASCII ones in `keep`; bytes that are no UTF-8 become U+FFFD.
 */
void escape_append(struct buf *out, struct slice text, const char *keep);
/* Prints a line: `before` as it is, then the text as escape_append writes it. */
void escape_print(FILE *out, const char *before, struct slice text, const char *keep);
/* The columns that a cleaned text takes. */
size_t escape_width(struct slice text);

#endif
