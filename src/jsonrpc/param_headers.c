/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema is walked once, within bounds, and either all of its annotations count or none, as for
 * clients: one that breaks a rule makes a client hide the tool. References are not followed. Names
 * are compared decoded.
 */
#include "jsonrpc/param_headers.h"

#include <string.h>

#include "base/buf.h"

#define ANNOTATIONS_MAX 64 /* as bits of a word */
#define PATH_MAX_STEPS 16
#define DEPTH_MAX 64
#define NODES_MAX 20000 /* members and elements of a schema */

static const struct slice keyword = SLICE("x-mcp-header");

/* A part of params.texts, whose memory may move. */
struct span {
	size_t at, n;
};

struct annotation {
	struct span name; /* of the field, after Mcp-Param- */
	struct span path[PATH_MAX_STEPS];
	size_t steps;
	/* In the arguments: */
	struct json value; /* absent, if a step of the path is missing */
	bool is_repeated;  /* a step occurs twice */
};

struct params {
	struct annotation annotations[ANNOTATIONS_MAX];
	size_t count;
	struct buf texts; /* decoded names */
	size_t nodes;
	const char *why; /* why they do not count, or NULL */
};

/* A place in the schema, the members of which are visited. */
struct place {
	struct params *params;
	struct slice schema;
	struct span path[PATH_MAX_STEPS];
	size_t steps;
	size_t depth;
	bool is_reachable; /* from the root through `properties` alone, by decodable names */
	bool is_map; /* its members are schemas by names that the author chose, not keywords */
};

static struct slice param_headers_text_of(const struct params *params, struct span span)
{
	return slice_of(params->texts.data + span.at, span.n);
}

/* Decodes the inside of a JSON string. */
static bool param_headers_add_text(struct params *params, struct slice inside, struct span *span_r)
{
	struct json string = { JSON_STRING, true, { inside.p - 1, inside.n + 2 } };

	span_r->at = params->texts.len;
	if (scan_decode_string(string, &params->texts) < 0)
		return false;
	span_r->n = params->texts.len - span_r->at;
	return true;
}

/* ---- the schema ---- */

static bool is_mirrored_type(struct slice schema)
{
	return slice_has_part(SLICE_LIT("string integer boolean"), ' ',
			      scan_plain_string(scan_member(schema, SLICE_LIT("type"))));
}

static bool is_taken(const struct params *params, struct slice name)
{
	for (size_t i = 0; i < params->count; i++)
		if (slice_is_equal_nocase(param_headers_text_of(params,
								params->annotations[i].name),
					  name))
			return true;
	return false;
}

/* Returns why the annotation does not count, or NULL. MOD-HDR-06 */
static const char *add_annotation(const struct place *place, struct json value)
{
	struct params *params = place->params;
	struct annotation *annotation;
	struct span name;

	if (!place->is_reachable || place->steps == 0)
		return "x-mcp-header stands where no chain of properties leads";
	if (!is_mirrored_type(place->schema))
		return "x-mcp-header stands at a property that is no string, integer or boolean";
	if (value.type != JSON_STRING ||
	    !param_headers_add_text(params, slice_of(value.text.p + 1, value.text.n - 2), &name) ||
	    !slice_is_name(param_headers_text_of(params, name),
			   "!#$%&'*+-.^_`|~")) /* RFC 9110 §5.6.2 */
		return "x-mcp-header is not a token";
	if (is_taken(params, param_headers_text_of(params, name)))
		return "two properties have the same x-mcp-header";
	if (params->count == ANNOTATIONS_MAX)
		return "too many properties have an x-mcp-header";
	annotation = &params->annotations[params->count++];
	annotation->name = name;
	memcpy(annotation->path, place->path, sizeof(annotation->path));
	annotation->steps = place->steps;
	annotation->value.type = JSON_ABSENT;
	annotation->is_repeated = false;
	return NULL;
}

static int param_headers_on_member(struct slice name, struct json value, void *arg);

static int param_headers_on_element(struct slice element, void *arg)
{
	return param_headers_on_member(slice_of(NULL, 0), scan_value(element), arg);
}

/* Visits what is inside `value`; `place` is already the place of `value`. */
static void enter(struct place *place, struct json value)
{
	place->schema = value.text;
	if (++place->depth > DEPTH_MAX)
		place->params->why = "the schema is too deep to be searched for x-mcp-header";
	else if (value.type == JSON_OBJECT)
		scan_members(value.text, param_headers_on_member, place);
	else if (value.type == JSON_ARRAY &&
		 scan_array(value.text, NODES_MAX, param_headers_on_element, place, NULL) < 0 &&
		 place->params->why == NULL)
		place->params->why = "the schema is too large to be searched for x-mcp-header";
}

/* Visits a schema by a name that the author chose. */
static void enter_named(const struct place *map, struct slice name, struct json value)
{
	struct place inner = *map;

	inner.is_map = false;
	if (inner.is_reachable) {
		inner.is_reachable =
			inner.steps < PATH_MAX_STEPS &&
			param_headers_add_text(inner.params, name, &inner.path[inner.steps]);
		inner.steps += inner.is_reachable;
	}
	enter(&inner, value);
}

static void enter_keyword(const struct place *outer, struct slice name, struct json value)
{
	static const struct slice maps =
		SLICE("$defs definitions dependencies dependentSchemas patternProperties");
	bool is_properties = slice_is_equal(name, SLICE_LIT("properties"));
	struct place inner = *outer;

	if (slice_has_part(SLICE_LIT("const default enum examples"), ' ', name))
		return; /* an instance, whatever it looks like */
	inner.is_reachable = outer->is_reachable && is_properties;
	inner.is_map =
		value.type == JSON_OBJECT && (is_properties || slice_has_part(maps, ' ', name));
	enter(&inner, value);
}

static int param_headers_on_member(struct slice name, struct json value, void *arg)
{
	struct place *place = arg;
	struct params *params = place->params;

	if (++params->nodes > NODES_MAX)
		params->why = "the schema is too large to be searched for x-mcp-header";
	else if (place->is_map)
		enter_named(place, name, value);
	else if (slice_is_equal(name, keyword))
		params->why = add_annotation(place, value);
	else
		enter_keyword(place, name, value);
	return params->why == NULL ? 0 : -1;
}

/* Returns whether there is anything to compare. */
static bool param_headers_read_schema(struct params *params, struct slice schema)
{
	struct place root = { .params = params, .is_reachable = true };

	params->count = params->nodes = 0;
	params->texts = (struct buf){ 0 };
	params->why = NULL;
	if (schema.n == 0 || memmem(schema.p, schema.n, keyword.p, keyword.n) == NULL)
		return false; /* the usual case */
	enter(&root, scan_value(schema));
	return params->why == NULL && params->count > 0;
}

const char *param_headers_check(struct slice input_schema)
{
	struct params params;

	param_headers_read_schema(&params, input_schema);
	buf_fini(&params.texts);
	return params.why;
}

/* ---- the arguments ---- */

/*
 * A value in the arguments, `depth` steps below them, and the annotations whose paths lead to it.
 */
struct level {
	struct params *params;
	size_t depth;
	uint64_t active;
	uint64_t seen; /* those of them whose next step was found */
};

static int on_argument(struct slice name, struct json value, void *arg)
{
	struct level *level = arg;
	struct params *params = level->params;
	struct level inner = { .params = params, .depth = level->depth + 1 };
	struct span span = { 0 };
	size_t mark = params->texts.len;

	if (!param_headers_add_text(params, name, &span)) {
		params->texts.len = mark;
		return 0; /* no property can be named like that */
	}
	for (size_t i = 0; i < params->count; i++) {
		struct annotation *annotation = &params->annotations[i];
		uint64_t bit = (uint64_t)1 << i;

		if ((level->active & bit) == 0 ||
		    !slice_is_equal(param_headers_text_of(params, annotation->path[level->depth]),
				    param_headers_text_of(params, span)))
			continue;
		annotation->is_repeated |= (level->seen & bit) != 0;
		level->seen |= bit;
		if (annotation->steps == inner.depth)
			annotation->value = value;
		else
			inner.active |= bit;
	}
	params->texts.len = mark;
	if (inner.active != 0)
		scan_members(value.text, on_argument, &inner);
	return 0;
}

static void read_arguments(struct params *params, struct slice arguments)
{
	struct level level = { .params = params, .active = ~(uint64_t)0 };

	scan_members(arguments, on_argument, &level);
}

void param_headers_each(struct slice input_schema, struct slice arguments,
			param_header_fn *on_header, void *arg)
{
	struct params params;
	bool goes_on = param_headers_read_schema(&params, input_schema);

	if (goes_on)
		read_arguments(&params, arguments);
	for (size_t i = 0; goes_on && i < params.count; i++) {
		const struct annotation *annotation = &params.annotations[i];
		const struct param_header header = {
			.name = param_headers_text_of(&params, annotation->name),
			.value = annotation->value,
			.is_repeated = annotation->is_repeated,
		};

		goes_on = on_header(&header, arg) == 0;
	}
	buf_fini(&params.texts);
}
