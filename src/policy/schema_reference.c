/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/schema_reference.h"

#include "base/text.h"
#include "jsonrpc/write.h"

#define SEARCH_MAX (2 * 1000 * 1000) /* nodes that are looked at, for all references of a schema */

/* RFC 3986 §2.1 */
static void append_unescaped(struct buf *out, struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		char byte;

		if (text.p[i] == '%' && text.n - i > 2 &&
		    text_from_hex(slice_of(text.p + i + 1, 2), &byte, 1) == 0) {
			buf_append_char(out, byte);
			i += 2;
		} else {
			buf_append_char(out, text.p[i]);
		}
	}
}

bool schema_reference_is_foreign(struct slice id)
{
	return id.n > 2 && id.p[0] == '"' && id.p[1] != '#';
}

/* Inside a schema that has a base of its own, references mean something else. */
static bool is_embedded(const struct json_node *node)
{
	for (; node->up > 0; node -= node->up) {
		const struct json_node *id = json_node_member(node, SLICE_LIT("$id"));

		if (id != NULL && id->type == JSON_STRING && schema_reference_is_foreign(id->text))
			return true;
	}
	return false;
}

/* RFC 6901 §4 */
static struct json_node *find_step(struct json_node *node, struct slice step)
{
	struct json_node *each = json_node_first(node);
	struct buf name = { 0 };
	struct buf spelled = { 0 };
	uint64_t index;

	if (node->type == JSON_ARRAY) {
		if (text_parse_u64(step, &index) < 0 || index >= node->count)
			return NULL;
		while (index-- > 0)
			each = json_node_next(each);
		return each;
	}
	for (size_t i = 0; i < step.n; i++) {
		char next = step.p[i] == '~' && i + 1 < step.n ? step.p[i + 1] : '\0';

		buf_append_char(&name, next == '0' ? '~' : next == '1' ? '/' : step.p[i]);
		i += next == '0' || next == '1';
	}
	write_string(&spelled, buf_slice(&name));
	each = json_node_member(node, slice_of(spelled.data + 1, spelled.len - 2));
	buf_fini(&name);
	buf_fini(&spelled);
	return each;
}

/* `pointer` begins behind the first slash. */
static struct json_node *find_by_pointer(const struct json_tree *tree, struct slice pointer,
					 size_t *searched)
{
	struct json_node *node = tree->nodes;

	while (node != NULL && pointer.p != NULL) {
		*searched += node->count + 1;
		node = find_step(node, slice_cut(&pointer, '/'));
	}
	return node;
}

/* Of a name that stands once; of two nobody knows which is meant. */
static struct json_node *find_by_anchor(const struct json_tree *tree, struct slice fragment,
					size_t *searched)
{
	struct json_node *found = NULL;
	struct buf plain = { 0 };
	struct buf as_id = { 0 };
	size_t count = 0;

	write_string(&plain, slice_of(fragment.p + 1, fragment.n - 1));
	write_string(&as_id, fragment);
	for (size_t i = 0; i < tree->count; i++) {
		struct json_node *node = &tree->nodes[i];
		bool is_id = slice_is_equal(node->name, SLICE_LIT("$id"));
		bool is_anchor = slice_is_equal(node->name, SLICE_LIT("$anchor")) ||
				 slice_is_equal(node->name, SLICE_LIT("$dynamicAnchor"));

		if ((is_id && slice_is_equal(node->text, buf_slice(&as_id))) ||
		    (is_anchor && slice_is_equal(node->text, buf_slice(&plain)))) {
			found = node - node->up;
			count++;
		}
	}
	*searched += tree->count;
	buf_fini(&plain);
	buf_fini(&as_id);
	return count == 1 ? found : NULL;
}

/* A fragment, with its '#'. */
static struct json_node *find_target(const struct json_tree *tree, struct slice fragment,
				     size_t *searched)
{
	if (fragment.n == 1)
		return tree->nodes;
	if (fragment.p[1] == '/')
		return find_by_pointer(tree, slice_of(fragment.p + 2, fragment.n - 2), searched);
	return find_by_anchor(tree, fragment, searched);
}

struct json_node *schema_reference_find(const struct json_tree *tree,
					const struct json_node *reference, size_t *searched,
					const char **why_r)
{
	struct json string = { JSON_STRING, true, reference->text };
	struct buf fragment = { 0 };
	struct buf text = { 0 };
	struct json_node *target;

	*why_r = "leads to another document";
	if (reference->type != JSON_STRING || schema_reference_is_foreign(reference->text))
		return NULL;
	CHECK(scan_decode_string(string, &text) == 0); /* json_tree_read has seen to that */
	append_unescaped(&fragment, buf_slice(&text));
	if (fragment.len == 0)
		buf_append_char(&fragment, '#');
	target = find_target(tree, buf_slice(&fragment), searched);
	buf_fini(&fragment);
	buf_fini(&text);
	if (*searched > SEARCH_MAX)
		*why_r = "is one reference too many";
	else if (target == NULL)
		*why_r = "leads nowhere";
	else if (is_embedded(target))
		*why_r = "leads into a schema with an $id of its own";
	else
		return target;
	return NULL;
}
