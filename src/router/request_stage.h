/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: the stage with requests of the modern era on it, each with a front of its own. */
#ifndef MCPGATED_ROUTER_REQUEST_STAGE_H
#define MCPGATED_ROUTER_REQUEST_STAGE_H

#include "router/pool_stage.h"

#define ASKERS_MAX 64

struct asker {
	struct call call;
	struct buf messages; /* each followed by a bar */
	struct buf response;
	enum ending ending;
	enum reason reason;
	int http_status;
};

/* For cmocka: as pool_setup; every request has ended at the end. */
int request_setup(void **state);
int request_teardown(void **state);

/* A request of anybody, or of this principal. */
struct asker *ask(const char *text);
struct asker *ask_as(struct principal *principal, const char *text);
/* It was answered with this, with this status of HTTP; 0: 200. */
void was_answered(struct asker *asker, int http_status, const char *text);
/* It was answered with the error of this code and reason, as JSON text. */
void was_refused(struct asker *asker, const char *code, const char *reason);
/* The process i gets a message that is of no interest. */
void reads_one(size_t i);
/* The member of its result at this path: to be freed. NULL: there is none. */
char *result_member(struct asker *asker, const char *name);

#define MODERN_META(caps)                                                  \
	"'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'," \
	"'io.modelcontextprotocol/clientCapabilities':{" caps "}}"
/* A tools/call with further members of params. */
#define ASK_TOOL(id, caps, more)                                                       \
	"{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':'t'" more \
	"," MODERN_META(caps) "}}"
#define CALLED(id) \
	"{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':'t','_meta':{}}}"

#endif
