/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON value as a tree, for who has to go through it more than once. All texts in it are in canonical form
 * (canonical.h): values that mean the same have the same text, and the members of an object are sorted.
 */
#ifndef MCPGATED_JSONRPC_JSON_TREE_H
#define MCPGATED_JSONRPC_JSON_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

/* A value. Its members or elements are the nodes behind it, each with all that it contains. */
struct json_node {
	unsigned char type; /* of enum json_type */
	unsigned char
		mark; /* this and the next two are for whoever uses the tree: zeros at first */
	bool is_marked;
	uint32_t link;
	uint32_t count; /* of members or elements */
	uint32_t span;  /* nodes: this one and all that it contains */
	uint32_t up; /* so many nodes before this one is the one that contains it; 0: none does */
	struct slice name; /* of a member, without quotes; else empty */
	struct slice text;
};

/* All zeros to begin with. */
struct json_tree {
	struct buf text;         /* in canonical form, unless that is borrowed */
	struct json_node *nodes; /* the first is the root */
	size_t count;
	size_t room;
};

struct json_tree_limits {
	size_t depth; /* nested arrays and objects; at most SCAN_DEPTH_MAX */
	size_t nodes;
};

/*
 * Reads a value that was scanned as valid. NULL, or why it has no tree, a fixed text: an object has a name twice, a string
 * half a surrogate pair, a number more than 18 digits in its exponent; or it passes a limit.
 */
const char *json_tree_read(struct json_tree *tree, struct slice text,
			   const struct json_tree_limits *limits) must_check;
/* The same of a text in canonical form, which is borrowed for the tree's life. */
const char *json_tree_read_canonical(struct json_tree *tree, struct slice text,
				     const struct json_tree_limits *limits) must_check;
void json_tree_fini(struct json_tree *tree);

/* The first member or element, if there is one: count > 0. */
static inline struct json_node *json_node_first(const struct json_node *node)
{
	return (struct json_node *)(uintptr_t)(node + 1);
}
/* The next one beside it, if there is one. */
static inline struct json_node *json_node_next(const struct json_node *node)
{
	return (struct json_node *)(uintptr_t)(node + node->span);
}
/* Each member or element in turn. */
#define JSON_NODE_FOREACH(each, node)                                                      \
	for (struct json_node *each = json_node_first(node); each < (node) + (node)->span; \
	     each = json_node_next(each))
/* Of an object, by the name in canonical form; NULL: none. */
struct json_node *json_node_member(const struct json_node *object, struct slice name);
/*
 * Appends the way from the root to a node as a JSON pointer (RFC 6901) for people to read: names are cut, what is not
 * plain ASCII in them is a '?', and of a long way the last part alone is told.
 */
void json_node_append_path(struct buf *out, const struct json_node *node, size_t bytes_max);

#endif
