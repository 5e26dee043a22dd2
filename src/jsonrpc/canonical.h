/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A canonical form of JSON, so that values that mean the same can be compared or hashed as text;
 * and trees of values in this form.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

/*
 * Appends the canonical form of one JSON value: no white space; strings as write_string writes
 * them; members sorted by the bytes of their names in that form; numbers as digits without leading
 * or trailing zeros and a power of ten. The result is JSON with the same meaning, so different
 * values never share a form.
 *
 * Differences to RFC 8785: numbers are not rounded to a double, because servers that read them
 * exactly see a difference; members sort by UTF-8, not UTF-16; all members of one name are kept, in
 * their order; strings with a lone surrogate and numbers whose exponent has more than 18 digits are
 * kept as written.
 *
 * text        borrowed; need not have been scanned
 * depth_max   of nested arrays and objects; at most SCAN_DEPTH_MAX
 *
 * Returns 0, or -1 if text is not JSON or too deep; `out` is then unchanged.
 */
int canonical_append(struct buf *out, struct slice text, size_t depth_max) must_check;

/* The canonical form of a value that was scanned as valid, made in `room`. */
struct canonical_form canonical_of(struct slice text, struct buf *room);
/* Makes the canonical form of the arguments, which lives as long as `room`; nothing if there are none. */
void canonical_keep(struct envelope *env, struct buf *room);
/* That form; made in `room`, if nobody has made it. The message has arguments. */
struct canonical_form canonical_get(const struct envelope *env, struct buf *room);

/* ---- as a tree ---- */

/* A value. The nodes of its members or elements follow it, each with its own subtree. */
struct json_node {
	unsigned char type; /* of enum json_type */
	unsigned char
		mark; /* this and the next two belong to the user of the tree; initially zero */
	bool is_marked;
	uint32_t link;
	uint32_t count;    /* number of members or elements */
	uint32_t span;     /* number of nodes of the subtree, this one included */
	uint32_t up;       /* distance to the parent node, in nodes; 0: the root */
	struct slice name; /* of a member, without quotes; otherwise empty */
	struct slice text;
};

/*
 * For callers that traverse a value more than once. All texts in it are in canonical form, and the
 * members of an object are sorted. All zeros initially.
 */
struct json_tree {
	struct buf text;
	struct json_node *nodes; /* nodes[0] is the root */
	size_t count;
	size_t room;
};

struct json_tree_limits {
	size_t depth; /* nested arrays and objects; at most SCAN_DEPTH_MAX */
	size_t nodes;
};

/*
 * Reads a value that was scanned as valid. Returns NULL, or as a fixed text why there is no tree:
 * an object has a duplicate name, a string a lone surrogate, or a number more than 18 digits in its
 * exponent; or a limit is exceeded.
 */
const char *json_tree_read(struct json_tree *tree, struct slice text,
			   const struct json_tree_limits *limits) must_check;
/* The same from the canonical form, which is copied. */
const char *json_tree_read_form(struct json_tree *tree, const struct canonical_form *form,
				const struct json_tree_limits *limits) must_check;
void json_tree_fini(struct json_tree *tree);

/* The first member or element; valid only if count > 0. */
static inline struct json_node *json_node_first(const struct json_node *node)
{
	return (struct json_node *)(uintptr_t)(node + 1);
}
/* The next sibling; valid only if there is one. */
static inline struct json_node *json_node_next(const struct json_node *node)
{
	return (struct json_node *)(uintptr_t)(node + node->span);
}
/* Iterates over the members or elements. */
#define JSON_NODE_FOREACH(each, node)                                                      \
	for (struct json_node *each = json_node_first(node); each < (node) + (node)->span; \
	     each = json_node_next(each))
/* The member with this name, given in canonical form; NULL if there is none. */
struct json_node *json_node_member(const struct json_node *object, struct slice name);
/*
 * Appends the path from the root to the node as a JSON pointer (RFC 6901), for people to read:
 * names are truncated, anything but plain ASCII in them becomes '?', and of a long path only the
 * last part is written.
 */
void json_node_append_path(struct buf *out, const struct json_node *node, size_t bytes_max);

/* ---- numbers in this form ---- */

/*
 * Exact comparison and division of JSON numbers in canonical form (jsonrpc/canonical.h) whose
 * exponents have at most 18 digits.
 */

/* Whether the number is an integer, as 1.0 and 1e300 are. */
bool decimal_is_integer(struct slice number);
/* Negative, zero or positive, as a is less than, equal to or greater than b. */
int decimal_compare(struct slice a, struct slice b);
/*
 * Whether it can be used as a divisor: greater than 0, with at most 9 digits that are not zeros at
 * an end, such as 0.01, 2.5 and 1e12.
 */
bool decimal_is_divisor(struct slice number);
/* Whether number is an integer multiple of the divisor. */
bool decimal_is_multiple(struct slice number, struct slice divisor);
/*
 * Reads a nonnegative integer; UINT32_MAX stands for all larger values. Returns false if it is
 * negative or not an integer.
 */
bool decimal_count(struct slice number, uint32_t *count_r);
