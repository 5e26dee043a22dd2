/* SPDX-License-Identifier: Apache-2.0 */
/* Converts tools to the formats of model APIs, and prints the results of tools. */
#ifndef MCPGATED_CTL_TOOLS_H
#define MCPGATED_CTL_TOOLS_H

#include <jansson.h>

/*
 * `format`: "mcp", "openai" or "anthropic". Returns JSON (owned by the caller), or NULL: unknown
 * format. Names that the API would reject are reported on stderr.
 */
json_t *tools_convert(const json_t *tools, const char *format);
/* Format number i; NULL: there are no more. */
const char *tools_format(size_t i);
/* Prints the content of a tools/call result: texts as they are, anything else by its kind. */
void tools_print_result(const json_t *result);
/* Prints JSON in ASCII, which cannot affect a terminal. */
void tools_print_json(const json_t *value);

#endif
