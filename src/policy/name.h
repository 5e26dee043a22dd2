/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tool or a prompt may be called by where that decides about who may use it. Servers compare names in their own
 * ways: up to a NUL, without case, without what is not seen, in a normal form. AUTH-SCP-12, SEC-42, SEC-50.
 */
#ifndef MCPGATED_POLICY_NAME_H
#define MCPGATED_POLICY_NAME_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

#define NAME_BYTES_MAX 256 /* DEF-11 */

/*
 * Appends the form in which a name is the same however it is spelled: without case, compatible forms (full width,
 * ligatures) and composed characters alike, without spaces. For patterns, too: what fits one fits its folded form.
 *
 * Returns NULL, or why it is no name, for "the name ...": then nothing is appended.
 */
const char *name_fold(struct slice name, struct buf *folded) must_check;
/*
 * The same without a copy of what has that form already: *form_r is `name`, or else `room`, which is overwritten; empty where
 * it is no name.
 */
const char *name_read_form(struct slice name, struct buf *room, struct slice *form_r) must_check;

/* Names that the operator lists; a `*` stands for any characters. */
struct names {
	struct slices written;
	const struct slice *folded; /* each as name_fold has it; empty: it is no name */
};

/* Once they are written: makes their folded forms. */
void names_finish(struct names *names);
/* What names_finish has made. */
void names_free(struct names *names);
/* Whether one fits a name in its folded form. */
bool names_fit(const struct names *names, struct slice folded) must_check;
/* The folded form of one name, NUL terminated: empty if it is none. Its text is the caller's. */
struct slice name_fold_copy(struct slice name) must_check;

#endif
