/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read is what a check can reach from the root: definitions when something refers to them. The bounds are those of
 * schema.h; a reference costs as much as is looked through for it.
 */
#include "policy/schema_keywords.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/write.h"
#include "policy/decimal.h"
#include "policy/pattern.h"
#include "policy/schema.h"

#define PATH_BYTES 100
#define SEARCH_MAX (2 * 1000 * 1000) /* nodes that are looked at for references */

struct reader {
	struct schema *schema;
	struct error *err;
	size_t depth;
	size_t searched;
	struct slice dialect;
};

/* ---- what is wrong ---- */

static int refuse(struct reader *reader, const struct json_node *node, const char *why)
{
	struct buf path = { 0 };

	json_node_append_path(&path, node, PATH_BYTES);
	error_set(reader->err, ERROR_INVALID, "%s %s", path.len > 0 ? buf_terminate(&path) : "/",
		  why);
	buf_fini(&path);
	return -1;
}

/* ---- values of keywords ---- */

typedef int keyword_read_fn(struct reader *reader, struct json_node *node);
static keyword_read_fn read_schema;

/* Whether each element or member is one that can be read. */
static int read_each(struct reader *reader, struct json_node *node, keyword_read_fn *read)
{
	JSON_NODE_FOREACH(each, node)
		if (read(reader, each) < 0)
			return -1;
	return 0;
}

static int read_schemas(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_ARRAY && node->count > 0 ?
		       read_each(reader, node, read_schema) :
		       refuse(reader, node, "is not a non-empty list of schemas");
}

static int read_schema_or_list(struct reader *reader, struct json_node *node)
{
	if (node->type == JSON_ARRAY && node->count == 0)
		return 0;
	return node->type == JSON_ARRAY ? read_schemas(reader, node) : read_schema(reader, node);
}

static int read_map(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_OBJECT ? read_each(reader, node, read_schema) :
					   refuse(reader, node, "is not an object of schemas");
}

static int read_name(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_STRING ? 0 : refuse(reader, node, "is not a name");
}

static int read_names(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_ARRAY ? read_each(reader, node, read_name) :
					  refuse(reader, node, "is not a list of names");
}

static int read_name_lists(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_OBJECT ?
		       read_each(reader, node, read_names) :
		       refuse(reader, node, "is not an object of lists of names");
}

static int read_dependency(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_ARRAY ? read_names(reader, node) : read_schema(reader, node);
}

static int read_dependencies(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_OBJECT ? read_each(reader, node, read_dependency) :
					   refuse(reader, node, "is not an object");
}

static int read_any(struct reader *reader, struct json_node *node)
{
	(void)reader;
	(void)node;
	return 0;
}

static int read_list(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_ARRAY ? 0 : refuse(reader, node, "is not a list");
}

static int read_number(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_NUMBER ? 0 : refuse(reader, node, "is not a number");
}

static int read_divisor(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_NUMBER && decimal_is_divisor(node->text) ?
		       0 :
		       refuse(reader, node, "is not a divisor of up to 18 digits");
}

static int read_count(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_NUMBER && decimal_count(node->text, &node->link) ?
		       0 :
		       refuse(reader, node, "is not a count");
}

static int read_switch(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_TRUE || node->type == JSON_FALSE ?
		       0 :
		       refuse(reader, node, "is neither true nor false");
}

static int read_unsupported(struct reader *reader, struct json_node *node)
{
	return refuse(reader, node, "is a keyword that is not supported here");
}

/* ---- types ---- */

static unsigned int find_type(struct slice text)
{
	static const struct {
		struct slice text;
		unsigned int bits;
	} types[] = {
		{ SLICE("\"array\""), 1u << JSON_ARRAY },
		{ SLICE("\"boolean\""), 1u << JSON_TRUE },
		{ SLICE("\"integer\""), SCHEMA_TYPE_INTEGER },
		{ SLICE("\"null\""), 1u << JSON_NULL },
		{ SLICE("\"number\""), 1u << JSON_NUMBER | SCHEMA_TYPE_INTEGER },
		{ SLICE("\"object\""), 1u << JSON_OBJECT },
		{ SLICE("\"string\""), 1u << JSON_STRING },
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (slice_is_equal(types[i].text, text))
			return types[i].bits;
	return 0;
}

static int read_type(struct reader *reader, struct json_node *node)
{
	node->link = find_type(node->text);
	if (node->type == JSON_ARRAY) {
		JSON_NODE_FOREACH(each, node) {
			unsigned int bits = find_type(each->text);

			if (bits == 0)
				return refuse(reader, each, "is not a type");
			node->link |= bits;
		}
	}
	return node->link > 0 ? 0 : refuse(reader, node, "is not a type");
}

/* ---- patterns ---- */

static int add_pattern(struct reader *reader, struct json_node *node, struct slice expression)
{
	struct schema *schema = reader->schema;
	struct error why;
	struct pattern *pattern;
	struct buf text = { 0 };
	int result;

	if (schema->pattern_count == SCHEMA_PATTERNS_MAX)
		return refuse(reader, node, "is one pattern too many");
	pattern = pattern_new_ecma(expression, &why);
	if (pattern == NULL) {
		buf_printf(&text, "is not a usable pattern: %.90s", why.text);
		result = refuse(reader, node, buf_terminate(&text));
		buf_fini(&text);
		return result;
	}
	node->link = (uint32_t)schema->pattern_count;
	schema->patterns[schema->pattern_count++] = pattern;
	schema->pattern_bytes += pattern_size(pattern);
	return schema->pattern_bytes <= SCHEMA_PATTERN_BYTES_MAX ?
		       0 :
		       refuse(reader, node, "is one pattern too many");
}

static int add_decoded_pattern(struct reader *reader, struct json_node *node, struct slice quoted)
{
	struct json string = { JSON_STRING, true, quoted };
	struct buf text = { 0 };
	int result = scan_decode_string(string, &text);

	CHECK(result == 0); /* json_tree_read has seen to that */
	result = add_pattern(reader, node, buf_slice(&text));
	buf_fini(&text);
	return result;
}

static int read_pattern(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_STRING ? add_decoded_pattern(reader, node, node->text) :
					   refuse(reader, node, "is not a pattern");
}

static int read_pattern_map(struct reader *reader, struct json_node *node)
{
	if (read_map(reader, node) < 0)
		return -1;
	JSON_NODE_FOREACH(each, node)
		if (add_decoded_pattern(reader, each,
					slice_of(each->name.p - 1, each->name.n + 2)) < 0)
			return -1;
	return 0;
}

/* ---- references ---- */

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

static bool is_of_another(struct slice id)
{
	return id.n > 2 && id.p[0] == '"' && id.p[1] != '#';
}

/* Inside a schema that has a base of its own, references mean something else. */
static bool is_embedded(const struct json_node *node)
{
	for (; node->up > 0; node -= node->up) {
		const struct json_node *id = json_node_member(node, SLICE_LIT("$id"));

		if (id != NULL && id->type == JSON_STRING && is_of_another(id->text))
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
static struct json_node *find_by_pointer(struct reader *reader, struct slice pointer)
{
	struct json_node *node = reader->schema->tree.nodes;

	while (node != NULL && pointer.p != NULL) {
		reader->searched += node->count + 1;
		node = find_step(node, slice_cut(&pointer, '/'));
	}
	return node;
}

/* Of a name that stands once; of two nobody knows which is meant. */
static struct json_node *find_by_anchor(struct reader *reader, struct slice fragment)
{
	struct json_tree *tree = &reader->schema->tree;
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
	reader->searched += tree->count;
	buf_fini(&plain);
	buf_fini(&as_id);
	return count == 1 ? found : NULL;
}

/* A fragment, with its '#'. */
static struct json_node *find_target(struct reader *reader, struct slice fragment)
{
	if (fragment.n == 1)
		return reader->schema->tree.nodes;
	if (fragment.p[1] == '/')
		return find_by_pointer(reader, slice_of(fragment.p + 2, fragment.n - 2));
	return find_by_anchor(reader, fragment);
}

static int read_reference(struct reader *reader, struct json_node *node)
{
	struct slice quoted = node->text;
	struct buf fragment = { 0 };
	struct buf text = { 0 };
	struct json_node *target;

	if (node->type != JSON_STRING || is_of_another(quoted))
		return refuse(reader, node, "leads to another document");
	CHECK(scan_decode_string((struct json){ JSON_STRING, true, quoted }, &text) == 0);
	append_unescaped(&fragment, buf_slice(&text));
	if (fragment.len == 0)
		buf_append_char(&fragment, '#');
	target = find_target(reader, buf_slice(&fragment));
	buf_fini(&fragment);
	buf_fini(&text);
	if (reader->searched > SEARCH_MAX)
		return refuse(reader, node, "is one reference too many");
	if (target == NULL)
		return refuse(reader, node, "leads nowhere");
	if (is_embedded(target))
		return refuse(reader, node, "leads into a schema with an $id of its own");
	node->link = (uint32_t)(target - reader->schema->tree.nodes);
	return read_schema(reader, target);
}

/* ---- what a schema says of itself ---- */

static int read_dialect(struct reader *reader, struct json_node *node)
{
	return slice_is_equal(node->text, reader->dialect) ?
		       0 :
		       refuse(reader, node, "is not the dialect of the root");
}

static int read_id(struct reader *reader, struct json_node *node)
{
	return (node - node->up)->up == 0 || node->type != JSON_STRING ||
			       !is_of_another(node->text) ?
		       0 :
		       refuse(reader, node, "is a keyword that is not supported here");
}

/* ---- schemas ---- */

struct keyword {
	struct slice name;
	enum schema_keyword mark;
	keyword_read_fn *read;
};

/* In the order of their bytes. */
static const struct keyword keywords[] = {
	{ SLICE("$dynamicRef"), KEYWORD_NONE, read_unsupported },
	{ SLICE("$id"), KEYWORD_NONE, read_id },
	{ SLICE("$recursiveRef"), KEYWORD_NONE, read_unsupported },
	{ SLICE("$ref"), KEYWORD_REF, read_reference },
	{ SLICE("$schema"), KEYWORD_NONE, read_dialect },
	{ SLICE("$vocabulary"), KEYWORD_NONE, read_unsupported },
	{ SLICE("additionalItems"), KEYWORD_ADDITIONAL_ITEMS, read_schema },
	{ SLICE("additionalProperties"), KEYWORD_ADDITIONAL_PROPERTIES, read_schema },
	{ SLICE("allOf"), KEYWORD_ALL_OF, read_schemas },
	{ SLICE("anyOf"), KEYWORD_ANY_OF, read_schemas },
	{ SLICE("const"), KEYWORD_CONST, read_any },
	{ SLICE("contains"), KEYWORD_CONTAINS, read_schema },
	{ SLICE("dependencies"), KEYWORD_DEPENDENCIES, read_dependencies },
	{ SLICE("dependentRequired"), KEYWORD_DEPENDENT_REQUIRED, read_name_lists },
	{ SLICE("dependentSchemas"), KEYWORD_DEPENDENT_SCHEMAS, read_map },
	{ SLICE("else"), KEYWORD_ELSE, read_schema },
	{ SLICE("enum"), KEYWORD_ENUM, read_list },
	{ SLICE("exclusiveMaximum"), KEYWORD_EXCLUSIVE_MAXIMUM, read_number },
	{ SLICE("exclusiveMinimum"), KEYWORD_EXCLUSIVE_MINIMUM, read_number },
	{ SLICE("if"), KEYWORD_IF, read_schema },
	{ SLICE("items"), KEYWORD_ITEMS, read_schema_or_list },
	{ SLICE("maxContains"), KEYWORD_MAX_CONTAINS, read_count },
	{ SLICE("maxItems"), KEYWORD_MAX_ITEMS, read_count },
	{ SLICE("maxLength"), KEYWORD_MAX_LENGTH, read_count },
	{ SLICE("maxProperties"), KEYWORD_MAX_PROPERTIES, read_count },
	{ SLICE("maximum"), KEYWORD_MAXIMUM, read_number },
	{ SLICE("minContains"), KEYWORD_MIN_CONTAINS, read_count },
	{ SLICE("minItems"), KEYWORD_MIN_ITEMS, read_count },
	{ SLICE("minLength"), KEYWORD_MIN_LENGTH, read_count },
	{ SLICE("minProperties"), KEYWORD_MIN_PROPERTIES, read_count },
	{ SLICE("minimum"), KEYWORD_MINIMUM, read_number },
	{ SLICE("multipleOf"), KEYWORD_MULTIPLE_OF, read_divisor },
	{ SLICE("not"), KEYWORD_NOT, read_schema },
	{ SLICE("oneOf"), KEYWORD_ONE_OF, read_schemas },
	{ SLICE("pattern"), KEYWORD_PATTERN, read_pattern },
	{ SLICE("patternProperties"), KEYWORD_PATTERN_PROPERTIES, read_pattern_map },
	{ SLICE("prefixItems"), KEYWORD_PREFIX_ITEMS, read_schemas },
	{ SLICE("properties"), KEYWORD_PROPERTIES, read_map },
	{ SLICE("propertyNames"), KEYWORD_PROPERTY_NAMES, read_schema },
	{ SLICE("required"), KEYWORD_REQUIRED, read_names },
	{ SLICE("then"), KEYWORD_THEN, read_schema },
	{ SLICE("type"), KEYWORD_TYPE, read_type },
	{ SLICE("unevaluatedItems"), KEYWORD_UNEVALUATED_ITEMS, read_schema },
	{ SLICE("unevaluatedProperties"), KEYWORD_UNEVALUATED_PROPERTIES, read_schema },
	{ SLICE("uniqueItems"), KEYWORD_UNIQUE_ITEMS, read_switch },
};

static int compare_names(const void *wanted, const void *item)
{
	const struct slice *a = wanted;
	const struct slice *b = &((const struct keyword *)item)->name;
	int order = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);

	return order != 0 ? order : (a->n > b->n) - (a->n < b->n);
}

static int read_member(struct reader *reader, struct json_node *member)
{
	const struct keyword *keyword = NULL;

	if (member->name.n > 0)
		keyword = bsearch(&member->name, keywords, ARRAY_LEN(keywords), sizeof(*keywords),
				  compare_names);
	if (keyword == NULL)
		return 0;
	member->mark = (unsigned char)keyword->mark;
	return keyword->read(reader, member);
}

static int read_members(struct reader *reader, struct json_node *node)
{
	struct json_node *reference = NULL;

	if (reader->schema->ignores_beside_ref)
		reference = json_node_member(node, SLICE_LIT("$ref"));
	if (reference != NULL)
		return read_member(reader, reference);
	return read_each(reader, node, read_member);
}

static int read_schema(struct reader *reader, struct json_node *node)
{
	int result;

	if (node->type == JSON_TRUE || node->type == JSON_FALSE || node->is_marked)
		return 0;
	if (node->type != JSON_OBJECT)
		return refuse(reader, node, "is not a schema");
	if (reader->depth == SCHEMA_NESTING_MAX)
		return refuse(reader, node, "is nested too deep");
	node->is_marked = true;
	reader->depth++;
	result = read_members(reader, node);
	reader->depth--;
	return result;
}

/* ---- the whole ---- */

static int read_root_dialect(struct reader *reader, struct json_node *root)
{
	static const struct slice newest[] = {
		SLICE("\"https://json-schema.org/draft/2020-12/schema\""),
		SLICE("\"https://json-schema.org/draft/2020-12/schema#\""),
	};
	static const struct slice middle[] = {
		SLICE("\"https://json-schema.org/draft/2019-09/schema\""),
		SLICE("\"https://json-schema.org/draft/2019-09/schema#\""),
	};
	static const struct slice oldest[] = {
		SLICE("\"http://json-schema.org/draft-07/schema\""),
		SLICE("\"http://json-schema.org/draft-07/schema#\""),
		SLICE("\"https://json-schema.org/draft-07/schema\""),
		SLICE("\"https://json-schema.org/draft-07/schema#\""),
	};
	const struct json_node *node = json_node_member(root, SLICE_LIT("$schema"));

	reader->schema->is_contained_evaluated = true;
	if (node == NULL)
		return 0;
	reader->dialect = node->text;
	if (slices_has((struct slices){ newest, ARRAY_LEN(newest) }, node->text))
		return 0;
	reader->schema->is_contained_evaluated = false;
	if (slices_has((struct slices){ middle, ARRAY_LEN(middle) }, node->text))
		return 0;
	reader->schema->ignores_beside_ref = true;
	return slices_has((struct slices){ oldest, ARRAY_LEN(oldest) }, node->text) ?
		       0 :
		       refuse(reader, node, "is an unknown dialect");
}

int schema_keywords_read(struct schema *schema, struct slice text, struct error *err)
{
	static const struct json_tree_limits limits = { SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX };
	struct reader reader = { .schema = schema, .err = err };
	const char *why = text.n <= SCHEMA_BYTES_MAX ?
				  json_tree_read(&schema->tree, text, &limits) :
				  "it is too long";

	if (why != NULL)
		return error_set(err, ERROR_INVALID, "%s", why);
	schema->patterns = mem_zalloc(SCHEMA_PATTERNS_MAX * sizeof(struct pattern *));
	if (read_root_dialect(&reader, schema->tree.nodes) < 0)
		return -1;
	return read_schema(&reader, schema->tree.nodes);
}
