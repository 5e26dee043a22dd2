/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of tools and what they do. A wrong argument is an error of the protocol (-32602) in every revision, so that
 * tests can tell it from a tool that failed. MCP tools, elicitation, sampling, roots.
 */
#include "demo/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "demo/call.h"
#include "demo/job.h"
#include "demo/resources.h"
#include "demo/rpc.h"
#include "mcp/level.h"

#define SLEEP_MAX_MS 3600000
#define STEPS_MAX 100000
#define BIG_MAX_BYTES (256 * 1024 * 1024)
#define ANSWER_WITHIN_MS 300000 /* people answer elicitations */

static int take_integer(struct call *call, const json_t *args, const char *name, json_int_t max,
			json_int_t *value_r)
{
	const json_t *value = json_object_get(args, name);

	CHECK(max > 0);
	*value_r = json_integer_value(value);
	if (json_is_integer(value) && *value_r >= 0 && *value_r <= max)
		return 0;
	call_fail(call, MCP_INVALID_PARAMS,
		  "%s must be a whole number from 0 to %" JSON_INTEGER_FORMAT, name, max);
	return -1;
}

static json_t *tool_echo(struct server *server, struct call *call, const json_t *args)
{
	const json_t *text = call_string(call, args, "text");

	(void)server;
	return text != NULL ? call_result(json_copy((json_t *)text)) : NULL;
}

static json_t *tool_add(struct server *server, struct call *call, const json_t *args)
{
	const json_t *a = json_object_get(args, "a"), *b = json_object_get(args, "b");
	json_t *sum, *result;
	long long exact;
	char *text;

	if (!json_is_number(a) || !json_is_number(b))
		return call_fail(call, MCP_INVALID_PARAMS, "a and b must be numbers");
	if (json_is_integer(a) && json_is_integer(b) &&
	    !__builtin_add_overflow(json_integer_value(a), json_integer_value(b), &exact))
		sum = json_integer(exact);
	else
		sum = json_real(json_number_value(a) + json_number_value(b));
	if (sum == NULL) /* not even a finite number */
		return call_result_error(json_string("The sum is too large"));
	text = json_dumps(sum, JSON_ENCODE_ANY);
	CHECK(text != NULL && server->revision != NULL);
	result = call_result(json_string(text));
	free(text);
	if (server->revision->structured)
		json_object_set_new(result, "structuredContent", json_pack("{s:O}", "sum", sum));
	json_decref(sum);
	return result;
}

static json_t *tool_time(struct server *server, struct call *call, const json_t *args)
{
	(void)server;
	(void)call;
	(void)args;
	return call_result(resources_time());
}

static void sleep_on_due(struct server *server, struct job *job)
{
	job_finish(server, job, call_result(json_string("slept")));
}

static json_t *tool_sleep(struct server *server, struct call *call, const json_t *args)
{
	struct job *job;
	json_int_t ms;

	if (take_integer(call, args, "ms", SLEEP_MAX_MS, &ms) != 0)
		return NULL;
	job = job_start(server, call, (uint64_t)ms);
	if (job != NULL)
		job->on_due = sleep_on_due;
	return NULL;
}

static void progress_on_due(struct server *server, struct job *job)
{
	json_t *text = NULL;

	CHECK(job->step <= job->count && job->asked == 0);
	if (job->step == job->count) {
		job_finish(server, job,
			   call_result(json_sprintf("%" JSON_INTEGER_FORMAT " steps done",
						    job->count)));
		return;
	}
	job->step++;
	job->due_ms += (uint64_t)(job->step < job->count ? job->interval_ms : 0);
	if (job->token == NULL)
		return;
	if (server->revision->progress_has_message)
		text = json_sprintf("step %" JSON_INTEGER_FORMAT, job->step);
	rpc_send_notification("notifications/progress",
			      json_pack("{s:O, s:I, s:I, s:o*}", "progressToken", job->token,
					"progress", job->step, "total", job->count, "message",
					text));
}

static json_t *tool_progress(struct server *server, struct call *call, const json_t *args)
{
	const json_t *token;
	struct job *job;
	json_int_t count, interval_ms;

	if (take_integer(call, args, "count", STEPS_MAX, &count) != 0 ||
	    take_integer(call, args, "interval_ms", SLEEP_MAX_MS, &interval_ms) != 0)
		return NULL;
	job = job_start(server, call, (uint64_t)interval_ms);
	if (job == NULL)
		return NULL;
	token = json_object_get(json_object_get(call->params, "_meta"), "progressToken");
	job->on_due = progress_on_due;
	job->token = json_deep_copy(token);
	job->count = count;
	job->interval_ms = interval_ms;
	return NULL;
}

static json_t *tool_big(struct server *server, struct call *call, const json_t *args)
{
	json_int_t bytes;
	json_t *text;
	char *all;

	(void)server;
	if (take_integer(call, args, "bytes", BIG_MAX_BYTES, &bytes) != 0)
		return NULL;
	all = mem_alloc((size_t)bytes + 1);
	for (json_int_t i = 0; i < bytes; i++)
		all[i] = (char)('a' + i % 26);
	text = json_stringn_nocheck(all, (size_t)bytes);
	free(all);
	return call_result(text);
}

static json_t *tool_log(struct server *server, struct call *call, const json_t *args)
{
	const json_t *name = call_string(call, args, "level");
	const json_t *text = name != NULL ? call_string(call, args, "text") : NULL;
	int level;

	if (text == NULL)
		return NULL;
	level = level_find(call_text(name));
	if (level < 0)
		return call_fail(call, MCP_INVALID_PARAMS, "level is no log level");
	if (level < server->log_level)
		return call_result(json_string("not sent: below the level that was set"));
	rpc_send_notification("notifications/message", json_pack("{s:O, s:s, s:O}", "level", name,
								 "logger", "demo", "data", text));
	return call_result(json_string("sent"));
}

static json_t *tool_bump(struct server *server, struct call *call, const json_t *args)
{
	(void)call;
	(void)args;
	resources_bump(server);
	return call_result(json_sprintf("%" JSON_INTEGER_FORMAT, server->counter));
}

static json_t *tool_crash(struct server *server, struct call *call, const json_t *args)
{
	json_int_t status;

	(void)server;
	if (take_integer(call, args, "status", 255, &status) != 0)
		return NULL;
	_exit((int)status);
}

static json_t *tool_stderr(struct server *server, struct call *call, const json_t *args)
{
	const json_t *text = call_string(call, args, "text");

	(void)server;
	if (text == NULL)
		return NULL;
	fprintf(stderr, "%s\n", json_string_value(text));
	return call_result(json_string("written"));
}

/* ---- those that ask the client; what it did not declare is not asked for: then the tool fails ---- */

static void on_silence(struct server *server, struct job *job)
{
	job_withdraw(job, "No answer in time");
	job_finish(server, job,
		   call_result_error(json_string("The client did not answer in time")));
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
		   call_result(json_sprintf("%s: %s", action != NULL ? action : "no action",
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

static json_t *tool_elicit(struct server *server, struct call *call, const json_t *args)
{
	const char *message = "What is your name?";

	if (call_unpack(call, args, "{s?s}", "message", &message) != 0)
		return NULL;
	if (!has_elicitation(server))
		return call_result_error(json_string(
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
		   call_result(json_sprintf("%s: %s", model != NULL ? model : "unknown model",
					    json_string_value(said))));
	json_decref(said);
}

static json_t *tool_sample(struct server *server, struct call *call, const json_t *args)
{
	const json_t *prompt = call_string(call, args, "prompt");

	if (prompt == NULL)
		return NULL;
	if (json_object_get(server->client, "sampling") == NULL)
		return call_result_error(
			json_string("The client has no model to ask: it did not declare sampling"));
	return ask(server, call, sample_on_answer, "sampling/createMessage",
		   json_pack("{s:[{s:s, s:{s:s, s:O}}], s:i}", "messages", "role", "user",
			     "content", "type", "text", "text", prompt, "maxTokens", 100));
}

static void roots_on_answer(struct server *server, struct job *job, const json_t *result)
{
	job_finish(server, job, call_result(as_text(json_object_get(result, "roots"))));
}

static json_t *tool_roots(struct server *server, struct call *call, const json_t *args)
{
	(void)args;
	if (json_object_get(server->client, "roots") == NULL)
		return call_result_error(
			json_string("The client has no roots: it did not declare them"));
	return ask(server, call, roots_on_answer, "roots/list", json_object());
}

/* ---- the table ---- */

#define PROPERTY(name, type, text) \
	"\"" name "\":{\"type\":\"" type "\",\"description\":\"" text "\"}"
#define OBJECT(properties, required) \
	"{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
#define NO_ARGUMENTS "{\"type\":\"object\",\"properties\":{}}"
#define LOG_LEVEL                                                                                 \
	"\"level\":{\"type\":\"string\",\"description\":\"How grave it is\",\"enum\":[\"debug\"," \
	"\"info\",\"notice\",\"warning\",\"error\",\"critical\",\"alert\",\"emergency\"]}"

static const struct tool {
	const char *name;
	const char *description;
	const char *input;  /* JSON schemas */
	const char *output; /* NULL without structured content */
	json_t *(*run)(struct server *server, struct call *call, const json_t *args);
} tools[] = {
	{ "echo", "Returns the text.",
	  OBJECT(PROPERTY("text", "string", "What to return"), "\"text\""), NULL, tool_echo },
	{ "add", "Adds two numbers.",
	  OBJECT(PROPERTY("a", "number", "One number") "," PROPERTY("b", "number", "The other"),
		 "\"a\",\"b\""),
	  OBJECT(PROPERTY("sum", "number", "a + b"), "\"sum\""), tool_add },
	{ "time", "Tells the time in UTC.", NO_ARGUMENTS, NULL, tool_time },
	{ "sleep", "Answers after a while; can be cancelled.",
	  OBJECT(PROPERTY("ms", "integer", "Milliseconds, up to an hour"), "\"ms\""), NULL,
	  tool_sleep },
	{ "progress", "Reports progress in equal steps, then answers.",
	  OBJECT(PROPERTY("count", "integer",
			  "How many steps") "," PROPERTY("interval_ms", "integer",
							 "Milliseconds before each step"),
		 "\"count\",\"interval_ms\""),
	  NULL, tool_progress },
	{ "elicit", "Asks the user for a name and tells what the user answered.",
	  "{\"type\":\"object\",\"properties\":{" PROPERTY("message", "string",
							   "The question") "}}",
	  NULL, tool_elicit },
	{ "sample", "Asks the client's language model and tells what it said.",
	  OBJECT(PROPERTY("prompt", "string", "What to say to the model"), "\"prompt\""), NULL,
	  tool_sample },
	{ "roots", "Asks the client for its roots and lists them.", NO_ARGUMENTS, NULL,
	  tool_roots },
	{ "big", "Returns a text of so many bytes.",
	  OBJECT(PROPERTY("bytes", "integer", "Length of the text, up to 256 MiB"), "\"bytes\""),
	  NULL, tool_big },
	{ "log", "Sends a log message, unless its level is below the one that was set.",
	  OBJECT(LOG_LEVEL "," PROPERTY("text", "string", "The message"), "\"level\",\"text\""),
	  NULL, tool_log },
	{ "bump", "Adds one to the resource demo://counter.", NO_ARGUMENTS, NULL, tool_bump },
	{ "crash", "Ends the server at once, without an answer.",
	  OBJECT(PROPERTY("status", "integer", "Exit status, 0 to 255"), "\"status\""), NULL,
	  tool_crash },
	{ "stderr", "Writes a line to the server's standard error.",
	  OBJECT(PROPERTY("text", "string", "The line"), "\"text\""), NULL, tool_stderr },
};

/* NULL: it has none. */
static json_t *schema_of(const char *text)
{
	json_t *schema = text != NULL ? json_loads(text, 0, NULL) : NULL;

	CHECK((schema != NULL) == (text != NULL));
	return schema;
}

json_t *tools_list(struct server *server, struct call *call)
{
	json_t *list = json_array();

	(void)call;
	CHECK(server->revision != NULL);
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		const struct tool *tool = &tools[i];
		const char *output = server->revision->structured ? tool->output : NULL;

		json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o*}", "name", tool->name,
						      "description", tool->description,
						      "inputSchema", schema_of(tool->input),
						      "outputSchema", schema_of(output)));
	}
	return json_pack("{s:o}", "tools", list);
}

json_t *tools_call(struct server *server, struct call *call)
{
	const json_t *name = call_string(call, call->params, "name");
	const json_t *args = json_object_get(call->params, "arguments");
	json_t *none, *result;
	size_t i = 0;

	if (name == NULL)
		return NULL;
	while (i < ARRAY_LEN(tools) && !call_is(name, tools[i].name))
		i++;
	if (i == ARRAY_LEN(tools))
		return call_fail(call, MCP_INVALID_PARAMS, "There is no tool %.80s",
				 json_string_value(name));
	if (args != NULL && !json_is_object(args))
		return call_fail(call, MCP_INVALID_PARAMS, "arguments must be an object");
	none = json_object();
	result = tools[i].run(server, call, args != NULL ? args : none);
	json_decref(none);
	return result;
}
