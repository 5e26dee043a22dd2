/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tool or a prompt may be called by where that decides about who may use it. Servers compare names in their own
 * ways: up to a NUL, without case, without what is not seen, in a normal form. AUTH-SCP-12, SEC-42, SEC-50.
 */
#ifndef MCPGATED_POLICY_NAME_H
#define MCPGATED_POLICY_NAME_H

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

#endif
