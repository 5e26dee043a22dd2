/* SPDX-License-Identifier: Apache-2.0 */
/* JSON written in one way, so that texts that mean the same can be compared or hashed. */
#ifndef MCPGATED_JSONRPC_CANONICAL_H
#define MCPGATED_JSONRPC_CANONICAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

/*
 * Appends the canonical form of one JSON value: no white space, strings as write_string spells them, members sorted
 * by the bytes of their names so spelled, numbers as digits without zeros at their ends and a power of ten. It is JSON
 * again and means the same, so values that differ never share a form.
 *
 * Not RFC 8785: numbers are not rounded to a double, since servers that read them exactly see a difference; members
 * sort by UTF-8, not by UTF-16; of members of one name all stay, in their order; a string with half a surrogate pair,
 * and a number whose exponent has more than 18 digits, stay as they were written.
 *
 * text        borrowed; need not have been scanned
 * depth_max   of nested arrays and objects; at most SCAN_DEPTH_MAX
 *
 * Returns 0, or -1 if text is not JSON or too deep; `out` is then as it was.
 */
int canonical_append(struct buf *out, struct slice text, size_t depth_max) must_check;

/*
 * The form of one text that several ask for: made once, when the first does. All zeros at first; its memory is used again for
 * the next text.
 */
struct canonical_memo {
	struct slice of; /* borrowed; empty: of none */
	bool is_made;
	struct buf form;
};

/* From now on the form of `text` is kept, which must stay as it is until canonical_memo_end. */
void canonical_memo_begin(struct canonical_memo *memo, struct slice text);
void canonical_memo_end(struct canonical_memo *memo);
/* Of this or of any other text that was scanned as valid. Valid until the next is asked for. */
struct slice canonical_memo_get(struct canonical_memo *memo, struct slice text);
void canonical_memo_fini(struct canonical_memo *memo);

#endif
