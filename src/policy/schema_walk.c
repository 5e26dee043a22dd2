/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/schema_walk.h"

#include <stdlib.h>

#include "base/mem.h"
#include "policy/decimal.h"

#define DIGITS_PER_STEP 4   /* of a number that is divided */
#define STEPS_PER_ELEMENT 4 /* of those that are sorted */

/* ---- bookkeeping ---- */

bool schema_walk_give_up(struct schema_walk *walk, const char *why)
{
	if (walk->over == NULL)
		walk->over = why;
	return false;
}

bool schema_walk_spend(struct schema_walk *walk, size_t steps)
{
	walk->steps += steps;
	if (walk->steps > walk->steps_max)
		schema_walk_give_up(walk, "it takes too many steps");
	return walk->over == NULL;
}

bool schema_walk_note(struct schema_walk *walk, const struct json_node *keyword,
		      const struct json_node *value)
{
	if (walk->trials == 0 && walk->keyword == NULL) {
		walk->keyword = keyword;
		walk->value = value;
	}
	return false;
}

/* ---- any value ---- */

static bool has_type(const struct json_node *value, unsigned int types)
{
	unsigned int type = value->type == JSON_FALSE ? JSON_TRUE : value->type;

	if (types & 1u << type)
		return true;
	return type == JSON_NUMBER && types & SCHEMA_TYPE_INTEGER &&
	       decimal_is_integer(value->text);
}

bool schema_check_type(struct schema_walk *walk, const struct json_node *schema,
		       const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	return has_type(value, keyword->link) || schema_walk_note(walk, keyword, value);
}

static bool is_same(struct schema_walk *walk, const struct json_node *a, const struct json_node *b)
{
	if (a->text.n != b->text.n || !schema_walk_spend(walk, a->text.n / SCHEMA_BYTES_PER_STEP))
		return false;
	return slice_is_equal(a->text, b->text);
}

bool schema_check_const(struct schema_walk *walk, const struct json_node *schema,
			const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	return is_same(walk, keyword, value) || schema_walk_note(walk, keyword, value);
}

bool schema_check_enum(struct schema_walk *walk, const struct json_node *schema,
		       const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	JSON_NODE_FOREACH(each, keyword)
		if (!schema_walk_spend(walk, 1) || is_same(walk, each, value))
			return true;
	return schema_walk_note(walk, keyword, value);
}

/* ---- numbers ---- */

bool schema_check_number(struct schema_walk *walk, const struct json_node *schema,
			 const struct json_node *keyword, const struct json_node *value)
{
	bool is_fine = true;
	int order;

	(void)schema;
	if (value->type != JSON_NUMBER)
		return true;
	if (!schema_walk_spend(walk, value->text.n / (keyword->mark == KEYWORD_MULTIPLE_OF ?
							      DIGITS_PER_STEP :
							      SCHEMA_BYTES_PER_STEP)))
		return false;
	if (keyword->mark == KEYWORD_MULTIPLE_OF)
		return decimal_is_multiple(value->text, keyword->text) ||
		       schema_walk_note(walk, keyword, value);
	order = decimal_compare(value->text, keyword->text);
	if (keyword->mark == KEYWORD_MINIMUM)
		is_fine = order >= 0;
	else if (keyword->mark == KEYWORD_MAXIMUM)
		is_fine = order <= 0;
	else if (keyword->mark == KEYWORD_EXCLUSIVE_MINIMUM)
		is_fine = order > 0;
	else
		is_fine = order < 0;
	return is_fine || schema_walk_note(walk, keyword, value);
}

/* ---- strings ---- */

static struct slice decode(struct schema_walk *walk, struct slice quoted)
{
	struct json string = { JSON_STRING, memchr(quoted.p, '\\', quoted.n) != NULL, quoted };

	schema_walk_spend(walk, quoted.n / SCHEMA_BYTES_PER_STEP);
	if (!string.has_escape)
		return slice_of(quoted.p + 1, quoted.n - 2);
	walk->text.len = 0;
	CHECK(scan_decode_string(string, &walk->text) == 0); /* json_tree_read has seen to that */
	return buf_slice(&walk->text);
}

static size_t count_characters(struct slice text)
{
	size_t count = 0;

	for (size_t i = 0; i < text.n; i++)
		count += ((unsigned char)text.p[i] & 0xC0) != 0x80;
	return count;
}

bool schema_check_length(struct schema_walk *walk, const struct json_node *schema,
			 const struct json_node *keyword, const struct json_node *value)
{
	size_t length;

	(void)schema;
	if (value->type != JSON_STRING)
		return true;
	length = count_characters(decode(walk, value->text));
	return (keyword->mark == KEYWORD_MIN_LENGTH ? length >= keyword->link :
						      length <= keyword->link) ||
	       schema_walk_note(walk, keyword, value);
}

/* `number`: of the pattern; the text stands between quotes. */
bool schema_walk_matches(struct schema_walk *walk, uint32_t number, struct slice quoted)
{
	CHECK(number < walk->schema->pattern_count);
	if (!schema_walk_spend(walk, 1))
		return false;
	switch (pattern_find(walk->schema->patterns[number], decode(walk, quoted), 0, &walk->work,
			     NULL)) {
	case PATTERN_ABSENT:
		return false;
	case PATTERN_FOUND:
		return true;
	case PATTERN_TOO_HARD:
		break;
	}
	return schema_walk_give_up(walk, "a pattern takes too long");
}

bool schema_check_pattern(struct schema_walk *walk, const struct json_node *schema,
			  const struct json_node *keyword, const struct json_node *value)
{
	(void)schema;
	return value->type != JSON_STRING ||
	       schema_walk_matches(walk, keyword->link, value->text) ||
	       schema_walk_note(walk, keyword, value);
}

/* ---- sizes and elements ---- */

bool schema_check_count(struct schema_walk *walk, const struct json_node *schema,
			const struct json_node *keyword, const struct json_node *value)
{
	bool is_of_object =
		keyword->mark == KEYWORD_MIN_PROPERTIES || keyword->mark == KEYWORD_MAX_PROPERTIES;
	bool is_least =
		keyword->mark == KEYWORD_MIN_PROPERTIES || keyword->mark == KEYWORD_MIN_ITEMS;

	(void)schema;
	if (value->type != (is_of_object ? JSON_OBJECT : JSON_ARRAY))
		return true;
	return (is_least ? value->count >= keyword->link : value->count <= keyword->link) ||
	       schema_walk_note(walk, keyword, value);
}

static int compare_texts(const void *left, const void *right)
{
	const struct slice *a = left;
	const struct slice *b = right;

	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	return memcmp(a->p, b->p, a->n);
}

/* Equal ones are neighbours when they are sorted. */
bool schema_check_unique(struct schema_walk *walk, const struct json_node *schema,
			 const struct json_node *keyword, const struct json_node *value)
{
	const struct json_node *item = json_node_first(value);
	bool is_unique = true;
	struct slice *texts;

	(void)schema;
	if (value->type != JSON_ARRAY || keyword->type != JSON_TRUE || value->count < 2 ||
	    !schema_walk_spend(walk, (size_t)value->count * STEPS_PER_ELEMENT +
					     value->text.n / SCHEMA_BYTES_PER_STEP))
		return true;
	texts = mem_alloc(value->count * sizeof(*texts));
	for (uint32_t i = 0; i < value->count; i++, item = json_node_next(item))
		texts[i] = item->text;
	qsort(texts, value->count, sizeof(*texts), compare_texts);
	for (uint32_t i = 1; i < value->count && is_unique; i++)
		is_unique = !slice_is_equal(texts[i - 1], texts[i]);
	free(texts);
	return is_unique || schema_walk_note(walk, keyword, value);
}
