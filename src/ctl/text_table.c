/* SPDX-License-Identifier: Apache-2.0 */
/* Widths are known only when the last cell is there, so all are kept until then. */
#include "ctl/text_table.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "ctl/escape.h"

void text_table_init(struct text_table *table, const struct text_table_column *columns,
		     size_t count)
{
	CHECK(count > 0);
	*table = (struct text_table){ .columns = columns, .column_count = count };
}

void text_table_fini(struct text_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->cells[i]);
	free(table->cells);
}

void text_table_add(struct text_table *table, struct slice text)
{
	struct buf clean = { 0 };

	CHECK(table->column_count > 0);
	escape_append(&clean, text, "");
	/* Doubled when full, which is at each power of two. */
	if ((table->count & (table->count - 1)) == 0)
		table->cells =
			mem_resize(table->cells, (table->count * 2 + 1) * sizeof(*table->cells));
	table->cells[table->count++] = mem_strdup(buf_terminate(&clean));
	buf_fini(&clean);
}

static void print_cell(const struct text_table *table, size_t column, size_t width,
		       const char *text, FILE *out)
{
	size_t own = escape_width(slice_str(text));
	bool is_last = column + 1 == table->column_count;
	int padding = (int)(width - own);

	CHECK(own <= width && column < table->column_count);
	if (table->columns[column].is_number)
		fprintf(out, "%*s%s", padding, "", text);
	else
		fprintf(out, "%s%*s", text, is_last ? 0 : padding, "");
	fputs(is_last ? "\n" : "  ", out);
}

void text_table_print(const struct text_table *table, FILE *out)
{
	size_t *widths = mem_alloc(table->column_count * sizeof(*widths));

	CHECK(table->count % table->column_count == 0);
	for (size_t c = 0; c < table->column_count; c++)
		widths[c] = escape_width(slice_str(table->columns[c].title));
	for (size_t i = 0; i < table->count; i++) {
		size_t own = escape_width(slice_str(table->cells[i]));
		size_t *width = &widths[i % table->column_count];

		*width = own > *width ? own : *width;
	}
	for (size_t c = 0; c < table->column_count; c++)
		print_cell(table, c, widths[c], table->columns[c].title, out);
	for (size_t i = 0; i < table->count; i++) {
		size_t c = i % table->column_count;

		print_cell(table, c, widths[c], table->cells[i], out);
	}
	free(widths);
}
