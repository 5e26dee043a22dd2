/* SPDX-License-Identifier: Apache-2.0 */
/* What Unicode says of single characters. The tables are utf8proc's. */
#ifndef MCPGATED_BASE_UNICODE_H
#define MCPGATED_BASE_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* The code point of one valid UTF-8 character, which is all of s: see text_utf8_length. */
uint32_t unicode_decode(struct slice s);
/*
 * Whether it is not seen, or changes how others are seen: controls, formats (among them all that turns the direction of
 * writing), line and paragraph separators, and whatever is shown as nothing (Default_Ignorable_Code_Point).
 */
bool unicode_is_hidden(uint32_t code);
/* Whether it has no meaning that is known here: not assigned, or for private use. */
bool unicode_is_unknown(uint32_t code);
/* Whether it is an emoji (Extended_Pictographic). */
bool unicode_is_pictograph(uint32_t code);

#endif
