/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP over the daemon's admin socket: one request a connection, waiting. */
#ifndef MCPGATED_CTL_CLIENT_H
#define MCPGATED_CTL_CLIENT_H

#include <jansson.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

#define CLIENT_PATH_BYTES 108 /* of a unix socket's address */

struct client_request {
	const char *socket; /* its path */
	const char *method;
	const char *target;
	struct slice body;   /* JSON; empty: none */
	const char *session; /* Mcp-Session-Id, or NULL */
	long total_ms;       /* the answer must be there in time; 0: whenever it comes */
	/* Gets the data of each event as it comes, if the daemon answers with events. NULL: the body is kept. */
	void (*on_event)(struct slice data);
};

struct client_reply {
	int status;
	struct buf body;
	char *session; /* Mcp-Session-Id, or NULL */
};

/* Where the daemon is, if nobody says: the user's own one if there is a socket, else the system's. */
void client_find_socket(char path_r[CLIENT_PATH_BYTES]);

/* Returns 0 and the reply whatever its status (client_reply_fini), or -1. */
int client_ask(const struct client_request *request, struct client_reply *reply_r,
	       struct error *err) must_check;
/* Its body as JSON (the caller's), also with NUL characters in texts; NULL: err says why not. */
json_t *client_reply_read(const struct client_reply *reply, struct error *err);
void client_reply_fini(struct client_reply *reply);

/* The request has on_event: 0 when its stream has ended, or -1: it failed, or the daemon refuses. */
int client_follow(const struct client_request *request, struct error *err) must_check;

#endif
