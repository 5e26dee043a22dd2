/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The era of a POST, and the ladder of checks for a modern request. Each step relies on those
 * before it. What the gateway does not read itself is left to the server, which answers in band. Then what the ladder uses: how
 * values are written in the head, and the arguments that the schema of a tool wants mirrored there.
 *
 * Invariant: if a request has passed, its head mirrors its body, so that whoever acts on the head
 * acts on what the server will see.
 */
#include "endpoint/modern.h"

#include "base/mem.h"
#include "base/text.h"
#include "http/parse.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/param_headers.h"
#include "mcp/error.h"
#include "mcp/level.h"
#include "mcp/revision.h"

/* ---- modern value ---- */

/*
 * The values of Mcp-Name and Mcp-Param-*. Whoever reads such a value before us must have read the
 * same: of the texts that other decoders map to the same bytes, only one is accepted. Streamable
 * HTTP §Value Encoding.
 */

static const struct slice prefix = SLICE("=?base64?");
static const struct slice suffix = SLICE("?=");

/* Visible ASCII, space and tab. MOD-HDR-03 */
static bool modern_is_plain(struct slice value)
{
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if ((c < 0x20 && c != '\t') || c > 0x7e)
			return false;
	}
	return true;
}

/*
 * Whether both ends are marked, even if they share a question mark: then there is nothing between
 * them, not even an empty text.
 */
static bool is_marked(struct slice value)
{
	return value.n > prefix.n && slice_has_prefix(value, prefix) &&
	       slice_is_equal(slice_of(value.p + value.n - suffix.n, suffix.n), suffix);
}

/*
 * Base64 with padding, RFC 4648 §4. It differs from base64url only in two characters and the
 * padding.
 */
static bool decode_base64(struct slice text, struct buf *out)
{
	char *place;
	size_t size;

	if (text.n % 4 != 0)
		return false;
	for (int i = 0; i < 2 && text.n > 0 && text.p[text.n - 1] == '='; i++)
		text.n--;
	place = buf_reserve(out, text.n);
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c == '-' || c == '_')
			return false;
		place[i] = c == '+' ? '-' : c == '/' ? '_' : c;
	}
	/* Decoding in place is safe: it never writes beyond what it has read. */
	if (text_from_base64url(slice_of(place, text.n), place, &size) < 0 ||
	    !text_is_utf8(slice_of(place, size)))
		return false;
	out->len += size;
	return true;
}

bool modern_decode_value(struct slice value, struct buf *out)
{
	if (!modern_is_plain(value))
		return false;
	if (!is_marked(value)) {
		buf_append_slice(out, value);
		return true;
	}
	return value.n >= prefix.n + suffix.n &&
	       decode_base64(slice_of(value.p + prefix.n, value.n - prefix.n - suffix.n), out);
}

/* Whether such a header value means the same as this JSON string. */
static bool modern_is_equal(struct slice value, struct json string)
{
	at_end(buf_fini) struct buf said = { 0 }, meant = { 0 };

	if (!string.has_escape && !is_marked(value))
		return modern_is_plain(value) && string.type == JSON_STRING &&
		       slice_is_equal(value, scan_plain_string(string));
	return modern_decode_value(value, &said) && scan_decode_string(string, &meant) == 0 &&
	       slice_is_equal(buf_slice(&said), buf_slice(&meant));
}

/* ---- the era, and the ladder ---- */

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
	at_end(buf_fini) struct buf meant = { 0 };

	if (!string.has_escape)
		return slice_is_equal(scan_plain_string(string), wanted);
	return scan_decode_string(string, &meant) == 0 && slice_is_equal(buf_slice(&meant), wanted);
}

static bool names_legacy(struct json version)
{
	at_end(buf_fini) struct buf meant = { 0 };

	return scan_decode_string(version, &meant) == 0 && revision_find(buf_slice(&meant)) != NULL;
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

static bool modern_refuse(struct check *check, int status, int code, const char *text)
{
	*check->problem = (struct modern_problem){ .status = status, .code = code, .text = text };
	return false;
}

static bool modern_refuse_params(struct check *check, const char *text)
{
	return modern_refuse(check, 400, MCP_INVALID_PARAMS, text);
}

static bool refuse_header(struct check *check, const char *text)
{
	return modern_refuse(check, 400, MCP_HEADER_MISMATCH, text);
}

/* Step 1: clients of this era send requests; they are sent none that they could respond to. */
static bool check_kind(struct check *check)
{
	return check->env->kind == ENVELOPE_REQUEST ||
	       modern_refuse(check, 400, MCP_INVALID_REQUEST,
			     "Invalid request: a response is not expected here");
}

/* Step 2. FRONT-ERA-03 */
static bool modern_check_meta(struct check *check)
{
	const struct envelope *env = check->env;

	if (env->meta.type != JSON_OBJECT)
		return modern_refuse_params(check,
					    "Invalid params: _meta is missing or not an object");
	if (env->protocol_version.type != JSON_STRING)
		return modern_refuse_params(
			check,
			"Invalid params: _meta has no protocolVersion, or it is not a string");
	if (env->client_capabilities.type != JSON_OBJECT)
		return modern_refuse_params(
			check,
			"Invalid params: _meta has no clientCapabilities, or they are not an object");
	if (env->client_info.type != JSON_ABSENT && env->client_info.type != JSON_OBJECT)
		return modern_refuse_params(check,
					    "Invalid params: clientInfo in _meta is not an object");
	return true;
}

/* Step 3. FRONT-ERA-04, FRONT-HTTP-08, MOD-HDR-01 to -03 */
static bool modern_check_head(struct check *check)
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
	modern_refuse(check, status, code, text);
	check->problem->requested = check->env->protocol_version.text;
	check->problem->is_legacy_claim = revision_find(check->head->version) != NULL;
	return false;
}

/* Step 4. FRONT-ERA-05 */
static bool modern_check_version(struct check *check)
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
	return modern_refuse(check, 404, MCP_METHOD_NOT_FOUND, "Method not found");
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

static int expect_string(struct slice element, not_used void *arg)
{
	return scan_type(element) == JSON_STRING ? 0 : -1;
}

static bool may_be_strings(struct slice params, const char *name)
{
	struct json list = scan_member(params, slice_str(name));

	return list.type == JSON_ABSENT ||
	       (list.type == JSON_ARRAY &&
		scan_array(list.text, list.text.n, expect_string, NULL, NULL) >= 0);
}

/* MOD-SUB-01 */
static bool check_filter(struct check *check)
{
	struct json filter = scan_member(check->env->params.text, SLICE_LIT("notifications"));

	if (filter.type != JSON_OBJECT)
		return modern_refuse_params(
			check, "Invalid params: notifications is missing or not an object");
	return (may_be_boolean(filter.text, "toolsListChanged") &&
		may_be_boolean(filter.text, "promptsListChanged") &&
		may_be_boolean(filter.text, "resourcesListChanged") &&
		may_be_strings(filter.text, "resourceSubscriptions") &&
		(!check->has_tasks || may_be_strings(filter.text, "taskIds"))) ||
	       modern_refuse_params(
		       check, "Invalid params: a member of notifications is of the wrong type");
}

/* Step 6. MOD-META-05 */
static bool check_shape(struct check *check)
{
	const struct envelope *env = check->env;
	struct json level = env->log_level;
	enum json_type token = env->progress_token.type;
	unsigned int reads = check->rule->reads;

	if (level.type != JSON_ABSENT && level_find(scan_plain_string(level)) < 0)
		return modern_refuse_params(check, "Invalid params: logLevel is not a level");
	if (token != JSON_ABSENT && token != JSON_STRING && token != JSON_NUMBER)
		return modern_refuse_params(
			check, "Invalid params: progressToken is neither a string nor a number");
	if ((reads & READS_ARGUMENTS) != 0 && !is_or_absent(env->arguments, JSON_OBJECT))
		return modern_refuse_params(check, "Invalid params: arguments is not an object");
	if ((reads & READS_RETRY) != 0 && (!is_or_absent(env->input_responses, JSON_OBJECT) ||
					   !is_or_absent(env->request_state, JSON_STRING)))
		return modern_refuse_params(
			check,
			"Invalid params: inputResponses is not an object, or requestState no string");
	if ((reads & READS_CURSOR) != 0 && !is_or_absent(env->cursor, JSON_STRING))
		return modern_refuse_params(check, "Invalid params: cursor is not a string");
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
	modern_refuse(check, 400, MCP_MISSING_CAPABILITY,
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
	check_kind,           /* -32600 */
	modern_check_meta,    /* -32602 */
	modern_check_head,    /* -32020 */
	modern_check_version, /* -32022 */
	check_method,         /* 404, -32601 */
	check_shape,          /* -32602 */
	check_capability,     /* -32021 */
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

/* ---- the arguments that the head mirrors ---- */

static bool is_digit_at(struct slice text, size_t i)
{
	return i < text.n && text.p[i] >= '0' && text.p[i] <= '9';
}

/* A number and nothing around it; exponents of more than nine digits are refused. */
static bool append_canonical_number(struct buf *out, struct slice text)
{
	size_t digits = 0;

	while (digits < text.n && is_digit_at(text, text.n - digits - 1))
		digits++;
	if (digits == 0 || (text.p[0] != '-' && !is_digit_at(text, 0)))
		return false;
	if (digits > 9 &&
	    (memchr(text.p, 'e', text.n) != NULL || memchr(text.p, 'E', text.n) != NULL))
		return false;
	return canonical_append(out, text, 1) == 0;
}

static bool is_same_number(struct slice one_text, struct slice other_text)
{
	at_end(buf_fini) struct buf one = { 0 }, other = { 0 };

	return append_canonical_number(&one, one_text) &&
	       append_canonical_number(&other, other_text) &&
	       slice_is_equal(buf_slice(&one), buf_slice(&other));
}

/* MOD-HDR-04: `value` is neither absent nor null. */
static bool is_mirror(struct slice field, struct json value)
{
	at_end(buf_fini) struct buf said = { 0 };
	bool is_same = false;

	if (value.type == JSON_STRING)
		return modern_is_equal(field, value);
	if (modern_decode_value(field, &said)) {
		if (value.type == JSON_NUMBER)
			is_same = is_same_number(buf_slice(&said), value.text);
		else if (value.type == JSON_TRUE || value.type == JSON_FALSE)
			is_same = slice_is_equal(buf_slice(&said), value.text);
	}
	return is_same;
}

/* The number of fields with this name; *value_r is the value of the first. */
static size_t find_field(struct slice lines, struct slice wanted, struct slice *value_r)
{
	struct slice name, value;
	size_t count = 0;

	while (http_next_param(&lines, &name, &value)) {
		if (!slice_is_equal_nocase(name, wanted))
			continue;
		if (count++ == 0)
			*value_r = value;
	}
	return count;
}

static const char *modern_compare(const struct param_header *header, struct slice lines)
{
	struct slice field = { NULL, 0 };
	size_t count = find_field(lines, header->name, &field);
	enum json_type type = header->value.type;

	if (count > 1)
		return "Header mismatch: a field Mcp-Param-* is repeated";
	if (type == JSON_ABSENT || type == JSON_NULL) /* MOD-HDR-05 */
		return count == 0 ? NULL :
				    "Header mismatch: a field Mcp-Param-* has no argument for it";
	if (count == 0)
		return "Header mismatch: a field Mcp-Param-* is missing";
	if (!is_mirror(field, header->value))
		return "Header mismatch: a field Mcp-Param-* is not its argument";
	return NULL;
}

struct params_check {
	struct slice lines;
	struct modern_problem *problem;
	bool is_fine;
};

static int check_header(const struct param_header *header, void *arg)
{
	struct params_check *check = arg;
	const char *text = modern_compare(header, check->lines);
	int code = MCP_HEADER_MISMATCH;

	if (header->is_repeated) { /* the server may read the other one */
		text = "Invalid request: an argument that a header mirrors is repeated";
		code = MCP_INVALID_REQUEST;
	}
	if (text == NULL)
		return 0;
	*check->problem = (struct modern_problem){ .status = 400, .code = code, .text = text };
	check->is_fine = false;
	return -1;
}

bool modern_check_params(const struct modern_head *head, const struct envelope *env,
			 struct slice input_schema, struct modern_problem *problem_r)
{
	struct params_check check = { head->params, problem_r, true };

	param_headers_each(input_schema, env->arguments.text, check_header, &check);
	return check.is_fine;
}
