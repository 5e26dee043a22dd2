/* SPDX-License-Identifier: Apache-2.0 */
/* The characters of strings in JSON text that was scanned as valid, as they were written. Nothing here allocates. */
#ifndef MCPGATED_POLICY_CHARACTERS_H
#define MCPGATED_POLICY_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/*
 * Reads the character at `p`, which is in a string and not its closing quote: raw, or an escape, or a pair of escapes.
 * Half a surrogate pair is a character by itself. Returns the number of bytes.
 */
size_t characters_read(const char *p, uint32_t *code_r);
bool characters_is_high_half(uint32_t code);
bool characters_is_low_half(uint32_t code);
/* From behind the opening quote of a string to its closing one. */
const char *characters_find_end(const char *p);
/* Appends what lies between the quotes of a string as UTF-8; for half a surrogate pair stands U+FFFD. */
void characters_decode(struct slice between_quotes, struct buf *out);

#endif
