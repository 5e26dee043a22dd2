/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What servers offer: lists of tools, prompts and resources, and calls of tools, over the same
 * path as any client.
 */
#ifndef MCPGATED_CTL_OFFERS_H
#define MCPGATED_CTL_OFFERS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/error.h"
#include "ctl/line.h"

/* The params of initialize that all of mcpgatectl sends; owned by the caller. */
json_t *mcp_client_hello(void);

/*
 * ---- tools ----
 *
 * Converts tools to the formats of model APIs, and prints the results of tools.
 */

/*
 * `format`: "mcp", "openai" or "anthropic". Returns JSON (owned by the caller), or NULL: unknown
 * format. Names that the API would reject are reported on stderr.
 */
json_t *tools_convert(const json_t *tools, const char *format);
/* Format number i; NULL: there are no more. */
const char *tools_format(size_t i);
/* Prints JSON in ASCII, which cannot affect a terminal. */
void tools_print_json(const json_t *value);

/*
 * ---- offers ----
 *
 * Lists a server's tools, prompts and resources, and calls a tool, over the same path as any
 * client.
 */

/* The commands, whose first argument is the server. Each returns the exit status. */
int offers_run_tools(const struct line *line);
int offers_run_prompts(const struct line *line);
int offers_run_resources(const struct line *line);
int offers_run_call(const struct line *line);

#endif
