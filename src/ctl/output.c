/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever comes from elsewhere is escaped here before it is printed. */
#include "ctl/output.h"

#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
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
	at_end(buf_fini) struct buf clean = { 0 };

	escape_append(&clean, text, keep);
	fprintf(out, "%s%s\n", before, buf_terminate(&clean));
}

void escape_printf(FILE *out, const char *format, ...)
{
	va_list args;
	at_end(mem_free) char *text = NULL;

	va_start(args, format);
	CHECK(vasprintf(&text, format, args) >= 0);
	va_end(args);
	escape_print(out, "", slice_str(text), "");
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

size_t output_columns(void)
{
	struct winsize size;

	return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
			       size.ws_col > 0 ?
		       size.ws_col :
		       SIZE_MAX;
}

/* How many bytes of the text fit into so many columns, up to a space if there is one. */
static size_t fitting(struct slice text, size_t columns)
{
	size_t taken = 0, at_space = 0;

	if (escape_width(text) <= columns)
		return text.n;
	while (taken < text.n && escape_width(slice_of(text.p, taken + 1)) <= columns) {
		if (text.p[taken] == ' ')
			at_space = taken;
		taken++;
	}
	return at_space > 0 ? at_space : text.n;
}

void output_say(const char *format, ...)
{
	size_t columns = output_columns();
	at_end(buf_fini) struct buf clean = { 0 };
	const char *before = "";
	struct slice rest;
	va_list args;
	at_end(mem_free) char *text = NULL;

	va_start(args, format);
	CHECK(vasprintf(&text, format, args) >= 0);
	va_end(args);
	escape_append(&clean, slice_str(text), "");
	rest = buf_slice(&clean);
	do {
		size_t n = fitting(rest, columns - strlen(before));

		printf("%s%.*s\n", before, (int)n, rest.p);
		rest = slice_trim(slice_of(rest.p + n, rest.n - n));
		before = "  ";
	} while (rest.n > 0);
}

/*
 * ---- text table ----
 *
 * Widths are known only when the last cell is there, so all are kept until then.
 */

#define CELL_GAP 2

void text_table_init(struct text_table *table, const struct text_table_column *columns,
		     size_t count)
{
	CHECK(count > 0 && count <= TEXT_TABLE_COLUMNS_MAX);
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
	at_end(buf_fini) struct buf clean = { 0 };

	CHECK(table->column_count > 0);
	escape_append(&clean, text, "");
	/* Doubled when full, which is at each power of two. */
	if ((table->count & (table->count - 1)) == 0)
		table->cells =
			mem_resize(table->cells, (table->count * 2 + 1) * sizeof(*table->cells));
	table->cells[table->count++] = mem_strdup(buf_terminate(&clean));
}

static void print_cell(const struct text_table *table, size_t column, size_t width,
		       const char *text, FILE *out)
{
	size_t own = escape_width(slice_str(text));
	bool is_last = true;
	int padding = (int)(width - own);

	CHECK(own <= width && column < table->column_count);
	if (table->left_out[column])
		return;
	for (size_t c = column + 1; c < table->column_count; c++)
		is_last = is_last && table->left_out[c];
	if (table->columns[column].is_number)
		fprintf(out, "%*s%s", padding, "", text);
	else
		fprintf(out, "%s%*s", text, is_last ? 0 : padding, "");
	fputs(is_last ? "\n" : "  ", out);
}

static void measure(const struct text_table *table, size_t *widths)
{
	CHECK(table->count % table->column_count == 0);
	for (size_t c = 0; c < table->column_count; c++)
		widths[c] = escape_width(slice_str(table->columns[c].title));
	for (size_t i = 0; i < table->count; i++) {
		size_t own = escape_width(slice_str(table->cells[i]));
		size_t *width = &widths[i % table->column_count];

		*width = own > *width ? own : *width;
	}
}

void text_table_fit(struct text_table *table, const char *const *titles, size_t count,
		    size_t columns)
{
	size_t widths[TEXT_TABLE_COLUMNS_MAX];
	size_t width = 0;

	measure(table, widths);
	for (size_t c = 0; c < table->column_count; c++)
		width += widths[c] + (c > 0 ? CELL_GAP : 0);
	for (size_t i = 0; i < count && width > columns; i++) {
		for (size_t c = 0; c < table->column_count; c++) {
			if (strcmp(table->columns[c].title, titles[i]) != 0)
				continue;
			table->left_out[c] = true;
			width -= widths[c] + CELL_GAP;
		}
	}
}

void text_table_print(const struct text_table *table, FILE *out)
{
	size_t widths[TEXT_TABLE_COLUMNS_MAX];

	measure(table, widths);
	for (size_t c = 0; c < table->column_count; c++)
		print_cell(table, c, widths[c], table->columns[c].title, out);
	for (size_t i = 0; i < table->count; i++) {
		size_t c = i % table->column_count;

		print_cell(table, c, widths[c], table->cells[i], out);
	}
}

void text_table_print_json(const struct text_table *table, const char *name)
{
	json_auto_t *rows = json_array();
	at_end(mem_free) char *text = NULL;
	json_t *row = NULL;

	for (size_t i = 0; i < table->count; i++) {
		size_t c = i % table->column_count;
		at_end(mem_free) char *title = mem_strdup(table->columns[c].title);

		for (char *at = title; *at != '\0'; at++)
			*at = (char)tolower(*at);
		if (c == 0)
			json_array_append_new(rows, row = json_object());
		json_object_set_new(row, title, json_string(table->cells[i]));
	}
	text = json_dumps(rows, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	printf("{\"%s\": %s}\n", name, text);
}

/*
 * ---- finding ----
 *
 * Lines in columns; each is out before the next thing is looked at, for that may take a while.
 */

/* With --json: what has been found so far, and the one that is examined now. */
static json_t *examined, *current;

void finding_collect(void)
{
	CHECK(examined == NULL);
	examined = json_array();
}

static json_t *clean_text(struct slice text)
{
	at_end(buf_fini) struct buf clean = { 0 };

	escape_append(&clean, text, "");
	return json_stringn(clean.data != NULL ? clean.data : "", clean.len);
}

void finding_begin(const char *member, const char *subject)
{
	if (examined == NULL) {
		escape_print(stdout, "", slice_str(subject), "");
		return;
	}
	current = json_pack("{s:o, s:b, s:[], s:[]}", member, clean_text(slice_str(subject)), "ok",
			    1, "findings", "stderr");
	json_array_append_new(examined, current);
}

void finding_quote(struct slice line)
{
	if (examined == NULL)
		escape_print(stdout, "        stderr    | ", line, "");
	else
		json_array_append_new(json_object_get(current, "stderr"), clean_text(line));
}

void finding_advise(struct slice text)
{
	if (examined == NULL)
		escape_print(stdout, "next: ", text, "");
	else
		json_object_set_new(current, "next", clean_text(text));
}

void finding_flush(void)
{
	at_end(mem_free) char *text = NULL;

	if (examined == NULL)
		return;
	text = json_dumps(examined, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	printf("{\"examined\": %s}\n", text);
	json_decref(examined);
	examined = current = NULL;
}

static void collect(const char *verdict, const char *what, const char *text)
{
	if (strcmp(verdict, "FAIL") == 0)
		json_object_set_new(current, "ok", json_false());
	json_array_append_new(json_object_get(current, "findings"),
			      json_pack("{s:s, s:s, s:o}", "verdict",
					strcmp(verdict, "FAIL") == 0 ? "fail" : verdict, "what",
					what, "text", clean_text(slice_str(text))));
}

static void printf_like(3, 0)
	finding_write(const char *verdict, const char *what, const char *format, va_list args)
{
	char before[24];
	at_end(mem_free) char *text = NULL;

	CHECK(strlen(verdict) < 6 && strlen(what) < 10); /* they stay in their columns */
	CHECK(vasprintf(&text, format, args) > 0);
	snprintf(before, sizeof(before), "  %-5s %-9s ", verdict, what);
	if (examined != NULL)
		collect(verdict, what, text);
	else
		escape_print(stdout, before, slice_str(text), "");
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
