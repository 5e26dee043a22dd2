/* SPDX-License-Identifier: Apache-2.0 */
/* What is printed: foreign texts made safe for a terminal, tables, and the findings of doctor. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

/*
 * ---- escape ----
 *
 * Makes foreign texts safe for a terminal: they cannot move the cursor, change colors or change
 * the writing direction.
 */

/*
 * Appends `text` in UTF-8. Control, invisible and direction characters become escapes like \x1b and
 * \u202e, except the ASCII ones in `keep`; invalid UTF-8 becomes U+FFFD.
 */
void escape_append(struct buf *out, struct slice text, const char *keep);
/* Prints a line: `before` unchanged, then the text as escape_append writes it. */
void escape_print(FILE *out, const char *before, struct slice text, const char *keep);
/* Prints a line of what the format makes, all of it escaped. */
void escape_printf(FILE *out, const char *format, ...) printf_like(2, 3);

/* How wide a line may be on the terminal that stdout is; SIZE_MAX: it is none. */
size_t output_columns(void);
/* Prints a line on stdout, all of it escaped; on a terminal it is broken between words where it is too long. */
void output_say(const char *format, ...) printf_like(1, 2);

/*
 * ---- text table ----
 *
 * Aligned columns of text. The last column is not padded.
 */

#define TEXT_TABLE_COLUMNS_MAX 20

struct text_table_column {
	const char *title;
	bool is_number; /* right-aligned */
};

struct text_table {
	const struct text_table_column *columns; /* borrowed */
	size_t column_count;
	bool left_out[TEXT_TABLE_COLUMNS_MAX]; /* columns for which there is no room */
	char **cells;                          /* row by row, escaped */
	size_t count;
};

void text_table_init(struct text_table *table, const struct text_table_column *columns,
		     size_t count);
void text_table_fini(struct text_table *table);
/* Adds the next cell, from left to right and top to bottom; any bytes. */
void text_table_add(struct text_table *table, struct slice text);
/* Leaves out columns with these titles, in this order, until a row is no wider than `columns` or none is left. */
void text_table_fit(struct text_table *table, const char *const *titles, size_t count,
		    size_t columns);
/* Prints titles and rows; all rows must be complete. */
void text_table_print(const struct text_table *table, FILE *out);
/* Prints {NAME: [{TITLE: CELL}]} on stdout, with the titles in small letters. */
void text_table_print_json(const struct text_table *table, const char *name);

/*
 * ---- finding ----
 *
 * Prints the doctor's findings, one line for each check. Foreign texts are escaped.
 */

/*
 * With --json, before anything else: nothing is printed before finding_flush, which prints {"examined": [{MEMBER:
 * SUBJECT, "ok": FLAG, "findings": [{"verdict", "what", "text"}], "stderr": [LINE]}]}.
 */
void finding_collect(void);
void finding_flush(void);
/* What is examined from now on; `member` is the name of it in JSON. */
void finding_begin(const char *member, const char *subject);
/* A line that the examined server has written on its stderr. */
void finding_quote(struct slice line);
/* What to do next. */
void finding_advise(struct slice text);
/* `verdict` is ok or warn; `what` names what was checked. */
void finding_print(const char *verdict, const char *what, const char *format, ...)
	printf_like(3, 4);
/* The verdict is FAIL. *ill is the first failure: it becomes `what` if it is NULL. */
void finding_fail(const char **ill, const char *what, const char *format, ...) printf_like(3, 4);
