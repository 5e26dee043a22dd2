/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: the stage with modern requests, each with a front of its own. */
#pragma once

#include "router/pool_stage.h"

#define ASKERS_MAX 64

struct asker {
	struct call call;
	struct buf messages; /* each terminated by a bar */
	struct buf response;
	enum ending ending;
	enum reason reason;
	int http_status;
};

/* cmocka setup, as pool_setup, and teardown, which ends every request. */
int request_setup(void **state);
int request_teardown(void **state);

/* Sends a request, anonymously or as this principal. */
struct asker *ask(const char *text);
struct asker *ask_as(struct principal *principal, const char *text);
/* Checks the answer and its HTTP status; 0: 200. */
void was_answered(struct asker *asker, int http_status, const char *text);
/* Checks that it was answered with the error of this code and reason (JSON text). */
void was_refused(struct asker *asker, const char *code, const char *reason);
/* Process i reads a message that the test does not care about. */
void reads_one(size_t i);
/* The member of its result at this path, which the caller frees; NULL: none. */
char *result_member(struct asker *asker, const char *name);

#define ASKER_META(caps)                                                   \
	"'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'," \
	"'io.modelcontextprotocol/clientCapabilities':{" caps "}}"
/* A tools/call with further members of params. */
#define ASK_TOOL(id, caps, more)                                                       \
	"{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':'t'" more \
	"," ASKER_META(caps) "}}"
#define CALLED(id) \
	"{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':'t','_meta':{}}}"
