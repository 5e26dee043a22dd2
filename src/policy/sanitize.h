/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes or marks characters in the output of servers that readers should not get: those that
 * control a terminal, and those that are invisible to people but not to the model. All strings are
 * checked, names of members included, raw or escaped.
 *
 * Controls: C0 except tab, LF and CR; DEL; C1; a terminal escape sequence counts as one.
 *
 * Invisible: what unicode_is_hidden says, except controls, U+2028, U+2029 and visible format
 * characters (Arabic number signs). They are kept where writing needs them, one at a time: ZWJ and
 * ZWNJ next to a letter of a joining script (Arabic, Indic), ZWJ between the parts of an emoji, the
 * variation selector of an emoji, an ideograph or a Mongolian letter, and the three flags that
 * consist of tags. SEC-52
 */
#ifndef MCPGATED_POLICY_SANITIZE_H
#define MCPGATED_POLICY_SANITIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

#define SANITIZE_MARKS_MAX 4096 /* per text; characters beyond that are removed */

enum sanitize_mode {
	SANITIZE_KEEP,
	SANITIZE_STRIP, /* removed; an escape sequence as a whole */
	SANITIZE_MARK,  /* replaced by the code point, e.g. \u{200b} */
};

struct sanitize_rules {
	enum sanitize_mode controls;
	enum sanitize_mode invisible;
};

struct sanitize_counts {
	uint64_t controls; /* removed or marked */
	uint64_t invisible;
};

/*
 * text    one JSON value that was scanned as valid
 * out     empty; receives the changed text: valid JSON of the same structure, else unchanged
 * counts  are increased
 *
 * Returns false if there is nothing to change; `out` is then empty. Takes linear time; the text
 * grows by at most 12 bytes per mark.
 */
bool sanitize_text(const struct sanitize_rules *rules, struct slice text, struct buf *out,
		   struct sanitize_counts *counts);

#endif
