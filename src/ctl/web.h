/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One blocking request to a web server. Bytes and time are limited; no redirects, no proxies, no
 * cookies; only https, or http to loopback.
 */
#ifndef MCPGATED_CTL_WEB_H
#define MCPGATED_CTL_WEB_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

#define WEB_BODY_BYTES_MAX (256 * 1024)
#define WEB_CONNECT_MS 5000
#define WEB_TOTAL_MS 15000

struct web_question {
	const char *url;
	const char *method; /* GET, POST, DELETE */
	const char *accept; /* NULL: JSON, and events if there is a body */
	struct slice body;
	const char *token;   /* sent as Bearer, or NULL */
	const char *session; /* Mcp-Session-Id, or NULL */
	struct slice ca;     /* trusted CAs as PEM; {NULL, 0}: the system's */
	/* Loopback addresses are allowed: for the user's own loopback URL and what it leads to. */
	bool may_loopback;
	/* Called after each event of an event stream; true: the rest is not needed. May be NULL. */
	bool (*is_enough)(struct slice body);
};

struct web_answer {
	int status; /* HTTP status; 0: no response, and `error` says why */
	struct buf error;
	struct buf body;
	struct buf challenge; /* all WWW-Authenticate fields, joined */
	char *type;           /* Content-Type, Location, Mcp-Session-Id; "" if absent */
	char *location;
	char *session;
	char *address; /* of the connection, or "" */
};

/* Sends the request. The caller ends the answer with web_answer_fini in any case. */
void web_ask(const struct web_question *question, struct web_answer *answer_r);
void web_answer_fini(struct web_answer *answer);

#endif
