/* SPDX-License-Identifier: Apache-2.0 */
/* An MCP client that speaks to one server through the daemon's admin socket. */
#ifndef MCPGATED_CTL_MCP_CLIENT_H
#define MCPGATED_CTL_MCP_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/error.h"

struct mcp_client {
	const char *socket; /* borrowed, like the next */
	const char *server;
	char *session;       /* the session id */
	json_t *about;       /* the result of initialize */
	bool is_server_down; /* the last request failed because the server could not be started */
	int error_code;      /* of the last request; 0: no JSON-RPC error */
	int last_id;
};

/* The params of initialize that all of mcpgatectl sends; owned by the caller. */
json_t *mcp_client_hello(void);

/* Begins a session. mcp_client_close must be called even after a failure. */
int mcp_client_open(struct mcp_client *client, const char *socket, const char *server,
		    struct error *err) must_check;
/*
 * Takes params. Returns the result (owned by the caller), or NULL: err is the server's or the
 * daemon's error.
 */
json_t *mcp_client_ask(struct mcp_client *client, const char *method, json_t *params,
		       struct error *err);
/*
 * All items of a list, from all pages: those in this member of the method's results. NULL: failed.
 */
json_t *mcp_client_list(struct mcp_client *client, const char *method, const char *member,
			struct error *err);
void mcp_client_close(struct mcp_client *client);

#endif
