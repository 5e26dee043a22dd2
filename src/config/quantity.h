/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, times and dates in their written form: `16KiB`, `90s`, `2027-01-31`. */
#ifndef MCPGATED_CONFIG_QUANTITY_H
#define MCPGATED_CONFIG_QUANTITY_H

#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

/* Bytes: a number, optionally with KiB, MiB or GiB. -1: malformed or too large. */
int quantity_parse_size(struct slice text, uint64_t *bytes_r) must_check;
/* Milliseconds: a number with ms, s, m, h or d, or `0`. -1: malformed or too large. */
int quantity_parse_duration(struct slice text, uint64_t *ms_r) must_check;
/* An integer with a % sign. -1: malformed or too large. */
int quantity_parse_percent(struct slice text, uint64_t *percent_r) must_check;
/* The shortest exact text, which the parsers above can read back. */
void quantity_append_size(struct buf *out, uint64_t bytes);
void quantity_append_duration(struct buf *out, uint64_t ms);

/*
 * Milliseconds since 1970 of a day (its beginning) or a moment, both in UTC: `2027-01-31`,
 * `2027-01-31T18:00:00Z`. -1: malformed, no such date, or before 1970. RFC 3339 §5.6.
 */
int quantity_parse_date(struct slice text, uint64_t *ms_r) must_check;
#define QUANTITY_TEXT_MAX 32
void quantity_format_date(uint64_t ms, char text_r[QUANTITY_TEXT_MAX]);

#endif
