/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCRE2 counts its limits anew at each place of a text, and does not count what a possessive or an unambiguous repeat
 * reads: `.*\s+b` over a long run of spaces takes quadratic time in one step after the other. So it calls us before each
 * item of an expression, and the time is looked at there. What one item can take is linear, and bounded by PATTERN_TEXT_MAX.
 *
 * Most texts have not even the letters that an expression begins with: those are looked for first (struct literal).
 *
 * There is no just-in-time compiler: the gateway may not make memory executable (keeper/confine.c), and the limits of
 * depth and heap would not hold in its code.
 */
#include "policy/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"

/* ---- literal prefixes ---- */

/*
 * A literal prefix that every match of a regular expression must begin with. Searching for it is
 * much faster than matching. The prefix ends at anything in the expression that is not certainly a
 * literal character.
 */

#define LITERAL_MAX 16

struct literal {
	char text[LITERAL_MAX]; /* ASCII; lower case if is_caseless */
	size_t length;          /* 0: no prefix is known */
	bool is_caseless;
};

/*
 * Where case makes no difference, k and s also fit letters beyond ASCII (U+212A, U+017F), and i does in some languages: they
 * end the literal, too.
 */

static bool is_plain_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool pattern_is_literal(char c, bool is_caseless)
{
	if (is_plain_letter(c))
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
	return rest.p[0] == '.' || rest.p[0] == '[' || pattern_is_literal(rest.p[0], false);
}

/* `expression` must have compiled with PCRE2 without options other than UTF and UCP. */
static void literal_read(struct literal *literal, struct slice expression)
{
	size_t n = 0;

	*literal =
		(struct literal){ .is_caseless = slice_has_prefix(expression, SLICE_LIT("(?i)")) };
	if (expression.n == 0 || memchr(expression.p, '|', expression.n) != NULL)
		return;
	if (literal->is_caseless)
		expression = slice_of(expression.p + 4, expression.n - 4);
	while (n < expression.n && n < LITERAL_MAX &&
	       pattern_is_literal(expression.p[n], literal->is_caseless)) {
		char c = expression.p[n];

		literal->text[n++] =
			literal->is_caseless && is_plain_letter(c) ? (char)(c | 0x20) : c;
	}
	if (n > 0 && !is_single(slice_of(expression.p + n, expression.n - n)))
		n--;
	literal->length = n;
}

/* The first of this byte from p on; `end` if there is none. */
static const char *find_byte(const char *p, const char *end, char byte)
{
	const char *found = p < end ? memchr(p, byte, (size_t)(end - p)) : NULL;

	return found != NULL ? found : end;
}

/* The literal may begin at any place before `end`. Either case of its first byte is looked for on its own. */
static const char *search_caseless(const struct literal *literal, const char *p, const char *end)
{
	char small = literal->text[0];
	char capital = is_plain_letter(small) ? (char)(small ^ 0x20) : small;
	const char *next_small = find_byte(p, end, small);
	const char *next_capital = find_byte(p, end, capital);

	while ((p = next_small < next_capital ? next_small : next_capital) < end) {
		if (strncasecmp(p, literal->text, literal->length) == 0)
			return p;
		if (p == next_small)
			next_small = find_byte(p + 1, end, small);
		if (p == next_capital)
			next_capital = find_byte(p + 1, end, capital);
	}
	return NULL;
}

/*
 * Whether a match may begin in `text` at *from_r or later; *from_r is then set to the first such
 * position. `text` is UTF-8. True if no prefix is known.
 */
static bool literal_find(const struct literal *literal, struct slice text, size_t *from_r)
{
	const char *begin, *found;

	CHECK(*from_r <= text.n);
	if (literal->length == 0)
		return true;
	if (text.n - *from_r < literal->length)
		return false;
	begin = text.p + *from_r;
	found = literal->is_caseless ?
			search_caseless(literal, begin, text.p + text.n - literal->length + 1) :
			memmem(begin, text.n - *from_r, literal->text, literal->length);
	if (found != NULL)
		*from_r = (size_t)(found - text.p);
	return found != NULL;
}

/* ---- patterns ---- */

#define UNMEASURED 8192 /* bytes between looks at the time: that is a system call */
#define ITEM 16         /* what an item costs beside the bytes that it reads, in those */
#define LITERAL_SPEED 8 /* how much quicker literals are looked for */

struct pattern {
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *match;
	struct literal begin; /* of all that fits */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is_spent(struct pattern_work *work, size_t size)
{
	work->unmeasured += size;
	if (work->unmeasured < UNMEASURED || work->is_spent)
		return work->is_spent;
	work->unmeasured = 0;
	if (work->begun_ns == 0)
		work->begun_ns = now_ns();
	work->is_spent = now_ns() - work->begun_ns >
			 (work->most_ns > 0 ? work->most_ns : PATTERN_WORK_MAX_NS);
	return work->is_spent;
}

/* Before an item is tried. Otherwise it ends the match. */
static int on_item(pcre2_callout_block *item, void *arg)
{
	struct pattern_work *work = arg;
	size_t at = item->current_position;
	size_t read = at > work->at ? at - work->at : work->at - at;

	work->at = at;
	return is_spent(work, read + ITEM) ? PCRE2_ERROR_CALLOUT : 0;
}

static pcre2_code *compile(struct slice expression, uint32_t options,
			   pcre2_compile_context *context, struct error *err)
{
	const uint32_t always = PCRE2_UTF | PCRE2_AUTO_CALLOUT | PCRE2_NEVER_BACKSLASH_C;
	size_t offset = 0;
	int error = 0;
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)(expression.n > 0 ? expression.p : ""),
					 expression.n, always | options, &error, &offset, context);
	PCRE2_UCHAR why[160];

	if (code == NULL) {
		pcre2_get_error_message(error, why, sizeof(why));
		error_set(err, ERROR_SYNTAX, "%s, at byte %zu", (const char *)why, offset);
	}
	return code;
}

static pcre2_code *compile_pcre2(struct slice expression, struct error *err)
{
	pcre2_code *code = compile(expression, PCRE2_UCP, NULL, err);
	uint32_t fits_empty = 0;

	if (code == NULL)
		return NULL;
	CHECK(pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &fits_empty) == 0);
	if (!fits_empty)
		return code;
	error_set(err, ERROR_INVALID, "it matches the empty text, and so every text, at byte 0");
	pcre2_code_free(code);
	return NULL;
}

/* ---- from ECMA-262 ---- */

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

static void pattern_replace(struct reader *reader, size_t count, const char *text)
{
	buf_append_str(reader->out, text);
	reader->rest = slice_of(reader->rest.p + count, reader->rest.n - count);
}

static void copy_expression(struct reader *reader, size_t count)
{
	buf_append(reader->out, reader->rest.p, count);
	reader->rest = slice_of(reader->rest.p + count, reader->rest.n - count);
}

/* What braces of an escape hold is no repeat. */
static void copy_braces(struct reader *reader)
{
	const char *end = memchr(reader->rest.p, '}', reader->rest.n);

	if (peek(reader, 0) == '{' && end != NULL)
		copy_expression(reader, (size_t)(end - reader->rest.p) + 1);
}

/* At a backslash. Signs stand for themselves in both languages. */
static const char *pattern_read_escape(struct reader *reader)
{
	static const char letters[] = "dDwWsSbBfnrtvcxukpP";
	char c = peek(reader, 1);

	if (c == '\0' || (unsigned char)c > 0x7E || c <= ' ')
		return "a backslash before a character that needs none";
	if (is_plain_letter(c) && strchr(letters, c) == NULL)
		return "an escape that is not in ECMA-262";
	if (c == '0' && isdigit((unsigned char)peek(reader, 2)))
		return "an octal escape";
	if (c == 'k' && peek(reader, 2) != '<')
		return "an escape that is not in ECMA-262";
	if (c == 's' || c == 'S')
		pattern_replace(reader, 2, c == 's' ? "\\p{Xsp}" : "\\P{Xsp}");
	else if (c == 'v')
		pattern_replace(reader, 2, "\\x0b");
	else
		copy_expression(reader, 2);
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
	copy_expression(reader, 1);
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
	copy_expression(reader, next == '?' ? 3 : 1);
	return NULL;
}

static const char *pattern_read_one(struct reader *reader)
{
	bool was_quantifier = reader->is_behind_quantifier;
	char c = peek(reader, 0);

	reader->is_behind_quantifier = false;
	if (c == '\\')
		return pattern_read_escape(reader);
	if (reader->is_in_class)
		return read_in_class(reader);
	if (c == '(')
		return read_group(reader);
	if (c == '+' && was_quantifier)
		return "a possessive quantifier";
	reader->is_behind_quantifier = c == '+' || c == '*' || c == '?' || c == '}';
	reader->is_in_class = c == '[';
	copy_expression(reader, 1);
	return NULL;
}

/*
 * Appends the expression in PCRE2 syntax. Returns NULL, or as a fixed text what it contains that
 * ECMA-262 does not have or defines differently.
 */
static const char *translate_ecma(struct slice expression, struct buf *out)
{
	struct reader reader = { .rest = expression, .out = out };
	const char *why = NULL;

	if (expression.n > 0 && memchr(expression.p, '\0', expression.n) != NULL)
		return "a NUL";
	while (why == NULL && reader.rest.n > 0)
		why = pattern_read_one(&reader);
	return why;
}

/*
 * A dot fits neither CR nor LF. The alternative that never fits names them: else PCRE2 would not look for a match that
 * begins between the two.
 */
static pcre2_code *compile_ecma(struct slice expression, struct error *err)
{
	const uint32_t options = PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX | PCRE2_ALLOW_EMPTY_CLASS |
				 PCRE2_MATCH_UNSET_BACKREF;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	at_end(buf_fini) struct buf text = { 0 };
	const char *foreign = translate_ecma(expression, &text);
	pcre2_code *code = NULL;

	CHECK(context != NULL);
	CHECK(pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF) == 0);
	CHECK(pcre2_set_max_pattern_length(context, PATTERN_ECMA_MAX) == 0);
	CHECK(pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX) == 0);
	buf_append_str(&text, "|(?!)\\r\\n");
	if (foreign == NULL)
		code = compile(buf_slice(&text), options, context, err);
	else
		error_set(err, ERROR_SYNTAX, "it has %s", foreign);
	pcre2_compile_context_free(context);
	return code;
}

/* ---- the interface ---- */

static struct pattern *pattern_of(pcre2_code *code, uint32_t steps_max)
{
	struct pattern *pattern;

	if (code == NULL)
		return NULL;
	pattern = mem_zalloc(sizeof(*pattern));
	pattern->code = code;
	pattern->limits = pcre2_match_context_create(NULL);
	pattern->match = pcre2_match_data_create(1, NULL);
	CHECK(pattern->limits != NULL && pattern->match != NULL);
	pcre2_set_match_limit(pattern->limits, steps_max);
	pcre2_set_depth_limit(pattern->limits, PATTERN_DEPTH_MAX);
	pcre2_set_heap_limit(pattern->limits, PATTERN_HEAP_MAX_KIB);
	return pattern;
}

struct pattern *pattern_new(struct slice expression, struct error *err)
{
	struct pattern *pattern = pattern_of(compile_pcre2(expression, err), PATTERN_STEPS_MAX);

	if (pattern != NULL)
		literal_read(&pattern->begin, expression);
	return pattern;
}

struct pattern *pattern_new_ecma(struct slice expression, struct error *err)
{
	return pattern_of(compile_ecma(expression, err), PATTERN_ECMA_STEPS_MAX);
}

size_t pattern_size(const struct pattern *pattern)
{
	size_t size = 0;

	CHECK(pcre2_pattern_info(pattern->code, PCRE2_INFO_SIZE, &size) == 0);
	return size + sizeof(*pattern);
}

void pattern_free(struct pattern **pattern)
{
	if (*pattern == NULL)
		return;
	pcre2_match_data_free((*pattern)->match);
	pcre2_match_context_free((*pattern)->limits);
	pcre2_code_free((*pattern)->code);
	free(*pattern);
	*pattern = NULL;
}

bool pattern_is_absent(const struct pattern *pattern, struct slice text)
{
	size_t from = 0;

	return text.n <= PATTERN_TEXT_MAX && !literal_find(&pattern->begin, text, &from);
}

enum pattern_verdict pattern_find(struct pattern *pattern, struct slice text, size_t from,
				  struct pattern_work *work, struct slice *found_r)
{
	const size_t *place = pcre2_get_ovector_pointer(pattern->match);
	int rc;

	CHECK(from <= text.n);
	if (text.n > PATTERN_TEXT_MAX || is_spent(work, text.n / LITERAL_SPEED + 1))
		return PATTERN_TOO_HARD;
	if (!literal_find(&pattern->begin, text, &from))
		return PATTERN_ABSENT;
	if (is_spent(work, (text.n < UNMEASURED ? text.n : 0) + ITEM))
		return PATTERN_TOO_HARD;
	work->at = from;
	CHECK(pcre2_set_callout(pattern->limits, on_item, work) == 0);
	rc = pcre2_match(pattern->code, (PCRE2_SPTR)(text.n > 0 ? text.p : ""), text.n, from,
			 PCRE2_NO_UTF_CHECK, pattern->match, pattern->limits);
	if (rc == PCRE2_ERROR_NOMATCH)
		return PATTERN_ABSENT;
	if (rc < 0 || place[0] > place[1] || place[1] > text.n)
		return PATTERN_TOO_HARD;
	if (found_r != NULL)
		*found_r = slice_of(text.p + place[0], place[1] - place[0]);
	return PATTERN_FOUND;
}
