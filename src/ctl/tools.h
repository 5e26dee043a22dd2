/* SPDX-License-Identifier: Apache-2.0 */
/* Tools in the forms that model APIs take, and what a tool answered, for people. */
#ifndef MCPGATED_CTL_TOOLS_H
#define MCPGATED_CTL_TOOLS_H

#include <jansson.h>

/*
 * `format`: "mcp", "openai" or "anthropic". Returns JSON (the caller's), or NULL: no such format. Names that the API
 * would refuse are told on stderr.
 */
json_t *tools_convert(const json_t *tools, const char *format);
/* The formats by number; NULL: there are no more. */
const char *tools_format(size_t i);
/* Prints the content of a tools/call result: texts as they are, other things by their kind. */
void tools_print_result(const json_t *result);
/* As JSON in ASCII: nothing in it can act on a terminal. */
void tools_print_json(const json_t *value);

#endif
