/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcpgated-demo: a small MCP server on standard input and output, to try clients and gateways
 * with. One line is one message; the end of the input is the end of the program. Writing blocks
 * until the client reads; if it is gone, the process ends.
 *
 * Invariant: each request gets exactly one answer, unless it was cancelled: at once, or later if
 * its call waits for a time or for the client's answer. The server does not block meanwhile.
 *
 * MCP 2024-11-05 to 2025-11-25: base protocol, lifecycle, cancellation, progress, logging, tools,
 * resources, prompts, completion, elicitation, sampling, roots. JSON-RPC 2.0.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "mcp/error.h"
#include "mcp/level.h"

#define READ_BYTES 65536
#define LINE_MAX_BYTES (64u * 1024 * 1024)
#define WAITING_MAX 4096        /* calls */
#define ANSWER_WITHIN_MS 300000 /* people answer elicitations */
#define CLOCK_URI "demo://clock"
#define COUNTER_URI "demo://counter"
#define ECHO_PREFIX "demo://echo/"
#define UNKNOWN_RESOURCE (-32002) /* up to revision 2025-11-25 */

static const char usage[] =
	"Usage: mcpgated-demo\n"
	"A small MCP server (revisions 2024-11-05 to 2025-11-25) on standard input and output.\n"
	"\n"
	"  -h, --help     show this and exit\n"
	"  -V, --version  show the version and exit\n"
	"\n"
	"Try it behind the gateway:  mcpgated -- mcpgated-demo\n";

/* Newest first. */
static const char *const revisions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };

/* A request that is being answered. */
struct call {
	struct list link; /* in `waiting`, or alone */
	json_t *id;
	json_t *params; /* an object, possibly empty */
	json_t *args;   /* of a tool, likewise */
	int code;       /* of the error that it becomes; 0: none */
	char text[256];
	json_t *data;
	/* While it waits: */
	uint64_t due_ms;
	json_int_t asked;                           /* id of our request; 0: nothing was asked */
	json_t *(*on_answer)(const json_t *result); /* the text that the client's answer becomes */
	bool has_steps;                             /* whose progress is told */
	json_int_t step, count, interval_ms;
};

/* There is one client. */
static const char *revision; /* NULL before initialize */
static json_t *client;       /* its capabilities */
static json_t *described;    /* the tools, for it */
static int log_level;        /* the lowest that is sent */
static json_int_t counter;   /* the resource that changes */
static bool is_counter_watched;
static struct list waiting; /* calls: few, so they are searched from front to back */
static size_t waiting_count;
static json_int_t last_question;

static bool is_since(const char *first)
{
	CHECK(revision != NULL);
	return strcmp(revision, first) >= 0;
}

/* ---- messages to the client ---- */

/* Takes message. It is compact JSON, and so never holds a raw line break. */
static void send_message(json_t *message)
{
	at_end(mem_free) char *text = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;
	size_t size, done = 0;

	CHECK(text != NULL);
	size = strlen(text) + 1;
	text[size - 1] = '\n'; /* in the place of the NUL, so that the line leaves in one write */
	while (done < size) {
		ssize_t n = write(STDOUT_FILENO, text + done, size - done);

		if (n < 0 && errno != EINTR) {
			fprintf(stderr, "mcpgated-demo: cannot write to standard output: %s\n",
				strerror(errno));
			_exit(1);
		}
		done += n > 0 ? (size_t)n : 0;
	}
	json_decref(message);
}

/* Takes data, which may be NULL. id NULL: it could not be read. */
static void demo_send_error(const json_t *id, int code, const char *text, json_t *data)
{
	at_end(buf_fini) struct buf mended = { 0 };

	CHECK(code < 0);
	/* A text may quote the client cut short, and so end in half a character, which is no JSON. */
	buf_append_utf8(&mended, slice_str(text));
	send_message(json_pack("{s:s, s:O?, s:{s:i, s:s, s:o*}}", "jsonrpc", "2.0", "id", id,
			       "error", "code", code, "message", buf_terminate(&mended), "data",
			       data));
}

/* Takes params. */
static void send_notification(const char *method, json_t *params)
{
	send_message(
		json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", method, "params", params));
}

/* ---- JSON ---- */

/* The whole text of a string, including NULs. {NULL, 0} if it is not a string. SEC-42 */
static struct slice demo_text_of(const json_t *string)
{
	return slice_of(json_string_value(string), json_string_length(string));
}

/* Whether it is a string with exactly this text. */
static bool demo_is_text(const json_t *string, const char *text)
{
	return json_is_string(string) && slice_is_equal(demo_text_of(string), slice_str(text));
}

/* A number as a new string. */
static json_t *number_text(json_int_t number)
{
	return json_sprintf("%" JSON_INTEGER_FORMAT, number);
}

/* The result of a tool: a text, or a text that says that the tool failed. Both take text. */
static json_t *tool_result(json_t *text)
{
	return json_pack("{s:[{s:s, s:o}]}", "content", "type", "text", "text", text);
}

static json_t *tool_failure(json_t *text)
{
	json_t *result = tool_result(text);

	json_object_set_new(result, "isError", json_true());
	return result;
}

/* ---- calls ---- */

/* Its answer becomes an error. Returns NULL, so that handlers can return its result. */
static printf_like(3, 4) json_t *call_fail(struct call *call, int code, const char *format, ...)
{
	va_list args;

	CHECK(code != 0 && call->code == 0);
	call->code = code;
	va_start(args, format);
	vsnprintf(call->text, sizeof(call->text), format, args);
	va_end(args);
	return NULL;
}

/* A string member; if there is none, the call fails, and it returns NULL. */
static const json_t *call_string(struct call *call, const json_t *object, const char *name)
{
	const json_t *text = json_object_get(object, name);

	if (json_is_string(text))
		return text;
	call_fail(call, MCP_INVALID_PARAMS, "%s must be a string", name);
	return NULL;
}

static void call_free(struct call *call)
{
	waiting_count -= !list_is_empty(&call->link);
	list_remove(&call->link);
	json_decref(call->id);
	json_decref(call->params);
	free(call);
}

/* Answers it, by its error if there is one. Takes result. */
static void call_finish(struct call *call, json_t *result)
{
	CHECK((result != NULL) + (call->code != 0) == 1);
	if (call->code != 0)
		demo_send_error(call->id, call->code, call->text, call->data);
	else
		send_message(json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", call->id,
				       "result", result));
	call_free(call);
}

/* The call waits for so long, unless there are too many. */
static json_t *call_wait(struct call *call, uint64_t delay_ms)
{
	if (waiting_count == WAITING_MAX)
		return call_fail(call, MCP_INVALID_REQUEST, "Too many calls wait: %d", WAITING_MAX);
	call->due_ms = clock_now_ms() + delay_ms;
	list_append(&waiting, &call->link);
	waiting_count++;
	return NULL;
}

/* The call waits until the client has answered this request. Takes params. */
static json_t *call_ask(struct call *call, json_t *(*on_answer)(const json_t *result),
			const char *method, json_t *params)
{
	call_wait(call, ANSWER_WITHIN_MS);
	if (call->code != 0) {
		json_decref(params);
		return NULL;
	}
	call->on_answer = on_answer;
	call->asked = ++last_question;
	send_message(json_pack("{s:s, s:I, s:s, s:o}", "jsonrpc", "2.0", "id", call->asked,
			       "method", method, "params", params));
	return NULL;
}

/* The client's answer is no longer needed. */
static void call_withdraw(const struct call *call, const char *reason)
{
	if (call->asked != 0)
		send_notification("notifications/cancelled",
				  json_pack("{s:I, s:s}", "requestId", call->asked, "reason",
					    reason));
}

/* Its time has come: the sleep is over, the next step is done, or the client has not answered. */
static void call_on_due(struct call *call)
{
	const json_t *meta = json_object_get(call->params, "_meta");
	json_t *token = json_object_get(meta, "progressToken"), *text = NULL;

	if (call->asked != 0) {
		call_withdraw(call, "No answer in time");
		call_finish(call, tool_failure(json_string("The client did not answer in time")));
		return;
	}
	if (call->step == call->count) {
		call_finish(call, tool_result(call->has_steps ? json_sprintf("%" JSON_INTEGER_FORMAT
									     " steps done",
									     call->count) :
								json_string("slept")));
		return;
	}
	call->step++;
	call->due_ms += (uint64_t)(call->step < call->count ? call->interval_ms : 0);
	if (token == NULL)
		return;
	if (is_since("2025-03-26"))
		text = json_sprintf("step %" JSON_INTEGER_FORMAT, call->step);
	send_notification("notifications/progress",
			  json_pack("{s:O, s:I, s:I, s:o*}", "progressToken", token, "progress",
				    call->step, "total", call->count, "message", text));
}

/* Returns the milliseconds until the next call is due, or -1 if none waits. */
static int run_due_calls(void)
{
	uint64_t now_ms = clock_now_ms(), next_ms = UINT64_MAX;

	LIST_EACH_SAFE(struct call, call, &waiting, link)
		if (call->due_ms <= now_ms)
			call_on_due(call);
	LIST_EACH(const struct call, call, &waiting, link)
		if (call->due_ms < next_ms)
			next_ms = call->due_ms;
	if (next_ms == UINT64_MAX)
		return -1;
	if (next_ms <= now_ms)
		return 0;
	return next_ms - now_ms < INT_MAX ? (int)(next_ms - now_ms) : INT_MAX;
}

/* The client cancels a call; unknown ids are ignored. */
static void demo_on_cancelled(const json_t *id)
{
	LIST_EACH(struct call, call, &waiting, link) {
		if (id == NULL || !json_equal(call->id, id))
			continue;
		call_withdraw(call, "The call that needed it was cancelled");
		call_free(call);
		return;
	}
}

/* The client answers one of our requests; that it refuses becomes the result of the call. */
static void demo_on_answer(const json_t *id, const json_t *result, const json_t *error)
{
	const char *why = json_string_value(json_object_get(error, "message"));

	CHECK((result != NULL) != (error != NULL));
	LIST_EACH(struct call, call, &waiting, link) {
		if (call->asked == 0 || !json_is_integer(id) ||
		    json_integer_value(id) != call->asked)
			continue;
		if (error == NULL)
			call_finish(call, tool_result(call->on_answer(result)));
		else
			call_finish(call,
				    tool_failure(json_sprintf("The client refused: %s",
							      why != NULL ? why : "no reason")));
		return;
	}
}

/* ---- resources: the clock is not announced, and an echo never changes ---- */

/* The wall clock in RFC 3339 form, UTC; a new string. */
static json_t *time_text(void)
{
	char text[32];
	time_t now = time(NULL);
	struct tm parts;

	gmtime_r(&now, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return json_string(text);
}

/* The percent-decoded text; NULL if it is cut, not hexadecimal or not UTF-8. */
static json_t *demo_decode(struct slice text)
{
	at_end(buf_fini) struct buf out = { 0 };
	size_t i = 0;

	for (char c; i < text.n; i++) {
		c = text.p[i];
		if (c == '%') {
			if (text.n - i < 3 || text_from_hex(slice_of(text.p + i + 1, 2), &c, 1) < 0)
				break;
			i += 2;
		}
		buf_append_char(&out, c);
	}
	return i == text.n ? json_stringn(out.len > 0 ? out.data : "", out.len) : NULL;
}

/* The text of the resource that the params name, a new string. NULL: the call fails. */
static json_t *read_resource(struct call *call)
{
	const json_t *uri = call_string(call, call->params, "uri");
	struct slice rest = demo_text_of(uri);
	json_t *text;

	if (uri == NULL)
		return NULL;
	if (demo_is_text(uri, CLOCK_URI))
		return time_text();
	if (demo_is_text(uri, COUNTER_URI))
		return number_text(counter);
	if (!slice_has_prefix(rest, SLICE_LIT(ECHO_PREFIX))) {
		call->data = json_pack("{s:O}", "uri", uri);
		return call_fail(call, UNKNOWN_RESOURCE, "There is no such resource");
	}
	text = demo_decode(slice_between(rest.p + strlen(ECHO_PREFIX), rest.p + rest.n));
	if (text == NULL)
		call_fail(call, MCP_INVALID_PARAMS,
			  "The text in the URI is not percent-encoded UTF-8");
	return text;
}

static json_t *resources_read(struct call *call)
{
	json_t *text = read_resource(call);

	return text != NULL ? json_pack("{s:[{s:O, s:s, s:o}]}", "contents", "uri",
					json_object_get(call->params, "uri"), "mimeType",
					"text/plain", "text", text) :
			      NULL;
}

static json_t *watch_resource(struct call *call, bool is_watched)
{
	json_auto_t *text = read_resource(call);

	if (text == NULL)
		return NULL;
	if (demo_is_text(json_object_get(call->params, "uri"), COUNTER_URI))
		is_counter_watched = is_watched;
	return json_object();
}

static json_t *resources_subscribe(struct call *call)
{
	return watch_resource(call, true);
}

static json_t *resources_unsubscribe(struct call *call)
{
	return watch_resource(call, false);
}

/* ---- the prompt greet{name}, and names to complete it with ---- */

static json_t *prompts_get(struct call *call)
{
	const json_t *prompt = call_string(call, call->params, "name");
	json_error_t error;
	const char *name;

	if (prompt == NULL)
		return NULL;
	if (!demo_is_text(prompt, "greet"))
		return call_fail(call, MCP_INVALID_PARAMS, "There is no prompt %.80s",
				 json_string_value(prompt));
	if (json_unpack_ex(call->params, &error, 0, "{s:{s:s}}", "arguments", "name", &name) != 0)
		return call_fail(call, MCP_INVALID_PARAMS, "%s", error.text);
	return json_pack("{s:s, s:[{s:s, s:{s:s, s:o}}]}", "description", "Asks for a greeting",
			 "messages", "role", "user", "content", "type", "text", "text",
			 json_sprintf("Please greet %s in one friendly sentence.", name));
}

static json_t *complete(struct call *call)
{
	static const char *const names[] = { "Ada",    "Alan",    "Barbara", "Dennis",
					     "Donald", "Edsger",  "Frances", "Grace",
					     "Ken",    "Niklaus", "Radia",   "Tony" };
	const json_t *ref, *type, *argument, *name, *value;
	bool is_prompt, is_template;
	json_error_t error;
	json_t *values;

	if (json_unpack_ex(call->params, &error, 0, "{s:o, s:o}", "ref", &ref, "argument",
			   &argument) != 0)
		return call_fail(call, MCP_INVALID_PARAMS, "%s", error.text);
	name = call_string(call, argument, "name");
	value = name != NULL ? call_string(call, argument, "value") : NULL;
	if (value == NULL)
		return NULL;
	type = json_object_get(ref, "type");
	is_prompt = demo_is_text(type, "ref/prompt") &&
		    demo_is_text(json_object_get(ref, "name"), "greet");
	is_template = demo_is_text(type, "ref/resource") &&
		      demo_is_text(json_object_get(ref, "uri"), ECHO_PREFIX "{text}");
	if (!is_prompt && !is_template)
		return call_fail(call, MCP_INVALID_PARAMS,
				 "There is nothing like this to complete");
	values = json_array();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct slice begin = slice_of(names[i], strnlen(names[i], demo_text_of(value).n));

		if (is_prompt && demo_is_text(name, "name") &&
		    slice_is_equal_nocase(begin, demo_text_of(value)))
			json_array_append_new(values, json_string(names[i]));
	}
	return json_pack("{s:{s:o, s:I, s:b}}", "completion", "values", values, "total",
			 (json_int_t)json_array_size(values), "hasMore", 0);
}

/* ---- tools: their arguments are of the types that the table below has ---- */

static const json_t *arg(const struct call *call, const char *name)
{
	return json_object_get(call->args, name);
}

static json_int_t integer_arg(const struct call *call, const char *name)
{
	return json_integer_value(arg(call, name));
}

static json_t *tool_echo(struct call *call)
{
	return tool_result(json_copy((json_t *)(uintptr_t)arg(call, "text")));
}

static json_t *tool_add(struct call *call)
{
	const json_t *a = arg(call, "a"), *b = arg(call, "b");
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
		return tool_failure(json_string("The sum is too large"));
	text = json_dumps(sum, JSON_ENCODE_ANY);
	CHECK(text != NULL);
	result = tool_result(json_string(text));
	free(text);
	if (is_since("2025-06-18"))
		json_object_set_new(result, "structuredContent", json_pack("{s:O}", "sum", sum));
	json_decref(sum);
	return result;
}

static json_t *tool_time(not_used struct call *call)
{
	return tool_result(time_text());
}

static json_t *tool_sleep(struct call *call)
{
	return call_wait(call, (uint64_t)integer_arg(call, "ms"));
}

static json_t *tool_progress(struct call *call)
{
	call->has_steps = true;
	call->count = integer_arg(call, "count");
	call->interval_ms = integer_arg(call, "interval_ms");
	return call_wait(call, (uint64_t)call->interval_ms);
}

static json_t *tool_big(struct call *call)
{
	size_t bytes = (size_t)integer_arg(call, "bytes");
	at_end(mem_free) char *all = mem_alloc(bytes + 1);
	json_t *text;

	for (size_t i = 0; i < bytes; i++)
		all[i] = (char)('a' + i % 26);
	text = json_stringn_nocheck(all, bytes);
	return tool_result(text);
}

static json_t *tool_log(struct call *call)
{
	int level = level_find(demo_text_of(arg(call, "level")));

	if (level < 0)
		return call_fail(call, MCP_INVALID_PARAMS, "level is no log level");
	if (level < log_level)
		return tool_result(json_string("not sent: below the level that was set"));
	send_notification("notifications/message",
			  json_pack("{s:O, s:s, s:O}", "level", arg(call, "level"), "logger",
				    "demo", "data", arg(call, "text")));
	return tool_result(json_string("sent"));
}

static json_t *tool_bump(not_used struct call *call)
{
	counter++;
	if (is_counter_watched)
		send_notification("notifications/resources/updated",
				  json_pack("{s:s}", "uri", COUNTER_URI));
	return tool_result(number_text(counter));
}

static json_t *tool_crash(struct call *call)
{
	_exit((int)integer_arg(call, "status"));
}

static json_t *tool_stderr(struct call *call)
{
	fprintf(stderr, "%s\n", json_string_value(arg(call, "text")));
	return tool_result(json_string("written"));
}

/* ---- tools that ask the client; what it did not declare is not asked for: then the tool fails ---- */

/* value as JSON text; a new string. */
static json_t *json_text(const json_t *value)
{
	at_end(mem_free) char *dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	return json_string(dump != NULL ? dump : "nothing");
}

/* `NAME: TEXT`, a new string. Takes text. */
static json_t *named_text(const json_t *name, const char *no_name, json_t *text)
{
	json_t *both =
		json_sprintf("%s: %s", json_is_string(name) ? json_string_value(name) : no_name,
			     json_string_value(text));

	json_decref(text);
	return both;
}

static json_t *elicit_text(const json_t *result)
{
	return named_text(json_object_get(result, "action"), "no action",
			  json_text(json_object_get(result, "content")));
}

static json_t *tool_elicit(struct call *call)
{
	const json_t *declared = json_object_get(client, "elicitation");
	const json_t *message = arg(call, "message");

	/* Revision 2025-11-25 names modes; none named is the form. */
	if (declared == NULL ||
	    (json_object_size(declared) > 0 && json_object_get(declared, "form") == NULL))
		return tool_failure(json_string(
			"The client cannot ask its user: it did not declare elicitation"));
	return call_ask(call, elicit_text, "elicitation/create",
			json_pack("{s:s, s:{s:s, s:{s:{s:s, s:s}}, s:[s]}}", "message",
				  message != NULL ? json_string_value(message) :
						    "What is your name?",
				  "requestedSchema", "type", "object", "properties", "name", "type",
				  "string", "description", "A name", "required", "name"));
}

static json_t *sample_text(const json_t *result)
{
	const json_t *content = json_object_get(result, "content");
	json_t *said = json_object_get(content, "text");

	return named_text(json_object_get(result, "model"), "unknown model",
			  json_is_string(said) ? json_incref(said) : json_text(content));
}

static json_t *tool_sample(struct call *call)
{
	if (json_object_get(client, "sampling") == NULL)
		return tool_failure(
			json_string("The client has no model to ask: it did not declare sampling"));
	return call_ask(call, sample_text, "sampling/createMessage",
			json_pack("{s:[{s:s, s:{s:s, s:O}}], s:i}", "messages", "role", "user",
				  "content", "type", "text", "text", arg(call, "prompt"),
				  "maxTokens", 100));
}

static json_t *roots_text(const json_t *result)
{
	return json_text(json_object_get(result, "roots"));
}

static json_t *tool_roots(struct call *call)
{
	if (json_object_get(client, "roots") == NULL)
		return tool_failure(
			json_string("The client has no roots: it did not declare them"));
	return call_ask(call, roots_text, "roots/list", json_object());
}

/* ---- the table of tools ---- */

/* JSON, as it is written here. */
#define JSON(...) #__VA_ARGS__
#define TOOL(name, text, schemas)                                                                \
	{                                                                                        \
		tool_##name, "{\"name\":\"" #name "\",\"description\":\"" text "\"," schemas "}" \
	}
/* clang-format off */
#define NO_ARGUMENTS JSON("inputSchema": { "type": "object", "properties": {} })

static const struct {
	json_t *(*run)(struct call *call);
	const char *description; /* all arguments are required or none; integers are from 0 to `maximum` */
} tools[] = {
	TOOL(echo, "Returns the text.", JSON("inputSchema": { "type": "object", "properties": {
		"text": { "type": "string", "description": "What to return" } }, "required": ["text"] })),
	TOOL(add, "Adds two numbers.", JSON("inputSchema": { "type": "object", "properties": {
		"a": { "type": "number", "description": "One number" },
		"b": { "type": "number", "description": "The other" } }, "required": ["a", "b"] },
		"outputSchema": { "type": "object", "properties": {
			"sum": { "type": "number", "description": "a + b" } }, "required": ["sum"] })),
	TOOL(time, "Tells the time in UTC.", NO_ARGUMENTS),
	TOOL(sleep, "Answers after a while; can be cancelled.", JSON("inputSchema": { "type": "object", "properties": {
		"ms": { "type": "integer", "description": "Milliseconds, up to an hour", "maximum": 3600000 } }, "required": ["ms"] })),
	TOOL(progress, "Reports progress in equal steps, then answers.", JSON("inputSchema": { "type": "object", "properties": {
		"count": { "type": "integer", "description": "How many steps", "maximum": 100000 },
		"interval_ms": { "type": "integer", "description": "Milliseconds before each step", "maximum": 3600000 } },
		"required": ["count", "interval_ms"] })),
	TOOL(elicit, "Asks the user for a name and tells what the user answered.", JSON("inputSchema": { "type": "object",
		"properties": { "message": { "type": "string", "description": "The question" } } })),
	TOOL(sample, "Asks the client's language model and tells what it said.", JSON("inputSchema": { "type": "object",
		"properties": { "prompt": { "type": "string", "description": "What to say to the model" } }, "required": ["prompt"] })),
	TOOL(roots, "Asks the client for its roots and lists them.", NO_ARGUMENTS),
	TOOL(big, "Returns a text of so many bytes.", JSON("inputSchema": { "type": "object", "properties": {
		"bytes": { "type": "integer", "description": "Length of the text, up to 256 MiB", "maximum": 268435456 } },
		"required": ["bytes"] })),
	TOOL(log, "Sends a log message, unless its level is below the one that was set.", JSON("inputSchema": { "type": "object",
		"properties": { "level": { "type": "string", "description": "How grave it is",
			"enum": ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] },
		"text": { "type": "string", "description": "The message" } }, "required": ["level", "text"] })),
	TOOL(bump, "Adds one to the resource demo://counter.", NO_ARGUMENTS),
	TOOL(crash, "Ends the server at once, without an answer.", JSON("inputSchema": { "type": "object", "properties": {
		"status": { "type": "integer", "description": "Exit status, 0 to 255", "maximum": 255 } }, "required": ["status"] })),
	TOOL(stderr, "Writes a line to the server's standard error.", JSON("inputSchema": { "type": "object", "properties": {
		"text": { "type": "string", "description": "The line" } }, "required": ["text"] })),
};
/* clang-format on */

static json_t *from_text(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);

	CHECK(value != NULL);
	return value;
}

/* A wrong argument is an error of the protocol in every revision, so that tests can tell it from a tool that failed. */
static bool is_argument(struct call *call, const char *name, const json_t *schema)
{
	const json_t *value = arg(call, name), *type = json_object_get(schema, "type");
	json_int_t max = json_integer_value(json_object_get(schema, "maximum"));

	if (demo_is_text(type, "number"))
		return true; /* the tool checks it */
	if (demo_is_text(type, "string"))
		return call_string(call, call->args, name) != NULL;
	if (json_is_integer(value) && json_integer_value(value) >= 0 &&
	    json_integer_value(value) <= max)
		return true;
	call_fail(call, MCP_INVALID_PARAMS,
		  "%s must be a whole number from 0 to %" JSON_INTEGER_FORMAT, name, max);
	return false;
}

/* Of each tool its description. An output schema is for revisions that have structured content. */
static json_t *describe_tools(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		json_t *tool = from_text(tools[i].description);

		if (!is_since("2025-06-18"))
			json_object_del(tool, "outputSchema");
		json_array_append_new(list, tool);
	}
	return list;
}

static json_t *tools_list(not_used struct call *call)
{
	return json_pack("{s:O}", "tools", described);
}

static json_t *tools_call(struct call *call)
{
	const json_t *name = call_string(call, call->params, "name"), *input;
	json_t *args = json_object_get(call->params, "arguments"), *schema;
	const char *argument;
	size_t i = 0;

	if (name == NULL)
		return NULL;
	while (i < ARRAY_LEN(tools) &&
	       !json_equal(name, json_object_get(json_array_get(described, i), "name")))
		i++;
	if (i == ARRAY_LEN(tools))
		return call_fail(call, MCP_INVALID_PARAMS, "There is no tool %.80s",
				 json_string_value(name));
	if (args != NULL && !json_is_object(args))
		return call_fail(call, MCP_INVALID_PARAMS, "arguments must be an object");
	call->args = args;
	input = json_object_get(json_array_get(described, i), "inputSchema");
	json_object_foreach(json_object_get(input, "properties"), argument, schema)
	{
		bool is_missing = arg(call, argument) == NULL;

		if ((!is_missing || json_object_get(input, "required") != NULL) &&
		    !is_argument(call, argument, schema))
			return NULL;
	}
	return tools[i].run(call);
}

/* ---- messages from the client ---- */

static json_t *initialize(struct call *call)
{
	size_t at = ARRAY_LEN(revisions) - 1;
	json_t *capabilities = json_object_get(call->params, "capabilities");
	const json_t *version;
	json_error_t error;

	if (revision != NULL)
		return call_fail(call, MCP_INVALID_REQUEST, "initialize was sent before");
	version = call_string(call, call->params, "protocolVersion");
	if (version == NULL)
		return NULL;
	if (json_unpack_ex(call->params, &error, 0, "{s:o}", "capabilities", &capabilities) != 0)
		return call_fail(call, MCP_INVALID_PARAMS, "%s", error.text);
	/* An unknown revision is answered with the newest one. */
	while (at > 0 && !demo_is_text(version, revisions[at]))
		at--;
	revision = revisions[at];
	client = json_incref(capabilities);
	described = describe_tools();
	return json_pack(
		"{s:s, s:{s:{}, s:{s:b}, s:{}, s:{}, s:o*}, s:{s:s, s:s}, s:s}", "protocolVersion",
		revision, "capabilities", "tools", "resources", "subscribe", 1, "prompts",
		"logging", "completions", is_since("2025-03-26") ? json_object() : NULL,
		"serverInfo", "name", "mcpgated-demo", "version", PACKAGE_VERSION, "instructions",
		"A server to try clients and gateways with. Every tool does one small thing.");
}

static json_t *demo_set_level(struct call *call)
{
	const json_t *name = call_string(call, call->params, "level");
	int level = level_find(demo_text_of(name));

	if (name == NULL)
		return NULL;
	if (level < 0)
		return call_fail(call, MCP_INVALID_PARAMS, "%.40s is no log level",
				 json_string_value(name));
	log_level = level;
	return json_object();
}

/* clang-format off */
static const struct {
	const char *name;
	json_t *(*answer)(struct call *call);
	bool is_early;    /* allowed before initialize */
	bool is_list;     /* takes a cursor; all lists here have one page */
	const char *fixed; /* the result that never changes, in place of answer */
} methods[] = {
	{ .name = "initialize", .answer = initialize, .is_early = true },
	{ .name = "ping", .fixed = JSON({}), .is_early = true },
	{ .name = "logging/setLevel", .answer = demo_set_level },
	{ .name = "tools/list", .answer = tools_list, .is_list = true },
	{ .name = "tools/call", .answer = tools_call },
	{ .name = "resources/list", .is_list = true, .fixed = JSON({ "resources": [
		{ "uri": "demo://clock", "name": "clock", "description": "The time now, in UTC", "mimeType": "text/plain" },
		{ "uri": "demo://counter", "name": "counter",
		  "description": "A number that the tool bump raises; can be subscribed to", "mimeType": "text/plain" }] }) },
	{ .name = "resources/templates/list", .is_list = true, .fixed = JSON({ "resourceTemplates": [
		{ "uriTemplate": "demo://echo/{text}", "name": "echo", "description": "The text itself, percent-decoded",
		  "mimeType": "text/plain" }] }) },
	{ .name = "resources/read", .answer = resources_read },
	{ .name = "resources/subscribe", .answer = resources_subscribe },
	{ .name = "resources/unsubscribe", .answer = resources_unsubscribe },
	{ .name = "prompts/list", .is_list = true, .fixed = JSON({ "prompts": [
		{ "name": "greet", "description": "Asks for a greeting", "arguments": [
			{ "name": "name", "description": "Who is to be greeted", "required": true }] }] }) },
	{ .name = "prompts/get", .answer = prompts_get },
	{ .name = "completion/complete", .answer = complete },
};
/* clang-format on */

static json_t *demo_answer(struct call *call, const json_t *method)
{
	size_t i = 0;

	while (i < ARRAY_LEN(methods) && !demo_is_text(method, methods[i].name))
		i++;
	if (i == ARRAY_LEN(methods))
		return call_fail(call, MCP_METHOD_NOT_FOUND, "There is no method %.80s",
				 json_string_value(method));
	if (revision == NULL && !methods[i].is_early)
		return call_fail(call, MCP_INVALID_REQUEST, "The first request must be initialize");
	if (!json_is_object(call->params))
		return call_fail(call, MCP_INVALID_PARAMS, "params must be an object");
	if (methods[i].is_list && json_object_get(call->params, "cursor") != NULL)
		return call_fail(call, MCP_INVALID_PARAMS, "No such cursor: there is one page");
	return methods[i].fixed != NULL ? from_text(methods[i].fixed) : methods[i].answer(call);
}

static void demo_take_request(const json_t *method, json_t *id, json_t *params)
{
	struct call *call;
	json_t *result;

	if (!json_is_string(id) && !json_is_integer(id)) {
		demo_send_error(NULL, MCP_INVALID_REQUEST, "id must be a string or an integer",
				NULL);
		return;
	}
	call = mem_zalloc(sizeof(*call));
	list_init(&call->link);
	call->id = json_incref(id);
	call->params = params != NULL ? json_incref(params) : json_object();
	result = demo_answer(call, method);
	if (result != NULL || list_is_empty(&call->link))
		call_finish(call, result);
}

static void demo_take_message(const json_t *message)
{
	json_t *id = json_object_get(message, "id");
	const json_t *method = json_object_get(message, "method");
	json_t *params = json_object_get(message, "params");
	const json_t *result = json_object_get(message, "result");
	const json_t *error = json_object_get(message, "error");

	if (json_is_string(method) && id != NULL)
		demo_take_request(method, id, params);
	else if (demo_is_text(method, "notifications/cancelled"))
		demo_on_cancelled(json_object_get(params, "requestId"));
	else if (json_is_string(method))
		return; /* the other notifications change nothing here */
	else if (id != NULL && (result != NULL) != (error != NULL))
		demo_on_answer(id, result, error);
	else
		demo_send_error(NULL, MCP_INVALID_REQUEST, "That is no JSON-RPC message", NULL);
}

/* Without its line feed. */
static void demo_take_line(struct slice line)
{
	json_error_t error;
	json_t *value;

	while (line.n > 0 && memchr(" \t\r", line.p[line.n - 1], 3) != NULL)
		line.n--;
	if (line.n == 0)
		return; /* blank */
	value = json_loadb(line.p, line.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	if (value == NULL)
		demo_send_error(NULL, MCP_PARSE_ERROR, error.text, NULL);
	else if (json_array_size(value) > 0 && revision != NULL &&
		 strcmp(revision, "2025-03-26") == 0) /* the one that has batches */
		for (size_t i = 0; i < json_array_size(value); i++)
			demo_take_message(json_array_get(value, i));
	else
		demo_take_message(value);
	json_decref(value);
}

/* Returns 1 to go on, 0 at the end of the input, -1 after a failure that it reported. */
static int read_input(struct buf *in)
{
	size_t old = in->len; /* so many bytes are known to hold no line feed */
	size_t begin = 0;
	ssize_t got = read(STDIN_FILENO, buf_reserve(in, READ_BYTES), READ_BYTES);
	char *feed;

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return 1;
	if (got < 0) {
		fprintf(stderr, "mcpgated-demo: cannot read standard input: %s\n", strerror(errno));
		return -1;
	}
	if (got == 0) {
		demo_take_line(buf_slice(in)); /* a last line may lack its line feed */
		return 0;
	}
	in->len += (size_t)got;
	while ((feed = memchr(in->data + old, '\n', in->len - old)) != NULL) {
		demo_take_line(slice_between(in->data + begin, feed));
		begin = old = (size_t)(feed - in->data) + 1;
	}
	buf_consume(in, begin);
	if (in->len <= LINE_MAX_BYTES)
		return 1;
	fprintf(stderr, "mcpgated-demo: a line of more than %u bytes\n", LINE_MAX_BYTES);
	return -1;
}

/* Returns the exit status. */
static int serve(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	at_end(buf_fini) struct buf in = { .len = 0 };
	int more = 1;

	log_level = level_find(SLICE_LIT("info"));
	list_init(&waiting);
	while (more > 0) {
		int ready;

		clock_update();
		ready = poll(&input, 1, run_due_calls());
		clock_update();
		if (ready > 0)
			more = read_input(&in);
	}
	LIST_EACH_SAFE(struct call, call, &waiting, link)
		call_free(call);
	CHECK(waiting_count == 0);
	json_decref(client);
	json_decref(described);
	return more == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};

	switch (getopt_long(argc, argv, "hV", options, NULL)) {
	case 'h':
		fputs(usage, stdout);
		return 0;
	case 'V':
		puts("mcpgated-demo " PACKAGE_VERSION);
		return 0;
	case -1:
		break;
	default:
		fputs("Try mcpgated-demo --help.\n", stderr);
		return 2;
	}
	if (optind < argc) {
		fprintf(stderr, "mcpgated-demo: takes no arguments, but was given %s\n",
			argv[optind]);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN); /* a reader that is gone is a failed write */
	return serve();
}
