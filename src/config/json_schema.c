/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of options as a JSON Schema (draft-07, which editors know), for completion and checks while somebody writes a
 * configuration. It accepts whatever the loader accepts, and not much more: rules that concern several options are the
 * loader's alone.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "config/config.h"
#include "config/table.h"

#define TIME "(0|[0-9]+(ms|s|m|h|d))"

static json_t *schema_of_record(const char *record, bool is_whole);

/* What YAML may read as something else is a text for the loader. */
static json_t *schema_of_text(void)
{
	return json_pack("{s:[s,s,s]}", "type", "string", "number", "boolean");
}

static json_t *schema_of_pattern(const char *pattern)
{
	CHECK(pattern[0] == '^');
	return json_pack("{s:s,s:s}", "type", "string", "pattern", pattern);
}

/* 0 has no unit; nor has a number of bytes. */
static json_t *schema_of_quantity(const char *pattern, json_int_t largest)
{
	json_t *number = json_pack("{s:s,s:i}", "type", "integer", "minimum", 0);

	if (largest >= 0)
		json_object_set_new(number, "maximum", json_integer(largest));
	return json_pack("{s:[o,o]}", "anyOf", schema_of_pattern(pattern), number);
}

static json_t *schema_of_list(json_t *items)
{
	return json_pack("{s:s,s:o}", "type", "array", "items", items);
}

static json_t *schema_of_map(json_t *values)
{
	return json_pack("{s:[s,s],s:o}", "type", "object", "null", "additionalProperties", values);
}

/* A text, {file: PATH} or its kin. */
static json_t *schema_of_secret(void)
{
	json_t *place = json_pack("{s:s,s:i,s:i,s:{s:o,s:o,s:o},s:b}", "type", "object",
				  "minProperties", 1, "maxProperties", 1, "properties", "file",
				  schema_of_text(), "env", schema_of_text(), "credential",
				  schema_of_text(), "additionalProperties", 0);

	return json_pack("{s:[o,o]}", "anyOf", schema_of_text(), place);
}

static json_t *schema_of_ports(void)
{
	json_t *port =
		json_pack("{s:s,s:i,s:i}", "type", "integer", "minimum", 1, "maximum", UINT16_MAX);

	return json_pack("{s:[o,{s:s}]}", "anyOf", schema_of_list(port), "const", "any");
}

/* A choice like 1.2 may be written with and without quotes. */
static json_t *schema_of_choices(const struct option_choice *choices)
{
	json_t *words = json_array();

	CHECK(choices != NULL && choices->name != NULL);
	for (; choices->name != NULL; choices++) {
		char *end;
		double number = strtod(choices->name, &end);

		json_array_append_new(words, json_string(choices->name));
		if (*end == '\0')
			json_array_append_new(words, json_real(number));
	}
	return json_pack("{s:o}", "enum", words);
}

static json_t *schema_of_count(const struct option *option)
{
	json_t *number = json_pack("{s:s}", "type", "integer");

	CHECK((option->min == NULL) == (option->max == NULL));
	if (option->min != NULL) {
		json_object_set_new(number, "minimum", json_integer(atoll(option->min)));
		json_object_set_new(number, "maximum", json_integer(atoll(option->max)));
	}
	return number;
}

/* Of the groups, which the loader reads by itself. */
static json_t *schema_of_group(const struct option *option)
{
	if (strcmp(option->path, "listen") == 0)
		return schema_of_list(schema_of_record(OPTIONS_LISTEN, true));
	if (strcmp(option->path, "listen[].tls") == 0)
		return json_pack("{s:[o,o]}", "anyOf", schema_of_record(OPTIONS_TLS, true),
				 schema_of_list(schema_of_record(OPTIONS_TLS, true)));
	if (strcmp(option->path, "servers") == 0)
		return schema_of_map(schema_of_record(OPTIONS_SERVER, true));
	if (strcmp(option->path, "roles") == 0)
		return schema_of_map(schema_of_record(OPTIONS_ROLE, true));
	CHECK(strcmp(option->path, "defaults") == 0);
	return schema_of_record(OPTIONS_SERVER, false);
}

static json_t *schema_of_value(const struct option *option)
{
	switch (option->type) {
	case OPTION_SECTION:
		return schema_of_record(option->path, true);
	case OPTION_GROUP:
		return schema_of_group(option);
	case OPTION_RECORDS:
		return schema_of_list(schema_of_record(option->records, true));
	case OPTION_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	case OPTION_COUNT:
		return schema_of_count(option);
	case OPTION_SIZE:
		return schema_of_quantity("^[0-9]+(KiB|MiB|GiB)?$", -1);
	case OPTION_PERCENT:
		return schema_of_pattern("^[0-9]+%$");
	case OPTION_DURATION:
		return schema_of_quantity("^" TIME "$", 0);
	case OPTION_RANGE:
		return schema_of_pattern("^" TIME "\\.\\." TIME "$");
	case OPTION_ENUM:
		return schema_of_choices(option->choices);
	case OPTION_TEXTS:
		return schema_of_list(schema_of_text());
	case OPTION_PORTS:
		return schema_of_ports();
	case OPTION_ENV:
	case OPTION_FIELDS:
		return schema_of_map(schema_of_secret());
	case OPTION_TIMEOUTS:
		return schema_of_map(schema_of_quantity("^" TIME "$", 0));
	case OPTION_DATE:
		return schema_of_pattern(
			"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$");
	case OPTION_LISTS:
		return schema_of_map(schema_of_list(schema_of_text()));
	case OPTION_SECRET:
		return schema_of_secret();
	case OPTION_TEXT:
	case OPTION_SLICE:
	case OPTION_TYPE_COUNT:
		break;
	}
	return schema_of_text();
}

static json_t *describe(const struct option *option, json_t *schema)
{
	const char *without = option->def != NULL ? option->def : option->otherwise;
	struct buf text = { 0 };

	CHECK(schema != NULL && option->help != NULL);
	buf_append_str(&text, option->help);
	if (option->min != NULL)
		buf_printf(&text, " From %s to %s.", option->min, option->max);
	if (without != NULL)
		buf_printf(&text, " Default: %s.", without);
	json_object_set_new(schema, "description", json_string(buf_terminate(&text)));
	if (option->example != NULL)
		json_object_set_new(schema, "examples", json_pack("[s]", option->example));
	buf_fini(&text);
	return schema;
}

/* Nothing behind its key is an empty one. is_whole: what must be given, must be; the defaults of servers need not name a command. */
static json_t *schema_of_record(const char *record, bool is_whole)
{
	json_t *schema =
		json_pack("{s:[s,s],s:b}", "type", "object", "null", "additionalProperties", 0);
	json_t *properties = json_object(), *required = json_array();
	const struct option *option = NULL;

	while ((option = table_next(record, option)) != NULL) {
		const char *key = table_key(option);

		json_object_set_new(properties, key, describe(option, schema_of_value(option)));
		if (is_whole && option->is_required)
			json_array_append_new(required, json_string(key));
	}
	json_object_set_new(schema, "properties", properties);
	if (json_array_size(required) > 0)
		json_object_set(schema, "required", required);
	json_decref(required);
	return schema;
}

void config_print_schema(FILE *out)
{
	json_t *schema = schema_of_record(OPTIONS_TOP, true);

	CHECK(schema != NULL);
	json_object_set_new(schema, "$schema",
			    json_string("http://json-schema.org/draft-07/schema#"));
	json_object_set_new(schema, "title", json_string("mcpgated.yaml"));
	json_dumpf(schema, out, JSON_INDENT(2) | JSON_SORT_KEYS);
	fputc('\n', out);
	json_decref(schema);
}
