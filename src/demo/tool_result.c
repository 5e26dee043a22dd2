/* SPDX-License-Identifier: Apache-2.0 */
/* Results of one text content each. MCP tools. */
#include "demo/tool_result.h"

json_t *tool_result_text(json_t *text)
{
	return json_pack("{s:[{s:s, s:o}]}", "content", "type", "text", "text", text);
}

json_t *tool_result_error(json_t *text)
{
	return json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text", text,
			 "isError", 1);
}
