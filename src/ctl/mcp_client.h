/* SPDX-License-Identifier: Apache-2.0 */
/* An MCP client that speaks to one server through the daemon, by its admin socket. */
#ifndef MCPGATED_CTL_MCP_CLIENT_H
#define MCPGATED_CTL_MCP_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/error.h"

struct mcp_client {
	const char *socket; /* borrowed, as is the next */
	const char *server;
	char *session;       /* its id */
	json_t *about;       /* the result of initialize */
	bool is_server_down; /* the last request failed because the server could not be started */
	int error_code;      /* of the last request; 0: it had no error of JSON-RPC */
	int last_id;
};

/* The params of initialize, as all of mcpgatectl send it; the caller's. */
json_t *mcp_client_hello(void);

/* Begins a session; mcp_client_close also after a failure. */
int mcp_client_open(struct mcp_client *client, const char *socket, const char *server,
		    struct error *err) must_check;
/* Takes params. Returns the result (the caller's), or NULL: the server's or the daemon's error is in err. */
json_t *mcp_client_ask(struct mcp_client *client, const char *method, json_t *params,
		       struct error *err);
/* All items of a list, of all pages: those that results of the method have in this member. NULL: failed. */
json_t *mcp_client_list(struct mcp_client *client, const char *method, const char *member,
			struct error *err);
void mcp_client_close(struct mcp_client *client);

#endif
