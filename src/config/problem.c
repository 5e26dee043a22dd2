/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Problems are collected, not thrown, so that one run shows all of them. The same defect may be met
 * several times (`defaults` are applied to each server); it is kept once.
 */
#include "config/problem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/unicode.h"

static void push(struct config_problems *problems, const char *text)
{
	CHECK(problems->count <= PROBLEMS_MAX);
	problems->items =
		mem_resize(problems->items, (problems->count + 1) * sizeof(*problems->items));
	problems->items[problems->count++] = mem_strdup(text);
}

/* What terminals obey, what is not seen there, and what turns the direction of writing: a `?` for each byte. */
static void replace_hidden(struct buf *line)
{
	struct slice rest = buf_slice(line);

	while (rest.n > 0) {
		size_t n = text_utf8_length(rest);

		if (n > 0 && unicode_is_hidden(unicode_decode(slice_of(rest.p, n))))
			memset(line->data + (line->len - rest.n), '?', n);
		n = n > 0 ? n : 1;
		rest = slice_of(rest.p + n, rest.n - n);
	}
}

/* Takes the bytes of `line`. */
static void add_line(struct config_problems *problems, struct buf *line)
{
	CHECK(line->len > 0);
	replace_hidden(line);
	buf_terminate(line);
	for (size_t i = 0; i < problems->count; i++) {
		if (strcmp(problems->items[i], line->data) == 0) {
			buf_fini(line);
			return;
		}
	}
	if (problems->count < PROBLEMS_MAX)
		push(problems, line->data);
	else if (problems->count == PROBLEMS_MAX)
		push(problems, "there are more problems than these");
	buf_fini(line);
}

__attribute__((format(printf, 2, 0))) static void append_format(struct buf *line,
								const char *format, va_list args)
{
	char *text = NULL;

	/* The formats are ours; vasprintf fails for lack of memory alone. */
	CHECK(vasprintf(&text, format, args) >= 0);
	buf_append_str(line, text);
	free(text);
}

static void append_place(struct buf *line, const char *file, unsigned at_line, unsigned at_column)
{
	CHECK(file != NULL && line->len == 0);
	buf_append_str(line, file);
	if (at_line > 0)
		buf_printf(line, ":%u:%u", at_line, at_column);
	buf_append_str(line, ": ");
}

void problem_add(struct config_problems *problems, const char *format, ...)
{
	struct buf line = { 0 };
	va_list args;

	va_start(args, format);
	append_format(&line, format, args);
	va_end(args);
	add_line(problems, &line);
}

void problem_add_at(struct config_problems *problems, const struct tree *value, const char *format,
		    ...)
{
	struct buf line = { 0 };
	va_list args;

	append_place(&line, value->file, value->line, value->column);
	tree_append_path(value, &line);
	if (value->parent != NULL)
		buf_append_str(&line, ": ");
	va_start(args, format);
	append_format(&line, format, args);
	va_end(args);
	add_line(problems, &line);
}

void problem_add_at_key(struct config_problems *problems, const struct tree *value,
			const char *format, ...)
{
	struct buf line = { 0 };
	va_list args;

	CHECK(value->key != NULL);
	append_place(&line, value->file, value->key_line, value->key_column);
	va_start(args, format);
	append_format(&line, format, args);
	va_end(args);
	add_line(problems, &line);
}

void config_problems_fini(struct config_problems *problems)
{
	for (size_t i = 0; i < problems->count; i++)
		free(problems->items[i]);
	free(problems->items);
	*problems = (struct config_problems){ 0 };
}
