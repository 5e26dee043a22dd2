/* SPDX-License-Identifier: Apache-2.0 */
/* Unicode properties of single characters, from the tables of utf8proc. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* The code point of s, which must be exactly one valid UTF-8 character; see text_utf8_length. */
uint32_t unicode_decode(struct slice s);
/*
 * Whether the character is invisible or changes how others are displayed: controls, format
 * characters (including all that change the writing direction), line and paragraph separators, and
 * Default_Ignorable_Code_Point.
 */
bool unicode_is_hidden(uint32_t code);
/*
 * Whether some language's trim() or strip() takes the character off the ends of a text: White_Space,
 * controls up to the space (Java), and what was a space once or is one to JavaScript.
 */
bool unicode_is_space(uint32_t code);
/* Whether it is such a space, or a quotation mark: programs take these off what is given them. */
bool unicode_is_wrapping(uint32_t code);
/* Whether the code point is unassigned or for private use, so its meaning is not known here. */
bool unicode_is_unknown(uint32_t code);
/* Whether it is an emoji (Extended_Pictographic). */
bool unicode_is_pictograph(uint32_t code);
