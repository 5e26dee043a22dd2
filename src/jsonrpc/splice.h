/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites a message with some spans replaced; everything else stays byte for byte. bridging.md I6;
 * RPC-04.
 */
#ifndef MCPGATED_JSONRPC_SPLICE_H
#define MCPGATED_JSONRPC_SPLICE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

struct splice_edit {
	struct slice span; /* within the message */
	struct slice with; /* the replacement; may be empty */
};

enum splice_flags {
	SPLICE_ONE_LINE = 1, /* raw CR and LF become spaces (they can only occur between tokens) */
	SPLICE_ESCAPE_SEPARATORS = 2, /* raw U+0085, U+2028, U+2029 become \u escapes */
};

/*
 * Appends `text` to `out` with `count` edits applied, which must be sorted by their spans and must
 * not overlap. `text` must have passed scan_envelope. The flags also apply to the `with` of the
 * edits, so they hold for the whole output. BACK-FRAME-01.
 */
void splice_append(struct buf *out, struct slice text, const struct splice_edit *edits,
		   size_t count, unsigned int flags);

#endif
