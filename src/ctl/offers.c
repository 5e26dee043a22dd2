/* SPDX-License-Identifier: Apache-2.0 */
/* Each command is an MCP client of its own, that begins a session and ends it. */
#include "ctl/commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/document.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "ctl/client.h"
#include "ctl/output.h"
#include "mcp/error.h"
#include "mcp/revision.h"

/*
 * ---- mcp client ----
 *
 * Offers no capability, so that no server asks anything back, and takes whole answers only.
 */

#define PAGES_MAX 1000
#define ERROR_SHOWN 200

/* Speaks to one server through the daemon's admin socket. */
struct mcp_client {
	const char *socket; /* borrowed, like the next */
	const char *server;
	char *claims;        /* of the caller it speaks for, as JSON in ASCII; or NULL */
	char *session;       /* the session id */
	json_t *about;       /* the result of initialize */
	bool is_server_down; /* the last request failed because the server could not be started */
	bool is_forbidden;   /* likewise: this caller may not begin a session there */
	int error_code;      /* of the last request; 0: no JSON-RPC error */
	int last_id;
};

json_t *mcp_client_hello(void)
{
	struct slice revision = revision_newest()->name;
	json_t *params = json_pack("{s:s%, s:{}, s:{s:s, s:s}}", "protocolVersion", revision.p,
				   revision.n, "capabilities", "clientInfo", "name", "mcpgatectl",
				   "version", PACKAGE_VERSION);

	CHECK(params != NULL);
	return params;
}

/*
 * Takes message; NULL: the session is to end. Returns the reply's JSON, or NULL with err, which stays empty where no
 * body is due.
 */
static json_t *mcp_client_send(struct mcp_client *client, json_t *message, struct error *err)
{
	at_end(mem_free) char *body = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;
	at_end(mem_free) char *target = mem_printf("/mcp/%s", client->server);
	struct client_request request = { .socket = client->socket,
					  .method = message != NULL ? "POST" : "DELETE",
					  .target = target,
					  .body = slice_str(body != NULL ? body : ""),
					  .session = client->session,
					  .claims = client->claims };
	at_end(client_reply_fini) struct client_reply reply = { .status = 0 };
	json_t *answer = NULL;

	CHECK(client->socket != NULL && client->server != NULL);
	*err = (struct error){ ERROR_NONE, "" };
	if (client_ask(&request, &reply, err) == 0) {
		if (client->session == NULL && reply.session != NULL)
			client->session = mem_strdup(reply.session);
		if (reply.status == 404 && client->session == NULL)
			error_set(err, ERROR_INVALID,
				  "there is no server '%.60s' at the daemon of %.108s; mcpgatectl "
				  "servers lists them",
				  client->server, client->socket);
		else if (reply.body.len > 0)
			answer = client_reply_read(&reply, err);
	}
	json_decref(message);
	return answer;
}

/*
 * Takes params. Returns the result (owned by the caller), or NULL: err is the server's or the
 * daemon's error.
 */
static json_t *mcp_client_ask(struct mcp_client *client, const char *method, json_t *params,
			      struct error *err)
{
	json_t *message = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id",
				    ++client->last_id, "method", method, "params", params);
	json_auto_t *answer = mcp_client_send(client, message, err);
	json_t *result = json_incref(json_object_get(answer, "result"));
	const json_t *error = json_object_get(answer, "error");
	const char *text = document_string(error, "message");
	const char *plain = json_string_value(error); /* the admin socket's own */
	const char *description = document_string(answer, "error_description");
	const char *reason = document_string(json_object_get(error, "data"), "reason");

	client->error_code = (int)json_integer_value(json_object_get(error, "code"));
	client->is_server_down = reason != NULL && strcmp(reason, "backend_unavailable") == 0;
	client->is_forbidden = reason != NULL && strcmp(reason, "forbidden") == 0;
	if (answer == NULL && err->kind == ERROR_NONE)
		error_set(err, ERROR_SYNTAX, "the daemon's answer is empty");
	else if (answer != NULL && result == NULL && plain != NULL)
		error_set(err, ERROR_INVALID, "%.*s", ERROR_SHOWN,
			  description != NULL ? description : plain);
	else if (answer != NULL && result == NULL)
		error_set(err, ERROR_INVALID, "error %d: %.*s%s%s",
			  (int)json_integer_value(json_object_get(error, "code")), ERROR_SHOWN,
			  text != NULL ? text : "without a message",
			  reason != NULL ? "; reason: " : "", reason != NULL ? reason : "");
	CHECK((result == NULL) == (err->kind != ERROR_NONE));
	return result;
}

/* Begins a session. mcp_client_close must be called even after a failure. */
static int mcp_client_open(struct mcp_client *client, const struct line *line, struct error *err)
{
	struct error ignored;

	*client = (struct mcp_client){ .socket = line->socket, .server = line->words[1] };
	if (line->can.claims != NULL) {
		json_auto_t *claims = line_read_claims(line->can.claims, err);

		if (claims == NULL)
			return -1;
		client->claims = json_dumps(claims, JSON_COMPACT | JSON_ENSURE_ASCII);
	}
	client->about = mcp_client_ask(client, "initialize", mcp_client_hello(), err);
	if (client->about == NULL)
		return -1;
	json_decref(mcp_client_send(client,
				    json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method",
					      "notifications/initialized"),
				    &ignored));
	return 0;
}

/*
 * All items of a list, from all pages: those in this member of the method's results. NULL: failed.
 */
static json_t *mcp_client_list(struct mcp_client *client, const char *method, const char *member,
			       struct error *err)
{
	json_auto_t *items = json_array(), *cursor = NULL;

	for (int pages = 0; pages < PAGES_MAX; pages++) {
		json_t *params = json_pack("{s:O*}", "cursor", cursor);
		json_auto_t *page = mcp_client_ask(client, method, params, err);

		if (page == NULL)
			return NULL;
		json_array_extend(items, json_object_get(page, member));
		json_decref(cursor);
		cursor = json_incref(json_object_get(page, "nextCursor"));
		if (!json_is_string(cursor))
			return json_incref(items);
	}
	error_set(err, ERROR_LIMIT, "the list does not end");
	return NULL;
}

static void mcp_client_close(struct mcp_client *client)
{
	struct error ignored;

	if (client->session != NULL)
		json_decref(mcp_client_send(client, NULL, &ignored));
	free(client->session);
	free(client->claims);
	json_decref(client->about);
}

/*
 * ---- tools ----
 *
 * Function-calling formats differ in names of members only; the schema is passed as it is.
 */

#define API_NAME_MAX 64

static void warn_about_name(const char *name)
{
	at_end(buf_fini) struct buf clean = { 0 };

	if (name != NULL && strlen(name) <= API_NAME_MAX && line_is_plain(name))
		return;
	escape_append(&clean, slice_str(name != NULL ? name : ""), "");
	fprintf(stderr, "mcpgatectl: the API does not accept this name: '%s'\n",
		buf_terminate(&clean));
}

static json_t *convert_openai(const json_t *tool)
{
	warn_about_name(document_string(tool, "name"));
	return json_pack("{s:s, s:{s:O?, s:O*, s:O*}}", "type", "function", "function", "name",
			 json_object_get(tool, "name"), "description",
			 json_object_get(tool, "description"), "parameters",
			 json_object_get(tool, "inputSchema"));
}

static json_t *convert_anthropic(const json_t *tool)
{
	warn_about_name(document_string(tool, "name"));
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
	const char *words[] = { document_string(item, "type"), document_string(item, "mimeType"),
				document_string(item, "uri"), document_string(resource, "uri") };
	size_t size = json_string_length(json_object_get(item, "data"));
	at_end(buf_fini) struct buf text = { 0 };

	buf_append_char(&text, '[');
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (words[i] != NULL)
			buf_printf(&text, "%s%s", text.len > 1 ? " " : "", words[i]);
	}
	if (size > 0)
		buf_printf(&text, ", about %zu bytes", size / 4 * 3);
	buf_append_char(&text, ']');
	escape_print(stdout, "", buf_slice(&text), "");
	if (json_is_string(json_object_get(resource, "text")))
		print_text(json_object_get(resource, "text"));
}

/* Prints the content of a tools/call result: texts as they are, anything else by its kind. */
static void tools_print_result(const json_t *result)
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
	at_end(mem_free) char *text =
		json_dumps(value, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);

	puts(text != NULL ? text : "null");
}

/*
 * ---- offers ----
 *
 * Each command is a client of its own, that begins a session and ends it.
 */

/* Where somebody finds out why a server cannot be started. */
static void fail_of_server(const struct mcp_client *client, const char *why)
{
	line_fail(why);
	if (client->is_server_down)
		fprintf(stderr,
			"see: mcpgatectl status; mcpgatectl logs %s; mcpgatectl doctor %s\n",
			client->server, client->server);
	if (client->is_forbidden && client->claims == NULL)
		fprintf(stderr,
			"the server gets claims of its caller (${claim:NAME} in the configuration); say "
			"them: --claims '{\"NAME\": \"VALUE\"}'\n");
}

/* All items of a list; NULL: why not has been said. */
static json_t *list_items(const struct line *line, const char *method, const char *member)
{
	struct error err = { ERROR_NONE, "" };
	struct mcp_client client;
	json_t *items = NULL;

	if (mcp_client_open(&client, line, &err) == 0)
		items = mcp_client_list(&client, method, member, &err);
	if (items == NULL)
		fail_of_server(&client, err.text);
	mcp_client_close(&client);
	return items;
}

int offers_run_tools(const struct line *line)
{
	const char *format = line->format != NULL ? line->format : "mcp";
	json_t *tools = list_items(line, "tools/list", "tools");
	json_auto_t *converted = NULL;

	if (tools != NULL && (line->format != NULL || line->is_json)) {
		converted = tools_convert(tools, format);
		CHECK(converted != NULL); /* the option has been looked at */
		tools_print_json(converted);
	} else if (tools != NULL) {
		show_tools(tools);
	}
	return line_finish(tools);
}

int offers_run_prompts(const struct line *line)
{
	json_t *prompts = list_items(line, "prompts/list", "prompts");

	if (prompts != NULL && line->is_json)
		tools_print_json(prompts);
	else if (prompts != NULL)
		show_prompts(prompts);
	return line_finish(prompts);
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
	json_auto_t *resources = NULL, *templates = NULL;

	if (mcp_client_open(&client, line, &err) == 0)
		resources = mcp_client_list(&client, "resources/list", "resources", &err);
	if (resources != NULL)
		templates = list_templates(&client, &err);
	if (templates == NULL)
		fail_of_server(&client, err.text);
	mcp_client_close(&client);
	if (templates == NULL)
		return EXIT_FAILED;
	if (line->is_json) {
		json_auto_t *both = json_pack("{s:O, s:O}", "resources", resources,
					      "resourceTemplates", templates);

		tools_print_json(both);
	} else {
		show_resources(resources, templates);
	}
	return 0;
}

/* The params of the call that the words ask for. */
static json_t *read_call(const struct line *line, struct error *err)
{
	const char *text = line->count > 3 ? line->words[3] : "{}";
	json_error_t why = { .text = "" };
	json_auto_t *arguments = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	json_auto_t *name = json_string(line->words[2]);

	if (json_is_object(arguments) && name != NULL)
		return json_pack("{s:O, s:O}", "name", name, "arguments", arguments);
	if (name == NULL)
		error_set(err, ERROR_INVALID, "the name of the tool is no UTF-8");
	else
		error_set(err, ERROR_INVALID,
			  "the arguments must be a JSON object, like '{\"text\":\"hello\"}'%s%s",
			  why.text[0] != '\0' ? ": " : "", why.text);
	return NULL;
}

int offers_run_call(const struct line *line)
{
	struct error err = { ERROR_NONE, "" };
	json_auto_t *params = read_call(line, &err);
	struct mcp_client client;
	json_auto_t *result = NULL;
	bool is_error;

	CHECK(line->count >= 3);
	if (params == NULL)
		return line_refuse_usage(err.text);
	if (mcp_client_open(&client, line, &err) == 0)
		result = mcp_client_ask(&client, "tools/call", json_incref(params), &err);
	if (result == NULL)
		fail_of_server(&client, err.text);
	mcp_client_close(&client);
	if (result == NULL)
		return EXIT_FAILED;
	is_error = json_is_true(json_object_get(result, "isError"));
	if (line->is_json)
		tools_print_json(result);
	else
		tools_print_result(result);
	return is_error ? EXIT_FAILED : 0;
}
