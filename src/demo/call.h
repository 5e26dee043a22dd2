/* SPDX-License-Identifier: Apache-2.0 */
/* One request that is being answered, the error that its answer becomes, and the results of tools. */
#ifndef MCPGATED_DEMO_CALL_H
#define MCPGATED_DEMO_CALL_H

#include <stdbool.h>

#include <jansson.h>

#include "base/check.h"
#include "base/slice.h"

struct call {
	const json_t *id;
	const json_t *params; /* an object, maybe empty */
	bool is_later;        /* a job answers it */
	int code;             /* of the error; 0 without one */
	char text[256];
	json_t *data;
};

/* Makes the answer an error; returns NULL, so that handlers can return it. */
json_t *call_fail(struct call *call, int code, const char *format, ...) printf_like(3, 4);
/* As json_unpack; a failure becomes MCP_INVALID_PARAMS and -1. */
int call_unpack(struct call *call, const json_t *value, const char *format, ...) must_check;
/* A string argument; NULL with an error of the call. */
const json_t *call_string(struct call *call, const json_t *args, const char *name);
/* What a string says, whole: a NUL ends nothing. {NULL, 0} if it is no string. SEC-42 */
struct slice call_text(const json_t *string);
/* Whether it is a string and says just that. */
bool call_is(const json_t *string, const char *text);

/* The result of a tool: one text, or one that says that the tool failed. Both take text. */
json_t *call_result(json_t *text);
json_t *call_result_error(json_t *text);

#endif
