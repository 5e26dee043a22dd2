/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schema is read once: which member is which keyword, with valid values, its patterns compiled
 * and its references resolved. Read is what a check can reach from the root: definitions when
 * something refers to them.
 *
 * A check walks over schema and value together. Where alternatives are tried, nothing is noted;
 * otherwise the first misfit is what is told. Once a walk is over its bounds every answer in it is
 * meaningless, and the check as a whole refuses.
 */
#include "policy/schema.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "policy/pattern.h"

#define WHY_PATH_BYTES 100 /* of a path in a schema that cannot be used */
#define PATH_BYTES 80      /* of one in a misfit */
#define TYPES_TOLD_MAX 7
#define BYTES_PER_STEP 64            /* of texts that are compared */
#define DIGITS_PER_STEP 4            /* of a number that is divided */
#define SEARCH_MAX (2 * 1000 * 1000) /* nodes that are looked at, for all references of a schema */
#define STEPS_PER_ELEMENT 4          /* of those that are sorted */

/* Types as bits: 1 << enum json_type, with true for both booleans; and this one. */
#define TYPE_INTEGER (1u << 16)

/*
 * `mark` of its nodes is the row of the keyword in the table, is_marked says that the node was read
 * as a schema, and `link` is: for $ref, the number of the target node; for pattern and each member
 * of patternProperties, the number of its compiled pattern; for a limit on a count, the value; for
 * type, the types. A node is used as only one of these, because their values have different types.
 */
struct schema {
	struct json_tree tree;
	struct pattern **patterns;
	size_t pattern_count;
	size_t pattern_bytes;
	bool ignores_beside_ref; /* draft-07: $ref replaces its whole schema */
};

struct reader {
	struct schema *schema;
	struct error *err;
	size_t depth;
	size_t searched; /* for references, of SEARCH_MAX */
	struct slice dialect;
};

struct walk {
	const struct schema *schema;
	size_t steps;
	size_t steps_max;
	size_t depth;
	unsigned int trials; /* alternatives around: misfits inside them are not noted */
	struct pattern_work work;
	struct buf text;
	const char *over; /* why the check was given up; NULL: it was not */
	/* The misfit that was noted: */
	const struct json_node *keyword;
	const struct json_node *value;
	struct slice missing; /* the name of the missing member, in canonical form */
};

typedef int keyword_read_fn(struct reader *reader, struct json_node *node);
/* Whether the value fits. Of what does not, the keyword is noted unless something inside it was. */
typedef bool keyword_check_fn(struct walk *walk, const struct json_node *keyword,
			      const struct json_node *value);

static keyword_read_fn schema_read_schema;
static keyword_check_fn schema_fits;
static bool is_in_order(const struct json_node *keyword, int order);

/* ==== reading ==== */

static int schema_refuse(struct reader *reader, const struct json_node *node, const char *why)
{
	at_end(buf_fini) struct buf path = { 0 };

	json_node_append_path(&path, node, WHY_PATH_BYTES);
	error_set(reader->err, ERROR_INVALID, "%s %s", path.len > 0 ? buf_terminate(&path) : "/",
		  why);
	return -1;
}

static int schema_expect(struct reader *reader, const struct json_node *node, bool is_right,
			 const char *why_not)
{
	return is_right ? 0 : schema_refuse(reader, node, why_not);
}

/* ---- values of keywords ---- */

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
		       read_each(reader, node, schema_read_schema) :
		       schema_refuse(reader, node, "is not a non-empty list of schemas");
}

/* A list: as it was until 2019-09. */
static int schema_read_items(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_ARRAY ? read_each(reader, node, schema_read_schema) :
					  schema_read_schema(reader, node);
}

static int read_map(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_OBJECT ?
		       read_each(reader, node, schema_read_schema) :
		       schema_refuse(reader, node, "is not an object of schemas");
}

static int schema_read_name(struct reader *reader, struct json_node *node)
{
	return schema_expect(reader, node, node->type == JSON_STRING, "is not a name");
}

static int read_names(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_ARRAY ? read_each(reader, node, schema_read_name) :
					  schema_refuse(reader, node, "is not a list of names");
}

static int read_list(struct reader *reader, struct json_node *node)
{
	return schema_expect(reader, node, node->type == JSON_ARRAY, "is not a list");
}

static int schema_read_number(struct reader *reader, struct json_node *node)
{
	return schema_expect(reader, node, node->type == JSON_NUMBER, "is not a number");
}

static int read_divisor(struct reader *reader, struct json_node *node)
{
	return schema_expect(reader, node,
			     node->type == JSON_NUMBER && decimal_is_divisor(node->text),
			     "is not a divisor of up to 9 digits");
}

static int read_count(struct reader *reader, struct json_node *node)
{
	return schema_expect(reader, node,
			     node->type == JSON_NUMBER && decimal_count(node->text, &node->link),
			     "is not a count");
}

static int read_switch(struct reader *reader, struct json_node *node)
{
	return schema_expect(reader, node, node->type == JSON_TRUE || node->type == JSON_FALSE,
			     "is neither true nor false");
}

static int read_unsupported(struct reader *reader, struct json_node *node)
{
	return schema_refuse(reader, node, "is a keyword that is not supported here");
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
		{ SLICE("\"integer\""), TYPE_INTEGER },
		{ SLICE("\"null\""), 1u << JSON_NULL },
		{ SLICE("\"number\""), 1u << JSON_NUMBER | TYPE_INTEGER },
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
				return schema_refuse(reader, each, "is not a type");
			node->link |= bits;
		}
	}
	return node->link > 0 ? 0 : schema_refuse(reader, node, "is not a type");
}

/* ---- patterns ---- */

static int add_pattern(struct reader *reader, struct json_node *node, struct slice expression)
{
	struct schema *schema = reader->schema;
	struct error why;
	struct pattern *pattern;
	at_end(buf_fini) struct buf text = { 0 };

	if (schema->pattern_count == SCHEMA_PATTERNS_MAX)
		return schema_refuse(reader, node, "is one pattern too many");
	pattern = pattern_new_ecma(expression, &why);
	if (pattern == NULL) {
		buf_printf(&text, "is not a usable pattern: %.90s", why.text);
		return schema_refuse(reader, node, buf_terminate(&text));
	}
	node->link = (uint32_t)schema->pattern_count;
	schema->patterns[schema->pattern_count++] = pattern;
	schema->pattern_bytes += pattern_size(pattern);
	return schema->pattern_bytes <= SCHEMA_PATTERN_BYTES_MAX ?
		       0 :
		       schema_refuse(reader, node, "is one pattern too many");
}

static int add_decoded_pattern(struct reader *reader, struct json_node *node, struct slice quoted)
{
	struct json string = { JSON_STRING, true, quoted };
	at_end(buf_fini) struct buf text = { 0 };
	int result = scan_decode_string(string, &text);

	CHECK(result == 0); /* json_tree_read has seen to that */
	return add_pattern(reader, node, buf_slice(&text));
}

static int read_pattern(struct reader *reader, struct json_node *node)
{
	return node->type == JSON_STRING ? add_decoded_pattern(reader, node, node->text) :
					   schema_refuse(reader, node, "is not a pattern");
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

/* ---- references, and what a schema says of itself ---- */

/*
 * What a $ref refers to: the whole schema, a place in it (a JSON pointer), or a name in it ($anchor, $dynamicAnchor, or as in draft-07 an
 * $id that is a fragment). No other document is fetched. BACK-SEC-02
 */

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

/* Whether an $id or $ref, as written, is of another document. */
static bool is_foreign(struct slice id)
{
	return id.n > 2 && id.p[0] == '"' && id.p[1] != '#';
}

/* Inside a schema that has a base of its own, references mean something else. */
static bool is_embedded(const struct json_node *node)
{
	for (; node->up > 0; node -= node->up) {
		const struct json_node *id = json_node_member(node, SLICE_LIT("$id"));

		if (id != NULL && id->type == JSON_STRING && is_foreign(id->text))
			return true;
	}
	return false;
}

/* RFC 6901 §4 */
static struct json_node *find_step(struct json_node *node, struct slice step)
{
	struct json_node *each = json_node_first(node);
	at_end(buf_fini) struct buf name = { 0 }, spelled = { 0 };
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
	return json_node_member(node, slice_of(spelled.data + 1, spelled.len - 2));
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
	at_end(buf_fini) struct buf plain = { 0 }, as_id = { 0 };
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

/*
 * The node that a $ref leads to. NULL: none that can be used; *why_r is then a fixed text. A
 * reference costs as much as is looked through for it, and all of a schema share one limit.
 */
static struct json_node *find_referred(const struct json_tree *tree,
				       const struct json_node *reference, size_t *searched,
				       const char **why_r)
{
	struct json string = { JSON_STRING, true, reference->text };
	at_end(buf_fini) struct buf fragment = { 0 }, text = { 0 };
	struct json_node *target;

	*why_r = "leads to another document";
	if (reference->type != JSON_STRING || is_foreign(reference->text))
		return NULL;
	CHECK(scan_decode_string(string, &text) == 0); /* json_tree_read has seen to that */
	append_unescaped(&fragment, buf_slice(&text));
	if (fragment.len == 0)
		buf_append_char(&fragment, '#');
	target = find_target(tree, buf_slice(&fragment), searched);
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

static int read_reference(struct reader *reader, struct json_node *node)
{
	struct json_tree *tree = &reader->schema->tree;
	const char *why;
	struct json_node *target = find_referred(tree, node, &reader->searched, &why);

	if (target == NULL)
		return schema_refuse(reader, node, why);
	node->link = (uint32_t)(target - tree->nodes);
	return schema_read_schema(reader, target);
}

static int read_dialect(struct reader *reader, struct json_node *node)
{
	return schema_expect(reader, node, slice_is_equal(node->text, reader->dialect),
			     "is not the dialect of the root");
}

static int read_id(struct reader *reader, struct json_node *node)
{
	bool is_inner = (node - node->up)->up > 0;

	return schema_expect(reader, node,
			     !is_inner || node->type != JSON_STRING || !is_foreign(node->text),
			     "is a keyword that is not supported here");
}

/* ==== checking ==== */

/* Gives up: the result cannot be determined. */
static bool schema_give_up(struct walk *walk, const char *why)
{
	if (walk->over == NULL)
		walk->over = why;
	return false;
}

/* Returns false if the steps are used up. */
static bool spend(struct walk *walk, size_t steps)
{
	walk->steps += steps;
	if (walk->steps > walk->steps_max)
		schema_give_up(walk, "it takes too many steps");
	return walk->over == NULL;
}

static bool is_noting(const struct walk *walk)
{
	return walk->trials == 0 && walk->keyword == NULL;
}

/* Returns false, for callers to return. */
static bool schema_note(struct walk *walk, const struct json_node *keyword,
			const struct json_node *value)
{
	if (is_noting(walk)) {
		walk->keyword = keyword;
		walk->value = value;
	}
	return false;
}

static bool fits_quietly(struct walk *walk, const struct json_node *schema,
			 const struct json_node *value)
{
	bool result;

	walk->trials++;
	result = schema_fits(walk, schema, value);
	walk->trials--;
	return result;
}

static const struct json_node *schema_schema_of(const struct json_node *keyword)
{
	return keyword - keyword->up;
}

static const struct json_node *schema_find_member(struct walk *walk, const struct json_node *object,
						  struct slice name)
{
	return spend(walk, 1 + object->count / 4) ? json_node_member(object, name) : NULL;
}

/* Of a string in canonical form. */
static struct slice schema_inside(const struct json_node *string)
{
	return slice_of(string->text.p + 1, string->text.n - 2);
}

static struct slice quoted_name(const struct json_node *member)
{
	return slice_of(member->name.p - 1, member->name.n + 2);
}

/* ---- any value ---- */

static bool check_type(not_used struct walk *walk, const struct json_node *keyword,
		       const struct json_node *value)
{
	unsigned int type = value->type == JSON_FALSE ? JSON_TRUE : value->type;

	if (keyword->link & 1u << type)
		return true;
	return type == JSON_NUMBER && keyword->link & TYPE_INTEGER &&
	       decimal_is_integer(value->text);
}

static bool check_const(struct walk *walk, const struct json_node *keyword,
			const struct json_node *value)
{
	return keyword->text.n == value->text.n && spend(walk, value->text.n / BYTES_PER_STEP) &&
	       slice_is_equal(keyword->text, value->text);
}

static bool check_enum(struct walk *walk, const struct json_node *keyword,
		       const struct json_node *value)
{
	JSON_NODE_FOREACH(each, keyword)
		if (!spend(walk, 1) || check_const(walk, each, value))
			return true;
	return false;
}

/* ---- numbers ---- */

/* Minimum and maximum, exclusive ones too. */
static bool check_number(struct walk *walk, const struct json_node *keyword,
			 const struct json_node *value)
{
	spend(walk, value->text.n / BYTES_PER_STEP);
	return is_in_order(keyword, decimal_compare(value->text, keyword->text));
}

static bool check_multiple(struct walk *walk, const struct json_node *keyword,
			   const struct json_node *value)
{
	return spend(walk, value->text.n / DIGITS_PER_STEP) &&
	       decimal_is_multiple(value->text, keyword->text);
}

/* ---- strings ---- */

static struct slice schema_decode(struct walk *walk, struct slice quoted)
{
	struct json string = { JSON_STRING, memchr(quoted.p, '\\', quoted.n) != NULL, quoted };

	spend(walk, quoted.n / BYTES_PER_STEP);
	if (!string.has_escape)
		return slice_of(quoted.p + 1, quoted.n - 2);
	walk->text.len = 0;
	CHECK(scan_decode_string(string, &walk->text) == 0); /* json_tree_read has seen to that */
	return buf_slice(&walk->text);
}

/* In characters. */
static bool check_length(struct walk *walk, const struct json_node *keyword,
			 const struct json_node *value)
{
	struct slice text = schema_decode(walk, value->text);
	size_t count = 0;

	for (size_t i = 0; i < text.n; i++)
		count += ((unsigned char)text.p[i] & 0xC0) != 0x80;
	return is_in_order(keyword, (count > keyword->link) - (count < keyword->link));
}

/* `number`: of the pattern; the text stands between quotes. */
static bool matches(struct walk *walk, uint32_t number, struct slice quoted)
{
	CHECK(number < walk->schema->pattern_count);
	if (!spend(walk, 1))
		return false;
	switch (pattern_find(walk->schema->patterns[number], schema_decode(walk, quoted), 0,
			     &walk->work, NULL)) {
	case PATTERN_ABSENT:
		return false;
	case PATTERN_FOUND:
		return true;
	case PATTERN_TOO_HARD:
		break;
	}
	return schema_give_up(walk, "a pattern takes too long");
}

static bool check_pattern(struct walk *walk, const struct json_node *keyword,
			  const struct json_node *value)
{
	return matches(walk, keyword->link, value->text);
}

/* ---- arrays ---- */

/* Of members, too. */
static bool check_count(not_used struct walk *walk, const struct json_node *keyword,
			const struct json_node *value)
{
	return is_in_order(keyword,
			   (value->count > keyword->link) - (value->count < keyword->link));
}

static int schema_compare_texts(const void *left, const void *right)
{
	const struct slice *a = left;
	const struct slice *b = right;

	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	return memcmp(a->p, b->p, a->n);
}

/* Equal ones are neighbours when they are sorted. */
static bool check_unique(struct walk *walk, const struct json_node *keyword,
			 const struct json_node *value)
{
	bool is_unique = true;
	struct slice *texts;
	size_t count = 0;

	if (keyword->type != JSON_TRUE || value->count < 2 ||
	    !spend(walk, (size_t)value->count * STEPS_PER_ELEMENT + value->text.n / BYTES_PER_STEP))
		return true;
	texts = mem_alloc(value->count * sizeof(*texts));
	JSON_NODE_FOREACH(each, value)
		texts[count++] = each->text;
	qsort(texts, count, sizeof(*texts), schema_compare_texts);
	for (size_t i = 1; i < count && is_unique; i++)
		is_unique = !slice_is_equal(texts[i - 1], texts[i]);
	free(texts);
	return is_unique;
}

/* Of as many as both lists have. */
static bool check_places(struct walk *walk, const struct json_node *schemas,
			 const struct json_node *value)
{
	const struct json_node *each = json_node_first(schemas);
	const struct json_node *item = json_node_first(value);

	for (uint32_t i = 0; i < schemas->count && i < value->count; i++) {
		if (!schema_fits(walk, each, item))
			return false;
		each = json_node_next(each);
		item = json_node_next(item);
	}
	return true;
}

/* Those behind the first ones. */
static bool check_rest(struct walk *walk, const struct json_node *rest,
		       const struct json_node *value, uint32_t first)
{
	uint32_t index = 0;

	JSON_NODE_FOREACH(item, value)
		if (index++ >= first && !schema_fits(walk, rest, item))
			return false;
	return true;
}

static bool check_items(struct walk *walk, const struct json_node *keyword,
			const struct json_node *value)
{
	const struct json_node *prefix;

	if (keyword->type == JSON_ARRAY)
		return check_places(walk, keyword, value);
	prefix = json_node_member(schema_schema_of(keyword), SLICE_LIT("prefixItems"));
	return check_rest(walk, keyword, value, prefix != NULL ? prefix->count : 0);
}

static bool check_additional_items(struct walk *walk, const struct json_node *keyword,
				   const struct json_node *value)
{
	const struct json_node *items =
		json_node_member(schema_schema_of(keyword), SLICE_LIT("items"));

	return items == NULL || items->type != JSON_ARRAY ||
	       check_rest(walk, keyword, value, items->count);
}

static bool check_contains(struct walk *walk, const struct json_node *keyword,
			   const struct json_node *value)
{
	JSON_NODE_FOREACH(item, value)
		if (fits_quietly(walk, keyword, item))
			return true;
	return false;
}

/* ---- objects ---- */

static bool schema_check_required(struct walk *walk, const struct json_node *keyword,
				  const struct json_node *value)
{
	JSON_NODE_FOREACH(each, keyword) {
		if (schema_find_member(walk, value, schema_inside(each)) != NULL)
			continue;
		if (is_noting(walk))
			walk->missing = schema_inside(each);
		return false;
	}
	return true;
}

static bool check_properties(struct walk *walk, const struct json_node *keyword,
			     const struct json_node *value)
{
	JSON_NODE_FOREACH(each, keyword) {
		const struct json_node *member = schema_find_member(walk, value, each->name);

		if (member != NULL && !schema_fits(walk, each, member))
			return false;
	}
	return true;
}

static bool check_pattern_properties(struct walk *walk, const struct json_node *keyword,
				     const struct json_node *value)
{
	JSON_NODE_FOREACH(member, value) {
		JSON_NODE_FOREACH(each, keyword) {
			bool is_for = matches(walk, each->link, quoted_name(member));

			if (walk->over != NULL || (is_for && !schema_fits(walk, each, member)))
				return false;
		}
	}
	return true;
}

/* Whether properties or patternProperties of this very schema say something of a member. */
static bool schema_is_named(struct walk *walk, const struct json_node *schema,
			    const struct json_node *member)
{
	const struct json_node *properties = json_node_member(schema, SLICE_LIT("properties"));
	const struct json_node *patterns = json_node_member(schema, SLICE_LIT("patternProperties"));

	if (properties != NULL && schema_find_member(walk, properties, member->name) != NULL)
		return true;
	if (patterns == NULL)
		return false;
	JSON_NODE_FOREACH(each, patterns)
		if (matches(walk, each->link, quoted_name(member)))
			return true;
	return false;
}

static bool check_additional_properties(struct walk *walk, const struct json_node *keyword,
					const struct json_node *value)
{
	const struct json_node *schema = schema_schema_of(keyword);

	if (keyword->type == JSON_TRUE)
		return true;
	JSON_NODE_FOREACH(member, value) {
		if (!spend(walk, 1 + schema->count / 4))
			return false;
		if (!schema_is_named(walk, schema, member) && !schema_fits(walk, keyword, member))
			return false;
	}
	return true;
}

static bool check_property_names(struct walk *walk, const struct json_node *keyword,
				 const struct json_node *value)
{
	JSON_NODE_FOREACH(member, value) {
		const struct json_node name = { .type = JSON_STRING,
						.span = 1,
						.text = quoted_name(member) };

		if (!fits_quietly(walk, keyword, &name))
			return schema_note(walk, keyword, member);
	}
	return true;
}

/* ---- schemas of the same value ---- */

static bool check_ref(struct walk *walk, const struct json_node *keyword,
		      const struct json_node *value)
{
	return schema_fits(walk, &walk->schema->tree.nodes[keyword->link], value);
}

static bool check_all(struct walk *walk, const struct json_node *keyword,
		      const struct json_node *value)
{
	JSON_NODE_FOREACH(each, keyword)
		if (!schema_fits(walk, each, value))
			return false;
	return true;
}

/* Counted up to `enough`. */
static unsigned int count_fitting(struct walk *walk, const struct json_node *schemas,
				  const struct json_node *value, unsigned int enough)
{
	unsigned int count = 0;

	JSON_NODE_FOREACH(each, schemas)
		count += count < enough && fits_quietly(walk, each, value);
	return count;
}

static bool check_any(struct walk *walk, const struct json_node *keyword,
		      const struct json_node *value)
{
	return count_fitting(walk, keyword, value, 1) == 1;
}

static bool check_one(struct walk *walk, const struct json_node *keyword,
		      const struct json_node *value)
{
	return count_fitting(walk, keyword, value, 2) == 1;
}

static bool check_not(struct walk *walk, const struct json_node *keyword,
		      const struct json_node *value)
{
	return !fits_quietly(walk, keyword, value);
}

static bool check_if(struct walk *walk, const struct json_node *keyword,
		     const struct json_node *value)
{
	struct slice name =
		fits_quietly(walk, keyword, value) ? SLICE_LIT("then") : SLICE_LIT("else");
	const struct json_node *next = json_node_member(schema_schema_of(keyword), name);

	return next == NULL || schema_fits(walk, next, value);
}

/* ==== keywords ==== */

#define ANY JSON_ABSENT /* applies to every value */
#define LIMIT(name, read, check, applies_to, misfit, orders)         \
	{                                                            \
		SLICE(name), read, check, applies_to, misfit, orders \
	}
#define KEYWORD(name, read, check, applies_to, misfit) \
	LIMIT(name, read, check, applies_to, misfit, 0)
#define LESS 1u
#define EQUAL 2u
#define MORE 4u

struct keyword {
	struct slice name;
	keyword_read_fn *read;   /* NULL: it may have any value */
	keyword_check_fn *check; /* NULL: it restricts nothing by itself */
	enum json_type applies_to;
	const char *misfit;  /* what is said of a value; # is the keyword's number */
	unsigned int orders; /* how a value may compare with its limit */
};

/*
 * In the order of their bytes. A keyword that is known and not checked makes a schema unusable:
 * what it forbids must not pass.
 */
static const struct keyword keywords[] = {
	KEYWORD("$dynamicRef", read_unsupported, NULL, ANY, NULL),
	KEYWORD("$id", read_id, NULL, ANY, NULL),
	KEYWORD("$recursiveRef", read_unsupported, NULL, ANY, NULL),
	KEYWORD("$ref", read_reference, check_ref, ANY, NULL),
	KEYWORD("$schema", read_dialect, NULL, ANY, NULL),
	KEYWORD("$vocabulary", read_unsupported, NULL, ANY, NULL),
	KEYWORD("additionalItems", schema_read_schema, check_additional_items, JSON_ARRAY, NULL),
	KEYWORD("additionalProperties", schema_read_schema, check_additional_properties,
		JSON_OBJECT, NULL),
	KEYWORD("allOf", read_schemas, check_all, ANY, NULL),
	KEYWORD("anyOf", read_schemas, check_any, ANY, "must match one of the alternatives"),
	KEYWORD("const", NULL, check_const, ANY, "must be the one allowed value"),
	KEYWORD("contains", schema_read_schema, check_contains, JSON_ARRAY,
		"has too few elements of the required kind"),
	KEYWORD("dependencies", read_unsupported, NULL, ANY, NULL),
	KEYWORD("dependentRequired", read_unsupported, NULL, ANY, NULL),
	KEYWORD("dependentSchemas", read_unsupported, NULL, ANY, NULL),
	KEYWORD("else", schema_read_schema, NULL, ANY, NULL),
	KEYWORD("enum", read_list, check_enum, ANY, "must be one of the allowed values"),
	LIMIT("exclusiveMaximum", schema_read_number, check_number, JSON_NUMBER, "is too large",
	      LESS),
	LIMIT("exclusiveMinimum", schema_read_number, check_number, JSON_NUMBER, "is too small",
	      MORE),
	KEYWORD("if", schema_read_schema, check_if, ANY, NULL),
	KEYWORD("items", schema_read_items, check_items, JSON_ARRAY, NULL),
	KEYWORD("maxContains", read_unsupported, NULL, ANY, NULL),
	LIMIT("maxItems", read_count, check_count, JSON_ARRAY, "must have at most # elements",
	      LESS | EQUAL),
	LIMIT("maxLength", read_count, check_length, JSON_STRING, "must have at most # characters",
	      LESS | EQUAL),
	LIMIT("maxProperties", read_count, check_count, JSON_OBJECT, "must have at most # members",
	      LESS | EQUAL),
	LIMIT("maximum", schema_read_number, check_number, JSON_NUMBER, "is too large",
	      LESS | EQUAL),
	KEYWORD("minContains", read_unsupported, NULL, ANY, NULL),
	LIMIT("minItems", read_count, check_count, JSON_ARRAY, "must have at least # elements",
	      MORE | EQUAL),
	LIMIT("minLength", read_count, check_length, JSON_STRING, "must have at least # characters",
	      MORE | EQUAL),
	LIMIT("minProperties", read_count, check_count, JSON_OBJECT, "must have at least # members",
	      MORE | EQUAL),
	LIMIT("minimum", schema_read_number, check_number, JSON_NUMBER, "is too small",
	      MORE | EQUAL),
	KEYWORD("multipleOf", read_divisor, check_multiple, JSON_NUMBER,
		"must be a multiple of the given number"),
	KEYWORD("not", schema_read_schema, check_not, ANY, "must not be of the excluded kind"),
	KEYWORD("oneOf", read_schemas, check_one, ANY,
		"must match exactly one of the alternatives"),
	KEYWORD("pattern", read_pattern, check_pattern, JSON_STRING, "must match the pattern"),
	KEYWORD("patternProperties", read_pattern_map, check_pattern_properties, JSON_OBJECT, NULL),
	KEYWORD("prefixItems", read_schemas, check_places, JSON_ARRAY, NULL),
	KEYWORD("properties", read_map, check_properties, JSON_OBJECT, NULL),
	KEYWORD("propertyNames", schema_read_schema, check_property_names, JSON_OBJECT,
		"must have another name"),
	KEYWORD("required", read_names, schema_check_required, JSON_OBJECT, NULL),
	KEYWORD("then", schema_read_schema, NULL, ANY, NULL),
	KEYWORD("type", read_type, check_type, ANY, NULL),
	KEYWORD("unevaluatedItems", read_unsupported, NULL, ANY, NULL),
	KEYWORD("unevaluatedProperties", read_unsupported, NULL, ANY, NULL),
	KEYWORD("uniqueItems", read_switch, check_unique, JSON_ARRAY,
		"must have no duplicate elements"),
};

static int compare_names(const void *wanted, const void *item)
{
	const struct slice *a = wanted;
	const struct slice *b = &((const struct keyword *)item)->name;
	int order = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);

	return order != 0 ? order : (a->n > b->n) - (a->n < b->n);
}

static int schema_read_member(struct reader *reader, struct json_node *member)
{
	const struct keyword *keyword = NULL;

	if (member->name.n > 0)
		keyword = bsearch(&member->name, keywords, ARRAY_LEN(keywords), sizeof(*keywords),
				  compare_names);
	if (keyword == NULL)
		return 0;
	member->mark = (unsigned char)(keyword - keywords + 1);
	return keyword->read != NULL ? keyword->read(reader, member) : 0;
}

/* NULL: none. */
static const struct keyword *keyword_of(const struct json_node *member)
{
	return member->mark > 0 ? &keywords[member->mark - 1] : NULL;
}

static bool is_in_order(const struct json_node *keyword, int order)
{
	unsigned int bit = order < 0 ? LESS : order > 0 ? MORE : EQUAL;

	return (keyword_of(keyword)->orders & bit) != 0;
}

/* ---- a schema ---- */

static int read_members(struct reader *reader, struct json_node *node)
{
	struct json_node *reference = NULL;

	if (reader->schema->ignores_beside_ref)
		reference = json_node_member(node, SLICE_LIT("$ref"));
	if (reference != NULL)
		return schema_read_member(reader, reference);
	return read_each(reader, node, schema_read_member);
}

static int schema_read_schema(struct reader *reader, struct json_node *node)
{
	int result;

	if (node->type == JSON_TRUE || node->type == JSON_FALSE || node->is_marked)
		return 0;
	if (node->type != JSON_OBJECT)
		return schema_refuse(reader, node, "is not a schema");
	if (reader->depth == SCHEMA_NESTING_MAX)
		return schema_refuse(reader, node, "is nested too deep");
	node->is_marked = true;
	reader->depth++;
	result = read_members(reader, node);
	reader->depth--;
	return result;
}

static bool fits_keyword(struct walk *walk, const struct json_node *member,
			 const struct json_node *value)
{
	const struct keyword *keyword = keyword_of(member);

	if (keyword == NULL || keyword->check == NULL ||
	    (keyword->applies_to != ANY && keyword->applies_to != value->type))
		return true;
	return keyword->check(walk, member, value) || schema_note(walk, member, value);
}

static bool schema_fits(struct walk *walk, const struct json_node *schema,
			const struct json_node *value)
{
	bool result = true;

	if (!spend(walk, 1 + schema->count))
		return false;
	if (schema->type != JSON_OBJECT)
		return schema->type == JSON_TRUE || schema_note(walk, schema, value);
	CHECK(schema->is_marked);
	if (walk->depth == SCHEMA_NESTING_MAX)
		return schema_give_up(walk, "its schema is nested too deeply");
	walk->depth++;
	JSON_NODE_FOREACH(each, schema)
		result = result && fits_keyword(walk, each, value);
	walk->depth--;
	return result;
}

/* ---- what is told ---- */

/* The names of types are known ones. */
static void append_types(struct buf *out, const struct json_node *keyword)
{
	uint32_t told = 0;

	buf_append_str(out, "must be of type ");
	if (keyword->type == JSON_STRING)
		buf_append_slice(out, schema_inside(keyword));
	JSON_NODE_FOREACH(each, keyword) {
		if (told++ == TYPES_TOLD_MAX)
			break;
		buf_append_str(out, told > 1 ? " or " : "");
		buf_append_slice(out, schema_inside(each));
	}
}

static void append_misfit(struct buf *out, const struct walk *walk)
{
	const struct keyword *keyword = keyword_of(walk->keyword);

	if (keyword != NULL && keyword->read == read_type) {
		append_types(out, walk->keyword);
	} else if (walk->missing.p != NULL) {
		const struct json_node pair[] = { { .type = JSON_OBJECT },
						  { .up = 1, .name = walk->missing } };
		at_end(buf_fini) struct buf path = { 0 };

		json_node_append_path(&path, &pair[1], PATH_BYTES);
		buf_consume(&path, 1);
		buf_append_str(out, "must have the member ");
		buf_append_slice(out, buf_slice(&path));
	} else if (keyword == NULL || keyword->misfit == NULL) {
		buf_append_str(out, "must not be present");
	} else {
		struct slice rest = slice_str(keyword->misfit);

		buf_append_slice(out, slice_cut(&rest, '#'));
		if (rest.p != NULL) {
			buf_append_u64(out, walk->keyword->link);
			buf_append_slice(out, rest);
		}
	}
}

static int schema_tell(const struct walk *walk, struct error *err)
{
	at_end(buf_fini) struct buf text = { 0 };

	if (walk->over != NULL)
		return error_set(err, ERROR_LIMIT, " cannot be checked: %s", walk->over);
	CHECK(walk->keyword != NULL);
	json_node_append_path(&text, walk->value, PATH_BYTES);
	buf_append_char(&text, ' ');
	append_misfit(&text, walk);
	buf_append_str(&text, " (schema: ");
	json_node_append_path(&text, walk->keyword, PATH_BYTES);
	buf_append_char(&text, ')');
	error_set(err, ERROR_INVALID, "%s", buf_terminate(&text));
	return -1;
}

/* ==== the interface ==== */

static int read_root_dialect(struct reader *reader, struct json_node *root)
{
	static const struct slice newer = SLICE("https://json-schema.org/draft/2020-12/schema "
						"https://json-schema.org/draft/2019-09/schema");
	static const struct slice draft_7 = SLICE("http://json-schema.org/draft-07/schema "
						  "https://json-schema.org/draft-07/schema");
	const struct json_node *node = json_node_member(root, SLICE_LIT("$schema"));

	struct slice name;

	if (node == NULL)
		return 0;
	reader->dialect = node->text;
	name = node->type == JSON_STRING ? schema_inside(node) : slice_of("", 0);
	if (name.n > 0 && name.p[name.n - 1] == '#')
		name.n--;
	reader->schema->ignores_beside_ref = slice_has_part(draft_7, ' ', name);
	return schema_expect(reader, node,
			     reader->schema->ignores_beside_ref || slice_has_part(newer, ' ', name),
			     "is an unknown dialect");
}

static int read_root(struct schema *schema, struct slice text, struct error *err)
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
	return schema_read_schema(&reader, schema->tree.nodes);
}

struct schema *schema_new(struct slice text, struct error *err)
{
	struct schema *schema = mem_zalloc(sizeof(*schema));

	if (read_root(schema, text, err) < 0)
		schema_free(&schema);
	return schema;
}

void schema_free(struct schema **schema)
{
	if (*schema == NULL)
		return;
	for (size_t i = 0; i < (*schema)->pattern_count; i++)
		pattern_free(&(*schema)->patterns[i]);
	free((*schema)->patterns);
	json_tree_fini(&(*schema)->tree);
	free(*schema);
	*schema = NULL;
}

size_t schema_size(const struct schema *schema)
{
	return sizeof(*schema) + schema->tree.text.cap +
	       schema->tree.room * sizeof(*schema->tree.nodes) + schema->pattern_bytes;
}

int schema_check(const struct schema *schema, const struct canonical_form *value, size_t shares,
		 struct error *err)
{
	static const struct json_tree_limits limits = { SCAN_DEPTH_MAX, SCHEMA_VALUES_MAX };
	struct walk walk = { .schema = schema,
			     .steps_max = SCHEMA_STEPS_MAX / shares,
			     .work = { .most_ns = PATTERN_WORK_MAX_NS / shares } };
	at_end(json_tree_fini) struct json_tree tree = { .count = 0 };
	const char *why = json_tree_read_form(&tree, value, &limits);
	int result = 0;

	if (why != NULL)
		result = error_set(err, ERROR_LIMIT, " cannot be checked: %s", why);
	else if (!schema_fits(&walk, schema->tree.nodes, tree.nodes) || walk.over != NULL)
		result = schema_tell(&walk, err);
	buf_fini(&walk.text);
	return result;
}
