/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the grammar, without recursion. The members of an object are written in the order in which they come;
 * when it closes they are put in order, unless they are already.
 *
 * Invariant: the members of all open objects stand in one array, those of the innermost one last.
 */
#include "jsonrpc/canonical.h"

#include <endian.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "jsonrpc/grammar.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"

#define EXPONENT_DIGITS_MAX 18
#define MEMO_BYTES_KEPT (64 * 1024)

/* Where a member stands in what has been written. */
struct member {
	uint64_t
		prefix; /* the first bytes of its name, so that most comparisons need not look there */
	size_t begin;
	size_t value; /* behind the colon */
	size_t end;
};

struct container {
	size_t begin; /* where its first member stands */
	size_t first; /* objects: its first one in `members` */
	bool is_object;
};

struct canonical {
	struct buf *out;
	struct buf scratch;
	struct grammar grammar;
	struct member *members;
	size_t count;
	size_t room;
	size_t depth;
	struct container open[SCAN_DEPTH_MAX];
};

/* ---- scalars ---- */

static void append_string(struct canonical *canonical, struct json string)
{
	if (!string.has_escape) {
		write_string(canonical->out, slice_of(string.text.p + 1, string.text.n - 2));
		return;
	}
	canonical->scratch.len = 0;
	if (scan_decode_string(string, &canonical->scratch) == 0)
		write_string(canonical->out, buf_slice(&canonical->scratch));
	else
		buf_append_slice(canonical->out, string.text);
}

static struct slice skip_zeros(struct slice digits)
{
	while (digits.n > 0 && digits.p[0] == '0')
		digits = slice_of(digits.p + 1, digits.n - 1);
	return digits;
}

/* What follows the e; -1: too many digits. */
static int read_exponent(struct slice text, long long *exponent_r)
{
	bool is_negative = text.n > 0 && text.p[0] == '-';
	long long exponent = 0;

	if (text.n > 0 && (text.p[0] == '-' || text.p[0] == '+'))
		text = slice_of(text.p + 1, text.n - 1);
	text = skip_zeros(text);
	if (text.n > EXPONENT_DIGITS_MAX)
		return -1;
	for (size_t i = 0; i < text.n; i++)
		exponent = exponent * 10 + (text.p[i] - '0');
	*exponent_r = is_negative ? -exponent : exponent;
	return 0;
}

static struct slice cut_at(struct slice *rest, const char *separators)
{
	struct slice part = *rest;

	for (size_t i = 0; i < part.n; i++) {
		if (strchr(separators, part.p[i]) == NULL)
			continue;
		*rest = slice_of(part.p + i + 1, part.n - i - 1);
		return slice_of(part.p, i);
	}
	*rest = slice_of(part.p + part.n, 0);
	return part;
}

static void append_number(struct canonical *canonical, struct slice text)
{
	struct buf *digits = &canonical->scratch;
	struct slice exponent_text = text;
	struct slice fraction = cut_at(&exponent_text, "eE");
	bool is_negative = fraction.p[0] == '-';
	struct slice whole = cut_at(&fraction, ".");
	struct slice significant;
	long long exponent;

	if (is_negative)
		whole = slice_of(whole.p + 1, whole.n - 1);
	digits->len = 0;
	buf_append_slice(digits, whole);
	buf_append_slice(digits, fraction);
	significant = skip_zeros(buf_slice(digits));
	if (significant.n == 0) {
		buf_append_char(canonical->out, '0');
		return;
	}
	if (read_exponent(exponent_text, &exponent) < 0) {
		buf_append_slice(canonical->out, text);
		return;
	}
	exponent -= (long long)fraction.n;
	for (; significant.p[significant.n - 1] == '0'; significant.n--)
		exponent++;
	if (is_negative)
		buf_append_char(canonical->out, '-');
	buf_append_slice(canonical->out, significant);
	if (exponent == 0)
		return;
	buf_append_str(canonical->out, exponent < 0 ? "e-" : "e");
	buf_append_u64(canonical->out, (uint64_t)llabs(exponent));
}

static enum grammar_step append_scalar(struct canonical *canonical)
{
	struct json value;

	if (grammar_value(&canonical->grammar, &value) < 0)
		return GRAMMAR_FAILED;
	if (value.type == JSON_STRING)
		append_string(canonical, value);
	else if (value.type == JSON_NUMBER)
		append_number(canonical, value.text);
	else
		buf_append_slice(canonical->out, value.text);
	return GRAMMAR_CLOSED;
}

/* ---- objects and arrays ---- */

static struct container *innermost(struct canonical *canonical)
{
	CHECK(canonical->depth > 0);
	return &canonical->open[canonical->depth - 1];
}

static struct slice name_of(const struct member *member, const char *text)
{
	return slice_between(text + member->begin + 1, text + member->value - 2);
}

/* By name, as it has been written, then by place. */
static int compare(const void *left, const void *right, void *arg)
{
	const struct member *a = left;
	const struct member *b = right;
	struct slice a_name, b_name;
	int order;

	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	a_name = name_of(a, arg);
	b_name = name_of(b, arg);
	order = memcmp(a_name.p, b_name.p, a_name.n < b_name.n ? a_name.n : b_name.n);
	if (order != 0)
		return order;
	if (a_name.n != b_name.n)
		return a_name.n < b_name.n ? -1 : 1;
	return a->begin < b->begin ? -1 : 1;
}

static bool is_sorted(const struct member *members, size_t count, char *text)
{
	for (size_t i = 1; i < count; i++) {
		if (compare(&members[i - 1], &members[i], text) > 0)
			return false;
	}
	return true;
}

static void sort_members(struct canonical *canonical, const struct container *object)
{
	struct buf *out = canonical->out;
	size_t count = canonical->count - object->first;
	struct member *members;

	if (count < 2)
		return;
	members = canonical->members + object->first;
	if (is_sorted(members, count, out->data))
		return;
	qsort_r(members, count, sizeof(*members), compare, out->data);
	canonical->scratch.len = 0;
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_append_char(&canonical->scratch, ',');
		buf_append(&canonical->scratch, out->data + members[i].begin,
			   members[i].end - members[i].begin);
	}
	CHECK(canonical->scratch.len == out->len - object->begin);
	memcpy(out->data + object->begin, canonical->scratch.data, canonical->scratch.len);
}

static void close_container(struct canonical *canonical)
{
	struct container *container = innermost(canonical);

	if (container->is_object) {
		sort_members(canonical, container);
		canonical->count = container->first;
	}
	buf_append_char(canonical->out, container->is_object ? '}' : ']');
	canonical->depth--;
}

static enum grammar_step begin_container(struct canonical *canonical)
{
	bool is_object = *canonical->grammar.p == '{';
	enum grammar_step step = grammar_open(&canonical->grammar);

	if (step == GRAMMAR_FAILED)
		return step;
	CHECK(canonical->depth < SCAN_DEPTH_MAX); /* the grammar has looked */
	buf_append_char(canonical->out, is_object ? '{' : '[');
	canonical->open[canonical->depth++] = (struct container){ .begin = canonical->out->len,
								  .first = canonical->count,
								  .is_object = is_object };
	if (step == GRAMMAR_CLOSED)
		close_container(canonical);
	return step;
}

static void add_member(struct canonical *canonical, size_t begin)
{
	struct member member = { .begin = begin, .value = canonical->out->len };
	struct slice name = name_of(&member, canonical->out->data);

	memcpy(&member.prefix, name.p,
	       name.n < sizeof(member.prefix) ? name.n : sizeof(member.prefix));
	member.prefix = be64toh(member.prefix);
	if (canonical->count == canonical->room) {
		canonical->room = canonical->room * 2 + 8;
		canonical->members = mem_resize(canonical->members,
						canonical->room * sizeof(*canonical->members));
	}
	canonical->members[canonical->count++] = member;
}

static int begin_member(struct canonical *canonical)
{
	size_t begin = canonical->out->len;
	struct json name;

	if (grammar_name(&canonical->grammar, &name) < 0)
		return -1;
	append_string(canonical, name);
	buf_append_char(canonical->out, ':');
	add_member(canonical, begin);
	return 0;
}

/* A value has ended: so does its member, and whatever ends behind it. CLOSED: that was all. */
static enum grammar_step end_value(struct canonical *canonical)
{
	enum grammar_step step = GRAMMAR_CLOSED;

	while (step == GRAMMAR_CLOSED && canonical->depth > 0) {
		if (innermost(canonical)->is_object)
			canonical->members[canonical->count - 1].end = canonical->out->len;
		step = grammar_next(&canonical->grammar);
		if (step == GRAMMAR_CLOSED)
			close_container(canonical);
		else if (step == GRAMMAR_MEMBER)
			buf_append_char(canonical->out, ',');
	}
	return step;
}

static int walk(struct canonical *canonical)
{
	const struct grammar *grammar = &canonical->grammar;

	for (;;) {
		enum grammar_step step;

		if (grammar->p < grammar->end && (*grammar->p == '{' || *grammar->p == '['))
			step = begin_container(canonical);
		else
			step = append_scalar(canonical);
		if (step == GRAMMAR_CLOSED)
			step = end_value(canonical);
		if (step == GRAMMAR_FAILED)
			return -1;
		if (step == GRAMMAR_CLOSED)
			return grammar->p == grammar->end ? 0 : -1;
		if (innermost(canonical)->is_object && begin_member(canonical) < 0)
			return -1;
	}
}

/* The grammar reads a value; what stands around it is ours. */
static struct slice trim(struct slice text)
{
	while (text.n > 0 && grammar_is_space(text.p[0]))
		text = slice_of(text.p + 1, text.n - 1);
	while (text.n > 0 && grammar_is_space(text.p[text.n - 1]))
		text.n--;
	return text;
}

int canonical_append(struct buf *out, struct slice text, size_t depth_max)
{
	struct canonical canonical; /* large: `open` needs no zeros */
	size_t before = out->len;
	int result;

	buf_reserve(out, text.n); /* most need no more */
	canonical.out = out;
	canonical.scratch = (struct buf){ 0 };
	canonical.members = NULL;
	canonical.count = canonical.room = canonical.depth = 0;
	grammar_init(&canonical.grammar, trim(text), depth_max);
	result = walk(&canonical);
	if (result < 0)
		out->len = before;
	buf_fini(&canonical.scratch);
	free(canonical.members);
	return result;
}

void canonical_memo_begin(struct canonical_memo *memo, struct slice text)
{
	memo->of = text;
	memo->is_made = false;
}

void canonical_memo_end(struct canonical_memo *memo)
{
	canonical_memo_begin(memo, slice_of(NULL, 0));
	if (memo->form.cap > MEMO_BYTES_KEPT)
		buf_fini(&memo->form);
}

struct slice canonical_memo_get(struct canonical_memo *memo, struct slice text)
{
	bool is_it = text.n > 0 && text.p == memo->of.p && text.n == memo->of.n;

	if (!is_it || !memo->is_made) {
		memo->form.len = 0;
		CHECK(canonical_append(&memo->form, text, SCAN_DEPTH_MAX) == 0);
		memo->is_made = is_it;
	}
	return buf_slice(&memo->form);
}

void canonical_memo_fini(struct canonical_memo *memo)
{
	buf_fini(&memo->form);
}
