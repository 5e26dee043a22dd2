/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever comes from elsewhere is escaped here before it is printed. */
#include "ctl/output.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/unicode.h"

/*
 * ---- escape ----
 *
 * One character at a time. Widths are the C library's, for which main has set a locale with
 * UTF-8.
 */

void escape_append(struct buf *out, struct slice text, const char *keep)
{
	while (text.n > 0) {
		size_t n = text_utf8_length(text);
		uint32_t code = n > 0 ? unicode_decode(slice_of(text.p, n)) : 0;

		if (n == 0)
			buf_append_str(out, "\xEF\xBF\xBD");
		else if (!unicode_is_hidden(code) ||
			 (n == 1 && code != 0 && strchr(keep, *text.p) != NULL))
			buf_append(out, text.p, n);
		else if (code < 0x80)
			buf_printf(out, "\\x%02x", (unsigned int)code);
		else
			buf_printf(out, "\\u%04x", (unsigned int)code);
		n = n > 0 ? n : 1;
		text = slice_of(text.p + n, text.n - n);
	}
}

void escape_print(FILE *out, const char *before, struct slice text, const char *keep)
{
	struct buf clean = { 0 };

	escape_append(&clean, text, keep);
	fprintf(out, "%s%s\n", before, buf_terminate(&clean));
	buf_fini(&clean);
}

void escape_printf(FILE *out, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	CHECK(vasprintf(&text, format, args) >= 0);
	va_end(args);
	escape_print(out, "", slice_str(text), "");
	free(text);
}

/* The number of columns of an escaped text. */
static size_t escape_width(struct slice text)
{
	size_t width = 0;

	while (text.n > 0) {
		size_t n = text_utf8_length(text);
		int columns = n > 0 ? wcwidth((wchar_t)unicode_decode(slice_of(text.p, n))) : 1;

		n = n > 0 ? n : 1;
		width += columns > 0 ? (size_t)columns : 0;
		text = slice_of(text.p + n, text.n - n);
	}
	return width;
}

/*
 * ---- text table ----
 *
 * Widths are known only when the last cell is there, so all are kept until then.
 */

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

/*
 * ---- finding ----
 *
 * Lines in columns; each is out before the next thing is looked at, for that may take a while.
 */

static void printf_like(3, 0)
	finding_write(const char *verdict, const char *what, const char *format, va_list args)
{
	char before[24];
	char *text;

	CHECK(strlen(verdict) < 6 && strlen(what) < 10); /* they stay in their columns */
	CHECK(vasprintf(&text, format, args) > 0);
	snprintf(before, sizeof(before), "  %-5s %-9s ", verdict, what);
	escape_print(stdout, before, slice_str(text), "");
	free(text);
	fflush(stdout);
}

void finding_print(const char *verdict, const char *what, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	finding_write(verdict, what, format, args);
	va_end(args);
}

void finding_fail(const char **ill, const char *what, const char *format, ...)
{
	va_list args;

	if (*ill == NULL)
		*ill = what;
	va_start(args, format);
	finding_write("FAIL", what, format, args);
	va_end(args);
}
