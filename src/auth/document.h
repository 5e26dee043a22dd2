/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON objects written by others that must be understood completely: tokens, key sets, metadata.
 * Limits are checked before a tree is built, as a tree is many times the size of its text
 * (design/stack.md §6).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"

#define DOCUMENT_DEPTH_MAX 32
#define DOCUMENT_VALUES_MAX (16 * 1024)

/*
 * Reads one JSON object. Refused: duplicate names in an object, invalid UTF-8, NUL (also escaped,
 * so that no text is cut short later), integers beyond 63 bits, more depth or values than above.
 * Returns a reference that the caller owns, or NULL and err. AUTH-JWT-01, AUTH-JWT-14, AUTH-KEY-01
 */
json_t *document_parse(struct slice text, struct error *err) must_check;

/* The member's text if it is a string; else {NULL, 0}. Borrowed from the object. */
struct slice document_text(const json_t *object, const char *name);
/* The same, NUL-terminated, or NULL. No text of a document contains a NUL. */
const char *document_string(const json_t *object, const char *name);
/* Whether the array contains this string. NULL counts as no array. */
bool document_lists(const json_t *array, struct slice text);

/* ---- metadata of issuers ---- */

/* What an issuer says of itself (RFC 8414, OpenID discovery): where that is, and whether it may be believed. Pure. */

/*
 * Address number `at` (from 0) of the issuer's metadata, in the order of AUTH-AS-01; the caller's; NULL after the
 * last. RFC 8414 s3.1: the well-known part goes between host and path.
 */
char *issuer_metadata_url(const char *issuer, size_t at);
/* Whether the document is this issuer's and its addresses may be used. AUTH-AS-02, AUTH-AS-03 */
int issuer_metadata_check(const json_t *document, const char *issuer, struct error *err) must_check;
/* The document, if it is that; the caller's. */
json_t *issuer_metadata_read(struct slice text, const char *issuer, struct error *err);
