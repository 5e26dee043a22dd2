/* SPDX-License-Identifier: Apache-2.0 */
/* Offers no capability, so that no server asks anything back, and takes whole answers only. */
#include "ctl/mcp_client.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ctl/client.h"
#include "mcp/revision.h"

#define PAGES_MAX 1000
#define ERROR_SHOWN 200

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
	char *body = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;
	char *target = mem_printf("/mcp/%s", client->server);
	struct client_request request = { .socket = client->socket,
					  .method = message != NULL ? "POST" : "DELETE",
					  .target = target,
					  .body = slice_str(body != NULL ? body : ""),
					  .session = client->session };
	struct client_reply reply;
	json_t *answer = NULL;

	CHECK(client->socket != NULL && client->server != NULL);
	*err = (struct error){ ERROR_NONE, "" };
	if (client_ask(&request, &reply, err) == 0) {
		if (client->session == NULL && reply.session != NULL)
			client->session = mem_strdup(reply.session);
		if (reply.status == 404 && client->session == NULL)
			error_set(err, ERROR_INVALID,
				  "there is no server '%s'; mcpgatectl servers lists them",
				  client->server);
		else if (reply.body.len > 0)
			answer = client_reply_read(&reply, err);
		client_reply_fini(&reply);
	}
	free(body);
	free(target);
	json_decref(message);
	return answer;
}

json_t *mcp_client_ask(struct mcp_client *client, const char *method, json_t *params,
		       struct error *err)
{
	json_t *message = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id",
				    ++client->last_id, "method", method, "params", params);
	json_t *answer = mcp_client_send(client, message, err);
	json_t *result = json_incref(json_object_get(answer, "result"));
	const json_t *error = json_object_get(answer, "error");
	const char *text = json_string_value(json_object_get(error, "message"));
	const char *plain = json_string_value(error); /* the admin socket's own */
	const char *reason =
		json_string_value(json_object_get(json_object_get(error, "data"), "reason"));

	client->error_code = (int)json_integer_value(json_object_get(error, "code"));
	client->is_server_down = reason != NULL && strcmp(reason, "backend_unavailable") == 0;
	if (answer == NULL && err->kind == ERROR_NONE)
		error_set(err, ERROR_SYNTAX, "the daemon's answer is empty");
	else if (answer != NULL && result == NULL && plain != NULL)
		error_set(err, ERROR_INVALID, "%.*s", ERROR_SHOWN, plain);
	else if (answer != NULL && result == NULL)
		error_set(err, ERROR_INVALID, "error %d: %.*s%s%s",
			  (int)json_integer_value(json_object_get(error, "code")), ERROR_SHOWN,
			  text != NULL ? text : "without a message",
			  reason != NULL ? "; reason: " : "", reason != NULL ? reason : "");
	CHECK((result == NULL) == (err->kind != ERROR_NONE));
	json_decref(answer);
	return result;
}

int mcp_client_open(struct mcp_client *client, const char *socket, const char *server,
		    struct error *err)
{
	struct error ignored;

	*client = (struct mcp_client){ .socket = socket, .server = server };
	client->about = mcp_client_ask(client, "initialize", mcp_client_hello(), err);
	if (client->about == NULL)
		return -1;
	json_decref(mcp_client_send(client,
				    json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method",
					      "notifications/initialized"),
				    &ignored));
	return 0;
}

json_t *mcp_client_list(struct mcp_client *client, const char *method, const char *member,
			struct error *err)
{
	json_t *items = json_array();
	json_t *cursor = NULL;

	for (int pages = 0; pages < PAGES_MAX; pages++) {
		json_t *params = json_pack("{s:o*}", "cursor", cursor);
		json_t *page = mcp_client_ask(client, method, params, err);

		if (page == NULL) {
			json_decref(items);
			return NULL;
		}
		json_array_extend(items, json_object_get(page, member));
		cursor = json_incref(json_object_get(page, "nextCursor"));
		json_decref(page);
		if (!json_is_string(cursor)) {
			json_decref(cursor);
			return items;
		}
	}
	json_decref(cursor);
	json_decref(items);
	error_set(err, ERROR_LIMIT, "the list does not end");
	return NULL;
}

void mcp_client_close(struct mcp_client *client)
{
	struct error ignored;

	if (client->session != NULL)
		json_decref(mcp_client_send(client, NULL, &ignored));
	free(client->session);
	json_decref(client->about);
}
