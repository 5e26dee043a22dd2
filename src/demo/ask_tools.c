/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools that send the client a request of their own and answer with what it said. What the client
 * did not declare is not asked for: then the tool fails and says so.
 * MCP elicitation, sampling, roots.
 */
#include "demo/ask_tools.h"

#include <stdlib.h>
#include <string.h>

#include "demo/job.h"
#include "demo/tool_result.h"

#define ANSWER_WITHIN_MS 300000 /* people answer elicitations */

static void on_silence(struct server *server, struct job *job)
{
	job_withdraw(job, "No answer in time");
	job_finish(server, job,
		   tool_result_error(json_string("The client did not answer in time")));
}

/* Makes the call a job that asks the client. Takes params; returns NULL, as the answer comes later. */
static json_t *ask(struct server *server, struct call *call, job_answer_fn *on_answer,
		   const char *method, json_t *params)
{
	struct job *job = job_start(server, call, ANSWER_WITHIN_MS);

	if (job == NULL) {
		json_decref(params);
		return NULL;
	}
	job->on_due = on_silence;
	job->on_answer = on_answer;
	job_ask(server, job, method, params);
	return NULL;
}

/* value as JSON text; a new string. */
static json_t *as_text(const json_t *value)
{
	char *dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	json_t *text = json_string(dump != NULL ? dump : "nothing");

	free(dump);
	return text;
}

static void elicit_on_answer(struct server *server, struct job *job, const json_t *result)
{
	const char *action = json_string_value(json_object_get(result, "action"));
	json_t *content = as_text(json_object_get(result, "content"));

	job_finish(server, job,
		   tool_result_text(json_sprintf("%s: %s", action != NULL ? action : "no action",
						 json_string_value(content))));
	json_decref(content);
}

/* Revision 2025-11-25 names modes; none named is the form. */
static bool has_elicitation(const struct server *server)
{
	const json_t *declared = json_object_get(server->client, "elicitation");

	return declared != NULL &&
	       (json_object_size(declared) == 0 || json_object_get(declared, "form") != NULL);
}

json_t *ask_tools_elicit(struct server *server, struct call *call, const json_t *args)
{
	const char *message = "What is your name?";

	if (call_unpack(call, args, "{s?s}", "message", &message) != 0)
		return NULL;
	if (!has_elicitation(server))
		return tool_result_error(json_string(
			"The client cannot ask its user: it did not declare elicitation"));
	return ask(server, call, elicit_on_answer, "elicitation/create",
		   json_pack("{s:s, s:{s:s, s:{s:{s:s, s:s}}, s:[s]}}", "message", message,
			     "requestedSchema", "type", "object", "properties", "name", "type",
			     "string", "description", "A name", "required", "name"));
}

static void sample_on_answer(struct server *server, struct job *job, const json_t *result)
{
	const json_t *content = json_object_get(result, "content");
	const char *model = json_string_value(json_object_get(result, "model"));
	json_t *said = json_object_get(content, "text");

	said = json_is_string(said) ? json_incref(said) : as_text(content);
	job_finish(server, job,
		   tool_result_text(json_sprintf("%s: %s", model != NULL ? model : "unknown model",
						 json_string_value(said))));
	json_decref(said);
}

json_t *ask_tools_sample(struct server *server, struct call *call, const json_t *args)
{
	const json_t *prompt = call_string(call, args, "prompt");

	if (prompt == NULL)
		return NULL;
	if (json_object_get(server->client, "sampling") == NULL)
		return tool_result_error(
			json_string("The client has no model to ask: it did not declare sampling"));
	return ask(server, call, sample_on_answer, "sampling/createMessage",
		   json_pack("{s:[{s:s, s:{s:s, s:O}}], s:i}", "messages", "role", "user",
			     "content", "type", "text", "text", prompt, "maxTokens", 100));
}

static void roots_on_answer(struct server *server, struct job *job, const json_t *result)
{
	job_finish(server, job, tool_result_text(as_text(json_object_get(result, "roots"))));
}

json_t *ask_tools_roots(struct server *server, struct call *call, const json_t *args)
{
	(void)args;
	if (json_object_get(server->client, "roots") == NULL)
		return tool_result_error(
			json_string("The client has no roots: it did not declare them"));
	return ask(server, call, roots_on_answer, "roots/list", json_object());
}
