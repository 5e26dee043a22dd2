/* SPDX-License-Identifier: Apache-2.0 */
/* A canonical form of JSON, so that values that mean the same can be compared or hashed as text. */
#ifndef MCPGATED_JSONRPC_CANONICAL_H
#define MCPGATED_JSONRPC_CANONICAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

/*
 * Appends the canonical form of one JSON value: no white space; strings as write_string writes
 * them; members sorted by the bytes of their names in that form; numbers as digits without leading
 * or trailing zeros and a power of ten. The result is JSON with the same meaning, so different
 * values never share a form.
 *
 * Differences to RFC 8785: numbers are not rounded to a double, because servers that read them
 * exactly see a difference; members sort by UTF-8, not UTF-16; all members of one name are kept, in
 * their order; strings with a lone surrogate and numbers whose exponent has more than 18 digits are
 * kept as written.
 *
 * text        borrowed; need not have been scanned
 * depth_max   of nested arrays and objects; at most SCAN_DEPTH_MAX
 *
 * Returns 0, or -1 if text is not JSON or too deep; `out` is then unchanged.
 */
int canonical_append(struct buf *out, struct slice text, size_t depth_max) must_check;

/*
 * Caches the canonical form of one text that several callers need; it is computed on first use. All
 * zeros initially; the memory is reused for the next text.
 */
struct canonical_memo {
	struct slice of; /* borrowed; empty: no text */
	bool is_made;
	struct buf form;
};

/* From now on caches the form of `text`, which must not change until canonical_memo_end. */
void canonical_memo_begin(struct canonical_memo *memo, struct slice text);
void canonical_memo_end(struct canonical_memo *memo);
/*
 * The form of this text, or of any other text that was scanned as valid. Borrowed until the next
 * call.
 */
struct slice canonical_memo_get(struct canonical_memo *memo, struct slice text);
void canonical_memo_fini(struct canonical_memo *memo);

#endif
