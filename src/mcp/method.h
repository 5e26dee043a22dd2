/* SPDX-License-Identifier: Apache-2.0 */
/* The MCP methods that the gateway handles specially; all others just pass through. */
#pragma once

#include "base/slice.h"

enum method_id {
	METHOD_OTHER = 0,
	/* requests of clients */
	METHOD_INITIALIZE,
	METHOD_PING, /* sent by either side */
	METHOD_TOOLS_CALL,
	METHOD_TOOLS_LIST,
	METHOD_PROMPTS_GET,
	METHOD_RESOURCES_READ,
	METHOD_SET_LEVEL,
	METHOD_SUBSCRIBE,
	METHOD_UNSUBSCRIBE,
	METHOD_COMPLETE,
	METHOD_DISCOVER, /* this and the next: modern era only */
	METHOD_LISTEN,
	/* requests of servers */
	METHOD_ROOTS_LIST,
	METHOD_SAMPLING,
	METHOD_ELICITATION,
	METHOD_TASKS, /* sent by clients, too */
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

/* What servers offer in the capabilities of their InitializeResult. */
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
	/* a request during which servers may send requests to the client. bridging.md §1.6 */
	METHOD_ASKING = 1,
	METHOD_SAFE = 2,  /* a request that may be repeated. bridging.md §4 */
	METHOD_PAGED = 4, /* results may be partial and name the next page */
	/* if a server has accepted it, later processes of that server are told as well */
	METHOD_REMEMBERED = 8,
};

struct method {
	enum method_id id;
	struct slice name;
	unsigned int flags;
	/* requests of clients: the enum offer without which the method is unknown */
	unsigned int needs;
	/*
	 * Requests of servers: the client capability they need. METHOD_LIST_CHANGED: the server
	 * capability whose listChanged is needed.
	 */
	const char *capability;
};

/* The lists whose changes servers report, and clients of the modern era ask to hear of. */
#define METHOD_CHANGES 3
struct method_change {
	struct slice notification;
	const char *wanted; /* the member of what subscriptions/listen asks for */
	unsigned int offer;
};
extern const struct method_change method_changes[METHOD_CHANGES];

/* Never returns NULL: unknown names get the row METHOD_OTHER. */
const struct method *method_find(struct slice name);
/* The index of its row, for tables by method: 0 for unknown methods, below METHOD_NUMBERS. */
#define METHOD_NUMBERS 40
unsigned int method_number(const struct method *method);
