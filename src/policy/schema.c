/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk over schema and value together. Where alternatives are tried, nothing is noted; otherwise the first misfit is
 * what is told. Once a walk is over its bounds every answer in it is meaningless, and the check as a whole refuses.
 */
#include "policy/schema.h"

#include <stdlib.h>

#include "base/mem.h"
#include "policy/schema_walk.h"

#define PATH_BYTES 80
#define TYPES_TOLD_MAX 7

static bool fits(struct schema_walk *walk, const struct json_node *schema,
		 const struct json_node *value);

/* ---- looking things up ---- */

static bool fits_quietly(struct schema_walk *walk, const struct json_node *schema,
			 const struct json_node *value)
{
	bool result;

	walk->trials++;
	result = fits(walk, schema, value);
	walk->trials--;
	return result;
}

static const struct json_node *find_keyword(const struct json_node *schema,
					    enum schema_keyword mark)
{
	JSON_NODE_FOREACH(each, schema)
		if (each->mark == mark)
			return each;
	return NULL;
}

static const struct json_node *find_member(struct schema_walk *walk, const struct json_node *object,
					   struct slice name)
{
	return schema_walk_spend(walk, 1 + object->count / 4) ? json_node_member(object, name) :
								NULL;
}

/* Of a string in canonical form. */
static struct slice inside(const struct json_node *string)
{
	return slice_of(string->text.p + 1, string->text.n - 2);
}

static struct slice quoted_name(const struct json_node *member)
{
	return slice_of(member->name.p - 1, member->name.n + 2);
}

/* ---- objects ---- */

static bool has_names(struct schema_walk *walk, const struct json_node *names,
		      const struct json_node *keyword, const struct json_node *value)
{
	JSON_NODE_FOREACH(each, names) {
		if (find_member(walk, value, inside(each)) != NULL)
			continue;
		if (walk->trials == 0 && walk->keyword == NULL)
			walk->missing = inside(each);
		return schema_walk_note(walk, keyword, value);
	}
	return true;
}

static bool check_required(struct schema_walk *walk, const struct json_node *schema,
			   const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	return value->type != JSON_OBJECT || has_names(walk, keyword, keyword, value);
}

static bool check_properties(struct schema_walk *walk, const struct json_node *schema,
			     const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	if (value->type != JSON_OBJECT)
		return true;
	JSON_NODE_FOREACH(each, keyword) {
		const struct json_node *member = find_member(walk, value, each->name);

		if (member != NULL && !fits(walk, each, member))
			return false;
	}
	return true;
}

static bool check_pattern_properties(struct schema_walk *walk, const struct json_node *schema,
				     const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	if (value->type != JSON_OBJECT)
		return true;
	JSON_NODE_FOREACH(member, value) {
		JSON_NODE_FOREACH(each, keyword) {
			bool is_for = schema_walk_matches(walk, each->link, quoted_name(member));

			if (walk->over != NULL || (is_for && !fits(walk, each, member)))
				return false;
		}
	}
	return true;
}

/* Whether properties or patternProperties of this very schema say something of a member. */
static bool is_named(struct schema_walk *walk, const struct json_node *schema,
		     const struct json_node *member)
{
	const struct json_node *properties = find_keyword(schema, KEYWORD_PROPERTIES);
	const struct json_node *patterns = find_keyword(schema, KEYWORD_PATTERN_PROPERTIES);

	if (properties != NULL && find_member(walk, properties, member->name) != NULL)
		return true;
	if (patterns == NULL)
		return false;
	JSON_NODE_FOREACH(each, patterns)
		if (schema_walk_matches(walk, each->link, quoted_name(member)))
			return true;
	return false;
}

static bool check_additional_properties(struct schema_walk *walk, const struct json_node *schema,
					const struct json_node *keyword,
					const struct json_node *value)
{
	if (value->type != JSON_OBJECT || keyword->type == JSON_TRUE)
		return true;
	JSON_NODE_FOREACH(member, value) {
		if (!schema_walk_spend(walk, 1 + schema->count / 4))
			return false;
		if (!is_named(walk, schema, member) && !fits(walk, keyword, member))
			return false;
	}
	return true;
}

static bool check_property_names(struct schema_walk *walk, const struct json_node *schema,
				 const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	if (value->type != JSON_OBJECT)
		return true;
	JSON_NODE_FOREACH(member, value) {
		const struct json_node name = { .type = JSON_STRING,
						.span = 1,
						.text = quoted_name(member) };

		if (!fits_quietly(walk, keyword, &name))
			return schema_walk_note(walk, keyword, member);
	}
	return true;
}

/* dependentRequired, dependentSchemas, and dependencies, which is both. */
static bool check_dependent(struct schema_walk *walk, const struct json_node *schema,
			    const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	if (value->type != JSON_OBJECT)
		return true;
	JSON_NODE_FOREACH(each, keyword) {
		bool has_names_only = each->type == JSON_ARRAY;

		if (find_member(walk, value, each->name) == NULL)
			continue;
		if (has_names_only ? !has_names(walk, each, each, value) : !fits(walk, each, value))
			return false;
	}
	return true;
}

/* ---- arrays ---- */

/* Of as many as both lists have. */
static bool check_places(struct schema_walk *walk, const struct json_node *schemas,
			 const struct json_node *value)
{
	const struct json_node *each = json_node_first(schemas);
	const struct json_node *item = json_node_first(value);

	for (uint32_t i = 0; i < schemas->count && i < value->count; i++) {
		if (!fits(walk, each, item))
			return false;
		each = json_node_next(each);
		item = json_node_next(item);
	}
	return true;
}

/* Those behind the first ones. */
static bool check_rest(struct schema_walk *walk, const struct json_node *rest,
		       const struct json_node *value, uint32_t first)
{
	const struct json_node *item = json_node_first(value);

	for (uint32_t i = 0; i < value->count; i++, item = json_node_next(item))
		if (i >= first && !fits(walk, rest, item))
			return false;
	return true;
}

static bool check_prefix_items(struct schema_walk *walk, const struct json_node *schema,
			       const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	return value->type != JSON_ARRAY || check_places(walk, keyword, value);
}

static bool check_items(struct schema_walk *walk, const struct json_node *schema,
			const struct json_node *keyword, const struct json_node *value)
{
	const struct json_node *prefix;

	if (value->type != JSON_ARRAY)
		return true;
	if (keyword->type == JSON_ARRAY) /* as it was until 2019-09 */
		return check_places(walk, keyword, value);
	prefix = find_keyword(schema, KEYWORD_PREFIX_ITEMS);
	return check_rest(walk, keyword, value, prefix != NULL ? prefix->count : 0);
}

static bool check_additional_items(struct schema_walk *walk, const struct json_node *schema,
				   const struct json_node *keyword, const struct json_node *value)
{
	const struct json_node *items = find_keyword(schema, KEYWORD_ITEMS);

	if (value->type != JSON_ARRAY || items == NULL || items->type != JSON_ARRAY)
		return true;
	return check_rest(walk, keyword, value, items->count);
}

static bool check_contains(struct schema_walk *walk, const struct json_node *schema,
			   const struct json_node *keyword, const struct json_node *value)
{
	const struct json_node *least = find_keyword(schema, KEYWORD_MIN_CONTAINS);
	const struct json_node *most = find_keyword(schema, KEYWORD_MAX_CONTAINS);
	uint32_t count = 0;

	if (value->type != JSON_ARRAY)
		return true;
	JSON_NODE_FOREACH(item, value)
		count += fits_quietly(walk, keyword, item);
	if (count < (least != NULL ? least->link : 1))
		return schema_walk_note(walk, keyword, value);
	return most == NULL || count <= most->link || schema_walk_note(walk, most, value);
}

/* ---- schemas of the same value ---- */

static const struct json_node *target_of(const struct schema_walk *walk,
					 const struct json_node *keyword)
{
	return &walk->schema->tree.nodes[keyword->link];
}

static bool check_ref(struct schema_walk *walk, const struct json_node *schema,
		      const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	return fits(walk, target_of(walk, keyword), value);
}

static bool check_all(struct schema_walk *walk, const struct json_node *schema,
		      const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	JSON_NODE_FOREACH(each, keyword)
		if (!fits(walk, each, value))
			return false;
	return true;
}

/* Counted up to `enough`. */
static unsigned int count_fitting(struct schema_walk *walk, const struct json_node *schemas,
				  const struct json_node *value, unsigned int enough)
{
	unsigned int count = 0;

	JSON_NODE_FOREACH(each, schemas)
		count += count < enough && fits_quietly(walk, each, value);
	return count;
}

static bool check_any(struct schema_walk *walk, const struct json_node *schema,
		      const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	return count_fitting(walk, keyword, value, 1) == 1 ||
	       schema_walk_note(walk, keyword, value);
}

static bool check_one(struct schema_walk *walk, const struct json_node *schema,
		      const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	return count_fitting(walk, keyword, value, 2) == 1 ||
	       schema_walk_note(walk, keyword, value);
}

static bool check_not(struct schema_walk *walk, const struct json_node *schema,
		      const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	return !fits_quietly(walk, keyword, value) || schema_walk_note(walk, keyword, value);
}

static bool check_if(struct schema_walk *walk, const struct json_node *schema,
		     const struct json_node *keyword, const struct json_node *value)
{
	bool holds = fits_quietly(walk, keyword, value);
	const struct json_node *next = find_keyword(schema, holds ? KEYWORD_THEN : KEYWORD_ELSE);

	return next == NULL || fits(walk, next, value);
}

/* ---- what other keywords have evaluated ---- */

/* A member or element of `value`, and which one. */
struct part {
	const struct json_node *node;
	uint32_t index;
};

static bool is_evaluated(struct schema_walk *walk, const struct json_node *schema,
			 const struct json_node *value, struct part part, bool is_root);

/* By a schema of the same value, which counts if that fits. */
static bool is_evaluated_by(struct schema_walk *walk, const struct json_node *schema,
			    const struct json_node *value, struct part part)
{
	return fits_quietly(walk, schema, value) && is_evaluated(walk, schema, value, part, false);
}

static bool is_evaluated_by_list(struct schema_walk *walk, const struct json_node *schemas,
				 const struct json_node *value, struct part part)
{
	JSON_NODE_FOREACH(each, schemas)
		if (is_evaluated_by(walk, each, value, part))
			return true;
	return false;
}

static bool is_evaluated_by_if(struct schema_walk *walk, const struct json_node *schema,
			       const struct json_node *keyword, const struct json_node *value,
			       struct part part)
{
	bool holds = fits_quietly(walk, keyword, value);
	const struct json_node *next = find_keyword(schema, holds ? KEYWORD_THEN : KEYWORD_ELSE);

	return (holds && is_evaluated(walk, keyword, value, part, false)) ||
	       (next != NULL && is_evaluated_by(walk, next, value, part));
}

static bool is_evaluated_by_dependent(struct schema_walk *walk, const struct json_node *keyword,
				      const struct json_node *value, struct part part)
{
	JSON_NODE_FOREACH(each, keyword)
		if (each->type == JSON_OBJECT && value->type == JSON_OBJECT &&
		    find_member(walk, value, each->name) != NULL &&
		    is_evaluated_by(walk, each, value, part))
			return true;
	return false;
}

static bool is_evaluated_as_item(struct schema_walk *walk, const struct json_node *keyword,
				 struct part part)
{
	if (keyword->mark == KEYWORD_PREFIX_ITEMS)
		return part.index < keyword->count;
	if (keyword->mark == KEYWORD_ITEMS)
		return keyword->type != JSON_ARRAY || part.index < keyword->count;
	if (keyword->mark == KEYWORD_CONTAINS)
		return walk->schema->is_contained_evaluated &&
		       fits_quietly(walk, keyword, part.node);
	return false;
}

/* `value` is an array or an object. */
static bool is_evaluated_by_keyword(struct schema_walk *walk, const struct json_node *schema,
				    const struct json_node *keyword, const struct json_node *value,
				    struct part part, bool is_root)
{
	bool is_array = value->type == JSON_ARRAY;
	const struct json_node *items;

	switch (keyword->mark) {
	case KEYWORD_REF:
		return is_evaluated_by(walk, target_of(walk, keyword), value, part);
	case KEYWORD_ALL_OF:
	case KEYWORD_ANY_OF:
	case KEYWORD_ONE_OF:
		return is_evaluated_by_list(walk, keyword, value, part);
	case KEYWORD_IF:
		return is_evaluated_by_if(walk, schema, keyword, value, part);
	case KEYWORD_DEPENDENT_SCHEMAS:
	case KEYWORD_DEPENDENCIES:
		return is_evaluated_by_dependent(walk, keyword, value, part);
	case KEYWORD_ADDITIONAL_PROPERTIES:
		return !is_array;
	case KEYWORD_UNEVALUATED_PROPERTIES:
		return !is_array && !is_root;
	case KEYWORD_ADDITIONAL_ITEMS:
		items = find_keyword(schema, KEYWORD_ITEMS);
		return is_array && items != NULL && items->type == JSON_ARRAY;
	case KEYWORD_UNEVALUATED_ITEMS:
		return is_array && !is_root;
	default:
		return is_array && is_evaluated_as_item(walk, keyword, part);
	}
}

static bool is_evaluated(struct schema_walk *walk, const struct json_node *schema,
			 const struct json_node *value, struct part part, bool is_root)
{
	bool result = false;

	if (schema->type != JSON_OBJECT || !schema_walk_spend(walk, 1 + schema->count))
		return false;
	if (walk->depth == SCHEMA_NESTING_MAX)
		return schema_walk_give_up(walk, "its schema is nested too deeply");
	walk->depth++;
	if (value->type == JSON_OBJECT)
		result = is_named(walk, schema, part.node);
	JSON_NODE_FOREACH(each, schema)
		result =
			result || is_evaluated_by_keyword(walk, schema, each, value, part, is_root);
	walk->depth--;
	return result;
}

static bool check_unevaluated(struct schema_walk *walk, const struct json_node *schema,
			      const struct json_node *keyword, const struct json_node *value)
{
	bool is_of_items = keyword->mark == KEYWORD_UNEVALUATED_ITEMS;
	struct part part = { json_node_first(value), 0 };

	if (value->type != (is_of_items ? JSON_ARRAY : JSON_OBJECT))
		return true;
	for (; part.index < value->count; part.index++) {
		if (!is_evaluated(walk, schema, value, part, true) &&
		    !fits(walk, keyword, part.node))
			return false;
		part.node = json_node_next(part.node);
	}
	return true;
}

/* ---- a schema ---- */

/* How each keyword is checked, and what is said of what does not fit; # is the keyword's number. */
static const struct {
	schema_check_fn *check;
	const char *text;
} keywords[KEYWORD_COUNT] = {
	[KEYWORD_ADDITIONAL_ITEMS] = { check_additional_items, NULL },
	[KEYWORD_ADDITIONAL_PROPERTIES] = { check_additional_properties, NULL },
	[KEYWORD_ALL_OF] = { check_all, NULL },
	[KEYWORD_ANY_OF] = { check_any, "must match one of the alternatives" },
	[KEYWORD_CONST] = { schema_check_const, "must be the one allowed value" },
	[KEYWORD_CONTAINS] = { check_contains, "has too few elements of the required kind" },
	[KEYWORD_DEPENDENCIES] = { check_dependent, NULL },
	[KEYWORD_DEPENDENT_REQUIRED] = { check_dependent, NULL },
	[KEYWORD_DEPENDENT_SCHEMAS] = { check_dependent, NULL },
	[KEYWORD_ENUM] = { schema_check_enum, "must be one of the allowed values" },
	[KEYWORD_EXCLUSIVE_MAXIMUM] = { schema_check_number, "is too large" },
	[KEYWORD_EXCLUSIVE_MINIMUM] = { schema_check_number, "is too small" },
	[KEYWORD_IF] = { check_if, NULL },
	[KEYWORD_ITEMS] = { check_items, NULL },
	[KEYWORD_MAX_CONTAINS] = { NULL, "must have at most # elements of the required kind" },
	[KEYWORD_MAX_ITEMS] = { schema_check_count, "must have at most # elements" },
	[KEYWORD_MAX_LENGTH] = { schema_check_length, "must have at most # characters" },
	[KEYWORD_MAX_PROPERTIES] = { schema_check_count, "must have at most # members" },
	[KEYWORD_MAXIMUM] = { schema_check_number, "is too large" },
	[KEYWORD_MIN_ITEMS] = { schema_check_count, "must have at least # elements" },
	[KEYWORD_MIN_LENGTH] = { schema_check_length, "must have at least # characters" },
	[KEYWORD_MIN_PROPERTIES] = { schema_check_count, "must have at least # members" },
	[KEYWORD_MINIMUM] = { schema_check_number, "is too small" },
	[KEYWORD_MULTIPLE_OF] = { schema_check_number, "must be a multiple of the given number" },
	[KEYWORD_NOT] = { check_not, "must not be of the excluded kind" },
	[KEYWORD_ONE_OF] = { check_one, "must match exactly one of the alternatives" },
	[KEYWORD_PATTERN] = { schema_check_pattern, "must match the pattern" },
	[KEYWORD_PATTERN_PROPERTIES] = { check_pattern_properties, NULL },
	[KEYWORD_PREFIX_ITEMS] = { check_prefix_items, NULL },
	[KEYWORD_PROPERTIES] = { check_properties, NULL },
	[KEYWORD_PROPERTY_NAMES] = { check_property_names, "must have another name" },
	[KEYWORD_REF] = { check_ref, NULL },
	[KEYWORD_REQUIRED] = { check_required, NULL },
	[KEYWORD_TYPE] = { schema_check_type, NULL },
	[KEYWORD_UNEVALUATED_ITEMS] = { check_unevaluated, NULL },
	[KEYWORD_UNEVALUATED_PROPERTIES] = { check_unevaluated, NULL },
	[KEYWORD_UNIQUE_ITEMS] = { schema_check_unique, "must have no duplicate elements" },
};

static bool fits_keywords(struct schema_walk *walk, const struct json_node *schema,
			  const struct json_node *value)
{
	JSON_NODE_FOREACH(each, schema) {
		schema_check_fn *check = keywords[each->mark].check;

		if (check != NULL && !check(walk, schema, each, value))
			return false;
	}
	return true;
}

static bool fits(struct schema_walk *walk, const struct json_node *schema,
		 const struct json_node *value)
{
	bool result;

	if (!schema_walk_spend(walk, 1 + schema->count))
		return false;
	if (schema->type != JSON_OBJECT)
		return schema->type == JSON_TRUE || schema_walk_note(walk, schema, value);
	CHECK(schema->is_marked);
	if (walk->depth == SCHEMA_NESTING_MAX)
		return schema_walk_give_up(walk, "its schema is nested too deeply");
	walk->depth++;
	result = fits_keywords(walk, schema, value);
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
		buf_append_slice(out, inside(keyword));
	JSON_NODE_FOREACH(each, keyword) {
		if (told++ == TYPES_TOLD_MAX)
			break;
		buf_append_str(out, told > 1 ? " or " : "");
		buf_append_slice(out, inside(each));
	}
}

static void append_misfit(struct buf *out, const struct schema_walk *walk)
{
	const struct json_node *keyword = walk->keyword;
	const char *text = keywords[keyword->mark].text;

	if (keyword->mark == KEYWORD_TYPE) {
		append_types(out, keyword);
	} else if (walk->missing.p != NULL) {
		const struct json_node pair[] = { { .type = JSON_OBJECT },
						  { .up = 1, .name = walk->missing } };
		struct buf path = { 0 };

		json_node_append_path(&path, &pair[1], PATH_BYTES);
		buf_consume(&path, 1);
		buf_append_str(out, "must have the member ");
		buf_append_slice(out, buf_slice(&path));
		buf_fini(&path);
	} else if (text == NULL) {
		buf_append_str(out, "must not be present");
	} else {
		struct slice rest = slice_str(text);

		buf_append_slice(out, slice_cut(&rest, '#'));
		if (rest.p != NULL) {
			buf_append_u64(out, keyword->link);
			buf_append_slice(out, rest);
		}
	}
}

static int tell(const struct schema_walk *walk, struct error *err)
{
	struct buf text = { 0 };

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
	buf_fini(&text);
	return -1;
}

/* ---- the interface ---- */

struct schema *schema_new(struct slice text, struct error *err)
{
	struct schema *schema = mem_zalloc(sizeof(*schema));

	if (schema_keywords_read(schema, text, err) < 0)
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

int schema_check(const struct schema *schema, struct slice value, size_t shares, struct error *err)
{
	static const struct json_tree_limits limits = { SCAN_DEPTH_MAX, SCHEMA_VALUES_MAX };
	struct schema_walk walk = { .schema = schema,
				    .steps_max = SCHEMA_STEPS_MAX / shares,
				    .work = { .most_ns = PATTERN_WORK_MAX_NS / shares } };
	struct json_tree tree = { .count = 0 };
	const char *why = json_tree_read_canonical(&tree, value, &limits);
	int result = 0;

	if (why != NULL)
		result = error_set(err, ERROR_LIMIT, " cannot be checked: %s", why);
	else if (!fits(&walk, schema->tree.nodes, tree.nodes) || walk.over != NULL)
		result = tell(&walk, err);
	buf_fini(&walk.text);
	json_tree_fini(&tree);
	return result;
}
