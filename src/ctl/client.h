/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking HTTP over the daemon's admin socket, one request per connection. */
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
	long total_ms;       /* time limit for the answer; 0: none */
	/*
	 * Called with the data of each event as it arrives, if the daemon answers with events.
	 * NULL: the body is stored.
	 */
	void (*on_event)(struct slice data);
};

struct client_reply {
	int status;
	struct buf body;
	char *session; /* Mcp-Session-Id, or NULL */
};

/*
 * The default path of the daemon's socket: that of the user's own daemon if it exists, else the
 * system's. Returns false if XDG_RUNTIME_DIR says where the user's own would be, and it is not.
 */
bool client_find_socket(char path_r[CLIENT_PATH_BYTES]);

/* Returns 0 and the reply, whatever its status (end it with client_reply_fini), or -1. */
int client_ask(const struct client_request *request, struct client_reply *reply_r,
	       struct error *err) must_check;
/*
 * Parses its body as JSON (owned by the caller); texts may contain NUL characters. NULL: err says
 * why not.
 */
json_t *client_reply_read(const struct client_reply *reply, struct error *err);
void client_reply_fini(struct client_reply *reply);

/* For a request with on_event. 0: its stream has ended; -1: it failed, or the daemon refused it. */
int client_follow(const struct client_request *request, struct error *err) must_check;

#endif
