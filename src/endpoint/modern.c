/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The era of a POST, and the ladder of checks for a modern request, except for its last step
 * (modern_params.c). Each step relies on those before it. What the gateway does not read itself is
 * left to the server, which answers in band.
 *
 * Invariant: if a request has passed, its head mirrors its body, so that whoever acts on the head
 * acts on what the server will see.
 */
#include "endpoint/modern.h"

#include "base/mem.h"
#include "http/parse.h"
#include "mcp/error.h"
#include "mcp/level.h"
#include "mcp/revision.h"

#define TASKS "io.modelcontextprotocol/tasks"

/* The members of params that the gateway itself reads. */
#define READS_ARGUMENTS 1 /* arguments, if only to compare them with the head */
#define READS_RETRY 2     /* inputResponses, requestState: of methods that may ask for input */
#define READS_CURSOR 4
#define READS_FILTER 8 /* notifications */

/* The methods of the modern era; any other is unknown in it. FRONT-ERA-06 */
static const struct rule {
	struct slice name;
	const char *mirrored; /* the member of params in Mcp-Name; NULL: none. MOD-HDR-01 */
	unsigned int reads;
	bool is_of_tasks; /* of the tasks extension */
} rules[] = {
	{ SLICE("tools/call"), "name", READS_ARGUMENTS | READS_RETRY, false },
	{ SLICE("tools/list"), NULL, READS_CURSOR, false },
	{ SLICE("prompts/get"), "name", READS_ARGUMENTS | READS_RETRY, false },
	{ SLICE("prompts/list"), NULL, READS_CURSOR, false },
	{ SLICE("resources/read"), "uri", READS_RETRY, false },
	{ SLICE("resources/list"), NULL, READS_CURSOR, false },
	{ SLICE("resources/templates/list"), NULL, READS_CURSOR, false },
	{ SLICE("completion/complete"), NULL, 0, false },
	{ SLICE("server/discover"), NULL, 0, false },
	{ SLICE("subscriptions/listen"), NULL, READS_FILTER, false },
	{ SLICE("tasks/get"), "taskId", 0, true },
	{ SLICE("tasks/update"), "taskId", READS_RETRY, true },
	{ SLICE("tasks/cancel"), "taskId", 0, true },
};

/* One request on the ladder. */
struct check {
	const struct modern_head *head;
	const struct envelope *env;
	const struct rule *rule; /* NULL: the method is unknown */
	bool has_tasks;
	struct modern_problem *problem;
};

/* ---- reading ---- */

void modern_head_read(const struct http_request *request, struct modern_head *head_r)
{
	const unsigned int single = 1u << HTTP_MCP_PROTOCOL_VERSION | 1u << HTTP_MCP_METHOD |
				    1u << HTTP_MCP_NAME | 1u << HTTP_MCP_SESSION_ID |
				    1u << HTTP_LAST_EVENT_ID;

	*head_r = (struct modern_head){
		.version = request->fields[HTTP_MCP_PROTOCOL_VERSION],
		.method = request->fields[HTTP_MCP_METHOD],
		.name = request->fields[HTTP_MCP_NAME],
		.params = request->params,
		.is_repeated = (request->repeated & single) != 0,
	};
}

static struct slice copy_slice(char **at, struct slice s)
{
	return s.p != NULL ? mem_put_slice(at, s) : s;
}

char *modern_head_copy(const struct modern_head *head, struct modern_head *copy_r)
{
	size_t size = head->version.n + head->method.n + head->name.n + head->params.n;
	char *text = mem_alloc(size + 1);
	char *at = text;

	copy_r->version = copy_slice(&at, head->version);
	copy_r->method = copy_slice(&at, head->method);
	copy_r->name = copy_slice(&at, head->name);
	copy_r->params = copy_slice(&at, head->params);
	copy_r->is_repeated = head->is_repeated;
	CHECK((size_t)(at - text) == size);
	return text;
}

/* ---- the era ---- */

/* Whether the decoded string is exactly this. */
static bool says(struct json string, struct slice wanted)
{
	struct buf meant = { 0 };
	bool is_said;

	if (!string.has_escape)
		return slice_is_equal(scan_plain_string(string), wanted);
	is_said = scan_decode_string(string, &meant) == 0 &&
		  slice_is_equal(buf_slice(&meant), wanted);
	buf_fini(&meant);
	return is_said;
}

static bool names_legacy(struct json version)
{
	struct buf meant = { 0 };
	bool is_legacy = scan_decode_string(version, &meant) == 0 &&
			 revision_find(buf_slice(&meant)) != NULL;

	buf_fini(&meant);
	return is_legacy;
}

static bool is_claimed(const struct envelope *env, bool has_session)
{
	return env->protocol_version.type != JSON_ABSENT &&
	       !(has_session && names_legacy(env->protocol_version));
}

enum modern_era modern_classify(const struct modern_post *post)
{
	const struct envelope *first = post->messages;

	if (revision_is_modern(post->version))
		return MODERN_ERA_MODERN;
	for (size_t i = 0; i < post->count; i++)
		if (is_claimed(&post->messages[i], post->has_session))
			return MODERN_ERA_MODERN;
	if (post->version.p == NULL || revision_find(post->version) != NULL || post->is_batch ||
	    post->count == 0 || first->method.n == 0 ||
	    slice_is_equal(first->method, SLICE_LIT("initialize")))
		return MODERN_ERA_LEGACY;
	return MODERN_ERA_UNKNOWN;
}

/* ---- the ladder ---- */

static bool refuse(struct check *check, int status, int code, const char *text)
{
	*check->problem = (struct modern_problem){ .status = status, .code = code, .text = text };
	return false;
}

static bool refuse_params(struct check *check, const char *text)
{
	return refuse(check, 400, MCP_INVALID_PARAMS, text);
}

static bool refuse_header(struct check *check, const char *text)
{
	return refuse(check, 400, MCP_HEADER_MISMATCH, text);
}

/* Step 1: clients of this era send requests; they are sent none that they could respond to. */
static bool check_kind(struct check *check)
{
	return check->env->kind == ENVELOPE_REQUEST ||
	       refuse(check, 400, MCP_INVALID_REQUEST,
		      "Invalid request: a response is not expected here");
}

/* Step 2. FRONT-ERA-03 */
static bool check_meta(struct check *check)
{
	const struct envelope *env = check->env;

	if (env->meta.type != JSON_OBJECT)
		return refuse_params(check, "Invalid params: _meta is missing or not an object");
	if (env->protocol_version.type != JSON_STRING)
		return refuse_params(
			check,
			"Invalid params: _meta has no protocolVersion, or it is not a string");
	if (env->client_capabilities.type != JSON_OBJECT)
		return refuse_params(
			check,
			"Invalid params: _meta has no clientCapabilities, or they are not an object");
	if (env->client_info.type != JSON_ABSENT && env->client_info.type != JSON_OBJECT)
		return refuse_params(check, "Invalid params: clientInfo in _meta is not an object");
	return true;
}

/* Step 3. FRONT-ERA-04, FRONT-HTTP-08, MOD-HDR-01 to -03 */
static bool check_head(struct check *check)
{
	const struct modern_head *head = check->head;
	const char *mirrored = check->rule != NULL ? check->rule->mirrored : NULL;
	struct json named;

	if (head->is_repeated)
		return refuse_header(check, "Header mismatch: a field of MCP is repeated");
	if (head->version.p == NULL)
		return refuse_header(check, "Header mismatch: MCP-Protocol-Version is missing");
	if (!modern_is_plain(head->version) || !says(check->env->protocol_version, head->version))
		return refuse_header(
			check, "Header mismatch: MCP-Protocol-Version is not the body's version");
	if (head->method.p == NULL)
		return refuse_header(check, "Header mismatch: Mcp-Method is missing");
	if (!modern_is_plain(head->method) || !slice_is_equal(head->method, check->env->method))
		return refuse_header(check, "Header mismatch: Mcp-Method is not the body's method");
	if (mirrored == NULL)
		return true;
	if (head->name.p == NULL)
		return refuse_header(check, "Header mismatch: Mcp-Name is missing");
	if (strcmp(mirrored, "name") == 0)
		named = check->env->name;
	else if (strcmp(mirrored, "uri") == 0)
		named = check->env->uri;
	else
		named = check->env->task_id;
	return modern_is_equal(head->name, named) ||
	       refuse_header(check, "Header mismatch: Mcp-Name is not what the body names");
}

static bool refuse_naming_versions(struct check *check, int status, int code, const char *text)
{
	refuse(check, status, code, text);
	check->problem->requested = check->env->protocol_version.text;
	check->problem->is_legacy_claim = revision_find(check->head->version) != NULL;
	return false;
}

/* Step 4. FRONT-ERA-05 */
static bool check_version(struct check *check)
{
	return revision_is_modern(check->head->version) ||
	       refuse_naming_versions(check, 400, MCP_UNSUPPORTED_VERSION,
				      "Unsupported protocol version");
}

/* Step 5. FRONT-ERA-06, -08 */
static bool check_method(struct check *check)
{
	if (check->rule != NULL)
		return true;
	if (slice_is_equal(check->env->method, SLICE_LIT("initialize")))
		return refuse_naming_versions(
			check, 404, MCP_METHOD_NOT_FOUND,
			"Method not found: this version of the protocol has no initialize");
	return refuse(check, 404, MCP_METHOD_NOT_FOUND, "Method not found");
}

/* Whether the value has this type, or is absent. */
static bool is_or_absent(struct json value, enum json_type type)
{
	return value.type == JSON_ABSENT || value.type == type;
}

static bool may_be(struct slice params, const char *name, enum json_type type)
{
	return is_or_absent(scan_member(params, slice_str(name)), type);
}

static bool may_be_boolean(struct slice params, const char *name)
{
	return may_be(params, name, JSON_TRUE) || may_be(params, name, JSON_FALSE);
}

static int expect_string(struct slice element, void *arg)
{
	(void)arg;
	return scan_type(element) == JSON_STRING ? 0 : -1;
}

static bool may_be_strings(struct slice params, const char *name)
{
	struct json list = scan_member(params, slice_str(name));
	struct error ignored;

	return list.type == JSON_ABSENT ||
	       (list.type == JSON_ARRAY &&
		scan_array(list.text, list.text.n, expect_string, NULL, &ignored) >= 0);
}

/* MOD-SUB-01 */
static bool check_filter(struct check *check)
{
	struct json filter = scan_member(check->env->params.text, SLICE_LIT("notifications"));

	if (filter.type != JSON_OBJECT)
		return refuse_params(check,
				     "Invalid params: notifications is missing or not an object");
	return (may_be_boolean(filter.text, "toolsListChanged") &&
		may_be_boolean(filter.text, "promptsListChanged") &&
		may_be_boolean(filter.text, "resourcesListChanged") &&
		may_be_strings(filter.text, "resourceSubscriptions") &&
		(!check->has_tasks || may_be_strings(filter.text, "taskIds"))) ||
	       refuse_params(check,
			     "Invalid params: a member of notifications is of the wrong type");
}

/* Step 6. MOD-META-05 */
static bool check_shape(struct check *check)
{
	const struct envelope *env = check->env;
	struct json level = env->log_level;
	enum json_type token = env->progress_token.type;
	unsigned int reads = check->rule->reads;

	if (level.type != JSON_ABSENT && level_find(scan_plain_string(level)) < 0)
		return refuse_params(check, "Invalid params: logLevel is not a level");
	if (token != JSON_ABSENT && token != JSON_STRING && token != JSON_NUMBER)
		return refuse_params(
			check, "Invalid params: progressToken is neither a string nor a number");
	if ((reads & READS_ARGUMENTS) != 0 && !is_or_absent(env->arguments, JSON_OBJECT))
		return refuse_params(check, "Invalid params: arguments is not an object");
	if ((reads & READS_RETRY) != 0 && (!is_or_absent(env->input_responses, JSON_OBJECT) ||
					   !is_or_absent(env->request_state, JSON_STRING)))
		return refuse_params(
			check,
			"Invalid params: inputResponses is not an object, or requestState no string");
	if ((reads & READS_CURSOR) != 0 && !is_or_absent(env->cursor, JSON_STRING))
		return refuse_params(check, "Invalid params: cursor is not a string");
	return (reads & READS_FILTER) == 0 || check_filter(check);
}

/* Step 7: the capability that a method requires, whatever its arguments. MOD-CAP-01, MOD-TASK-01 */
static bool check_capability(struct check *check)
{
	static const char *const path[] = { "extensions", TASKS };
	static const char *const tasks[] = { "notifications", "taskIds" };
	bool needs_tasks = check->rule->is_of_tasks;

	if (check->has_tasks && (check->rule->reads & READS_FILTER) != 0)
		needs_tasks = scan_path(check->env->params.text, tasks, ARRAY_LEN(tasks)).type !=
			      JSON_ABSENT;
	if (!needs_tasks ||
	    scan_path(check->env->client_capabilities.text, path, ARRAY_LEN(path)).type ==
		    JSON_OBJECT)
		return true;
	refuse(check, 400, MCP_MISSING_CAPABILITY,
	       "Missing required client capability: the extension " TASKS);
	check->problem->data = "{\"requiredCapabilities\":{\"extensions\":{\"" TASKS "\":{}}}}";
	return false;
}

static const struct rule *find_rule(struct slice method, bool has_tasks)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (slice_is_equal(rules[i].name, method))
			return rules[i].is_of_tasks && !has_tasks ? NULL : &rules[i];
	return NULL;
}

/* FRONT-ERA-02 */
static bool (*const steps[])(struct check *check) = {
	check_kind,       /* -32600 */
	check_meta,       /* -32602 */
	check_head,       /* -32020 */
	check_version,    /* -32022 */
	check_method,     /* 404, -32601 */
	check_shape,      /* -32602 */
	check_capability, /* -32021 */
};

bool modern_check(const struct modern_head *head, const struct envelope *env, bool has_tasks,
		  struct modern_problem *problem_r)
{
	struct check check = {
		.head = head,
		.env = env,
		.rule = find_rule(env->method, has_tasks),
		.has_tasks = has_tasks,
		.problem = problem_r,
	};

	if (env->kind == ENVELOPE_NOTIFICATION)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (!steps[i](&check))
			return false;
	return true;
}
