/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a message again with some spans replaced and everything else byte for byte as it was.
 * bridging.md I6; RPC-04.
 */
#ifndef MCPGATED_JSONRPC_SPLICE_H
#define MCPGATED_JSONRPC_SPLICE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

struct splice_edit {
	struct slice span; /* inside the message */
	struct slice with; /* what stands there instead; may be empty */
};

enum splice_flags {
	SPLICE_ONE_LINE = 1, /* raw CR and LF become spaces (they can only stand between tokens) */
	SPLICE_ESCAPE_SEPARATORS = 2, /* raw U+0085, U+2028, U+2029 become \u escapes */
};

/*
 * Appends `text` to `out` with `count` edits applied; they are in the order of their spans and do
 * not overlap. `text` must have passed scan_envelope; the flags hold for the edits' `with` too, so
 * that the whole output keeps what they promise. BACK-FRAME-01.
 */
void splice_append(struct buf *out, struct slice text, const struct splice_edit *edits,
		   size_t count, unsigned int flags);

#endif
