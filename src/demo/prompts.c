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

static json_t *names_with_prefix(struct slice prefix)
{
	json_t *found = json_array();

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct slice name = slice_str(names[i]);

		if (prefix.n <= name.n && slice_is_equal_nocase(slice_of(name.p, prefix.n), prefix))
			json_array_append_new(found, json_string(names[i]));
	}
	return found;
}

/* Whether ref names something with arguments, and whether that is the prompt. */
static bool is_known_ref(const json_t *ref, bool *is_prompt_r)
{
	const json_t *type = json_object_get(ref, "type");

	*is_prompt_r = call_is(type, "ref/prompt");
	if (*is_prompt_r)
		return call_is(json_object_get(ref, "name"), "greet");
	return call_is(type, "ref/resource") &&
	       call_is(json_object_get(ref, "uri"), "demo://echo/{text}");
}

json_t *prompts_complete(struct server *server, struct call *call)
{
	const json_t *ref, *argument, *name, *value;
	bool is_prompt;
	json_t *values;

	(void)server;
	if (call_unpack(call, call->params, "{s:o, s:o}", "ref", &ref, "argument", &argument) != 0)
		return NULL;
	name = call_string(call, argument, "name");
	value = name != NULL ? call_string(call, argument, "value") : NULL;
	if (value == NULL)
		return NULL;
	if (!is_known_ref(ref, &is_prompt))
		return call_fail(call, MCP_INVALID_PARAMS,
				 "There is nothing like this to complete");
	if (is_prompt && call_is(name, "name"))
		values = names_with_prefix(call_text(value));
	else
		values = json_array();
	return json_pack("{s:{s:o, s:I, s:b}}", "completion", "values", values, "total",
			 (json_int_t)json_array_size(values), "hasMore", 0);
}
