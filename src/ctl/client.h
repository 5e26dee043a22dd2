/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking HTTP, one request a connection: over the daemon's admin socket, or to a web server. Bytes
 * are limited, and for web servers time as well; no redirects, no proxies, no cookies.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

#define CLIENT_PATH_BYTES 108 /* of a unix socket's address */
#define CLIENT_SOCKET_VARIABLE "MCPGATED_SOCKET"

/* Borrowed. What is not given is NULL or empty. */
struct client_request {
	const char *socket; /* the path of the daemon's; NULL: a web server */
	const char *method;
	const char *target;  /* a path; of a web server: the whole URL */
	const char *accept;  /* not given: JSON and events */
	struct slice body;   /* JSON */
	const char *token;   /* sent as Bearer */
	const char *session; /* Mcp-Session-Id */
	const char *claims;  /* Caller-Claims, of the caller to be served */
	struct slice ca;     /* trusted CAs as PEM; not given: the system's */
	/* Loopback addresses are allowed: for the user's own loopback URL and what it leads to. */
	bool may_loopback;
	long total_ms; /* time limit for the answer; 0: none */
	/* Gets the data of each event as it arrives, if the daemon answers with events. */
	void (*on_event)(struct slice data);
	/* Called after each event of an event stream; true: the rest is not needed. */
	bool (*is_enough)(struct slice body);
};

struct client_reply {
	int status; /* 0: there was no response */
	struct buf body;
	char *session; /* Mcp-Session-Id, or NULL */
	/* of web servers */
	struct buf error;     /* why there was no response */
	struct buf challenge; /* all WWW-Authenticate fields, joined */
	char *type;           /* Content-Type, Location; "" if absent */
	char *location;
	char *address; /* of the connection, or "" */
};

/*
 * The default path of the daemon's socket: what CLIENT_SOCKET_VARIABLE says; else that of the user's own daemon if it exists, else the
 * system's. Returns false if XDG_RUNTIME_DIR says where the user's own would be, and it is not.
 */
bool client_find_socket(char path_r[CLIENT_PATH_BYTES]);

/*
 * Asks the daemon. Returns 0 and the reply, whatever its status (end it with client_reply_fini), or
 * -1.
 */
int client_ask(const struct client_request *request, struct client_reply *reply_r,
	       struct error *err) must_check;
/*
 * Asks a web server: by https, or by http to loopback. The caller ends the reply with
 * client_reply_fini in any case.
 */
void client_ask_web(const struct client_request *request, struct client_reply *reply_r);
/*
 * Parses its body as JSON (owned by the caller); texts may contain NUL characters. NULL: err says
 * why not.
 */
json_t *client_reply_read(const struct client_reply *reply, struct error *err);
void client_reply_fini(struct client_reply *reply);
