/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that is being answered, the error that its answer may become, and the results of tools.
 */
#ifndef MCPGATED_DEMO_CALL_H
#define MCPGATED_DEMO_CALL_H

#include <stdbool.h>

#include <jansson.h>

#include "base/check.h"
#include "base/slice.h"

struct call {
	const json_t *id;
	const json_t *params; /* an object, possibly empty */
	bool is_later;        /* a job will answer it */
	int code;             /* of the error; 0: none */
	char text[256];
	json_t *data;
};

/* Turns the answer into an error. Returns NULL, so that handlers can return its result. */
json_t *call_fail(struct call *call, int code, const char *format, ...) printf_like(3, 4);
/* Like json_unpack; on failure sets MCP_INVALID_PARAMS and returns -1. */
int call_unpack(struct call *call, const json_t *value, const char *format, ...) must_check;
/* A string argument; if there is none, sets an error of the call and returns NULL. */
const json_t *call_string(struct call *call, const json_t *args, const char *name);
/* The whole text of a string, including NULs. {NULL, 0} if it is not a string. SEC-42 */
struct slice call_text(const json_t *string);
/* Whether it is a string with exactly this text. */
bool call_is(const json_t *string, const char *text);

/* The result of a tool: a text, or a text that says that the tool failed. Both take text. */
json_t *call_result(json_t *text);
json_t *call_result_error(json_t *text);

#endif
