/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterates over the characters of strings in JSON text that was scanned as valid, as written. Does
 * not allocate.
 */
#ifndef MCPGATED_POLICY_CHARACTERS_H
#define MCPGATED_POLICY_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/*
 * Reads the character at `p`, which is inside a string and not its closing quote: a raw character,
 * an escape or a pair of escapes. A lone surrogate counts as a character. Returns the number of
 * bytes.
 */
size_t characters_read(const char *p, uint32_t *code_r);
bool characters_is_high_half(uint32_t code);
bool characters_is_low_half(uint32_t code);
/* From the byte after the opening quote of a string, finds its closing quote. */
const char *characters_find_end(const char *p);
/* Appends the decoded content of a string as UTF-8; a lone surrogate becomes U+FFFD. */
void characters_decode(struct slice between_quotes, struct buf *out);

#endif
