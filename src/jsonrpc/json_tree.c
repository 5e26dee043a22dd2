/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the canonical text, without recursion. */
#include "jsonrpc/json_tree.h"

#include <stdlib.h>

#include "base/mem.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/grammar.h"

#define EXPONENT_DIGITS_MAX 18 /* of a number in canonical form */
#define NAME_BYTES 40          /* of a name in a path */
#define STEPS_MAX 24           /* of a path */

struct reading {
	struct json_tree *tree;
	const struct json_tree_limits *limits;
	struct grammar grammar;
	struct buf scratch;
	const char *why;
	size_t depth;
	struct {
		size_t at;
		struct slice last; /* the name of its last member */
	} open[SCAN_DEPTH_MAX];    /* the containers around, the innermost last */
};

/* ---- single values ---- */

static bool is_readable_string(struct reading *reading, struct json string)
{
	reading->scratch.len = 0;
	return !string.has_escape || scan_decode_string(string, &reading->scratch) == 0;
}

static bool is_readable_number(struct slice text)
{
	const char *e = memchr(text.p, 'e', text.n);

	if (e == NULL && memchr(text.p, 'E', text.n) == NULL)
		return memchr(text.p, '.', text.n) == NULL; /* canonical form has neither */
	return e != NULL &&
	       (size_t)(text.p + text.n - e - 1) <= EXPONENT_DIGITS_MAX + (e[1] == '-');
}

static int fail(struct reading *reading, const char *why)
{
	reading->why = why;
	return -1;
}

static struct json_node *add_node(struct reading *reading)
{
	struct json_tree *tree = reading->tree;
	struct json_node *node;

	if (tree->count == reading->limits->nodes) {
		reading->why = "it has too many values";
		return NULL;
	}
	if (tree->count == tree->room) {
		tree->room = tree->room * 2 + 8;
		tree->nodes = mem_resize(tree->nodes, tree->room * sizeof(*tree->nodes));
	}
	node = &tree->nodes[tree->count];
	*node = (struct json_node){ .span = 1 };
	if (reading->depth > 0) {
		size_t outer = reading->open[reading->depth - 1].at;

		node->up = (uint32_t)(tree->count - outer);
		tree->nodes[outer].count++;
	}
	tree->count++;
	return node;
}

/* ---- the walk ---- */

static enum grammar_step open_container(struct reading *reading, struct json_node *node)
{
	struct grammar *grammar = &reading->grammar;

	node->type = *grammar->p == '{' ? JSON_OBJECT : JSON_ARRAY;
	node->text.p = grammar->p;
	CHECK(reading->depth < SCAN_DEPTH_MAX); /* as for its canonical text */
	reading->open[reading->depth].at = (size_t)(node - reading->tree->nodes);
	reading->open[reading->depth++].last = slice_of(NULL, 0);
	return grammar_open(grammar);
}

static enum grammar_step read_scalar(struct reading *reading, struct json_node *node)
{
	struct json value;

	if (grammar_value(&reading->grammar, &value) < 0)
		return GRAMMAR_FAILED;
	node->type = (unsigned char)value.type;
	node->text = value.text;
	if (value.type == JSON_STRING && !is_readable_string(reading, value))
		return (enum grammar_step)fail(reading, "a text cannot be read");
	if (value.type == JSON_NUMBER && !is_readable_number(value.text))
		return (enum grammar_step)fail(reading, "a number cannot be read");
	return GRAMMAR_MEMBER;
}

static void close_container(struct reading *reading)
{
	size_t at = reading->open[--reading->depth].at;
	struct json_node *node = &reading->tree->nodes[at];

	node->span = (uint32_t)(reading->tree->count - at);
	node->text = slice_between(node->text.p, reading->grammar.p);
}

/* The node of a value has been read, its name stands in the grammar before. */
static int read_name(struct reading *reading, struct slice *name_r)
{
	struct json name;

	if (grammar_name(&reading->grammar, &name) < 0)
		return -1;
	if (!is_readable_string(reading, name))
		return fail(reading, "a name cannot be read");
	*name_r = slice_of(name.text.p + 1, name.text.n - 2);
	return 0;
}

/* Members are sorted: one of the same name stands right before. */
static int check_name(struct reading *reading, const struct json_node *object, struct slice name)
{
	struct slice *last = &reading->open[reading->depth - 1].last;

	if (object->count > 0 && slice_is_equal(name, *last))
		return fail(reading, "an object has a name twice");
	*last = name;
	return 0;
}

/* Behind a value, or behind the bracket that begins a container. */
static enum grammar_step close_all(struct reading *reading, enum grammar_step step)
{
	while (step == GRAMMAR_CLOSED && reading->depth > 0) {
		close_container(reading);
		if (reading->depth > 0)
			step = grammar_next(&reading->grammar);
	}
	return step;
}

static int read_all(struct reading *reading)
{
	struct json_tree *tree = reading->tree;
	struct slice name = { NULL, 0 };

	for (;;) {
		struct json_node *node = add_node(reading);
		enum grammar_step step;
		char first = *reading->grammar.p;

		if (node == NULL)
			return -1;
		node->name = name;
		if (first == '{' || first == '[') {
			step = open_container(reading, node);
		} else {
			step = read_scalar(reading, node);
			if (step != GRAMMAR_FAILED)
				step = reading->depth > 0 ? grammar_next(&reading->grammar) :
							    GRAMMAR_CLOSED;
		}
		step = close_all(reading, step);
		if (step == GRAMMAR_FAILED)
			return -1;
		if (reading->depth == 0)
			return 0;
		node = &tree->nodes[reading->open[reading->depth - 1].at];
		name = slice_of(NULL, 0);
		if (node->type == JSON_OBJECT &&
		    (read_name(reading, &name) < 0 || check_name(reading, node, name) < 0))
			return -1;
	}
}

const char *json_tree_read(struct json_tree *tree, struct slice text,
			   const struct json_tree_limits *limits)
{
	CHECK(tree->count == 0 && tree->text.len == 0);
	if (canonical_append(&tree->text, text, limits->depth) < 0)
		return "it is nested too deep";
	return json_tree_read_canonical(tree, buf_slice(&tree->text), limits);
}

const char *json_tree_read_canonical(struct json_tree *tree, struct slice text,
				     const struct json_tree_limits *limits)
{
	struct reading reading; /* large: `open` needs no zeros */

	CHECK(tree->count == 0);
	reading.tree = tree;
	reading.limits = limits;
	reading.scratch = (struct buf){ 0 };
	reading.why = NULL;
	reading.depth = 0;
	grammar_init(&reading.grammar, text, limits->depth);
	if (read_all(&reading) < 0 && reading.why == NULL)
		reading.why = "it cannot be read"; /* it was scanned: cannot be */
	buf_fini(&reading.scratch);
	return reading.why;
}

void json_tree_fini(struct json_tree *tree)
{
	free(tree->nodes);
	buf_fini(&tree->text);
	*tree = (struct json_tree){ .count = 0 };
}

/* ---- use ---- */

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
	struct buf path = { 0 };
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
	buf_fini(&path);
}
