/* SPDX-License-Identifier: Apache-2.0 */
/* Function-calling formats differ in names of members only; the schema is passed as it is. */
#include "ctl/tools.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "ctl/escape.h"

#define API_NAME_MAX 64

static void warn_about_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	struct buf clean = { 0 };

	if (name != NULL && name[0] != '\0' && strlen(name) <= API_NAME_MAX &&
	    strspn(name, letters) == strlen(name))
		return;
	escape_append(&clean, slice_str(name != NULL ? name : ""), "");
	fprintf(stderr, "mcpgatectl: the API does not accept this name: '%s'\n",
		buf_terminate(&clean));
	buf_fini(&clean);
}

static json_t *convert_openai(const json_t *tool)
{
	warn_about_name(json_string_value(json_object_get(tool, "name")));
	return json_pack("{s:s, s:{s:O?, s:O*, s:O*}}", "type", "function", "function", "name",
			 json_object_get(tool, "name"), "description",
			 json_object_get(tool, "description"), "parameters",
			 json_object_get(tool, "inputSchema"));
}

static json_t *convert_anthropic(const json_t *tool)
{
	warn_about_name(json_string_value(json_object_get(tool, "name")));
	return json_pack("{s:O?, s:O*, s:O*}", "name", json_object_get(tool, "name"), "description",
			 json_object_get(tool, "description"), "input_schema",
			 json_object_get(tool, "inputSchema"));
}

static const struct {
	const char *name;
	json_t *(*convert)(const json_t *tool);
} formats[] = {
	{ "mcp", json_deep_copy },
	{ "openai", convert_openai },
	{ "anthropic", convert_anthropic },
};

json_t *tools_convert(const json_t *tools, const char *format)
{
	CHECK(json_is_array(tools));
	for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
		json_t *list;

		if (strcmp(formats[f].name, format) != 0)
			continue;
		list = json_array();
		for (size_t i = 0; i < json_array_size(tools); i++)
			json_array_append_new(list, formats[f].convert(json_array_get(tools, i)));
		return list;
	}
	return NULL;
}

const char *tools_format(size_t i)
{
	return i < ARRAY_LEN(formats) ? formats[i].name : NULL;
}

static void print_text(const json_t *text)
{
	escape_print(stdout, "", slice_of(json_string_value(text), json_string_length(text)),
		     "\t\n");
}

static void print_other(const json_t *item)
{
	const json_t *resource = json_object_get(item, "resource");
	const char *words[] = { json_string_value(json_object_get(item, "type")),
				json_string_value(json_object_get(item, "mimeType")),
				json_string_value(json_object_get(item, "uri")),
				json_string_value(json_object_get(resource, "uri")) };
	size_t size = json_string_length(json_object_get(item, "data"));
	struct buf text = { 0 };

	buf_append_char(&text, '[');
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (words[i] != NULL)
			buf_printf(&text, "%s%s", text.len > 1 ? " " : "", words[i]);
	}
	if (size > 0)
		buf_printf(&text, ", about %zu bytes", size / 4 * 3);
	buf_append_char(&text, ']');
	escape_print(stdout, "", buf_slice(&text), "");
	buf_fini(&text);
	if (json_is_string(json_object_get(resource, "text")))
		print_text(json_object_get(resource, "text"));
}

void tools_print_result(const json_t *result)
{
	const json_t *content = json_object_get(result, "content");

	for (size_t i = 0; i < json_array_size(content); i++) {
		const json_t *item = json_array_get(content, i);

		if (json_is_string(json_object_get(item, "text")))
			print_text(json_object_get(item, "text"));
		else
			print_other(item);
	}
	if (json_array_size(content) == 0)
		tools_print_json(result);
}

void tools_print_json(const json_t *value)
{
	char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);

	puts(text != NULL ? text : "null");
	free(text);
}
