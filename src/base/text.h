/* SPDX-License-Identifier: Apache-2.0 */
/* Small conversions between bytes and text. None of them allocates. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"

/*
 * Parses an unsigned decimal number. Digits only, no sign, no spaces; returns -1 if the text is
 * empty, contains anything else or exceeds UINT64_MAX.
 */
int text_parse_u64(struct slice s, uint64_t *value_r) must_check;
/* Writes the decimal digits to out (at least 20 bytes, not terminated) and returns their number. */
size_t text_format_u64(uint64_t value, char *out);
/* The same in hexadecimal with lower-case letters: at most 16, and at least `least`, by zeros. */
size_t text_format_hex(uint64_t value, size_t least, char *out);
#define TEXT_AGE_BYTES 32
/* Writes a time as people say it: 5s, 3m07s, 2h05m, 4d11h. Returns text_r. */
const char *text_format_age(uint64_t ms, char text_r[TEXT_AGE_BYTES]);
/*
 * Encodes as base64url without padding (RFC 4648 §5). out has room for (size * 4 + 2) / 3 bytes.
 * Returns the length.
 */
size_t text_base64url(const void *data, size_t size, char *out);
/*
 * Decodes base64url. out has room for text.n * 3 / 4 bytes. Accepts only the one encoding that
 * text_base64url produces: padding, foreign characters, an impossible length or nonzero unused bits
 * give -1.
 */
int text_from_base64url(struct slice text, void *out, size_t *size_r) must_check;
/* Writes 2 * size hexadecimal digits and a NUL. */
void text_to_hex(const void *bytes, size_t size, char *text_r);
/* Decodes exactly 2 * size hexadecimal digits of either case; -1 otherwise. */
int text_from_hex(struct slice text, void *out, size_t size) must_check;
/*
 * Length (1 to 4) of the UTF-8 character at s.p, or 0 if it is not valid: overlong forms,
 * surrogates, values over U+10FFFF and truncated sequences are rejected. s.n > 0. RFC 3629.
 */
size_t text_utf8_length(struct slice s);
/*
 * Length of the prefix of s that consists of printable ASCII (0x20 to 0x7E) without backslashes.
 * Vectorized.
 */
size_t text_plain_length(struct slice s);
/*
 * Like text_plain_length, but also stops at quotes: these bytes are copied verbatim into a JSON
 * string.
 */
size_t text_verbatim_length(struct slice s);
/* Whether all of s is valid UTF-8. */
bool text_is_utf8(struct slice s);
/* Whether it can be a bearer token: 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"=". RFC 6750 s2.1 */
bool text_is_b64token(struct slice s);
/* The rest of text_is_lookalike. */
bool text_folds_to(struct slice name, struct slice known);
/*
 * Whether a reader that ignores letter case takes `name` for `known`, which is ASCII; some also take
 * the long s, the Kelvin sign, and i with and without its dot for ASCII letters. SEC-41
 */
static inline bool text_is_lookalike(struct slice name, struct slice known)
{
	/* Nearly all are none: what stands for an ASCII letter is longer, and begins beyond ASCII. */
	return name.n >= known.n && known.n > 0 &&
	       (((name.p[0] ^ known.p[0]) & ~0x20) == 0 || (unsigned char)name.p[0] >= 0x80) &&
	       text_folds_to(name, known);
}
/* The longest claim value that is passed on to a server. AUTH-DWN-03 */
#define TEXT_CLAIM_MAX 1024
/*
 * Whether s is a valid claim value: not empty, at most TEXT_CLAIM_MAX bytes, UTF-8 without control
 * characters.
 */
bool text_is_claim(struct slice s);
/* FNV-1a, continuing from `hash`. Start with a secret or random value where a peer chooses s. */
uint64_t text_hash(uint64_t hash, struct slice s);
/* Hashes s and its length, so that the boundaries between successively hashed texts count. */
uint64_t text_hash_part(uint64_t hash, struct slice s);
/* Compares in constant time for equal lengths; may reveal whether the lengths differ. */
bool text_is_equal_secret(struct slice a, struct slice b);
/*
 * Whether all of `text` matches `pattern`, in which '*' stands for any bytes, also none. Takes at
 * most time proportional to text times pattern.
 */
bool text_fits_pattern(struct slice text, struct slice pattern);
/*
 * Edit distance (single letters) between two names, for "did you mean"; at most `limit` + 1. Names
 * over 64 bytes count as different.
 */
size_t text_distance(struct slice a, struct slice b, size_t limit);
/*
 * Whether `candidate` resembles `written`, and more closely than all earlier candidates. *distance
 * holds the least distance so far and is updated; start with SIZE_MAX.
 */
bool text_is_nearer(struct slice written, struct slice candidate, size_t *distance);
