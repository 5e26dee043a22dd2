/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of MCP that the gateway treats in a way of their own; all others just pass. */
#ifndef MCPGATED_MCP_METHOD_H
#define MCPGATED_MCP_METHOD_H

#include "base/slice.h"

enum method_id {
	METHOD_OTHER = 0,
	/* requests of clients */
	METHOD_INITIALIZE,
	METHOD_PING, /* of either side */
	METHOD_TOOLS_CALL,
	METHOD_TOOLS_LIST,
	METHOD_PROMPTS_GET,
	METHOD_RESOURCES_READ,
	METHOD_SET_LEVEL,
	METHOD_SUBSCRIBE,
	METHOD_UNSUBSCRIBE,
	METHOD_COMPLETE,
	METHOD_DISCOVER, /* of the modern era, as the next */
	METHOD_LISTEN,
	/* requests of servers */
	METHOD_ROOTS_LIST,
	METHOD_SAMPLING,
	METHOD_ELICITATION,
	METHOD_TASKS, /* of clients too */
	/* notifications */
	METHOD_INITIALIZED,
	METHOD_CANCELLED,
	METHOD_PROGRESS,
	METHOD_MESSAGE,
	METHOD_ROOTS_CHANGED,
	METHOD_LIST_CHANGED, /* of tools, prompts or resources */
	METHOD_RESOURCE_UPDATED,
	METHOD_ELICITATION_COMPLETE,
	METHOD_TASK_STATUS,
};

/* What servers offer, in the capabilities of their InitializeResult. */
enum offer {
	OFFER_TOOLS = 1,
	OFFER_PROMPTS = 2,
	OFFER_RESOURCES = 4,
	OFFER_SUBSCRIBE = 8,
	OFFER_COMPLETIONS = 16,
	OFFER_LOGGING = 32,
	OFFER_TASKS = 64,
};

enum method_flags {
	METHOD_ASKING = 1, /* a request during which servers ask the client. bridging.md §1.6 */
	METHOD_SAFE = 2,   /* a request that may be made again. bridging.md §4 */
	METHOD_PAGED = 4,  /* its answers may be parts, and name the next one */
	METHOD_REMEMBERED = 8, /* what the server agreed to, its later processes are told, too */
};

struct method {
	enum method_id id;
	struct slice name;
	unsigned int flags;
	unsigned int needs; /* requests of clients: the enum offer without which it is unknown */
	/* Requests of servers: the member of the client's capabilities that they need.
	   METHOD_LIST_CHANGED: the server's, whose listChanged is needed. */
	const char *capability;
};

/* Never NULL: unknown names get the row METHOD_OTHER. */
const struct method *method_find(struct slice name);
/* The number of its row, for tables by method: 0 of unknown ones, below METHOD_NUMBERS. */
#define METHOD_NUMBERS 40
unsigned int method_number(const struct method *method);

#endif
