/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the era of a POST and of the ladder. A row of the ladder says how a request differs from a good one: a member
 * that is NULL is as in the good one, NONE is left out. Bodies lie in blocks of exactly their size.
 */
#include "endpoint/modern.h"

#include "base/unit_test.h"
#include "http/parse.h"
#include "mcp/error.h"

#define MODERN "2026-07-28"
#define VERSION_KEY "\"io.modelcontextprotocol/protocolVersion\":"
#define CAPABILITIES_KEY "\"io.modelcontextprotocol/clientCapabilities\":"
#define INFO_KEY "\"io.modelcontextprotocol/clientInfo\":"
#define LEVEL_KEY "\"io.modelcontextprotocol/logLevel\":"
#define TASKS "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

static const char none[] = "(absent)"; /* told by its address */
#define NONE none

static const struct scan_limits limits = { .depth_max = 128, .id_max = 256 };

/* A request: the head, and pieces of the body as JSON. */
struct sample {
	const char *version, *method, *name; /* of the head */
	bool is_repeated, has_tasks;
	const char *called;  /* the method in the body; the head's too, unless it says otherwise */
	const char *members; /* of params, but _meta */
	const char *claim, *capabilities, *more; /* of _meta; `more` begins with a comma */
	const char *meta;                        /* instead of all that */
};

struct row {
	struct sample sample;
	int status, code; /* 0: it passes */
	const char *text; /* a part of it */
};

static const char *choose(const char *given, const char *otherwise)
{
	return given == NULL ? otherwise : given;
}

static struct slice field(const char *given, const char *otherwise)
{
	const char *value = choose(given, otherwise);

	return value == NONE ? slice_of(NULL, 0) : slice_str(value);
}

static void append_member(struct buf *out, const char *key, const char *value)
{
	if (value == NONE)
		return;
	if (out->data[out->len - 1] != '{')
		buf_append_char(out, ',');
	buf_printf(out, "%s%s", key, value);
}

static void append_meta(struct buf *out, const struct sample *sample)
{
	if (sample->meta != NULL) {
		buf_append_str(out, sample->meta);
		return;
	}
	buf_append_str(out, "{");
	append_member(out, VERSION_KEY, choose(sample->claim, "\"" MODERN "\""));
	append_member(out, CAPABILITIES_KEY, choose(sample->capabilities, "{}"));
	buf_printf(out, "%s}", choose(sample->more, ""));
}

/* The text is the caller's. */
static char *write_body(const struct sample *sample, struct envelope *env_r)
{
	struct buf out = { 0 };
	struct error err;
	char *text;

	buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":{",
		   choose(sample->called, "tools/call"));
	buf_append_str(&out, choose(sample->members, "\"name\":\"add\""));
	if (sample->meta != NONE) {
		if (out.data[out.len - 1] != '{')
			buf_append_char(&out, ',');
		buf_append_str(&out, "\"_meta\":");
		append_meta(&out, sample);
	}
	buf_append_str(&out, "}}");
	text = malloc(out.len);
	memcpy(text, out.data, out.len);
	if (scan_envelope(slice_of(text, out.len), &limits, 0, env_r, &err) < 0)
		fail_msg("%.*s: %s", SLICE_ARG(buf_slice(&out)), err.text);
	buf_fini(&out);
	return text;
}

static bool check_sample(const struct sample *sample, struct modern_problem *problem_r)
{
	struct modern_head head = {
		.version = field(sample->version, MODERN),
		.method = field(sample->method, choose(sample->called, "tools/call")),
		.name = field(sample->name, "add"),
		.is_repeated = sample->is_repeated,
	};
	struct envelope env;
	char *text = write_body(sample, &env);
	bool is_fine = modern_check(&head, &env, sample->has_tasks, problem_r);

	free(text);
	return is_fine;
}

static void check_row(const struct row *row, size_t number)
{
	struct modern_problem problem = { .status = 0 };
	bool is_fine = check_sample(&row->sample, &problem);

	if (is_fine != (row->code == 0) || problem.status != row->status ||
	    problem.code != row->code ||
	    (row->text != NULL && strstr(problem.text, row->text) == NULL))
		fail_msg("row %zu: %d %d %s", number, problem.status, problem.code,
			 problem.text != NULL ? problem.text : "passes");
}

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_row(&rows[i], i);
}

#define META_FAULT 400, MCP_INVALID_PARAMS
#define HEAD_FAULT 400, MCP_HEADER_MISMATCH
#define VERSION_FAULT 400, MCP_UNSUPPORTED_VERSION
#define METHOD_FAULT 404, MCP_METHOD_NOT_FOUND
#define SHAPE_FAULT 400, MCP_INVALID_PARAMS
#define CAPABILITY_FAULT 400, MCP_MISSING_CAPABILITY

/* FRONT-ERA-03, MOD-META-02, FRONT-ERA-02: whatever is wrong behind it */
static void required_metadata_comes_first(void **state)
{
	static const struct row rows[] = {
		{ { .called = NULL }, 0, 0, NULL },
		{ { .meta = NONE }, META_FAULT, "_meta is missing" },
		{ { .meta = "null" }, META_FAULT, "_meta is missing" },
		{ { .meta = "[]" }, META_FAULT, "_meta is missing" },
		{ { .meta = "\"" MODERN "\"" }, META_FAULT, "_meta is missing" },
		{ { .meta = "{}" }, META_FAULT, "protocolVersion" },
		{ { .claim = NONE }, META_FAULT, "protocolVersion" },
		{ { .claim = "null" }, META_FAULT, "protocolVersion" },
		{ { .claim = "20260728" }, META_FAULT, "protocolVersion" },
		{ { .claim = "[\"" MODERN "\"]" }, META_FAULT, "protocolVersion" },
		{ { .capabilities = NONE }, META_FAULT, "clientCapabilities" },
		{ { .capabilities = "null" }, META_FAULT, "clientCapabilities" },
		{ { .capabilities = "true" }, META_FAULT, "clientCapabilities" },
		{ { .capabilities = "[]" }, META_FAULT, "clientCapabilities" },
		{ { .more = "," INFO_KEY "{\"name\":\"c\",\"version\":\"1\"}" }, 0, 0, NULL },
		{ { .more = "," INFO_KEY "{}" }, 0, 0, NULL },
		{ { .more = "," INFO_KEY "\"c\"" }, META_FAULT, "clientInfo" },
		{ { .more = ",\"acme/x\":[1],\"traceparent\":\"00\"" }, 0, 0, NULL },
		/* two faults: this one wins */
		{ { .meta = NONE, .version = NONE }, META_FAULT, "_meta" },
		{ { .meta = NONE, .method = "x" }, META_FAULT, "_meta" },
		{ { .claim = NONE, .method = NONE }, META_FAULT, "protocolVersion" },
		{ { .claim = "1", .is_repeated = true }, META_FAULT, "protocolVersion" },
		{ { .capabilities = NONE, .name = "b" }, META_FAULT, "clientCapabilities" },
		{ { .capabilities = NONE, .version = "v1" }, META_FAULT, "clientCapabilities" },
		{ { .capabilities = NONE, .claim = "\"v1\"" }, META_FAULT, "clientCapabilities" },
		{ { .capabilities = NONE, .called = "no" }, META_FAULT, "clientCapabilities" },
		{ { .meta = NONE, .called = "initialize" }, META_FAULT, "_meta" },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

/* FRONT-ERA-04, FRONT-VER-05, MOD-HDR-01, MOD-HDR-03, FRONT-HTTP-08 */
static void the_head_says_what_the_body_says(void **state)
{
	static const struct row rows[] = {
		{ { .version = NONE }, HEAD_FAULT, "MCP-Protocol-Version is missing" },
		{ { .version = "" }, HEAD_FAULT, "MCP-Protocol-Version is not" },
		{ { .version = "2025-11-25" }, HEAD_FAULT, "MCP-Protocol-Version is not" },
		{ { .claim = "\"2025-11-25\"" }, HEAD_FAULT, "MCP-Protocol-Version is not" },
		{ { .version = MODERN "." }, HEAD_FAULT, "MCP-Protocol-Version is not" },
		{ { .version = "=?base64?MjAyNi0wNy0yOA==?=" }, HEAD_FAULT, "Version is not" },
		{ { .claim = "\"2026\\u002d07-28\"" }, 0, 0, NULL },
		{ { .claim = "\"2026-07-28\\ud800\"" }, HEAD_FAULT, "Version is not" },
		{ { .version = "\xc3\xa4", .claim = "\"\xc3\xa4\"" },
		  HEAD_FAULT,
		  "Version is not" },
		{ { .method = NONE }, HEAD_FAULT, "Mcp-Method is missing" },
		{ { .method = "" }, HEAD_FAULT, "Mcp-Method is not" },
		{ { .method = "tools/list" }, HEAD_FAULT, "Mcp-Method is not" },
		{ { .method = "TOOLS/CALL" }, HEAD_FAULT, "Mcp-Method is not" },
		{ { .method = "tools/cal" }, HEAD_FAULT, "Mcp-Method is not" },
		{ { .method = "=?base64?dG9vbHMvY2FsbA==?=" }, HEAD_FAULT, "Mcp-Method is not" },
		{ { .called = "t\xc3\xa4" }, HEAD_FAULT, "Mcp-Method is not" },
		{ { .name = NONE }, HEAD_FAULT, "Mcp-Name is missing" },
		{ { .name = "" }, HEAD_FAULT, "Mcp-Name is not" },
		{ { .name = "Add" }, HEAD_FAULT, "Mcp-Name is not" },
		{ { .name = "adds" }, HEAD_FAULT, "Mcp-Name is not" },
		{ { .name = "=?base64?YWRk?=" }, 0, 0, NULL },
		{ { .members = "\"name\":\"a\\u0064d\"" }, 0, 0, NULL },
		{ { .members = "\"name\":\"\xc3\xa4\"", .name = "\xc3\xa4" }, HEAD_FAULT, "Name" },
		{ { .members = "\"name\":\"\xc3\xa4\"", .name = "=?base64?w6Q=?=" }, 0, 0, NULL },
		{ { .members = "\"name\":\"\"", .name = "" }, 0, 0, NULL },
		{ { .members = "" }, HEAD_FAULT, "Mcp-Name is not" },
		{ { .members = "\"name\":5", .name = "5" }, HEAD_FAULT, "Mcp-Name is not" },
		{ { .members = "\"name\":null", .name = "" }, HEAD_FAULT, "Mcp-Name is not" },
		{ { .members = "\"uri\":\"add\"" }, HEAD_FAULT, "Mcp-Name is not" },
		{ { .called = "prompts/get", .name = "sub" }, HEAD_FAULT, "Mcp-Name is not" },
		{ { .called = "prompts/get", .name = NONE }, HEAD_FAULT, "Mcp-Name is missing" },
		{ { .called = "prompts/get" }, 0, 0, NULL },
		{ { .called = "resources/read" }, HEAD_FAULT, "Mcp-Name is not" },
		{ { .called = "resources/read", .members = "\"uri\":\"a:b\"", .name = "a:b" },
		  0,
		  0,
		  NULL },
		{ { .called = "resources/read", .members = "\"uri\":\"a:\\/\"", .name = "a:/" },
		  0,
		  0,
		  NULL },
		{ { .called = "resources/read", .members = "\"uri\":\"a:b\"", .name = "a:B" },
		  HEAD_FAULT,
		  "Mcp-Name is not" },
		{ { .called = "resources/read", .members = "\"name\":\"add\"" },
		  HEAD_FAULT,
		  "Mcp-Name is not" },
		{ { .called = "tools/list", .members = "", .name = NONE }, 0, 0, NULL },
		{ { .called = "tools/list", .members = "" }, 0, 0, NULL },
		{ { .is_repeated = true }, HEAD_FAULT, "repeated" },
		{ { .is_repeated = true, .called = "tools/list" }, HEAD_FAULT, "repeated" },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

/* FRONT-ERA-02, FRONT-ERA-04 */
static void the_head_comes_before_what_is_behind_it(void **state)
{
	static const struct row rows[] = {
		{ { .claim = "\"v999\"" }, HEAD_FAULT, "MCP-Protocol-Version is not" },
		{ { .version = "v999" }, HEAD_FAULT, "MCP-Protocol-Version is not" },
		{ { .claim = "\"v1\"", .version = NONE }, HEAD_FAULT, "Version is missing" },
		{ { .claim = "\"v1\"", .version = "v1", .method = "x" }, HEAD_FAULT, "Method" },
		{ { .claim = "\"v1\"", .version = "v1", .name = "x" }, HEAD_FAULT, "Mcp-Name" },
		{ { .claim = "\"v1\"", .version = "v1", .is_repeated = true },
		  HEAD_FAULT,
		  "repeated" },
		{ { .called = "no", .method = "tools/list" }, HEAD_FAULT, "Mcp-Method" },
		{ { .called = "no", .method = NONE }, HEAD_FAULT, "Mcp-Method" },
		{ { .called = "initialize", .version = NONE }, HEAD_FAULT, "Version is missing" },
		{ { .more = "," LEVEL_KEY "\"loud\"", .name = "b" }, HEAD_FAULT, "Mcp-Name" },
		{ { .members = "\"name\":\"b\",\"arguments\":1" }, HEAD_FAULT, "Mcp-Name" },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

/* FRONT-ERA-05, FRONT-ERA-06 */
static void version_then_method(void **state)
{
	static const struct row rows[] = {
		{ { .claim = "\"v999\"", .version = "v999" }, VERSION_FAULT, NULL },
		{ { .claim = "\"\"", .version = "" }, VERSION_FAULT, NULL },
		{ { .claim = "\"2026-07-29\"", .version = "2026-07-29" }, VERSION_FAULT, NULL },
		{ { .claim = "\"2025-11-25\"", .version = "2025-11-25" }, VERSION_FAULT, NULL },
		{ { .called = "server/discover", .claim = "\"v1\"", .version = "v1" },
		  VERSION_FAULT,
		  NULL },
		{ { .called = "no", .claim = "\"v1\"", .version = "v1" }, VERSION_FAULT, NULL },
		{ { .called = "initialize", .claim = "\"v1\"", .version = "v1" },
		  VERSION_FAULT,
		  NULL },
		{ { .claim = "\"v1\"", .version = "v1", .more = "," LEVEL_KEY "1" },
		  VERSION_FAULT,
		  NULL },
		{ { .called = "no/such" }, METHOD_FAULT, NULL },
		{ { .called = "Tools/call" }, METHOD_FAULT, NULL },
		{ { .called = "initialize" }, METHOD_FAULT, "initialize" },
		{ { .called = "ping" }, METHOD_FAULT, NULL },
		{ { .called = "logging/setLevel" }, METHOD_FAULT, NULL },
		{ { .called = "resources/subscribe" }, METHOD_FAULT, NULL },
		{ { .called = "resources/unsubscribe" }, METHOD_FAULT, NULL },
		{ { .called = "tasks/list", .has_tasks = true }, METHOD_FAULT, NULL },
		{ { .called = "tasks/result", .has_tasks = true }, METHOD_FAULT, NULL },
		{ { .called = "tasks/get" }, METHOD_FAULT, NULL },
		{ { .called = "sampling/createMessage" }, METHOD_FAULT, NULL },
		{ { .called = "notifications/initialized" }, METHOD_FAULT, NULL },
		{ { .called = "ping", .more = "," LEVEL_KEY "1" }, METHOD_FAULT, NULL },
		{ { .called = "no", .members = "\"arguments\":1" }, METHOD_FAULT, NULL },
		{ { .called = "server/discover" }, 0, 0, NULL },
		{ { .called = "tools/list" }, 0, 0, NULL },
		{ { .called = "prompts/list" }, 0, 0, NULL },
		{ { .called = "resources/list" }, 0, 0, NULL },
		{ { .called = "resources/templates/list" }, 0, 0, NULL },
		{ { .called = "completion/complete" }, 0, 0, NULL },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

#define LISTEN(filter) .called = "subscriptions/listen", .members = "\"notifications\":" filter
#define TASK(method) .called = method, .members = "\"taskId\":\"t\"", .name = "t", .has_tasks = true

/* MOD-META-05, MOD-SUB-01, MOD-CAP-01, MOD-TASK-01 */
static void shape_then_capabilities(void **state)
{
	static const struct row rows[] = {
		{ { .more = "," LEVEL_KEY "\"debug\"" }, 0, 0, NULL },
		{ { .more = "," LEVEL_KEY "\"loud\"" }, SHAPE_FAULT, "logLevel" },
		{ { .more = "," LEVEL_KEY "\"Debug\"" }, SHAPE_FAULT, "logLevel" },
		{ { .more = "," LEVEL_KEY "7" }, SHAPE_FAULT, "logLevel" },
		{ { .more = "," LEVEL_KEY "null" }, SHAPE_FAULT, "logLevel" },
		{ { .more = ",\"progressToken\":\"a\"" }, 0, 0, NULL },
		{ { .more = ",\"progressToken\":1" }, 0, 0, NULL },
		{ { .more = ",\"progressToken\":{}" }, SHAPE_FAULT, "progressToken" },
		{ { .more = ",\"progressToken\":null" }, SHAPE_FAULT, "progressToken" },
		{ { .members = "\"name\":\"add\",\"arguments\":{}" }, 0, 0, NULL },
		{ { .members = "\"name\":\"add\",\"arguments\":[]" }, SHAPE_FAULT, "arguments" },
		{ { .members = "\"name\":\"add\",\"inputResponses\":{}" }, 0, 0, NULL },
		{ { .members = "\"name\":\"add\",\"inputResponses\":[]" }, SHAPE_FAULT, "input" },
		{ { .members = "\"name\":\"add\",\"requestState\":\"s\"" }, 0, 0, NULL },
		{ { .members = "\"name\":\"add\",\"requestState\":{}" }, SHAPE_FAULT, "State" },
		{ { .called = "tools/list", .members = "\"cursor\":\"c\"" }, 0, 0, NULL },
		{ { .called = "tools/list", .members = "\"cursor\":7" }, SHAPE_FAULT, "cursor" },
		{ { LISTEN("{}") }, 0, 0, NULL },
		{ { LISTEN(
			  "{\"toolsListChanged\":true,\"promptsListChanged\":false,"
			  "\"resourcesListChanged\":true,\"resourceSubscriptions\":[\"a\"],\"x\":1}") },
		  0,
		  0,
		  NULL },
		{ { LISTEN("{\"resourceSubscriptions\":[]}") }, 0, 0, NULL },
		{ { .called = "subscriptions/listen" }, SHAPE_FAULT, "notifications is missing" },
		{ { LISTEN("null") }, SHAPE_FAULT, "notifications is missing" },
		{ { LISTEN("[\"tools\"]") }, SHAPE_FAULT, "notifications is missing" },
		{ { LISTEN("{\"toolsListChanged\":1}") }, SHAPE_FAULT, "member" },
		{ { LISTEN("{\"promptsListChanged\":\"true\"}") }, SHAPE_FAULT, "member" },
		{ { LISTEN("{\"resourcesListChanged\":null}") }, SHAPE_FAULT, "member" },
		{ { LISTEN("{\"resourceSubscriptions\":\"a\"}") }, SHAPE_FAULT, "member" },
		{ { LISTEN("{\"resourceSubscriptions\":[\"a\",1]}") }, SHAPE_FAULT, "member" },
		{ { LISTEN("{\"taskIds\":[\"t\"]}") }, 0, 0, NULL },
		{ { LISTEN("{\"taskIds\":[\"t\"]}"), .has_tasks = true }, CAPABILITY_FAULT, NULL },
		{ { LISTEN("{\"taskIds\":[\"t\"]}"), .has_tasks = true, .capabilities = TASKS },
		  0,
		  0,
		  NULL },
		{ { TASK("tasks/get") }, CAPABILITY_FAULT, "tasks" },
		{ { TASK("tasks/update") }, CAPABILITY_FAULT, "tasks" },
		{ { TASK("tasks/cancel") }, CAPABILITY_FAULT, "tasks" },
		{ { TASK("tasks/get"), .capabilities = "{\"extensions\":{}}" },
		  CAPABILITY_FAULT,
		  "tasks" },
		{ { TASK("tasks/get"), .capabilities = TASKS }, 0, 0, NULL },
		{ { .called = "tasks/get", .has_tasks = true, .capabilities = TASKS },
		  HEAD_FAULT,
		  "Mcp-Name is not" },
		{ { TASK("tasks/get"), .more = "," LEVEL_KEY "1" }, SHAPE_FAULT, "logLevel" },
		{ { .called = "tasks/update",
		    .members = "\"taskId\":\"t\",\"inputResponses\":1",
		    .name = "t",
		    .has_tasks = true,
		    .capabilities = TASKS },
		  SHAPE_FAULT,
		  "inputResponses" },
		{ { LISTEN("{\"taskIds\":\"t\"}"), .has_tasks = true }, SHAPE_FAULT, "member" },
		{ { LISTEN("{\"taskIds\":[1]}"), .has_tasks = true }, SHAPE_FAULT, "member" },
		{ { LISTEN("{\"taskIds\":1}") }, 0, 0, NULL },
		{ { LISTEN("{\"taskIds\":[],\"toolsListChanged\":1}"), .has_tasks = true },
		  SHAPE_FAULT,
		  "member" },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

static void assert_slice(struct slice got, const char *wanted)
{
	if (!slice_is_equal(got, slice_str(wanted)))
		fail_msg("got <%.*s>, wanted <%s>", SLICE_ARG(got), wanted);
}

/* FRONT-ERA-05, FRONT-ERA-08, MOD-CAP-01: `data` */
static void problems_carry_what_data_names(void **state)
{
	static const struct {
		struct sample sample;
		const char *requested;
		bool is_legacy_claim;
	} rows[] = {
		{ { .claim = "\"v\\u0031\"", .version = "v1" }, "\"v\\u0031\"", false },
		{ { .claim = "\"2024-11-05\"", .version = "2024-11-05" }, "\"2024-11-05\"", true },
		{ { .called = "initialize" }, "\"" MODERN "\"", false },
		{ { .called = "ping" }, "", false },
		{ { .method = NONE }, "", false },
		{ { TASK("tasks/get") }, "", false },
	};
	struct modern_problem problem;
	struct json required;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *kept = NULL;
		struct envelope env;
		struct modern_head head = {
			.version = field(rows[i].sample.version, MODERN),
			.method = field(rows[i].sample.method,
					choose(rows[i].sample.called, "tools/call")),
			.name = field(rows[i].sample.name, "add"),
		};

		kept = write_body(&rows[i].sample, &env);
		assert_false(modern_check(&head, &env, rows[i].sample.has_tasks, &problem));
		assert_slice(problem.requested, rows[i].requested);
		assert_int_equal(problem.is_legacy_claim, rows[i].is_legacy_claim);
		assert_int_equal(problem.data != NULL, problem.code == MCP_MISSING_CAPABILITY);
		free(kept);
	}
	required = scan_member(slice_str(problem.data), SLICE_LIT("requiredCapabilities"));
	assert_slice(required.text, TASKS);
}

/* MODERN-free bodies for the classification: the claim, or none. */
static struct envelope read_message(const char *text)
{
	struct envelope env;
	struct error err;

	if (scan_envelope(slice_str(text), &limits, 0, &env, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return env;
}

#define CALL(method, meta) \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" meta "}}"
#define CLAIM(claim) "\"_meta\":{" VERSION_KEY claim "}"
#define RESPONSE "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{" CLAIM("\"" MODERN "\"") "}}"
#define NOTIFICATION "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}"
#define INITIALIZE CALL("initialize", "\"protocolVersion\":\"" MODERN "\"")

struct era_row {
	const char *version; /* NULL: absent */
	const char *messages[2];
	bool has_session, is_batch;
	enum modern_era era;
};

static void check_eras(const struct era_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct envelope messages[2];
		struct modern_post post = {
			.version = rows[i].version != NULL ? slice_str(rows[i].version) :
							     slice_of(NULL, 0),
			.messages = messages,
			.is_batch = rows[i].is_batch,
			.has_session = rows[i].has_session,
		};

		while (post.count < 2 && rows[i].messages[post.count] != NULL) {
			messages[post.count] = read_message(rows[i].messages[post.count]);
			post.count++;
		}
		if (modern_classify(&post) != rows[i].era)
			fail_msg("row %zu: era %d", i, (int)modern_classify(&post));
	}
}

#define LEGACY MODERN_ERA_LEGACY
#define UNKNOWN MODERN_ERA_UNKNOWN
#define IS_MODERN MODERN_ERA_MODERN

/* FRONT-ERA-01, FRONT-ERA-10, FRONT-VER-02, FRONT-VER-05 */
static void the_era_of_one_message(void **state)
{
	static const char plain[] = CALL("tools/list", "");
	static const char claimed[] = CALL("tools/list", CLAIM("\"" MODERN "\""));
	static const char claims_legacy[] = CALL("tools/list", CLAIM("\"2025-06-18\""));
	static const char claims_odd[] = CALL("tools/list", CLAIM("\"v999\""));
	static const char claims_number[] = CALL("tools/list", CLAIM("7"));
	static const char claims_null[] = CALL("tools/list", CLAIM("null"));
	static const char claims_escaped[] = CALL("tools/list", CLAIM("\"2025\\u002d06-18\""));
	static const char elsewhere[] = CALL("tools/list", "\"a\":{" CLAIM("\"" MODERN "\"") "}");
	static const char modern_initialize[] = CALL("initialize", CLAIM("\"" MODERN "\""));
	static const struct era_row rows[] = {
		{ NULL, { plain }, false, false, LEGACY },
		{ NULL, { plain }, true, false, LEGACY },
		{ "2025-11-25", { plain }, false, false, LEGACY },
		{ "2024-11-05", { plain }, true, false, LEGACY },
		{ NULL, { elsewhere }, false, false, LEGACY },
		{ MODERN, { plain }, false, false, IS_MODERN },
		{ MODERN, { plain }, true, false, IS_MODERN },
		{ NULL, { claimed }, false, false, IS_MODERN },
		{ NULL, { claimed }, true, false, IS_MODERN },
		{ "2025-11-25", { claimed }, true, false, IS_MODERN },
		{ "v999", { claimed }, false, false, IS_MODERN },
		{ "v999", { claims_odd }, false, false, IS_MODERN },
		{ NULL, { claims_odd }, true, false, IS_MODERN },
		{ NULL, { claims_number }, true, false, IS_MODERN },
		{ NULL, { claims_null }, false, false, IS_MODERN },
		/* a */
		{ "v999", { plain }, false, false, UNKNOWN },
		{ "v999", { plain }, true, false, UNKNOWN },
		{ "", { plain }, false, false, UNKNOWN },
		{ "2026-07-28 x", { plain }, false, false, UNKNOWN },
		{ "v999", { NOTIFICATION }, true, false, UNKNOWN },
		{ "v999", { INITIALIZE }, false, false, LEGACY },
		{ "2025-11-25", { INITIALIZE }, false, false, LEGACY },
		{ NULL, { INITIALIZE }, false, false, LEGACY },
		{ MODERN, { INITIALIZE }, false, false, IS_MODERN },
		{ NULL, { modern_initialize }, false, false, IS_MODERN },
		/* b */
		{ NULL, { claims_legacy }, false, false, IS_MODERN },
		{ "2025-06-18", { claims_legacy }, false, false, IS_MODERN },
		{ NULL, { claims_legacy }, true, false, LEGACY },
		{ "2025-06-18", { claims_legacy }, true, false, LEGACY },
		{ NULL, { claims_escaped }, true, false, LEGACY },
		{ "v999", { claims_legacy }, true, false, UNKNOWN },
		{ MODERN, { claims_legacy }, true, false, IS_MODERN },
		/* c: what a response has inside is no claim */
		{ NULL, { RESPONSE }, true, false, LEGACY },
		{ "v999", { RESPONSE }, true, false, LEGACY },
		{ MODERN, { RESPONSE }, true, false, IS_MODERN },
	};

	check_eras(rows, ARRAY_LEN(rows));
}

static void the_era_of_an_array(void **state)
{
	static const char plain[] = CALL("tools/list", "");
	static const char claimed[] = CALL("tools/list", CLAIM("\"" MODERN "\""));
	static const char claims_legacy[] = CALL("tools/list", CLAIM("\"2025-03-26\""));
	static const struct era_row rows[] = {
		{ NULL, { NULL }, true, true, LEGACY },
		{ "v999", { NULL }, true, true, LEGACY },
		{ MODERN, { NULL }, true, true, IS_MODERN },
		{ NULL, { plain, plain }, true, true, LEGACY },
		{ "v999", { plain, plain }, true, true, LEGACY },
		{ MODERN, { plain, plain }, true, true, IS_MODERN },
		{ NULL, { plain, claimed }, true, true, IS_MODERN },
		{ NULL, { claimed, plain }, false, true, IS_MODERN },
		{ NULL, { plain, claims_legacy }, true, true, LEGACY },
		{ NULL, { plain, claims_legacy }, false, true, IS_MODERN },
		{ NULL, { claims_legacy, claimed }, true, true, IS_MODERN },
	};

	check_eras(rows, ARRAY_LEN(rows));
}

/* FRONT-ERA-02: step 1, and what has no ladder */
static void only_requests_climb(void **state)
{
	struct modern_head head = { .is_repeated = true };
	struct modern_problem problem;
	struct envelope env = read_message(RESPONSE);

	assert_false(modern_check(&head, &env, false, &problem));
	assert_int_equal(problem.status, 400);
	assert_int_equal(problem.code, MCP_INVALID_REQUEST);
	env = read_message(NOTIFICATION);
	assert_true(modern_check(&head, &env, false, &problem));
}

/* FRONT-HTTP-07, FRONT-HTTP-08 */
static void heads_are_read_and_copied(void **state)
{
	static const struct http_parse_limits sizes = { 64, 1024, 16 };
	static const char one[] = "POST / HTTP/1.1\r\nHost: h\r\nmcp-method:  a \r\n"
				  "Mcp-Param-X: 1\r\nMCP-NAME: b\r\n\r\n";
	static const char *const repeated[] = { "Mcp-Method", "Mcp-Name", "MCP-Protocol-Version",
						"Mcp-Session-Id", "Last-Event-ID" };
	struct http_request request;
	struct modern_head head, copy;
	const char *reason;
	size_t seen = 0;
	char *text;
	int status;

	assert_true(http_parse_head(slice_str(one), &sizes, &seen, &request, &status, &reason) > 0);
	modern_head_read(&request, &head);
	text = modern_head_copy(&head, &copy);
	assert_slice(copy.method, "a");
	assert_slice(copy.name, "b");
	assert_null(copy.version.p);
	assert_slice(copy.params, "Mcp-Param-X: 1\r\n");
	assert_true(copy.method.p != head.method.p);
	assert_false(copy.is_repeated);
	free(text);
	for (size_t i = 0; i < ARRAY_LEN(repeated); i++) {
		struct buf out = { 0 };

		buf_printf(&out, "POST / HTTP/1.1\r\nHost: h\r\n%s: a\r\n%s: a\r\n\r\n",
			   repeated[i], repeated[i]);
		seen = 0;
		assert_true(http_parse_head(buf_slice(&out), &sizes, &seen, &request, &status,
					    &reason) > 0);
		modern_head_read(&request, &head);
		assert_true(head.is_repeated);
		buf_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(required_metadata_comes_first),
		cmocka_unit_test(the_head_says_what_the_body_says),
		cmocka_unit_test(the_head_comes_before_what_is_behind_it),
		cmocka_unit_test(version_then_method),
		cmocka_unit_test(shape_then_capabilities),
		cmocka_unit_test(problems_carry_what_data_names),
		cmocka_unit_test(the_era_of_one_message),
		cmocka_unit_test(the_era_of_an_array),
		cmocka_unit_test(only_requests_climb),
		cmocka_unit_test(heads_are_read_and_copied),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
