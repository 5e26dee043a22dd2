/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a tool: one text, or one that says that the tool failed. Both take text. */
#ifndef MCPGATED_DEMO_TOOL_RESULT_H
#define MCPGATED_DEMO_TOOL_RESULT_H

#include <jansson.h>

json_t *tool_result_text(json_t *text);
json_t *tool_result_error(json_t *text);

#endif
