/* SPDX-License-Identifier: Apache-2.0 */
/* Small conversions between bytes and text. Nothing here allocates. */
#ifndef MCPGATED_BASE_TEXT_H
#define MCPGATED_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/slice.h"

/* Decimal digits only, no sign, no space; -1 if empty, foreign or over UINT64_MAX. */
int text_parse_u64(struct slice s, uint64_t *value_r) must_check;
/* Writes the digits to out (at least 20 bytes, not terminated); returns their number. */
size_t text_format_u64(uint64_t value, char *out);
/* base64url without padding; out has room for (size * 4 + 2) / 3 bytes; returns the length. */
size_t text_base64url(const void *data, size_t size, char *out);
/*
 * The way back; out has room for text.n * 3 / 4 bytes. Only the one text that text_base64url writes for
 * some bytes is read: padding, foreign characters, a length that none has, unused bits that are set: -1.
 */
int text_from_base64url(struct slice text, void *out, size_t *size_r) must_check;
/* 2 * size hexadecimal digits and the end. */
void text_to_hex(const void *bytes, size_t size, char *text_r);
/* Exactly 2 * size hexadecimal digits, of either case; else -1. */
int text_from_hex(struct slice text, void *out, size_t size) must_check;
/*
 * Length of the valid UTF-8 character at s.p (1 to 4), or 0: overlong forms, surrogates, numbers
 * over U+10FFFF and cut sequences are none. s.n > 0. RFC 3629.
 */
size_t text_utf8_length(struct slice s);
/* How many bytes at its beginning are seen in ASCII, or spaces, and no backslash: 0x20 to 0x7E. Quick for long ones. */
size_t text_plain_length(struct slice s);
/* The same without quotes: these stand for themselves in a string of JSON. */
size_t text_verbatim_length(struct slice s);
/* Whether all of s is valid UTF-8. */
bool text_is_utf8(struct slice s);
/* The longest value of a claim that is given on to a server. AUTH-DWN-03 */
#define TEXT_CLAIM_MAX 1024
/* Whether s can be such a value: not empty, not too long, UTF-8 without control characters. */
bool text_is_claim(struct slice s);
/* FNV-1a, going on from `hash`: a secret or random one where a peer chooses s. */
uint64_t text_hash(uint64_t hash, struct slice s);
/* The same of s and its length, so that texts hashed one after the other do not run together. */
uint64_t text_hash_part(uint64_t hash, struct slice s);
/* Compares without telling by time where a difference is; lengths may show. */
bool text_is_equal_secret(struct slice a, struct slice b);
/* Whether the whole text fits the pattern, in which '*' stands for any bytes. Linear in text times pattern. */
bool text_fits_pattern(struct slice text, struct slice pattern);
/*
 * Number of single-letter edits between two names, at most `limit` + 1: for "did you mean". Names
 * over 64 bytes count as different.
 */
size_t text_distance(struct slice a, struct slice b, size_t limit);
/*
 * Whether `candidate` looks like what somebody has written, and more so than those before it, whose least distance is
 * *distance; begin with SIZE_MAX.
 */
bool text_is_nearer(struct slice written, struct slice candidate, size_t *distance);

#endif
