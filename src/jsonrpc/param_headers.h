/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of a call that header fields mirror. A tool's schema says which: `x-mcp-header` in a
 * property. Streamable HTTP, Custom Headers from Tool Parameters; MOD-HDR-04 to -06, BACK-SEC-02,
 * FRONT-HTTP-11.
 */
#pragma once

#include <stdbool.h>

#include "jsonrpc/scan.h"

struct param_header {
	struct slice name; /* after Mcp-Param-: a token */
	struct json value; /* in the arguments; JSON_ABSENT: a step on the way to it is missing */
	bool is_repeated;  /* a step occurs twice: readers may differ */
};
/* 0: go on, -1: stop. All is borrowed until it returns. */
typedef int param_header_fn(const struct param_header *header, void *arg);

/*
 * Why this schema's annotations are ignored, as a text for the log; NULL: they are valid.
 * MOD-HDR-06
 */
const char *param_headers_check(struct slice input_schema);
/*
 * Calls on_header for each annotation; for none, if they are ignored. Both texts are valid JSON, or
 * empty.
 */
void param_headers_each(struct slice input_schema, struct slice arguments,
			param_header_fn *on_header, void *arg);
