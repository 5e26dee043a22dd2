/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of text of bounded length, for the log and the audit. What does not fit is left out.
 * Foreign text is escaped, so that it contains no quotes, control characters or invisible
 * characters. REL-48.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Including the line feed. A write to a pipe transfers this much either whole or not at all. */
#define TEXT_LINE_BYTES 4096
/* What line_put_shown leaves free: `..."` for the text, `}` and a line feed for the line. */
#define TEXT_LINE_END_BYTES 6

struct text_line {
	size_t max; /* maximum length; at most TEXT_LINE_BYTES */
	size_t length;
	char bytes[TEXT_LINE_BYTES];
};

/* Makes the line empty; `bytes` need not be initialized. */
void line_init(struct text_line *line, size_t max);
bool line_has_room(const struct text_line *line, size_t size);
void line_put(struct text_line *line, struct slice text);
void line_puts(struct text_line *line, const char *text);
void line_put_number(struct text_line *line, int64_t number);
/* Appends the time as `2026-01-02T03:04:05.678Z`. wall_ms: since the Unix epoch. */
void line_put_time(struct text_line *line, uint64_t wall_ms);
/*
 * Appends foreign text that stands between quotes: visible characters as they are, all others as
 * JSON escapes. The text is truncated at a character boundary to at most bytes_max bytes of input,
 * and to the room left, which `...` shows. Returns false if it was truncated.
 */
bool line_put_shown(struct text_line *line, struct slice text, size_t bytes_max);

/*
 * Whether all characters of the text are visible: no line breaks, nothing that changes the writing
 * direction.
 */
bool line_is_seen(struct slice text);
