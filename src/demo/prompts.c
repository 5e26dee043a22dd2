/* SPDX-License-Identifier: Apache-2.0 */
/* One prompt with one argument, and names to complete it with. */
#include "demo/prompts.h"

#include <string.h>
#include <strings.h>

#include "demo/rpc.h"

static const char *const names[] = { "Ada",     "Alan",  "Barbara", "Dennis",  "Donald", "Edsger",
				     "Frances", "Grace", "Ken",     "Niklaus", "Radia",  "Tony" };

json_t *prompts_list(struct server *server, struct call *call)
{
	(void)server;
	(void)call;
	return json_pack("{s:[{s:s, s:s, s:[{s:s, s:s, s:b}]}]}", "prompts", "name", "greet",
			 "description", "Asks for a greeting", "arguments", "name", "name",
			 "description", "Who is to be greeted", "required", 1);
}

json_t *prompts_get(struct server *server, struct call *call)
{
	const char *prompt, *name;

	(void)server;
	if (call_unpack(call, call->params, "{s:s}", "name", &prompt) != 0)
		return NULL;
	if (strcmp(prompt, "greet") != 0)
		return call_fail(call, MCP_INVALID_PARAMS, "There is no prompt %.80s", prompt);
	if (call_unpack(call, call->params, "{s:{s:s}}", "arguments", "name", &name) != 0)
		return NULL;
	return json_pack("{s:s, s:[{s:s, s:{s:s, s:o}}]}", "description", "Asks for a greeting",
			 "messages", "role", "user", "content", "type", "text", "text",
			 json_sprintf("Please greet %s in one friendly sentence.", name));
}

json_t *prompts_complete(struct server *server, struct call *call)
{
	const char *type, *argument, *value, *name = "", *uri = "";
	json_t *values;
	bool is_prompt, is_template;

	(void)server;
	if (call_unpack(call, call->params, "{s:{s:s, s?s, s?s}, s:{s:s, s:s}}", "ref", "type",
			&type, "name", &name, "uri", &uri, "argument", "name", &argument, "value",
			&value) != 0)
		return NULL;
	is_prompt = strcmp(type, "ref/prompt") == 0 && strcmp(name, "greet") == 0;
	is_template = strcmp(type, "ref/resource") == 0 && strcmp(uri, "demo://echo/{text}") == 0;
	if (!is_prompt && !is_template)
		return call_fail(call, MCP_INVALID_PARAMS,
				 "There is nothing like this to complete");
	values = json_array();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (is_prompt && strcmp(argument, "name") == 0 &&
		    strncasecmp(names[i], value, strlen(value)) == 0)
			json_array_append_new(values, json_string(names[i]));
	}
	return json_pack("{s:{s:o, s:I, s:b}}", "completion", "values", values, "total",
			 (json_int_t)json_array_size(values), "hasMore", 0);
}
