/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One question to a web server, one answer, while we wait. Bounded in bytes and time; no redirects,
 * no proxies, no cookies; https, or http to loopback.
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
	const char *accept; /* NULL: JSON, and for a body events as well */
	struct slice body;
	const char *token;   /* sent as Bearer, or NULL */
	const char *session; /* Mcp-Session-Id, or NULL */
	struct slice ca;     /* PEM text of the accepted CAs; {NULL, 0}: the system's */
	/* A loopback address may be asked: for the user's own URL there, and what it leads to. */
	bool may_loopback;
	/* Asked after each event of an event stream: whether the rest need not be waited for. Or NULL. */
	bool (*is_enough)(struct slice body);
};

struct web_answer {
	int status; /* of HTTP, or 0: none came, and `error` says why */
	struct buf error;
	struct buf body;
	struct buf challenge; /* all WWW-Authenticate fields, joined */
	char *type;           /* Content-Type, Location, Mcp-Session-Id; "" if absent */
	char *location;
	char *session;
	char *address; /* that was connected to, or "" */
};

/* Asks. The answer is the caller's (web_answer_fini), in any case. */
void web_ask(const struct web_question *question, struct web_answer *answer_r);
void web_answer_fini(struct web_answer *answer);

#endif
