/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned columns of text. The last column is not padded. */
#ifndef MCPGATED_CTL_TEXT_TABLE_H
#define MCPGATED_CTL_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/slice.h"

struct text_table_column {
	const char *title;
	bool is_number; /* right-aligned */
};

struct text_table {
	const struct text_table_column *columns; /* borrowed */
	size_t column_count;
	char **cells; /* row by row, escaped */
	size_t count;
};

void text_table_init(struct text_table *table, const struct text_table_column *columns,
		     size_t count);
void text_table_fini(struct text_table *table);
/* Adds the next cell, from left to right and top to bottom; any bytes. */
void text_table_add(struct text_table *table, struct slice text);
/* Prints titles and rows; all rows must be complete. */
void text_table_print(const struct text_table *table, FILE *out);

#endif
