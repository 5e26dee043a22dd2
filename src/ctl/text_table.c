/* SPDX-License-Identifier: Apache-2.0 */
/* Widths are known only when the last cell is there, so all are kept until then. */
#include "ctl/text_table.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "ctl/escape.h"

void text_table_init(struct text_table *text_table, const struct text_table_column *columns,
		     size_t count)
{
	CHECK(count > 0);
	*text_table = (struct text_table){ .columns = columns, .column_count = count };
}

void text_table_fini(struct text_table *text_table)
{
	for (size_t i = 0; i < text_table->count; i++)
		free(text_table->cells[i]);
	free(text_table->cells);
}

void text_table_add(struct text_table *text_table, struct slice text)
{
	struct buf clean = { 0 };

	CHECK(text_table->column_count > 0);
	escape_append(&clean, text, "");
	/* Doubled when full, which is at each power of two. */
	if ((text_table->count & (text_table->count - 1)) == 0)
		text_table->cells = mem_resize(text_table->cells, (text_table->count * 2 +
								   1) * sizeof(*text_table->cells));
	text_table->cells[text_table->count++] = mem_strdup(buf_terminate(&clean));
	buf_fini(&clean);
}

static size_t width_of_column(const struct text_table *text_table, size_t column)
{
	size_t width = escape_width(slice_str(text_table->columns[column].title));

	CHECK(column < text_table->column_count);
	for (size_t i = column; i < text_table->count; i += text_table->column_count) {
		size_t own = escape_width(slice_str(text_table->cells[i]));

		width = own > width ? own : width;
	}
	return width;
}

static void print_cell(const struct text_table *text_table, size_t column, size_t width,
		       const char *text, FILE *out)
{
	size_t own = escape_width(slice_str(text));
	bool is_last = column + 1 == text_table->column_count;
	int padding = (int)(width - own);

	CHECK(own <= width && column < text_table->column_count);
	if (text_table->columns[column].is_number)
		fprintf(out, "%*s%s", padding, "", text);
	else
		fprintf(out, "%s%*s", text, is_last ? 0 : padding, "");
	fputs(is_last ? "\n" : "  ", out);
}

void text_table_print(const struct text_table *text_table, FILE *out)
{
	size_t *widths = mem_alloc(text_table->column_count * sizeof(*widths));

	CHECK(text_table->count % text_table->column_count == 0);
	for (size_t c = 0; c < text_table->column_count; c++)
		widths[c] = width_of_column(text_table, c);
	for (size_t c = 0; c < text_table->column_count; c++)
		print_cell(text_table, c, widths[c], text_table->columns[c].title, out);
	for (size_t i = 0; i < text_table->count; i++) {
		size_t c = i % text_table->column_count;

		print_cell(text_table, c, widths[c], text_table->cells[i], out);
	}
	free(widths);
}
