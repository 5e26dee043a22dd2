/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of tools and prompts, and the URIs of resources, where access depends on them. Servers compare names in different
 * ways: up to a NUL, ignoring case, ignoring invisible characters, or after normalization.
 * AUTH-SCP-12, SEC-42, SEC-50.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

#define NAME_BYTES_MAX 256 /* DEF-11 */

/*
 * Appends the folded form of a name, which is the same for all spellings: without case and spaces;
 * compatibility forms (full width, ligatures) and composed characters are unified. Also for
 * patterns: a name that matches a pattern matches it in folded form.
 *
 * Returns NULL, or the reason why it is not a valid name, to follow "the name ..."; then nothing is
 * appended.
 */
const char *name_fold(struct slice name, struct buf *folded) must_check;
/*
 * Like name_fold, but does not copy a name that is already folded: *form_r is `name`, or else lies
 * in `room`, which is overwritten. Empty if the name is invalid.
 */
const char *name_read_form(struct slice name, struct buf *room, struct slice *form_r) must_check;

/* Names listed by the operator; `*` matches any characters. */
struct names {
	struct slices written;
	const struct slice *folded; /* of each, as name_fold; empty: invalid name */
};

/* Computes the folded forms, once `written` is set. */
void names_finish(struct names *names);
/* Frees what names_finish has allocated. */
void names_free(struct names *names);
/* Whether an entry matches this folded name. */
bool names_fit(const struct names *names, struct slice folded) must_check;
/*
 * The folded form of a name, NUL-terminated; empty if it is invalid. The caller owns and frees its
 * text.
 */
struct slice name_fold_copy(struct slice name) must_check;

/* ---- URIs ---- */

/*
 * URIs of resources, where access depends on them: servers decode and resolve them in different
 * ways, and a rule must hold for all of them. RFC 3986 §6.2; SEC-50.
 */

#define URI_BYTES_MAX (8 * 1024)

/*
 * Appends the folded form of a URI, which is the same for all spellings: percent-encoding decoded,
 * also if it was applied twice; `\` as `/`; scheme and host in lower case; repeated slashes
 * collapsed (so a host becomes the first segment); `.` and `..` resolved; localhost of file URIs
 * omitted; file URIs and hosts of web URIs as WHATWG URL parses them, with any number of slashes.
 * Also for patterns.
 *
 * Returns NULL, or the reason why it is not a URI that rules can be applied to, to follow "the URI
 * ..."; then nothing is appended.
 */
const char *uri_fold(struct slice uri, struct buf *folded) must_check;
