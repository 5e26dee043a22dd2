/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where case makes no difference, k and s also fit letters beyond ASCII (U+212A, U+017F), and i does in some languages: they
 * end the literal, too.
 */
#include "policy/literal.h"

#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

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

/* Sixteen bytes that are looked at at once; every machine that compilers know has something for that. */
typedef unsigned char literal_block __attribute__((vector_size(16)));
#define BLOCK 64

/* A byte of the literal, in either case or as it is: what it is with the bits of `mask` set. */
struct either {
	unsigned char mask;
	unsigned char byte;
};

static struct either either_of(const struct literal *literal, size_t i)
{
	char c = literal->text[i];
	struct either either = { literal->is_caseless && is_letter(c) ? 0x20 : 0,
				 (unsigned char)c };

	return i < literal->length ? either : (struct either){ 0xFF, 0xFF }; /* whatever */
}

static bool fits(char c, struct either either)
{
	return ((unsigned char)c | either.mask) == either.byte;
}

static bool is_here(const struct literal *literal, const char *p)
{
	for (size_t i = 0; i < literal->length; i++)
		if (!fits(p[i], either_of(literal, i)))
			return false;
	return true;
}

/* Not zero where the literal's first two bytes stand together. */
static inline literal_block find_both(const char *p, struct either first, struct either second)
{
	literal_block one, other;

	memcpy(&one, p, sizeof(one));
	memcpy(&other, p + 1, sizeof(other));
	return (literal_block)(((one | first.mask) == first.byte) &
			       ((other | second.mask) == second.byte));
}

/* Whether they do somewhere in a block of so many bytes and one. */
static inline bool has_both(const char *p, struct either first, struct either second)
{
	literal_block any = { 0 };
	uint64_t halves[2];

	for (size_t i = 0; i < BLOCK; i += sizeof(any))
		any |= find_both(p + i, first, second);
	memcpy(halves, &any, sizeof(halves));
	return (halves[0] | halves[1]) != 0;
}

#ifdef __x86_64__
#define WIDE_BLOCK 32

/* As find_pair. */
__attribute__((target("avx2"))) static const char *find_pair_wide(const char *p, const char *last,
								  struct either first,
								  struct either second)
{
	const __m256i masks[] = { _mm256_set1_epi8((char)first.mask),
				  _mm256_set1_epi8((char)second.mask) };
	const __m256i wanted[] = { _mm256_set1_epi8((char)first.byte),
				   _mm256_set1_epi8((char)second.byte) };

	for (; last - p >= WIDE_BLOCK; p += WIDE_BLOCK) {
		__m256i one = _mm256_loadu_si256((const __m256i_u *)p);
		__m256i other = _mm256_loadu_si256((const __m256i_u *)(p + 1));
		int both;

		one = _mm256_cmpeq_epi8(_mm256_or_si256(one, masks[0]), wanted[0]);
		other = _mm256_cmpeq_epi8(_mm256_or_si256(other, masks[1]), wanted[1]);
		both = _mm256_movemask_epi8(_mm256_and_si256(one, other));
		if (both != 0)
			return p + __builtin_ctz((unsigned int)both);
	}
	return p;
}
#endif

/* Where the two stand together first, or less than a block before the end of where they may. */
static const char *find_pair(const char *p, const char *last, struct either first,
			     struct either second)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		return find_pair_wide(p, last, first, second);
#endif
	while (last - p >= BLOCK && !has_both(p, first, second))
		p += BLOCK;
	while (last - p >= BLOCK && !(fits(p[0], first) && fits(p[1], second)))
		p++;
	return p;
}

/* The literal may begin at any place up to `last`. */
static const char *find(const struct literal *literal, const char *p, const char *last)
{
	struct either first = either_of(literal, 0), second = either_of(literal, 1);

	CHECK(literal->length > 0 && p <= last);
	for (; last - (p = find_pair(p, last, first, second)) >= BLOCK; p++)
		if (is_here(literal, p))
			return p;
	for (; p <= last; p++)
		if (fits(*p, first) && is_here(literal, p))
			return p;
	return NULL;
}

bool literal_find(const struct literal *literal, struct slice text, size_t *from_r)
{
	const char *begin, *found;

	CHECK(*from_r <= text.n);
	if (literal->length == 0)
		return true;
	if (text.n - *from_r < literal->length)
		return false;
	begin = text.p + *from_r;
	found = find(literal, begin, text.p + text.n - literal->length);
	if (found != NULL)
		*from_r = (size_t)(found - text.p);
	return found != NULL;
}
