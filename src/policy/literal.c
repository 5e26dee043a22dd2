/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where case makes no difference, k and s also fit letters beyond ASCII (U+212A, U+017F), and i does in some languages: they
 * end the literal, too.
 */
#include "policy/literal.h"

#include <string.h>

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_literal(char c, bool is_caseless)
{
	if (is_letter(c))
		return !is_caseless || memchr("ksiKSI", c, 6) == NULL;
	return (c >= '0' && c <= '9') || (c != '\0' && strchr("-_ :/@=,;!\"'%&<>~`", c) != NULL);
}

/*
 * Whether the letter before this rest of the expression stands there once, whatever follows: a quantifier may, behind a
 * comment or an `\E` that says nothing, too.
 */
static bool is_single(struct slice rest)
{
	if (rest.n == 0)
		return true;
	if (rest.p[0] == '\\')
		return rest.n > 1 && rest.p[1] != '\0' && strchr("sSdDwWbB", rest.p[1]) != NULL;
	return rest.p[0] == '.' || rest.p[0] == '[' || is_literal(rest.p[0], false);
}

void literal_read(struct literal *literal, struct slice expression)
{
	size_t n = 0;

	*literal =
		(struct literal){ .is_caseless = slice_has_prefix(expression, SLICE_LIT("(?i)")) };
	if (expression.n == 0 || memchr(expression.p, '|', expression.n) != NULL)
		return;
	if (literal->is_caseless)
		expression = slice_of(expression.p + 4, expression.n - 4);
	while (n < expression.n && n < LITERAL_MAX &&
	       is_literal(expression.p[n], literal->is_caseless)) {
		char c = expression.p[n];

		literal->text[n++] = literal->is_caseless && is_letter(c) ? (char)(c | 0x20) : c;
	}
	if (n > 0 && !is_single(slice_of(expression.p + n, expression.n - n)))
		n--;
	literal->length = n;
}

static bool is_here(const struct literal *literal, const char *p)
{
	for (size_t i = 1; i < literal->length; i++)
		if ((is_letter(p[i]) ? p[i] | 0x20 : p[i]) != literal->text[i])
			return false;
	return true;
}

static const char *find_caseless(const struct literal *literal, const char *p, const char *end)
{
	char small = literal->text[0];
	char large = is_letter(small) ? (char)(small & ~0x20) : small;
	const char *next_small = p,
		   *next_large = p; /* not found yet behind p: where to look from */

	end -= literal->length - 1;
	while (p < end) {
		if (next_small != NULL && next_small <= p)
			next_small = memchr(p, small, (size_t)(end - p));
		if (next_large != NULL && next_large <= p)
			next_large = memchr(p, large, (size_t)(end - p));
		if (next_small == NULL && next_large == NULL)
			return NULL;
		p = next_large == NULL || (next_small != NULL && next_small < next_large) ?
			    next_small :
			    next_large;
		if (is_here(literal, p))
			return p;
		p++;
	}
	return NULL;
}

bool literal_find(const struct literal *literal, struct slice text, size_t *from_r)
{
	size_t left = text.n - *from_r;
	const char *begin, *found;

	CHECK(*from_r <= text.n);
	if (literal->length == 0)
		return true;
	if (left < literal->length)
		return false;
	begin = text.p + *from_r;
	found = literal->is_caseless ? find_caseless(literal, begin, begin + left) :
				       memmem(begin, left, literal->text, literal->length);
	if (found != NULL)
		*from_r = (size_t)(found - text.p);
	return found != NULL;
}
