/* SPDX-License-Identifier: Apache-2.0 */
/* Widths are known only when the last cell is there, so all are kept until then. */
#include "ctl/grid.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "ctl/clean.h"

void grid_init(struct grid *grid, const struct grid_column *columns, size_t count)
{
	*grid = (struct grid){ .columns = columns, .column_count = count };
}

void grid_fini(struct grid *grid)
{
	for (size_t i = 0; i < grid->count; i++)
		free(grid->cells[i]);
	free(grid->cells);
}

void grid_add(struct grid *grid, struct slice text)
{
	struct buf clean = { 0 };

	clean_append(&clean, text, "");
	/* Doubled when full, which is at each power of two. */
	if ((grid->count & (grid->count - 1)) == 0)
		grid->cells = mem_resize(grid->cells, (grid->count * 2 + 1) * sizeof(*grid->cells));
	grid->cells[grid->count++] = mem_strdup(buf_terminate(&clean));
	buf_fini(&clean);
}

static size_t width_of_column(const struct grid *grid, size_t column)
{
	size_t width = clean_width(slice_str(grid->columns[column].title));

	for (size_t i = column; i < grid->count; i += grid->column_count) {
		size_t own = clean_width(slice_str(grid->cells[i]));

		width = own > width ? own : width;
	}
	return width;
}

static void print_cell(const struct grid *grid, size_t column, size_t width, const char *text,
		       FILE *out)
{
	int padding = (int)(width - clean_width(slice_str(text)));
	bool is_last = column + 1 == grid->column_count;

	if (grid->columns[column].is_number)
		fprintf(out, "%*s%s", padding, "", text);
	else
		fprintf(out, "%s%*s", text, is_last ? 0 : padding, "");
	fputs(is_last ? "\n" : "  ", out);
}

void grid_print(const struct grid *grid, FILE *out)
{
	size_t *widths = mem_alloc(grid->column_count * sizeof(*widths));

	CHECK(grid->count % grid->column_count == 0);
	for (size_t c = 0; c < grid->column_count; c++)
		widths[c] = width_of_column(grid, c);
	for (size_t c = 0; c < grid->column_count; c++)
		print_cell(grid, c, widths[c], grid->columns[c].title, out);
	for (size_t i = 0; i < grid->count; i++) {
		size_t c = i % grid->column_count;

		print_cell(grid, c, widths[c], grid->cells[i], out);
	}
	free(widths);
}
