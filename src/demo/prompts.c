/* SPDX-License-Identifier: Apache-2.0 */
/* One prompt with one argument, and names to complete it with. */
#include "demo/prompts.h"

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
	const json_t *prompt = call_string(call, call->params, "name");
	const char *name;

	(void)server;
	if (prompt == NULL)
		return NULL;
	if (!call_is(prompt, "greet"))
		return call_fail(call, MCP_INVALID_PARAMS, "There is no prompt %.80s",
				 json_string_value(prompt));
	if (call_unpack(call, call->params, "{s:{s:s}}", "arguments", "name", &name) != 0)
		return NULL;
	return json_pack("{s:s, s:[{s:s, s:{s:s, s:o}}]}", "description", "Asks for a greeting",
			 "messages", "role", "user", "content", "type", "text", "text",
			 json_sprintf("Please greet %s in one friendly sentence.", name));
}

json_t *prompts_complete(struct server *server, struct call *call)
{
	const json_t *ref, *type, *argument, *name, *value;
	bool is_prompt, is_template;
	struct slice prefix;
	json_t *values;

	(void)server;
	if (call_unpack(call, call->params, "{s:o, s:o}", "ref", &ref, "argument", &argument) != 0)
		return NULL;
	name = call_string(call, argument, "name");
	value = name != NULL ? call_string(call, argument, "value") : NULL;
	if (value == NULL)
		return NULL;
	type = json_object_get(ref, "type");
	is_prompt = call_is(type, "ref/prompt") && call_is(json_object_get(ref, "name"), "greet");
	is_template = call_is(type, "ref/resource") &&
		      call_is(json_object_get(ref, "uri"), "demo://echo/{text}");
	if (!is_prompt && !is_template)
		return call_fail(call, MCP_INVALID_PARAMS,
				 "There is nothing like this to complete");
	prefix = call_text(value);
	values = json_array();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct slice begin = slice_of(names[i], strnlen(names[i], prefix.n));

		if (is_prompt && call_is(name, "name") && slice_is_equal_nocase(begin, prefix))
			json_array_append_new(values, json_string(names[i]));
	}
	return json_pack("{s:{s:o, s:I, s:b}}", "completion", "values", values, "total",
			 (json_int_t)json_array_size(values), "hasMore", 0);
}
