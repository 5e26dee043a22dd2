/* SPDX-License-Identifier: Apache-2.0 */
/* Each command is a client of its own, that begins a session and ends it. */
#include "ctl/offers.h"

#include <stdio.h>

#include "base/check.h"
#include "ctl/mcp_client.h"
#include "ctl/show.h"
#include "ctl/tools.h"
#include "mcp/error.h"

/* Where somebody finds out why a server cannot be started. */
static int fail_of_server(const struct mcp_client *client, const char *why)
{
	line_fail(why);
	if (client->is_server_down)
		fprintf(stderr,
			"see: mcpgatectl status; mcpgatectl logs %s; mcpgatectl doctor %s\n",
			client->server, client->server);
	return EXIT_FAILED;
}

/* All items of a list; NULL: why not has been said. */
static json_t *list_items(const struct line *line, const char *method, const char *member)
{
	struct error err = { ERROR_NONE, "" };
	struct mcp_client client;
	json_t *items = NULL;

	if (mcp_client_open(&client, line->socket, line->words[1], &err) == 0)
		items = mcp_client_list(&client, method, member, &err);
	mcp_client_close(&client);
	if (items == NULL)
		fail_of_server(&client, err.text);
	return items;
}

int offers_run_tools(const struct line *line)
{
	const char *format = line->format != NULL ? line->format : "mcp";
	json_t *tools = list_items(line, "tools/list", "tools");
	json_t *converted = NULL;

	if (tools == NULL)
		return EXIT_FAILED;
	CHECK(json_is_array(tools));
	if (line->format == NULL && !line->is_json) {
		show_tools(tools);
	} else {
		converted = tools_convert(tools, format);
		CHECK(converted != NULL); /* the option has been looked at */
		tools_print_json(converted);
	}
	json_decref(converted);
	json_decref(tools);
	return 0;
}

int offers_run_prompts(const struct line *line)
{
	json_t *prompts = list_items(line, "prompts/list", "prompts");

	if (prompts == NULL)
		return EXIT_FAILED;
	if (line->is_json)
		tools_print_json(prompts);
	else
		show_prompts(prompts);
	json_decref(prompts);
	return 0;
}

/* A server that has resources need not know of templates. */
static json_t *list_templates(struct mcp_client *client, struct error *err)
{
	json_t *templates =
		mcp_client_list(client, "resources/templates/list", "resourceTemplates", err);

	return templates == NULL && client->error_code == MCP_METHOD_NOT_FOUND ? json_array() :
										 templates;
}

int offers_run_resources(const struct line *line)
{
	struct error err = { ERROR_NONE, "" };
	struct mcp_client client;
	json_t *resources = NULL, *templates = NULL;

	if (mcp_client_open(&client, line->socket, line->words[1], &err) == 0)
		resources = mcp_client_list(&client, "resources/list", "resources", &err);
	if (resources != NULL)
		templates = list_templates(&client, &err);
	mcp_client_close(&client);
	if (templates == NULL) {
		json_decref(resources);
		return fail_of_server(&client, err.text);
	}
	if (line->is_json) {
		json_t *both = json_pack("{s:O, s:O}", "resources", resources, "resourceTemplates",
					 templates);

		tools_print_json(both);
		json_decref(both);
	} else {
		show_resources(resources, templates);
	}
	json_decref(resources);
	json_decref(templates);
	return 0;
}

/* The params of the call that the words ask for. */
static json_t *read_call(const struct line *line, struct error *err)
{
	const char *text = line->count > 3 ? line->words[3] : "{}";
	json_error_t why = { .text = "" };
	json_t *arguments = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	json_t *name = json_string(line->words[2]);

	if (json_is_object(arguments) && name != NULL)
		return json_pack("{s:o, s:o}", "name", name, "arguments", arguments);
	if (name == NULL)
		error_set(err, ERROR_INVALID, "the name of the tool is no UTF-8");
	else
		error_set(err, ERROR_INVALID,
			  "the arguments must be a JSON object, like '{\"text\":\"hello\"}'%s%s",
			  why.text[0] != '\0' ? ": " : "", why.text);
	json_decref(arguments);
	json_decref(name);
	return NULL;
}

int offers_run_call(const struct line *line)
{
	struct error err = { ERROR_NONE, "" };
	json_t *params = read_call(line, &err);
	struct mcp_client client;
	json_t *result = NULL;
	bool is_error;

	CHECK(line->count >= 3);
	if (params == NULL)
		return line_refuse_usage(err.text);
	if (mcp_client_open(&client, line->socket, line->words[1], &err) == 0)
		result = mcp_client_ask(&client, "tools/call", json_incref(params), &err);
	mcp_client_close(&client);
	json_decref(params);
	if (result == NULL)
		return fail_of_server(&client, err.text);
	is_error = json_is_true(json_object_get(result, "isError"));
	if (line->is_json)
		tools_print_json(result);
	else
		tools_print_result(result);
	json_decref(result);
	return is_error ? EXIT_FAILED : 0;
}
