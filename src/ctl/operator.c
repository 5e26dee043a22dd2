/* SPDX-License-Identifier: Apache-2.0 */
/* Offers no capability, so that no server asks anything back, and takes whole answers only. */
#include "ctl/operator.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ctl/client.h"
#include "mcp/revision.h"

#define PAGES_MAX 1000
#define ERROR_SHOWN 200

/* Takes message. Returns the reply's JSON, or NULL with err, which stays empty where no body is due. */
static json_t *operator_send(struct operator* operator, const char * method, json_t *message,
			     struct error *err)
{
	char *body = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;
	char *target = mem_printf("/mcp/%s", operator->server);
	char *fields = mem_printf("Accept: application/json, text/event-stream\r\n%s%s%s",
				  operator->session != NULL ? "Mcp-Session-Id: " : "",
				  operator->session != NULL ? operator->session : "",
				  operator->session != NULL ? "\r\n" : "");
	struct client_request request = { operator->socket, method, target, fields,
					  slice_str(body != NULL ? body : "") };
	struct client_reply reply;
	json_t *answer = NULL;

	*err = (struct error){ ERROR_NONE, "" };
	if (client_ask(&request, &reply, err) == 0) {
		struct slice session = client_reply_field(&reply, "mcp-session-id");

		if (operator->session == NULL && session.n> 0)
			operator->session = mem_printf("%.*s", SLICE_ARG(session));
		if (reply.status == 404 && operator->session == NULL)
			error_set(err, ERROR_INVALID,
				  "there is no server '%s'; mcpgatectl servers lists them",
				  operator->server);
		else if (reply.body.len > 0)
			answer = client_reply_read(&reply, err);
		client_reply_fini(&reply);
	}
	free(body);
	free(target);
	free(fields);
	json_decref(message);
	return answer;
}

static void take_error(const json_t *error, struct error *err)
{
	const char *message = json_string_value(json_object_get(error, "message"));
	const char *plain = json_string_value(error); /* the admin socket's own */
	const json_t *reason = json_object_get(json_object_get(error, "data"), "reason");

	if (plain != NULL)
		error_set(err, ERROR_INVALID, "%.*s", ERROR_SHOWN, plain);
	else
		error_set(err, ERROR_INVALID, "error %d: %.*s%s%s",
			  (int)json_integer_value(json_object_get(error, "code")), ERROR_SHOWN,
			  message != NULL ? message : "without a message",
			  json_is_string(reason) ? "; reason: " : "",
			  json_is_string(reason) ? json_string_value(reason) : "");
}

json_t *operator_ask(struct operator* operator, const char * method, json_t *params,
		     struct error *err)
{
	json_t *answer =
		operator_send(operator, "POST",
			      json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id",
					++operator->last_id, "method", method, "params", params),
			      err);
	json_t *result = json_incref(json_object_get(answer, "result"));

	if (answer != NULL && result == NULL)
		take_error(json_object_get(answer, "error"), err);
	else if (answer == NULL && err->kind == ERROR_NONE)
		error_set(err, ERROR_SYNTAX, "the daemon's answer is empty");
	json_decref(answer);
	return result;
}

int operator_open(struct operator* operator, const char * socket, const char *server,
		  struct error *err)
{
	struct slice revision = revision_newest()->name;
	json_t *params = json_pack("{s:s%, s:{}, s:{s:s, s:s}}", "protocolVersion", revision.p,
				   revision.n, "capabilities", "clientInfo", "name", "mcpgatectl",
				   "version", PACKAGE_VERSION);
	struct error ignored;

	*operator=(struct operator){ .socket = socket, .server = server };
	operator->about = operator_ask(operator, "initialize", params, err);
	if (operator->about == NULL)
		return -1;
	json_decref(operator_send(operator, "POST",
				  json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method",
					    "notifications/initialized"),
				  &ignored));
	return 0;
}

json_t *operator_list_tools(struct operator* operator, struct error * err)
{
	json_t *tools = json_array();
	json_t *cursor = NULL;
	int pages = 0;

	do {
		json_t *params = json_object();
		json_t *page;

		if (cursor != NULL)
			json_object_set_new(params, "cursor", cursor);
		page = operator_ask(operator, "tools/list", params, err);
		if (page == NULL || ++pages > PAGES_MAX) {
			if (page != NULL)
				error_set(err, ERROR_LIMIT, "the list of tools has no end");
			json_decref(page);
			json_decref(tools);
			return NULL;
		}
		json_array_extend(tools, json_object_get(page, "tools"));
		cursor = json_incref(json_object_get(page, "nextCursor"));
		json_decref(page);
	} while (json_is_string(cursor));
	json_decref(cursor);
	return tools;
}

void operator_close(struct operator* operator)
{
	struct error ignored;

	if (operator->session != NULL)
		json_decref(operator_send(operator, "DELETE", NULL, &ignored));
	free(operator->session);
	json_decref(operator->about);
}
