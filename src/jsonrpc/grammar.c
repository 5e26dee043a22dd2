/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of JSON. Does not decode escapes, convert numbers or know what members mean. One pass
 * without recursion: the open containers stand in an array of fixed size.
 *
 * Invariant: p <= end, and no byte at or behind end is read; the text needs no terminator.
 *
 * RFC 8259; RFC 3629 for the bytes of strings. Stricter than some readers, so that nobody behind us
 * reads the text in another way: no byte order mark, no NaN, no comments, no NUL. A \u escape that
 * is half of a surrogate pair is legal JSON and passes.
 */
#include "jsonrpc/grammar.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/pause.h"
#include "base/text.h"

static int grammar_fail(struct grammar *grammar, const char *at, const char *text)
{
	grammar->p = at;
	grammar->fault = ERROR_SYNTAX;
	grammar->fault_text = text;
	return -1;
}

static inline bool grammar_is_plain(char c)
{
	return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

#ifdef __SSE2__
#define BLOCK 16
#define LONG_RUN 64 /* what goes on behind so many bytes is long: larger blocks pay there */

/* How many of so many bytes are plain string content (no quote, backslash, control; ASCII), up to the first other. */
static inline int grammar_count_plain(const char *p)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
	__m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
	__m128i other = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)); /* signed: not ASCII as well */
	__m128i special = _mm_or_si128(_mm_or_si128(quote, backslash), other);

	return __builtin_ctz((unsigned int)_mm_movemask_epi8(special) | 1u << BLOCK);
}
#endif

/* Most bytes of large messages pass through here. */
static inline const char *grammar_skip_plain(const char *p, const char *end)
{
#ifdef __SSE2__
	const char *begin = p;

	while (end - p >= BLOCK) {
		int count = grammar_count_plain(p);

		p += count;
		if (count < BLOCK)
			return p;
		if (p - begin == LONG_RUN)
			p += text_verbatim_length(slice_between(p, end));
	}
#else
	p += text_verbatim_length(slice_between(p, end)); /* it may end earlier */
#endif
	while (p < end && grammar_is_plain(*p))
		p++;
	return p;
}

/* Some children end a line at these, though JSON does not (BACK-FRAME-01). */
static inline bool grammar_is_separator(const char *p, size_t length)
{
	const unsigned char *u = (const unsigned char *)p;

	if (length == 2)
		return u[0] == 0xC2 && u[1] == 0x85;
	return length == 3 && u[0] == 0xE2 && u[1] == 0x80 && (u[2] & 0xFE) == 0xA8;
}

/* Characters that are not ASCII; they come in runs. Returns NULL if one is not UTF-8. */
static const char *grammar_skip_foreign(struct grammar *grammar, const char *p)
{
	const char *end = grammar->end;

	do {
		size_t length = text_utf8_length(slice_between(p, end));

		if (length == 0) {
			grammar_fail(grammar, p, "bytes that are not UTF-8");
			return NULL;
		}
		if (grammar_is_separator(p, length))
			grammar->has_separator = true;
		p += length;
		pause_point();
	} while (p < end && (unsigned char)*p >= 0x80);
	return p;
}

static bool grammar_is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The length of the escape at p, or 0. */
static size_t grammar_escape_length(const char *p, const char *end)
{
	if (end - p < 2)
		return 0;
	switch (p[1]) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return 2;
	case 'u':
		return end - p >= 6 && grammar_is_hex(p[2]) && grammar_is_hex(p[3]) &&
				       grammar_is_hex(p[4]) && grammar_is_hex(p[5]) ?
			       6 :
			       0;
	default:
		return 0;
	}
}

static __attribute__((noinline)) int grammar_string(struct grammar *grammar, bool *has_escape_r)
{
	const char *end = grammar->end;
	const char *p = grammar->p + 1;

	CHECK(p <= end && p[-1] == '"');
	for (;;) {
		size_t length;

		p = grammar_skip_plain(p, end);
		if (p == end)
			return grammar_fail(grammar, p, "the end inside a string");
		if (*p == '"')
			break;
		if ((unsigned char)*p >= 0x80) {
			p = grammar_skip_foreign(grammar, p);
			if (p == NULL)
				return -1;
			continue;
		}
		pause_point();
		if (*p != '\\')
			return grammar_fail(grammar, p, "a raw control character in a string");
		length = grammar_escape_length(p, end);
		if (length == 0)
			return grammar_fail(grammar, p, "an unknown escape in a string");
		*has_escape_r = true;
		p += length;
	}
	grammar->p = p + 1;
	return 0;
}

/* The same; nearly all strings are short, and nothing stands in them that needs a closer look. */
static inline int grammar_any_string(struct grammar *grammar, bool *has_escape_r)
{
#ifdef __SSE2__
	const char *p = grammar->p + 1;
	int count = grammar->end - p >= BLOCK ? grammar_count_plain(p) : BLOCK;

	if (count < BLOCK && p[count] == '"') {
		grammar->p = p + count + 1;
		return 0;
	}
#endif
	return grammar_string(grammar, has_escape_r);
}

static int grammar_literal(struct grammar *grammar, struct slice word)
{
	struct slice rest = slice_between(grammar->p, grammar->end);

	if (!slice_has_prefix(rest, word))
		return grammar_fail(grammar, grammar->p, "an unknown word");
	grammar->p += word.n;
	return 0;
}

static const char *grammar_skip_digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

/* A zero that more digits follow ends the number here; the caller then finds no comma. */
static int grammar_number(struct grammar *grammar)
{
	const char *end = grammar->end;
	const char *p = grammar->p + (*grammar->p == '-');
	const char *digits = p;

	p = p < end && *p == '0' ? p + 1 : grammar_skip_digits(p, end);
	if (p == digits)
		return grammar_fail(grammar, p, "a number without digits");
	if (p < end && *p == '.') {
		digits = p + 1;
		p = grammar_skip_digits(digits, end);
		if (p == digits)
			return grammar_fail(grammar, p, "a number without digits after the point");
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		digits = p + (p < end && (*p == '+' || *p == '-'));
		p = grammar_skip_digits(digits, end);
		if (p == digits)
			return grammar_fail(grammar, p, "a number without digits in its exponent");
	}
	grammar->p = p;
	return 0;
}

enum json_type grammar_type(char first)
{
	switch (first) {
	case '"':
		return JSON_STRING;
	case '{':
		return JSON_OBJECT;
	case '[':
		return JSON_ARRAY;
	case 't':
		return JSON_TRUE;
	case 'f':
		return JSON_FALSE;
	case 'n':
		return JSON_NULL;
	case '-':
	case '0' ... '9':
		return JSON_NUMBER;
	default:
		return JSON_ABSENT;
	}
}

bool grammar_is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

struct slice grammar_trim(struct slice text)
{
	while (text.n > 0 && grammar_is_space(text.p[0]))
		text = slice_of(text.p + 1, text.n - 1);
	while (text.n > 0 && grammar_is_space(text.p[text.n - 1]))
		text.n--;
	return text;
}

static void grammar_skip_spaces(struct grammar *grammar)
{
	const char *p = grammar->p;

	while (p < grammar->end && grammar_is_space(*p)) {
		if (*p == '\n' || *p == '\r')
			grammar->has_line_break = true;
		p++;
	}
	grammar->p = p;
}

/* Between tokens. Most messages have no space there, so that case must cost next to nothing. */
static inline void grammar_skip_space(struct grammar *grammar)
{
	if (grammar->p < grammar->end && *grammar->p <= ' ')
		grammar_skip_spaces(grammar);
}

void grammar_init(struct grammar *grammar, struct slice text, size_t depth_max)
{
	CHECK(depth_max <= SCAN_DEPTH_MAX);
	grammar->p = text.p;
	grammar->end = text.n > 0 ? text.p + text.n : text.p;
	grammar->depth = 0;
	grammar->depth_max = depth_max;
	grammar->fault = ERROR_NONE;
	grammar->fault_text = NULL;
	grammar->has_line_break = false;
	grammar->has_separator = false;
	grammar->has_escaped_name = false;
}

static bool grammar_is_at(const struct grammar *grammar, char c)
{
	return grammar->p < grammar->end && *grammar->p == c;
}

static enum grammar_step grammar_close(struct grammar *grammar)
{
	CHECK(grammar->p < grammar->end && grammar->depth > 0);
	grammar->p++;
	grammar->depth--;
	return GRAMMAR_CLOSED;
}

enum grammar_step grammar_open(struct grammar *grammar)
{
	char closer = *grammar->p == '{' ? '}' : ']';

	CHECK(grammar->p < grammar->end && grammar->depth <= grammar->depth_max);
	if (grammar->depth == grammar->depth_max) {
		grammar->fault = ERROR_LIMIT;
		return GRAMMAR_FAILED;
	}
	grammar->closers[grammar->depth++] = closer;
	grammar->p++;
	grammar_skip_space(grammar);
	return grammar_is_at(grammar, closer) ? grammar_close(grammar) : GRAMMAR_MEMBER;
}

enum grammar_step grammar_next(struct grammar *grammar)
{
	char closer;

	CHECK(grammar->depth > 0);
	closer = grammar->closers[grammar->depth - 1];
	grammar_skip_space(grammar);
	if (grammar_is_at(grammar, closer))
		return grammar_close(grammar);
	if (!grammar_is_at(grammar, ',')) {
		grammar_fail(grammar, grammar->p,
			     closer == '}' ? "neither a comma nor '}' after a member" :
					     "neither a comma nor ']' after an element");
		return GRAMMAR_FAILED;
	}
	grammar->p++;
	grammar_skip_space(grammar);
	return GRAMMAR_MEMBER;
}

int grammar_name(struct grammar *grammar, struct json *name_r)
{
	const char *begin = grammar->p;

	*name_r = (struct json){ .type = JSON_STRING };
	if (!grammar_is_at(grammar, '"'))
		return grammar_fail(grammar, begin,
				    "no name in quotes where a member should begin");
	if (grammar_any_string(grammar, &name_r->has_escape) < 0)
		return -1;
	name_r->text = slice_between(begin, grammar->p);
	grammar->has_escaped_name |= name_r->has_escape;
	grammar_skip_space(grammar);
	if (!grammar_is_at(grammar, ':'))
		return grammar_fail(grammar, grammar->p, "no colon after a name");
	grammar->p++;
	grammar_skip_space(grammar);
	return 0;
}

static int grammar_scalar(struct grammar *grammar, bool *has_escape_r)
{
	if (grammar->p == grammar->end)
		return grammar_fail(grammar, grammar->p, "the end where a value should begin");
	switch (*grammar->p) {
	case '"':
		return grammar_any_string(grammar, has_escape_r);
	case 't':
		return grammar_literal(grammar, SLICE_LIT("true"));
	case 'f':
		return grammar_literal(grammar, SLICE_LIT("false"));
	case 'n':
		return grammar_literal(grammar, SLICE_LIT("null"));
	case '-':
	case '0' ... '9':
		return grammar_number(grammar);
	default:
		return grammar_fail(grammar, grammar->p, "no value where one should begin");
	}
}

int grammar_value(struct grammar *grammar, struct json *value_r)
{
	const char *begin = grammar->p;
	size_t outside = grammar->depth;
	bool has_escape = false;
	struct json name;

	if (grammar_is_at(grammar, '"')) { /* most values are strings */
		if (grammar_any_string(grammar, &has_escape) < 0)
			return -1;
		*value_r =
			(struct json){ JSON_STRING, has_escape, slice_between(begin, grammar->p) };
		return 0;
	}
	for (;;) {
		enum grammar_step step;

		pause_point();
		if (grammar_is_at(grammar, '{') || grammar_is_at(grammar, '['))
			step = grammar_open(grammar);
		else
			step = grammar_scalar(grammar, &has_escape) < 0 ? GRAMMAR_FAILED :
									  GRAMMAR_CLOSED;
		while (step == GRAMMAR_CLOSED && grammar->depth > outside)
			step = grammar_next(grammar);
		if (step == GRAMMAR_FAILED)
			return -1;
		if (step == GRAMMAR_CLOSED)
			break;
		if (grammar->closers[grammar->depth - 1] == '}' && grammar_name(grammar, &name) < 0)
			return -1;
	}
	CHECK(grammar->depth == outside && grammar->p > begin && grammar->p <= grammar->end);
	value_r->type = grammar_type(*begin);
	value_r->has_escape = value_r->type == JSON_STRING && has_escape;
	value_r->text = slice_between(begin, grammar->p);
	return 0;
}
