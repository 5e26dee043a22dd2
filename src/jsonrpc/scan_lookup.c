/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds single members and elements again in text that scan_envelope has read (scan_array: will
 * read). Does not check it a second time: strings are skipped by their quotes, containers by
 * counting brackets, which is several times faster than the grammar.
 *
 * Invariant: no byte behind the slice is read, whatever the text is.
 */
#include "base/buf.h"
#include "base/pause.h"
#include "base/text.h"
#include "jsonrpc/grammar.h"
#include "jsonrpc/scan.h"

static const char *lookup_skip_space(const char *p, const char *end)
{
	while (p < end && grammar_is_space(*p))
		p++;
	return p;
}

/*
 * At a quote: the byte after the one that ends the string, or NULL. A quote behind an odd number of
 * backslashes is escaped; the quote at p stops the counting.
 */
static const char *lookup_skip_string(const char *p, const char *end)
{
	const char *quote = p + 1;

	CHECK(p < end && *p == '"');
	while ((quote = memchr(quote, '"', (size_t)(end - quote))) != NULL) {
		const char *run = quote;

		while (run[-1] == '\\')
			run--;
		if ((quote - run) % 2 == 0)
			return quote + 1;
		quote++;
	}
	return NULL;
}

/* At a bracket: the byte after its partner, or NULL. */
static const char *lookup_skip_container(const char *p, const char *end)
{
	size_t depth = 0;

	CHECK(p < end && (*p == '{' || *p == '['));
	while (p < end) {
		char c = *p;

		if (c == '"') {
			p = lookup_skip_string(p, end);
			if (p == NULL)
				return NULL;
			pause_point();
			continue;
		}
		p++;
		if (c == ',') {
			pause_point();
		} else if (c == '{' || c == '[') {
			depth++;
			pause_point();
		} else if ((c == '}' || c == ']') && --depth == 0) {
			return p;
		}
	}
	return NULL;
}

/* The byte after the value at p, or NULL if there is none. */
static const char *lookup_skip_value(const char *p, const char *end)
{
	const char *begin = p;

	if (p == end)
		return NULL;
	if (*p == '"')
		return lookup_skip_string(p, end);
	if (*p == '{' || *p == '[')
		return lookup_skip_container(p, end);
	while (p < end && *p != ',' && *p != ']' && *p != '}' && !grammar_is_space(*p))
		p++;
	return p > begin ? p : NULL;
}

static int lookup_array_fail(struct error *err, struct slice text, const char *at)
{
	return error_set(err, ERROR_SYNTAX, "not JSON: the array is broken at byte %zu",
			 (size_t)(at - text.p));
}

/* One element at *p_r, and the comma (returns 1) or bracket (returns 0) behind it; -1: neither. */
static int lookup_cut_element(const char **p_r, const char *end, struct slice *element_r)
{
	const char *begin = *p_r;
	const char *p = lookup_skip_value(begin, end);

	if (p == NULL)
		return -1;
	*element_r = slice_between(begin, p);
	p = lookup_skip_space(p, end);
	*p_r = p;
	if (p == end || (*p != ',' && *p != ']'))
		return -1;
	*p_r = lookup_skip_space(p + 1, end);
	return *p == ',';
}

/* Elements are handed out if on_element is not NULL; then the array has been walked once before. */
static int lookup_walk_array(struct slice text, size_t max_elements, scan_element_fn *on_element,
			     void *arg, struct error *err)
{
	const char *end = text.p + text.n;
	const char *p = lookup_skip_space(text.p, end);
	struct slice element;
	size_t count = 0;
	int more = 1;

	p = lookup_skip_space(p + 1, end);
	if (p < end && *p == ']') {
		p = lookup_skip_space(p + 1, end);
		more = 0;
	}
	while (more > 0) {
		pause_point();
		more = lookup_cut_element(&p, end, &element);
		if (more < 0)
			return lookup_array_fail(err, text, p);
		if (++count > max_elements)
			return error_set(err, ERROR_LIMIT, "the array has more than %zu elements",
					 max_elements);
		if (on_element != NULL && on_element(element, arg) < 0)
			return -1;
	}
	return p == end ? (int)count : lookup_array_fail(err, text, p);
}

int scan_array(struct slice text, size_t max_elements, scan_element_fn *on_element, void *arg,
	       struct error *err)
{
	CHECK(on_element != NULL);
	if (scan_type(text) != JSON_ARRAY)
		return error_set(err, ERROR_INVALID, "not a JSON array");
	if (lookup_walk_array(text, max_elements, NULL, NULL, err) < 0)
		return -1;
	return lookup_walk_array(text, max_elements, on_element, arg, err);
}

enum json_type scan_type(struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (!grammar_is_space(text.p[i]))
			return grammar_type(text.p[i]);
	}
	return JSON_ABSENT;
}

struct json scan_value(struct slice text)
{
	enum json_type type = scan_type(text);

	return (struct json){
		.type = type,
		.has_escape = type == JSON_STRING && memchr(text.p, '\\', text.n) != NULL,
		.text = text,
	};
}

struct scan_cursor scan_open(struct slice object)
{
	struct scan_cursor at = { .p = NULL };

	if (scan_type(object) != JSON_OBJECT)
		return at;
	at.end = object.p + object.n;
	at.p = lookup_skip_space(object.p, at.end) + 1;
	at.p = lookup_skip_space(at.p, at.end);
	return at;
}

bool scan_next_member(struct scan_cursor *at)
{
	const char *end = at->end;
	const char *begin = at->p;
	const char *p;

	if (begin == end || *begin != '"')
		return false;
	p = lookup_skip_string(begin, end);
	if (p == NULL)
		return false;
	at->name = slice_between(begin + 1, p - 1);
	p = lookup_skip_space(p, end);
	if (p == end || *p != ':')
		return false;
	begin = lookup_skip_space(p + 1, end);
	p = lookup_skip_value(begin, end);
	if (p == NULL)
		return false;
	at->value.type = grammar_type(*begin);
	at->value.text = slice_between(begin, p);
	at->value.has_escape =
		at->value.type == JSON_STRING && memchr(begin, '\\', at->value.text.n) != NULL;
	pause_point();
	p = lookup_skip_space(p, end);
	at->p = p < end && *p == ',' ? lookup_skip_space(p + 1, end) : end;
	return true;
}

struct json scan_member(struct slice object, struct slice name)
{
	SCAN_MEMBERS(member, object)
		if (slice_is_equal(member.name, name) &&
		    (name.n == 0 || memchr(name.p, '\\', name.n) == NULL))
			return member.value;
	return (struct json){ .type = JSON_ABSENT };
}

struct json scan_path(struct slice object, const char *const *path, size_t length)
{
	struct json value = { .type = JSON_OBJECT, .text = object };

	for (size_t i = 0; i < length && value.type != JSON_ABSENT; i++)
		value = scan_member(value.text, slice_str(path[i]));
	return value;
}

#define DIGITS_SAFE 18 /* so many fit into a long long, whatever they are */

int scan_int(struct json value, long long *number_r)
{
	const char *at = value.text.p;
	long long number = 0;
	bool is_negative, is_safe;
	const char *end;

	if (value.type != JSON_NUMBER || value.text.n == 0)
		return -1;
	end = at + value.text.n;
	is_negative = *at == '-';
	at += is_negative;
	is_safe = end - at <= DIGITS_SAFE;
	if (at == end)
		return -1;
	for (; at < end; at++) {
		int digit = *at - '0';

		if (digit < 0 || digit > 9)
			return -1;
		digit = is_negative ? -digit : digit;
		if (is_safe)
			number = number * 10 + digit;
		else if (__builtin_mul_overflow(number, 10, &number) ||
			 __builtin_add_overflow(number, digit, &number))
			return -1;
	}
	*number_r = number;
	return 0;
}

struct slice scan_plain_string(struct json value)
{
	if (value.type != JSON_STRING || value.has_escape || value.text.n < 2)
		return (struct slice){ NULL, 0 };
	return slice_of(value.text.p + 1, value.text.n - 2);
}

static unsigned int decode_hex(const char *digits)
{
	unsigned int value = 0;

	for (int i = 0; i < 4; i++) {
		unsigned char c = (unsigned char)digits[i];

		value = value << 4 | (unsigned int)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return value;
}

static void append_utf8(struct buf *out, unsigned int c)
{
	static const unsigned int marks[] = { 0, 0xC0, 0xE0, 0xF0 }; /* by the bytes that follow */
	int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	buf_append_char(out, (char)(marks[more] | c >> 6 * more));
	while (more-- > 0)
		buf_append_char(out, (char)(0x80 | (c >> 6 * more & 0x3F)));
}

/* `at` stands behind \u; returns how many more characters belong to it, 0: half a pair. */
static size_t decode_unicode(const char *at, const char *end, struct buf *out)
{
	unsigned int c = decode_hex(at);
	unsigned int low;

	if (c < 0xD800 || c > 0xDFFF) {
		append_utf8(out, c);
		return 4;
	}
	if (c > 0xDBFF || end - at < 10 || at[4] != '\\' || at[5] != 'u')
		return 0;
	low = decode_hex(at + 6);
	if (low < 0xDC00 || low > 0xDFFF)
		return 0;
	append_utf8(out, 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00));
	return 10;
}

int scan_decode_string(struct json value, struct buf *out)
{
	static const char letters[] = "bfnrt";
	static const char meanings[] = "\b\f\n\r\t";
	const char *p, *end;

	if (value.type != JSON_STRING || value.text.n < 2)
		return -1; /* an absent one has no text to point into */
	if (!value.has_escape) {
		buf_append_slice(out, scan_plain_string(value));
		return 0;
	}
	end = value.text.p + value.text.n - 1;
	for (p = value.text.p + 1; p < end; p++) {
		const char *escape = memchr(p, '\\', (size_t)(end - p));
		const char *letter;

		pause_point();
		buf_append_slice(out, slice_between(p, escape != NULL ? escape : end));
		if (escape == NULL)
			break;
		p = escape + 1;
		letter = strchr(letters, *p);
		if (*p == 'u') {
			size_t more = decode_unicode(p + 1, end, out);

			if (more == 0)
				return -1;
			p += more;
		} else {
			buf_append_char(out, letter != NULL ? meanings[letter - letters] : *p);
		}
	}
	return 0;
}

int scan_read_string(struct json value, struct buf *room, struct slice *text_r)
{
	*text_r = scan_plain_string(value);
	if (text_r->p != NULL)
		return 0;
	room->len = 0;
	if (scan_decode_string(value, room) < 0)
		return -1;
	*text_r = buf_slice(room);
	return 0;
}

void scan_members(struct slice object, scan_member_fn *on_member, void *arg)
{
	SCAN_MEMBERS(member, object)
		if (on_member(member.name, member.value, arg) < 0)
			return;
}

void scan_members_into(struct buf *out, struct slice object, scan_member_fn *on_member, void *arg)
{
	buf_append_char(out, '{');
	scan_members(object, on_member, arg);
	buf_append_char(out, '}');
}

int scan_read_name(struct slice name, struct buf *room, struct slice *name_r)
{
	bool has_escape = memchr(name.p, '\\', name.n) != NULL;
	struct json quoted = { JSON_STRING, has_escape, slice_of(name.p - 1, name.n + 2) };

	return scan_read_string(quoted, room, name_r);
}

/* At a quote: the string that begins there, and in *after_r what follows it; -1: it does not end. */
static int lookup_string(const char *p, const char *end, struct scan_token *token_r,
			 const char **after_r)
{
	const char *after = lookup_skip_string(p, end);

	if (after == NULL)
		return -1;
	token_r->value = (struct json){
		.type = JSON_STRING,
		.has_escape = memchr(p, '\\', (size_t)(after - p)) != NULL,
		.text = slice_between(p, after),
	};
	after = lookup_skip_space(after, end);
	token_r->kind = after < end && *after == ':' ? SCAN_NAME : SCAN_STRING;
	*after_r = after;
	return 0;
}

void scan_tokens(struct slice value, scan_token_fn *on_token, void *arg)
{
	const char *end = value.p + value.n;
	const char *p = value.p;
	size_t depth = 0;

	while (p < end) {
		struct scan_token token = { .depth = depth };
		bool is_token = true;

		pause_point();
		if (*p == '"') {
			if (lookup_string(p, end, &token, &p) < 0)
				return;
		} else {
			is_token = *p == '{' || *p == '[';
			token.value = (struct json){ grammar_type(*p), false, slice_of(p, 1) };
			depth += is_token;
			depth -= depth > 0 && (*p == '}' || *p == ']');
			p++;
		}
		if (is_token && on_token(&token, arg) < 0)
			return;
	}
}

/* ---- numbers and ids by their value ---- */

/* Does not judge whether a value is legal where it stands; that is scan. */

#define INTEGER_BYTES_MAX 64 /* of a number that may be an integer */

/* What stands behind the e, if anything does. */
static int lookup_read_exponent(struct slice text, long long *exponent_r)
{
	bool has_plus = text.n > 0 && text.p[0] == '+';
	struct json exponent = { .type = JSON_NUMBER, .text = text };

	*exponent_r = 0;
	if (has_plus)
		exponent.text = slice_of(text.p + 1, text.n - 1);
	return text.n == 0 ? 0 : scan_int(exponent, exponent_r);
}

/* Appends `count` zeros, but not to a zero. Returns 0, or -1 if the number does not fit. */
static int shift(long long *number, long long count)
{
	for (; count > 0 && *number != 0; count--) {
		if (__builtin_mul_overflow(*number, 10, number))
			return -1;
	}
	return 0;
}

int value_read_integer(struct json value, long long *number_r)
{
	char digits[INTEGER_BYTES_MAX];
	struct slice rest = value.text, whole;
	struct json integer = { .type = JSON_NUMBER, .text = { digits, 0 } };
	long long point; /* how many digits stand before it */
	long long exponent;

	if (scan_int(value, number_r) == 0)
		return 0;
	if (value.type != JSON_NUMBER || value.text.n > sizeof(digits))
		return -1;
	whole = slice_cut(&rest, memchr(rest.p, 'E', rest.n) != NULL ? 'E' : 'e');
	if (lookup_read_exponent(rest, &exponent) < 0 || exponent < -INTEGER_BYTES_MAX ||
	    exponent > INTEGER_BYTES_MAX)
		return -1;
	rest = whole;
	whole = slice_cut(&rest, '.');
	point = (long long)whole.n + exponent;
	memcpy(digits, whole.p, whole.n);
	if (rest.n > 0)
		memcpy(digits + whole.n, rest.p, rest.n);
	integer.text.n = whole.n + rest.n;
	CHECK(integer.text.n > 0 && integer.text.n <= sizeof(digits));
	/* What stands behind the point may only be zeros. */
	for (; integer.text.n > 1 && (long long)integer.text.n > point; integer.text.n--)
		if (digits[integer.text.n - 1] != '0')
			return -1;
	point -= (long long)integer.text.n;
	if (scan_int(integer, number_r) < 0 || (point < 0 && *number_r != 0))
		return -1;
	return shift(number_r, point);
}

uint64_t value_own_id(struct json value)
{
	at_end(buf_fini) struct buf room = { 0 };
	struct slice digits;
	long long number;
	uint64_t id = 0;

	if (value.type == JSON_NUMBER) {
		if (value_read_integer(value, &number) < 0)
			return 0;
		return number > 0 ? (uint64_t)number : 0;
	}
	if (scan_read_string(value, &room, &digits) == 0 && text_parse_u64(digits, &id) < 0)
		id = 0;
	return id;
}

#define SPELLING_MAX 6 /* bytes that an escape takes for one */
#define NUMBER_MAX 32  /* bytes of any spelling of an integer that is read */

bool value_is_same_id(struct slice left, struct slice right)
{
	at_end(buf_fini) struct buf room_of_a = { 0 }, room_of_b = { 0 };
	struct slice text_a, text_b;
	long long number_a, number_b;
	struct json a, b;

	if (slice_is_equal(left, right))
		return true;
	/* Who names an id may make it long, and have it compared with many. */
	if (left.n > SPELLING_MAX * right.n + NUMBER_MAX ||
	    right.n > SPELLING_MAX * left.n + NUMBER_MAX)
		return false;
	a = scan_value(left);
	b = scan_value(right);
	if (a.type == JSON_NUMBER)
		return value_read_integer(a, &number_a) == 0 &&
		       value_read_integer(b, &number_b) == 0 && number_a == number_b;
	return scan_read_string(a, &room_of_a, &text_a) == 0 &&
	       scan_read_string(b, &room_of_b, &text_b) == 0 && slice_is_equal(text_a, text_b);
}
