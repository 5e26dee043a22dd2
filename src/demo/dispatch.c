/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of methods: takes the client's messages apart and answers them, by itself or by what tools,
 * resources and prompts return. It does not read input or wait: demo.c does.
 *
 * Invariant: each request gets exactly one answer, here or from its job, unless it was cancelled.
 *
 * MCP 2024-11-05 to 2025-11-25: base protocol, lifecycle, cancellation, logging.
 */
#include "demo/dispatch.h"

#include <string.h>

#include "demo/call.h"
#include "demo/job.h"
#include "demo/prompts.h"
#include "demo/resources.h"
#include "demo/rpc.h"
#include "demo/tools.h"
#include "mcp/level.h"

/* Newest first. */
static const struct revision revisions[] = {
	{ .name = "2025-11-25",
	  .completions = true,
	  .progress_has_message = true,
	  .structured = true },
	{ .name = "2025-06-18",
	  .completions = true,
	  .progress_has_message = true,
	  .structured = true },
	{ .name = "2025-03-26",
	  .batches = true,
	  .completions = true,
	  .progress_has_message = true },
	{ .name = "2024-11-05" },
};

static json_t *on_initialize(struct server *server, struct call *call)
{
	size_t at = ARRAY_LEN(revisions) - 1;
	const json_t *version;
	json_t *capabilities;

	if (server->revision != NULL)
		return call_fail(call, MCP_INVALID_REQUEST, "initialize was sent before");
	version = call_string(call, call->params, "protocolVersion");
	if (version == NULL ||
	    call_unpack(call, call->params, "{s:o}", "capabilities", &capabilities) != 0)
		return NULL;
	CHECK(server->client == NULL);
	/* An unknown revision is answered with the newest one. */
	while (at > 0 && !call_is(version, revisions[at].name))
		at--;
	server->revision = &revisions[at];
	server->client = json_incref(capabilities);
	return json_pack(
		"{s:s, s:{s:{}, s:{s:b}, s:{}, s:{}, s:o*}, s:{s:s, s:s}, s:s}", "protocolVersion",
		server->revision->name, "capabilities", "tools", "resources", "subscribe", 1,
		"prompts", "logging", "completions",
		server->revision->completions ? json_object() : NULL, "serverInfo", "name",
		"mcpgated-demo", "version", PACKAGE_VERSION, "instructions",
		"A server to try clients and gateways with. Every tool does one small thing.");
}

static json_t *on_ping(struct server *server, struct call *call)
{
	(void)server;
	(void)call;
	return json_object();
}

static json_t *on_set_level(struct server *server, struct call *call)
{
	const json_t *name = call_string(call, call->params, "level");
	int level;

	if (name == NULL)
		return NULL;
	level = level_find(call_text(name));
	if (level < 0)
		return call_fail(call, MCP_INVALID_PARAMS, "%.40s is no log level",
				 json_string_value(name));
	server->log_level = level;
	return json_object();
}

static const struct {
	const char *name;
	json_t *(*answer)(struct server *server, struct call *call);
	bool is_early; /* allowed before initialize */
	bool is_list;  /* takes a cursor; all lists here have one page */
} methods[] = {
	{ .name = "initialize", .answer = on_initialize, .is_early = true },
	{ .name = "ping", .answer = on_ping, .is_early = true },
	{ .name = "logging/setLevel", .answer = on_set_level },
	{ .name = "tools/list", .answer = tools_list, .is_list = true },
	{ .name = "tools/call", .answer = tools_call },
	{ .name = "resources/list", .answer = resources_list, .is_list = true },
	{ .name = "resources/templates/list", .answer = resources_list_templates, .is_list = true },
	{ .name = "resources/read", .answer = resources_read },
	{ .name = "resources/subscribe", .answer = resources_subscribe },
	{ .name = "resources/unsubscribe", .answer = resources_unsubscribe },
	{ .name = "prompts/list", .answer = prompts_list, .is_list = true },
	{ .name = "prompts/get", .answer = prompts_get },
	{ .name = "completion/complete", .answer = prompts_complete },
};

static json_t *answer(struct server *server, const json_t *name, struct call *call)
{
	size_t i = 0;

	while (i < ARRAY_LEN(methods) && !call_is(name, methods[i].name))
		i++;
	if (i == ARRAY_LEN(methods))
		return call_fail(call, MCP_METHOD_NOT_FOUND, "There is no method %.80s",
				 json_string_value(name));
	if (server->revision == NULL && !methods[i].is_early)
		return call_fail(call, MCP_INVALID_REQUEST, "The first request must be initialize");
	if (!json_is_object(call->params))
		return call_fail(call, MCP_INVALID_PARAMS, "params must be an object");
	if (methods[i].is_list && json_object_get(call->params, "cursor") != NULL)
		return call_fail(call, MCP_INVALID_PARAMS, "No such cursor: there is one page");
	return methods[i].answer(server, call);
}

static void take_request(struct server *server, const json_t *method, const json_t *id,
			 json_t *params)
{
	json_t *none = params == NULL ? json_object() : NULL, *result;
	struct call call = { .id = id, .params = params != NULL ? params : none };

	CHECK(id != NULL);
	if (!json_is_string(id) && !json_is_integer(id)) {
		rpc_send_error(NULL, MCP_INVALID_REQUEST, "id must be a string or an integer",
			       NULL);
	} else {
		result = answer(server, method, &call);
		CHECK((result != NULL) + (call.code != 0) + call.is_later == 1);
		if (call.code != 0)
			rpc_send_error(id, call.code, call.text, call.data);
		else if (!call.is_later)
			rpc_send_result(id, result);
	}
	json_decref(none);
}

static void take_message(struct server *server, const json_t *message)
{
	const json_t *id = json_object_get(message, "id");
	const json_t *method = json_object_get(message, "method");
	json_t *params = json_object_get(message, "params");
	const json_t *result = json_object_get(message, "result");
	const json_t *error = json_object_get(message, "error");

	if (json_is_string(method) && id != NULL)
		take_request(server, method, id, params);
	else if (call_is(method, "notifications/cancelled"))
		job_cancel(server, json_object_get(params, "requestId"));
	else if (json_is_string(method))
		return; /* the other notifications change nothing here */
	else if (id != NULL && (result != NULL) != (error != NULL))
		job_take_answer(server, id, result, error);
	else
		rpc_send_error(NULL, MCP_INVALID_REQUEST, "That is no JSON-RPC message", NULL);
}

void dispatch_line(struct server *server, struct slice line)
{
	struct slice rest = line;
	json_error_t error;
	json_t *value;

	while (rest.n > 0 && memchr(" \t\r", rest.p[rest.n - 1], 3) != NULL)
		rest.n--;
	if (rest.n == 0)
		return; /* blank */
	value = json_loadb(line.p, line.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	if (value == NULL) {
		rpc_send_error(NULL, MCP_PARSE_ERROR, error.text, NULL);
	} else if (json_is_array(value) && json_array_size(value) > 0 && server->revision != NULL &&
		   server->revision->batches) {
		for (size_t i = 0; i < json_array_size(value); i++)
			take_message(server, json_array_get(value, i));
	} else {
		take_message(server, value);
	}
	json_decref(value);
}
