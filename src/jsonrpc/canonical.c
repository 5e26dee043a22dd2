/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the grammar, without recursion. The members of an object are written in the order
 * in which they come; when it closes they are put in order, unless they are already. The nodes of a
 * tree are made from what has been written, which is known to be valid.
 *
 * Invariant: the members of all open objects stand in one array, those of the innermost one last.
 */
#include "jsonrpc/canonical.h"

#include <endian.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/pause.h"
#include "jsonrpc/grammar.h"
#include "jsonrpc/write.h"

#define EXPONENT_DIGITS_MAX 18
#define EXPONENT_MAX 999999999999999999 /* in canonical form, of a number that can be read */
#define NAME_BYTES 40                   /* of a name in a path */
#define STEPS_MAX 24                    /* of a path */

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
	const char *flaw; /* why it has no single meaning; NULL: it has one */
	struct container open[SCAN_DEPTH_MAX];
};

/* ---- scalars ---- */

static void note_flaw(struct canonical *canonical, const char *flaw)
{
	if (canonical->flaw == NULL)
		canonical->flaw = flaw;
}

/* `flaw`: what is noted of one that cannot be decoded. */
static void canonical_append_string(struct canonical *canonical, struct json string,
				    const char *flaw)
{
	if (!string.has_escape) {
		write_string(canonical->out, slice_of(string.text.p + 1, string.text.n - 2));
		return;
	}
	canonical->scratch.len = 0;
	if (scan_decode_string(string, &canonical->scratch) == 0) {
		write_string(canonical->out, buf_slice(&canonical->scratch));
	} else {
		buf_append_slice(canonical->out, string.text);
		note_flaw(canonical, flaw);
	}
}

static struct slice skip_zeros(struct slice digits)
{
	while (digits.n > 0 && digits.p[0] == '0')
		digits = slice_of(digits.p + 1, digits.n - 1);
	return digits;
}

/* What follows the e; -1: too many digits. */
static int canonical_read_exponent(struct slice text, long long *exponent_r)
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

static void canonical_append_number(struct canonical *canonical, struct slice text)
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
	if (canonical_read_exponent(exponent_text, &exponent) < 0) {
		buf_append_slice(canonical->out, text);
		note_flaw(canonical, "a number cannot be read");
		return;
	}
	exponent -= (long long)fraction.n;
	for (; significant.p[significant.n - 1] == '0'; significant.n--)
		exponent++;
	if (llabs(exponent) > EXPONENT_MAX)
		note_flaw(canonical, "a number cannot be read");
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
		canonical_append_string(canonical, value, "a text cannot be read");
	else if (value.type == JSON_NUMBER)
		canonical_append_number(canonical, value.text);
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

static struct slice canonical_name_of(const struct member *member, const char *text)
{
	return slice_between(text + member->begin + 1, text + member->value - 2);
}

/*
 * By name, as it has been written, then by place. Sorting compares neighbors: a name that stands
 * twice is seen here.
 */
static int canonical_compare(const void *left, const void *right, void *arg)
{
	const struct member *a = left;
	const struct member *b = right;
	struct canonical *canonical = arg;
	struct slice a_name, b_name;
	int order;

	pause_point();
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	a_name = canonical_name_of(a, canonical->out->data);
	b_name = canonical_name_of(b, canonical->out->data);
	order = memcmp(a_name.p, b_name.p, a_name.n < b_name.n ? a_name.n : b_name.n);
	if (order != 0)
		return order;
	if (a_name.n != b_name.n)
		return a_name.n < b_name.n ? -1 : 1;
	if (a->begin != b->begin)
		note_flaw(canonical, "an object has a name twice");
	return (a->begin > b->begin) - (a->begin < b->begin);
}

static bool is_sorted(struct canonical *canonical, const struct member *members, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (canonical_compare(&members[i - 1], &members[i], canonical) > 0)
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
	if (is_sorted(canonical, members, count))
		return;
	qsort_r(members, count, sizeof(*members), canonical_compare, canonical);
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
	struct slice name = canonical_name_of(&member, canonical->out->data);

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
	canonical_append_string(canonical, name, "a name cannot be read");
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

static int canonical_walk(struct canonical *canonical)
{
	const struct grammar *grammar = &canonical->grammar;

	for (;;) {
		enum grammar_step step;

		pause_point();
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

/* `flaw_r`: see struct canonical. */
static int canonical_read_value(struct buf *out, struct slice text, size_t depth_max,
				const char **flaw_r)
{
	struct canonical canonical; /* large: `open` needs no zeros */
	size_t before = out->len;
	int result;

	buf_reserve(out, text.n); /* most need no more */
	canonical.out = out;
	canonical.scratch = (struct buf){ 0 };
	canonical.members = NULL;
	canonical.count = canonical.room = canonical.depth = 0;
	canonical.flaw = NULL;
	grammar_init(&canonical.grammar, grammar_trim(text), depth_max);
	result = canonical_walk(&canonical);
	if (result < 0)
		out->len = before;
	*flaw_r = canonical.flaw;
	buf_fini(&canonical.scratch);
	free(canonical.members);
	return result;
}

int canonical_append(struct buf *out, struct slice text, size_t depth_max)
{
	const char *flaw;

	return canonical_read_value(out, text, depth_max, &flaw);
}

struct canonical_form canonical_of(struct slice text, struct buf *room)
{
	struct canonical_form form;

	CHECK(canonical_read_value(room, text, SCAN_DEPTH_MAX, &form.flaw) ==
	      0); /* it was scanned */
	form.text = buf_slice(room);
	return form;
}

struct canonical_form canonical_get(const struct envelope *env, struct buf *room)
{
	return env->canonical.text.n > 0 ? env->canonical : canonical_of(env->arguments.text, room);
}

void canonical_keep(struct envelope *env, struct buf *room)
{
	if (env->arguments.type != JSON_ABSENT)
		env->canonical = canonical_get(env, room);
}

/* ---- trees ---- */

/* `open`: the index of the container around it. */
static void add_node(struct json_tree *tree, size_t open, struct json_node node)
{
	if (tree->count == tree->room) {
		tree->room = tree->room * 2 + 8;
		tree->nodes = mem_resize(tree->nodes, tree->room * sizeof(*tree->nodes));
	}
	if (tree->count > 0)
		tree->nodes[open].count++;
	node.up = (uint32_t)(tree->count - open);
	tree->nodes[tree->count++] = node;
}

/* Behind the string that begins here. */
static const char *canonical_skip_string(const char *p)
{
	for (p++; *p != '"'; p++)
		p += *p == '\\';
	return p + 1;
}

/* Behind the scalar or opening bracket. */
static const char *canonical_skip_value(const char *p, const char *end)
{
	if (*p == '"')
		return canonical_skip_string(p);
	if (*p == '{' || *p == '[')
		return p + 1;
	while (p < end && *p != ',' && *p != ']' && *p != '}')
		p++;
	return p;
}

/* Reads a member, element or root. */
static const char *read_node(struct json_tree *tree, size_t open, const char *p, const char *end)
{
	struct json_node node = { .span = 1 };

	if (tree->count > 0 && tree->nodes[open].type == JSON_OBJECT) {
		node.name = slice_between(p + 1, canonical_skip_string(p) - 1);
		p = node.name.p + node.name.n + 2; /* the quote and the colon */
	}
	node.type = (unsigned char)grammar_type(*p);
	node.text = slice_between(p, canonical_skip_value(p, end));
	add_node(tree, open, node);
	return p + node.text.n;
}

/* Returns -1 if there are too many. */
static int read_nodes(struct json_tree *tree, size_t nodes_max)
{
	const char *p = tree->text.data, *end = p + tree->text.len;
	size_t open = 0;

	while (p < end) {
		if (*p == ',') {
			p++;
		} else if (*p == ']' || *p == '}') {
			struct json_node *node = &tree->nodes[open];

			node->text.n = (size_t)(++p - node->text.p);
			node->span = (uint32_t)(tree->count - open);
			open -= node->up;
		} else if (tree->count == nodes_max) {
			return -1;
		} else {
			p = read_node(tree, open, p, end);
			if (p[-1] == '{' || p[-1] == '[')
				open = tree->count - 1;
		}
	}
	return 0;
}

const char *json_tree_read(struct json_tree *tree, struct slice text,
			   const struct json_tree_limits *limits)
{
	const char *flaw;

	CHECK(tree->count == 0 && tree->text.len == 0);
	if (canonical_read_value(&tree->text, text, limits->depth, &flaw) < 0)
		return "it is nested too deep"; /* it was scanned */
	if (flaw == NULL && read_nodes(tree, limits->nodes) < 0)
		return "it has too many values";
	return flaw;
}

const char *json_tree_read_form(struct json_tree *tree, const struct canonical_form *form,
				const struct json_tree_limits *limits)
{
	CHECK(tree->count == 0 && tree->text.len == 0);
	buf_append_slice(&tree->text, form->text);
	if (form->flaw == NULL && read_nodes(tree, limits->nodes) < 0)
		return "it has too many values";
	return form->flaw;
}

void json_tree_fini(struct json_tree *tree)
{
	free(tree->nodes);
	buf_fini(&tree->text);
	*tree = (struct json_tree){ .count = 0 };
}

struct json_node *json_node_member(const struct json_node *object, struct slice name)
{
	if (object->type != JSON_OBJECT)
		return NULL;
	JSON_NODE_FOREACH(member, object)
		if (slice_is_equal(member->name, name))
			return member;
	return NULL;
}

static size_t index_of(const struct json_node *node)
{
	const struct json_node *each = json_node_first(node - node->up);
	size_t index = 0;

	for (; each != node; each = json_node_next(each))
		index++;
	return index;
}

static void append_step(struct buf *out, const struct json_node *node)
{
	struct slice name = node->name;

	buf_append_char(out, '/');
	if ((node - node->up)->type == JSON_ARRAY) {
		buf_append_u64(out, index_of(node));
		return;
	}
	for (size_t i = 0; i < name.n && i < NAME_BYTES; i++) {
		char c = name.p[i];

		if (c == '~' || c == '/')
			buf_append_str(out, c == '~' ? "~0" : "~1");
		else
			buf_append_char(out, c > ' ' && c < 0x7F && c != '\\' ? c : '?');
	}
	if (name.n > NAME_BYTES)
		buf_append_str(out, "...");
}

void json_node_append_path(struct buf *out, const struct json_node *node, size_t bytes_max)
{
	const struct json_node *steps[STEPS_MAX];
	at_end(buf_fini) struct buf path = { 0 };
	size_t count = 0;

	for (; node->up > 0 && count < STEPS_MAX; node -= node->up)
		steps[count++] = node;
	if (node->up > 0)
		buf_append_str(&path, "...");
	while (count > 0)
		append_step(&path, steps[--count]);
	if (path.len > bytes_max) {
		buf_append_str(out, "...");
		buf_consume(&path, path.len - bytes_max + 3);
	}
	buf_append_slice(out, buf_slice(&path));
}

/* ---- numbers in this form ---- */

#define DIVISOR_DIGITS_MAX 9 /* of a number below 2^30, whose products fit */
#define DIVISOR_TWOS_MAX 29  /* how often it can be divided by two or by five */

/* DIGITS times ten to the power; no zeros at either end, no digits: zero. */
struct decimal {
	bool is_negative;
	struct slice digits;
	int64_t power;
};

static struct decimal decimal_read(struct slice text)
{
	struct decimal decimal = { .is_negative = text.p[0] == '-' };
	bool has_negative_power;
	struct slice rest = text;

	CHECK(text.n > decimal.is_negative);
	if (decimal.is_negative)
		rest = slice_of(text.p + 1, text.n - 1);
	decimal.digits = slice_cut(&rest, 'e');
	if (slice_is_equal(decimal.digits, SLICE_LIT("0")))
		decimal.digits.n = 0;
	has_negative_power = rest.n > 0 && rest.p[0] == '-';
	for (size_t i = has_negative_power; i < rest.n; i++)
		decimal.power = decimal.power * 10 + (rest.p[i] - '0');
	if (has_negative_power)
		decimal.power = -decimal.power;
	return decimal;
}

bool decimal_is_integer(struct slice number)
{
	return decimal_read(number).power >= 0;
}

static int sign_of(const struct decimal *decimal)
{
	return decimal->digits.n == 0 ? 0 : decimal->is_negative ? -1 : 1;
}

/* Neither is zero; signs do not count. */
static int compare_sizes(const struct decimal *a, const struct decimal *b)
{
	int64_t a_places = a->power + (int64_t)a->digits.n;
	int64_t b_places = b->power + (int64_t)b->digits.n;
	size_t shared = a->digits.n < b->digits.n ? a->digits.n : b->digits.n;
	int order;

	if (a_places != b_places)
		return a_places < b_places ? -1 : 1;
	order = memcmp(a->digits.p, b->digits.p, shared);
	if (order != 0)
		return order;
	return (a->digits.n > shared) - (b->digits.n > shared);
}

int decimal_compare(struct slice a_text, struct slice b_text)
{
	struct decimal a = decimal_read(a_text), b = decimal_read(b_text);
	int a_sign = sign_of(&a), b_sign = sign_of(&b);

	if (a_sign != b_sign || a_sign == 0)
		return a_sign - b_sign;
	return a_sign * compare_sizes(&a, &b);
}

bool decimal_is_divisor(struct slice number)
{
	struct decimal decimal = decimal_read(number);

	return sign_of(&decimal) > 0 && decimal.digits.n <= DIVISOR_DIGITS_MAX;
}

/*
 * The digits of a number do not end in zero: where the divisor has the greater power, it is no
 * factor. More tens than the divisor has twos or fives change nothing.
 */
bool decimal_is_multiple(struct slice number, struct slice divisor_text)
{
	struct decimal decimal = decimal_read(number), divisor = decimal_read(divisor_text);
	int64_t tens = decimal.power - divisor.power;
	uint64_t modulus = 0, rest = 0;

	CHECK(decimal_is_divisor(divisor_text));
	if (tens < 0)
		return decimal.digits.n == 0;
	for (size_t i = 0; i < divisor.digits.n; i++)
		modulus = modulus * 10 + (uint64_t)(divisor.digits.p[i] - '0');
	for (size_t i = 0; i < decimal.digits.n; i++)
		rest = (rest * 10 + (uint64_t)(decimal.digits.p[i] - '0')) % modulus;
	for (int64_t i = 0; i < tens && i < DIVISOR_TWOS_MAX; i++)
		rest = rest * 10 % modulus;
	return rest == 0;
}

bool decimal_count(struct slice number, uint32_t *count_r)
{
	struct decimal decimal = decimal_read(number);
	uint64_t count = 0;

	if (decimal.power < 0 || sign_of(&decimal) < 0)
		return false;
	for (size_t i = 0; i < decimal.digits.n && count < UINT32_MAX; i++)
		count = count * 10 + (uint64_t)(decimal.digits.p[i] - '0');
	for (int64_t i = 0; i < decimal.power && count < UINT32_MAX && count > 0; i++)
		count *= 10;
	*count_r = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
	return true;
}
