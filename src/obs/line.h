/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of text of a bounded length, for the log and the audit. What has no room is left out; foreign text is shown so
 * that it holds no quote, no control character and nothing that is not seen. REL-48.
 */
#ifndef MCPGATED_OBS_LINE_H
#define MCPGATED_OBS_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* With the line feed. A pipe takes so much as a whole or not at all. */
#define TEXT_LINE_BYTES 4096
/* What line_put_shown leaves free: `..."`, and `}` and a line feed for the line. */
#define TEXT_LINE_END_BYTES 6

struct text_line {
	size_t max; /* how long it may become; at most TEXT_LINE_BYTES */
	size_t length;
	char bytes[TEXT_LINE_BYTES];
};

/* Empty. Its bytes need not be set. */
void line_init(struct text_line *line, size_t max);
bool line_has_room(const struct text_line *line, size_t size);
void line_put(struct text_line *line, struct slice text);
void line_puts(struct text_line *line, const char *text);
void line_put_number(struct text_line *line, int64_t number);
/* `2026-01-02T03:04:05.678Z` */
void line_put_time(struct text_line *line, uint64_t wall_ms);
/*
 * Foreign text, to stand between quotes: what can be seen as it is, all else as JSON escapes it, cut at the end of a
 * character before bytes_max bytes of it are exceeded. False: it was cut, which `...` says.
 */
bool line_put_shown(struct text_line *line, struct slice text, size_t bytes_max);

/* Whether all of it is characters that are seen: no line break, nothing that turns the direction of writing. */
bool line_is_seen(struct slice text);

#endif
