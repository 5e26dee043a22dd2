/* SPDX-License-Identifier: Apache-2.0 */
/* An MCP client that speaks to one server through the daemon, by its admin socket. */
#ifndef MCPGATED_CTL_OPERATOR_H
#define MCPGATED_CTL_OPERATOR_H

#include <jansson.h>

#include "base/check.h"
#include "base/error.h"

struct operator
{
	const char *socket; /* borrowed, as is the next */
	const char *server;
	char *session; /* its id */
	json_t *about; /* the result of initialize */
	int last_id;
};

/* Begins a session; operator_close also after a failure. */
int operator_open(struct operator* operator, const char * socket, const char *server,
		  struct error *err) must_check;
/* Takes params. Returns the result (the caller's), or NULL: the server's or the daemon's error is in err. */
json_t *operator_ask(struct operator* operator, const char * method, json_t *params,
		     struct error *err);
/* All tools, of all pages; NULL: failed. */
json_t *operator_list_tools(struct operator* operator, struct error * err);
void operator_close(struct operator* operator);

#endif
