/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/ecma_pattern.h"

#include <stdbool.h>

#include "base/check.h"

struct reader {
	struct slice rest;
	struct buf *out;
	bool is_in_class;
	bool is_behind_quantifier;
};

static char peek(const struct reader *reader, size_t at)
{
	return at < reader->rest.n ? reader->rest.p[at] : '\0';
}

static void replace(struct reader *reader, size_t count, const char *text)
{
	buf_append_str(reader->out, text);
	reader->rest = slice_of(reader->rest.p + count, reader->rest.n - count);
}

static void copy(struct reader *reader, size_t count)
{
	buf_append(reader->out, reader->rest.p, count);
	reader->rest = slice_of(reader->rest.p + count, reader->rest.n - count);
}

static bool is_letter(char c)
{
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What braces of an escape hold is no repeat. */
static void copy_braces(struct reader *reader)
{
	const char *end = memchr(reader->rest.p, '}', reader->rest.n);

	if (peek(reader, 0) == '{' && end != NULL)
		copy(reader, (size_t)(end - reader->rest.p) + 1);
}

/* At a backslash. Signs stand for themselves in both languages. */
static const char *read_escape(struct reader *reader)
{
	static const char letters[] = "dDwWsSbBfnrtvcxukpP";
	char c = peek(reader, 1);

	if (c == '\0' || (unsigned char)c > 0x7E || c <= ' ')
		return "a backslash before a character that needs none";
	if (is_letter(c) && strchr(letters, c) == NULL)
		return "an escape that is not in ECMA-262";
	if (c == '0' && is_digit(peek(reader, 2)))
		return "an octal escape";
	if (c == 'k' && peek(reader, 2) != '<')
		return "an escape that is not in ECMA-262";
	if (c == 's' || c == 'S')
		replace(reader, 2, c == 's' ? "\\p{Xsp}" : "\\P{Xsp}");
	else if (c == 'v')
		replace(reader, 2, "\\x0b");
	else
		copy(reader, 2);
	if (c == 'p' || c == 'P' || c == 'u')
		copy_braces(reader);
	return NULL;
}

static const char *read_in_class(struct reader *reader)
{
	char next = peek(reader, 1);

	if (peek(reader, 0) == '[' && (next == ':' || next == '.' || next == '='))
		return "a named character class";
	reader->is_in_class = peek(reader, 0) != ']';
	copy(reader, 1);
	return NULL;
}

/* At a parenthesis. (?<name>, (?<= and (?<! begin alike. */
static const char *read_group(struct reader *reader)
{
	char next = peek(reader, 1), kind = peek(reader, 2);

	if (next == '*')
		return "a verb";
	if (next == '?' && (kind == '\0' || strchr(":=!<", kind) == NULL))
		return "a kind of group that is not in ECMA-262";
	copy(reader, next == '?' ? 3 : 1);
	return NULL;
}

static const char *read_one(struct reader *reader)
{
	bool was_quantifier = reader->is_behind_quantifier;
	char c = peek(reader, 0);

	reader->is_behind_quantifier = false;
	if (c == '\\')
		return read_escape(reader);
	if (reader->is_in_class)
		return read_in_class(reader);
	if (c == '(')
		return read_group(reader);
	if (c == '+' && was_quantifier)
		return "a possessive quantifier";
	reader->is_behind_quantifier = c == '+' || c == '*' || c == '?' || c == '}';
	reader->is_in_class = c == '[';
	copy(reader, 1);
	return NULL;
}

const char *ecma_pattern_translate(struct slice expression, struct buf *out)
{
	struct reader reader = { .rest = expression, .out = out };
	const char *why = NULL;

	if (expression.n > 0 && memchr(expression.p, '\0', expression.n) != NULL)
		return "a NUL";
	while (why == NULL && reader.rest.n > 0)
		why = read_one(&reader);
	return why;
}
