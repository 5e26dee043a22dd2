/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Characters in what a server says that are not for readers: those that steer a terminal, and those that nobody sees,
 * whoever reads it for the model. All strings of a text are looked at, names of members as well, raw or as escapes.
 *
 * Controls: C0 but for tab, LF and CR; DEL; C1; a terminal's escape sequence counts as one.
 * Invisible: what unicode_is_hidden says, but controls, U+2028, U+2029 and formats that are seen (Arabic number signs). And
 * they stay where writing needs them, one at a time: ZWJ and ZWNJ beside a letter of a script that joins (Arabic, the Indic
 * ones), ZWJ between the parts of an emoji, the variation selector of an emoji, an ideograph or a Mongolian letter, the
 * three flags that are made of tags. SEC-52
 */
#ifndef MCPGATED_POLICY_SANITIZE_H
#define MCPGATED_POLICY_SANITIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

#define SANITIZE_MARKS_MAX 4096 /* of one text; what is beyond is taken out */

enum sanitize_mode {
	SANITIZE_KEEP,
	SANITIZE_STRIP, /* taken out; an escape sequence with all that belongs to it */
	SANITIZE_MARK,  /* each is replaced by its number, like \u{200b} */
};

struct sanitize_rules {
	enum sanitize_mode controls;
	enum sanitize_mode invisible;
};

struct sanitize_counts {
	uint64_t controls; /* taken out or marked */
	uint64_t invisible;
};

/*
 * text    one JSON value that was scanned as valid
 * out     empty; the changed text is appended: valid JSON of the same structure, in which all else is as it was written
 * counts  are added to
 *
 * Returns false if there is nothing to change; `out` is then empty. Linear in text; it grows by at most 12 bytes a mark.
 */
bool sanitize_text(const struct sanitize_rules *rules, struct slice text, struct buf *out,
		   struct sanitize_counts *counts);

#endif
