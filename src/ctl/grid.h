/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned columns of text. The last column is not padded. */
#ifndef MCPGATED_CTL_GRID_H
#define MCPGATED_CTL_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/slice.h"

struct grid_column {
	const char *title;
	bool is_number; /* to the right */
};

struct grid {
	const struct grid_column *columns; /* borrowed */
	size_t column_count;
	char **cells; /* row after row, cleaned */
	size_t count;
};

void grid_init(struct grid *grid, const struct grid_column *columns, size_t count);
void grid_fini(struct grid *grid);
/* The next cell, from left to right and top to bottom; any bytes. */
void grid_add(struct grid *grid, struct slice text);
/* Title line and rows; all rows must be whole. */
void grid_print(const struct grid *grid, FILE *out);

#endif
