/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people read, made from tables: the effective configuration, secrets masked, every option, also those at a
 * default; the sample file and the options of its manual page; and for the manual page of the daemon the events
 * of the log and what clients are told.
 *
 * In the sample a line of prose begins with "# ", a line that is an option at its default with '#'
 * alone: whoever takes that one character away has set the option.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"
#include "config/config.h"
#include "config/load.h"
#include "config/table.h"
#include "config/tree.h"
#include "obs/log.h"
#include "obs/metric.h"
#include "obs/reason.h"

#define SAMPLE_COLUMNS 92
#define SAMPLE_SERVER "demo"

/* ---- the effective configuration ---- */

/* Which claims a server is told is in its env, which the gateway does not get: a variable for each stands for it. */
static void print_claims(const struct slices *claims, FILE *out)
{
	if (claims->count > 0)
		fputs("    env:\n", out);
	for (size_t i = 0; i < claims->count; i++) {
		at_end(buf_fini) struct buf value = { 0 }, text = { 0 };

		buf_printf(&value, "${claim:%.*s}", SLICE_ARG(claims->items[i]));
		yaml_append_text(&text, buf_terminate(&value));
		fprintf(out, "      CLAIM_%zu: %s\n", i, buf_terminate(&text));
	}
}

static void print_name(const char *name, FILE *out)
{
	at_end(buf_fini) struct buf text = { 0 };

	yaml_append_text(&text, name);
	fprintf(out, "  %s:\n", buf_terminate(&text));
}

static void print_roles(enum table_reader reader, const struct roles *roles, FILE *out)
{
	if (roles->named > 0)
		fputs("roles:\n", out);
	for (size_t i = 0; i < roles->count; i++) {
		if (!role_is_named(&roles->items[i]))
			continue;
		print_name(roles->items[i].name.p, out);
		table_print(reader, OPTIONS_ROLE, &roles->items[i], 4, out);
	}
}

static void print(enum table_reader reader, const struct config *config, FILE *out)
{
	CHECK(config->listen_count > 0);
	table_print(reader, OPTIONS_TOP, config, 0, out);
	print_roles(reader, &config->roles, out);
	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		/* First all servers, then the endpoints. */
		if (i == 0 || server->is_endpoint != server[-1].is_endpoint)
			fprintf(out, "%s:\n", config_section_of(server));
		print_name(server->conf.name, out);
		table_print(reader, table_level_of(server), server, 4, out);
		if (reader == TABLE_FOR_GATEWAY)
			print_claims(&server->conf.claims, out);
	}
	if (config->server_count == 0)
		fputs("servers:\n", out);
}

void config_print(const struct config *config, FILE *out)
{
	print(TABLE_FOR_PEOPLE, config, out);
}

void config_print_for_gateway(const struct config *config, FILE *out)
{
	print(TABLE_FOR_GATEWAY, config, out);
	places_print(&config->rule_places, out);
}

bool config_is_fetching(const struct config *config)
{
	for (size_t i = 0; i < config->server_count; i++)
		if (config->servers[i].credential.grant != CREDENTIAL_NONE)
			return true;
	return config->frontend.authorization.issuers.count > 0 ||
	       config->traces.collector.endpoint != NULL;
}

/* Those that the fetcher gets tokens for, and of these no more than that. */
static void print_credentials(const struct config *config, FILE *out)
{
	bool is_first = true;

	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];
		at_end(buf_fini) struct buf at = { 0 };

		if (server->credential.grant == CREDENTIAL_NONE)
			continue;
		if (is_first)
			fputs("servers:\n", out);
		is_first = false;
		print_name(server->conf.name, out);
		yaml_append_text(&at, server->url != NULL ? server->url : server->command);
		fprintf(out, "    %s: %s\n    auth:\n", server->url != NULL ? "url" : "command",
			buf_terminate(&at));
		table_print(TABLE_FOR_FETCHER, OPTIONS_SERVER ".auth", server, 6, out);
	}
}

static void print_sections(const struct config *config, const char *const *names, FILE *out)
{
	for (; *names != NULL; names++) {
		fprintf(out, "%s:\n", *names);
		table_print(TABLE_FOR_FETCHER, *names, config, 2, out);
	}
}

bool config_has_store(const struct config *config)
{
	return config->cluster.store != NULL;
}

void config_print_for_store(const struct config *config, FILE *out)
{
	print_sections(config, (const char *[]){ "log", "sessions", "cluster", NULL }, out);
}

void config_print_for_fetcher(const struct config *config, FILE *out)
{
	at_end(buf_fini) struct buf url = { 0 };

	print_sections(config, (const char *[]){ "log", "auth", "traces", NULL }, out);
	if (config->assertion_key != NULL) {
		yaml_append_text(&url, config->frontend.authorization.public_url.p);
		fprintf(out, "public_url: %s\n", buf_terminate(&url));
	}
	print_credentials(config, out);
}

/* ---- the sample ---- */

/* As many whole words as fit into a line. */
static void print_prose(const char *text, int indent, FILE *out)
{
	size_t width = (size_t)(SAMPLE_COLUMNS - indent - 2);
	struct slice rest = slice_str(text);

	while (rest.n > 0) {
		size_t end = rest.n < width ? rest.n : width;

		while (end < rest.n && end > 0 && rest.p[end] != ' ')
			end--;
		if (end == 0)
			end = rest.n;
		fprintf(out, "%*s# %.*s\n", indent, "", (int)end, rest.p);
		rest = slice_trim(slice_of(rest.p + end, rest.n - end));
	}
}

/* "1 to 100", "one of a, b"; empty if everything is allowed. */
static void append_limits(const struct option *option, struct buf *text)
{
	CHECK((option->min == NULL) == (option->max == NULL));
	if (option->min != NULL)
		buf_printf(text, "%s to %s", option->min, option->max);
	for (const struct option_choice *c = option->choices; c != NULL && c->name != NULL; c++)
		buf_printf(text, "%s%s", c == option->choices ? "one of " : ", ", c->name);
}

static void sample_level(const char *level, int indent, FILE *out);

static void sample_option(const struct option *option, int indent, FILE *out)
{
	at_end(buf_fini) struct buf help = { 0 };

	CHECK(option->def != NULL || option->example != NULL || option->type == OPTION_SECTION);
	buf_append_str(&help, option->help);
	if (option->min != NULL || option->choices != NULL) {
		buf_append_str(&help, " (");
		append_limits(option, &help);
		buf_append_char(&help, ')');
	}
	print_prose(buf_terminate(&help), indent, out);
	if (option->type == OPTION_SECTION) {
		fprintf(out, "%*s%s:\n", indent, "", table_key(option));
		sample_level(option->path, indent + 2, out);
	} else if (option->def != NULL) {
		fprintf(out, "%*s#%s: %s\n", indent, "", table_key(option), option->def);
	} else {
		fprintf(out, "%*s# For example: %s: %s\n", indent, "", table_key(option),
			option->example);
	}
}

/* The first option of a record must be there, so it is no comment; `indent` is of its help. */
static void sample_record(const char *record, int indent, const char *lead, FILE *out)
{
	const struct option *option = table_next(record, NULL);
	const char *value = option->def != NULL ? option->def : option->example;

	print_prose(option->help, indent, out);
	fprintf(out, "%s%s: %s\n", lead, table_key(option), value);
	while ((option = table_next(record, option)) != NULL)
		sample_option(option, 4, out);
}

static void sample_group(const struct option *option, FILE *out)
{
	print_prose(option->help, 0, out);
	fprintf(out, "%s:\n", option->path);
	if (strcmp(option->path, "listen") == 0) {
		sample_record(OPTIONS_LISTEN, 2, "  - ", out);
	} else if (strcmp(option->path, "servers") == 0) {
		fprintf(out, "  %s:\n", SAMPLE_SERVER);
		sample_record(OPTIONS_SERVER, 4, "    ", out);
	} else if (strcmp(option->path, "endpoints") == 0) {
		fputs("  # For example: all: {servers: [" SAMPLE_SERVER "]}\n", out);
	} else if (strcmp(option->path, "roles") == 0) {
		fputs("  # For example: dev: {when: {groups: [dev]}, allow: {" SAMPLE_SERVER
		      ": [\"*\"]}, deny: {" SAMPLE_SERVER ": [\"delete_*\"]}}\n",
		      out);
	} else {
		fputs("  # For example: request_timeout: 2m\n", out);
	}
}

static void sample_level(const char *level, int indent, FILE *out)
{
	const struct option *option = NULL;

	while ((option = table_next(level, option)) != NULL) {
		if (indent == 0)
			fputc('\n', out);
		if (option->type == OPTION_GROUP)
			sample_group(option, out);
		else
			sample_option(option, indent, out);
	}
}

void config_print_sample(FILE *out)
{
	fputs("# mcpgated.yaml - see mcpgated.yaml(5). Check it with: mcpgated -t -c FILE\n#\n"
	      "# Every option stands here. A line that begins with '#' and no space is an option "
	      "at its\n# default: take the '#' away to change it. Sizes: KiB MiB GiB. Times: ms s "
	      "m h d.\n",
	      out);
	sample_level(OPTIONS_TOP, 0, out);
}

/* ---- the manual ---- */

/* Text for roff: no hyphen that could become another character, no line that is a request. */
static void print_roff(const char *text, FILE *out)
{
	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '\\')
			fputs("\\e", out);
		else if (*p == '-')
			fputs("\\-", out);
		else if ((*p == '.' || *p == '\'') && p == text)
			fprintf(out, "\\&%c", *p);
		else
			fputc(*p, out);
	}
}

static void manual_option(const struct option *option, FILE *out)
{
	const char *without = option->def != NULL ? option->def : option->otherwise;
	const char *type = types_get(option)->name;
	at_end(buf_fini) struct buf limits = { 0 };

	fputs(".TP\n.B ", out);
	print_roff(option->path, out);
	fputc('\n', out);
	if (option->type != OPTION_SECTION && option->type != OPTION_GROUP) {
		CHECK(type != NULL && without != NULL);
		append_limits(option, &limits);
		fprintf(out, "(%s%s%s; default: ", type, limits.len > 0 ? ", " : "",
			buf_terminate(&limits));
		print_roff(without, out);
		fputs(")\n.br\n", out);
	}
	print_roff(option->help, out);
	fputc('\n', out);
	if (option->example != NULL) {
		fputs("Example: ", out);
		print_roff(option->example, out);
		fputc('\n', out);
	}
}

void config_print_manual(FILE *out)
{
	for (size_t i = 0; i < options_count; i++)
		manual_option(&options_table[i], out);
}

static void manual_row(const char *name, const char *kind, const char *text, FILE *out)
{
	fprintf(out, ".TP\n.BR %s \" (%s)\"\n", name, kind);
	print_roff(text, out);
	fputc('\n', out);
}

void config_print_events(FILE *out)
{
	for (int i = 0; i < LOG_EVENT_COUNT; i++) {
		struct log_event_row row = log_event_get((enum log_event)i);

		manual_row(row.name, row.level, row.help, out);
	}
}

void config_print_audit(FILE *out)
{
	for (int i = 0; i < AUDIT_FIELD_COUNT; i++) {
		fprintf(out, ".TP\n.B %s\n", audit_field_name((enum audit_field)i));
		print_roff(audit_field_help((enum audit_field)i), out);
		fputc('\n', out);
	}
}

void config_print_reasons(FILE *out)
{
	for (int i = 0; i < REASON_COUNT; i++) {
		const struct reason_row *row = reason_get((enum reason)i);

		if (row->message[0] != '\0')
			manual_row(row->text, row->data, row->message, out);
	}
}

void config_print_metrics(FILE *out)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		struct metric_row row = metric_get((enum metric)i);
		at_end(buf_fini) struct buf kind = { 0 };

		buf_append_str(&kind, row.type);
		if (row.labels[0] != '\0')
			buf_printf(&kind, "; %s", row.labels);
		manual_row(row.name, buf_terminate(&kind), row.help, out);
	}
}

/*
 * ---- the JSON Schema ----
 *
 * The table of options as a JSON Schema (draft-07, which editors know), for completion and
 * checks while somebody writes a configuration. It accepts whatever the loader accepts, and not
 * much more: rules that concern several options are the loader's alone.
 */

#define TIME "(0|[0-9]+(ms|s|m|h|d))"
#define LIST(items) "{\"type\":\"array\",\"items\":" items "}"
#define MAP(values) "{\"type\":[\"object\",\"null\"],\"additionalProperties\":" values "}"
#define PATTERN(pattern) "{\"type\":\"string\",\"pattern\":\"^" pattern "$\"}"
#define EITHER(one, other) "{\"anyOf\":[" one "," other "]}"
/* What YAML may read as something else is a text for the loader. */
#define TEXT "{\"type\":[\"string\",\"number\",\"boolean\"]}"
/* A text, {file: PATH} or its kin. */
#define SECRET                                                                                \
	EITHER(TEXT,                                                                          \
	       "{\"type\":\"object\",\"minProperties\":1,\"maxProperties\":1,"                \
	       "\"properties\":{\"file\":" TEXT ",\"env\":" TEXT ",\"credential\":" TEXT "}," \
	       "\"additionalProperties\":false}")
/* 0 has no unit; nor has a number of bytes. */
#define DURATION EITHER(PATTERN(TIME), "{\"type\":\"integer\",\"minimum\":0,\"maximum\":0}")

/* Of the types that are the same for each option. */
static const char *const schemas[OPTION_TYPE_COUNT] = {
	[OPTION_TEXT] = TEXT,
	[OPTION_SLICE] = TEXT,
	[OPTION_BOOL] = "{\"type\":\"boolean\"}",
	[OPTION_SIZE] =
		EITHER(PATTERN("[0-9]+(KiB|MiB|GiB)?"), "{\"type\":\"integer\",\"minimum\":0}"),
	[OPTION_PERCENT] = PATTERN("[0-9]+%"),
	[OPTION_DURATION] = DURATION,
	[OPTION_RANGE] = PATTERN(TIME "\\\\.\\\\." TIME),
	[OPTION_TEXTS] = LIST(TEXT),
	[OPTION_PORTS] = EITHER(LIST("{\"type\":\"integer\",\"minimum\":1,\"maximum\":65535}"),
				"{\"const\":\"any\"}"),
	[OPTION_ENV] = MAP(SECRET),
	[OPTION_TIMEOUTS] = MAP(DURATION),
	[OPTION_DATE] = PATTERN("[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?"),
	[OPTION_LISTS] = MAP(LIST(TEXT)),
	[OPTION_OBJECT] = MAP(TEXT),
	[OPTION_NAMED] = MAP("{\"type\":[\"string\",\"object\"]}"),
	[OPTION_LEGS] = EITHER(LIST(TEXT), MAP("{\"type\":[\"object\",\"null\"],"
					       "\"additionalProperties\":false,"
					       "\"properties\":{\"prefix\":" TEXT "}}")),
	[OPTION_SECRET] = SECRET,
	[OPTION_FIELDS] = MAP(SECRET),
};

static json_t *schema_of_record(const char *record, bool is_whole);

static json_t *schema_of_list(json_t *items)
{
	return json_pack("{s:s,s:o}", "type", "array", "items", items);
}

static json_t *schema_of_map(json_t *values)
{
	return json_pack("{s:[s,s],s:o}", "type", "object", "null", "additionalProperties", values);
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
	if (strcmp(option->path, "servers") == 0)
		return schema_of_map(schema_of_record(OPTIONS_SERVER, true));
	if (strcmp(option->path, "endpoints") == 0)
		return schema_of_map(schema_of_record(OPTIONS_ENDPOINT, true));
	if (strcmp(option->path, "roles") == 0)
		return schema_of_map(schema_of_record(OPTIONS_ROLE, true));
	CHECK(strcmp(option->path, "defaults") == 0);
	return schema_of_record(OPTIONS_SERVER, false);
}

static json_t *schema_of_value(const struct option *option)
{
	if (option->type == OPTION_SECTION)
		return schema_of_record(option->path, true);
	if (option->list == OPTION_LIST_OR_ONE)
		return json_pack("{s:[o,o]}", "anyOf", schema_of_record(option->records, true),
				 schema_of_list(schema_of_record(option->records, true)));
	if (option->records != NULL)
		return schema_of_list(schema_of_record(option->records, true));
	if (option->type == OPTION_GROUP)
		return schema_of_group(option);
	if (option->type == OPTION_COUNT)
		return schema_of_count(option);
	if (option->type == OPTION_ENUM)
		return schema_of_choices(option->choices);
	CHECK(schemas[option->type] != NULL);
	return json_loads(schemas[option->type], 0, NULL);
}

static json_t *describe(const struct option *option, json_t *schema)
{
	const char *without = option->def != NULL ? option->def : option->otherwise;
	at_end(buf_fini) struct buf text = { 0 };

	CHECK(schema != NULL && option->help != NULL);
	buf_append_str(&text, option->help);
	if (option->min != NULL)
		buf_printf(&text, " From %s to %s.", option->min, option->max);
	if (without != NULL)
		buf_printf(&text, " Default: %s.", without);
	json_object_set_new(schema, "description", json_string(buf_terminate(&text)));
	if (option->example != NULL)
		json_object_set_new(schema, "examples", json_pack("[s]", option->example));
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
		if (is_whole && option->or_key != NULL)
			json_object_set_new(schema, "anyOf",
					    json_pack("[{s:[s]},{s:[s]}]", "required", key,
						      "required", option->or_key));
	}
	json_object_set_new(schema, "properties", properties);
	if (json_array_size(required) > 0)
		json_object_set(schema, "required", required);
	json_decref(required);
	return schema;
}

void config_print_schema(FILE *out)
{
	json_auto_t *schema = schema_of_record(OPTIONS_TOP, true);

	CHECK(schema != NULL);
	json_object_set_new(schema, "$schema",
			    json_string("http://json-schema.org/draft-07/schema#"));
	json_object_set_new(schema, "title", json_string("mcpgated.yaml"));
	json_dumpf(schema, out, JSON_INDENT(2) | JSON_SORT_KEYS);
	fputc('\n', out);
}
