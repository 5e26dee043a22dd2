/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result is rewritten member by member: a legacy server has no say in what kind of result it is,
 * and a name that is repeated, or written with an escape, would mean one thing here and another at
 * the client.
 */
#include "router/era.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "mcp/revision.h"
#include "router/convert.h"
#include "router/pool.h"

#define RESOURCE_NOT_FOUND (-32002)
#define META "io.modelcontextprotocol/"

/* ---- rewriting an object ---- */

struct rebuild {
	struct buf *out;
	struct slices dropped; /* members that the other side has no say in */
	struct slice info;     /* added to _meta */
	/* The members to copy next, all of them at once; NULL: none. */
	const char *begin, *end;
	bool is_result;
	bool has_meta;
};

static bool resembles_one(struct slices names, struct slice name)
{
	for (size_t i = 0; i < names.count; i++)
		if (text_is_lookalike(name, names.items[i]))
			return true;
	return false;
}

/* A name counts as what it means to readers that decode escapes or ignore case. SEC-41 */
static bool is_dropped(const struct rebuild *rebuild, struct slice name)
{
	at_end(buf_fini) struct buf room = { 0 };
	struct slice meant;

	return scan_read_name(name, &room, &meant) < 0 || resembles_one(rebuild->dropped, meant);
}

static void copy_members(struct rebuild *rebuild, struct slice object);

static void append_meta(struct buf *out, struct slice meta, struct slice info)
{
	static const struct slice names[] = { SLICE(META "serverInfo"),
					      SLICE(META "related-task") };
	struct rebuild rebuild = { .out = out, .dropped = { names, ARRAY_LEN(names) } };

	write_member(out, SLICE_LIT("_meta"), SLICE_LIT("{"));
	copy_members(&rebuild, meta);
	if (info.n > 0)
		write_member(out, SLICE_LIT(META "serverInfo"), info);
	buf_append_char(out, '}');
}

static void copy_run(struct rebuild *rebuild)
{
	if (rebuild->begin == NULL)
		return;
	write_comma(rebuild->out);
	splice_append(rebuild->out, slice_between(rebuild->begin, rebuild->end), NULL, 0,
		      SPLICE_ONE_LINE);
	rebuild->begin = NULL;
}

static int take_member(struct slice name, struct json value, void *arg)
{
	struct rebuild *rebuild = arg;
	bool is_meta = rebuild->is_result && value.type == JSON_OBJECT &&
		       slice_is_equal(name, SLICE_LIT("_meta"));

	if (is_meta || is_dropped(rebuild, name)) {
		copy_run(rebuild);
	} else {
		if (rebuild->begin == NULL)
			rebuild->begin = name.p - 1;
		rebuild->end = value.text.p + value.text.n;
	}
	if (is_meta && !rebuild->has_meta)
		append_meta(rebuild->out, value.text, rebuild->info);
	rebuild->has_meta |= is_meta;
	return 0;
}

static void copy_members(struct rebuild *rebuild, struct slice object)
{
	scan_members(object, take_member, rebuild);
	copy_run(rebuild);
}

/* ---- results ---- */

/* MOD-RES-03 */
static bool is_cacheable(const struct method *method)
{
	return method->flags & METHOD_PAGED || method->id == METHOD_RESOURCES_READ ||
	       method->id == METHOD_DISCOVER;
}

/* Members that are not copied: what a result says about itself is for us to write. */
static const struct slice kind_names[] = { SLICE("resultType"),    SLICE("ttlMs"),
					   SLICE("cacheScope"),    SLICE("_meta"),
					   SLICE("inputRequests"), SLICE("requestState") };

static struct slice kind_of(const struct method *method)
{
	if (is_cacheable(method))
		return SLICE_LIT(
			"{\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\"");
	return SLICE_LIT("{\"resultType\":\"complete\"");
}

size_t era_split_plain_result(const struct method *method, struct slice result, struct slice info,
			      struct slice parts[ERA_PARTS_MAX])
{
	size_t count = 0;

	CHECK(result.n >= 2 && result.p[0] == '{');
	parts[count++] = kind_of(method);
	if (memchr(result.p, '"', result.n) != NULL) { /* it has members */
		parts[count++] = SLICE_LIT(",");
		parts[count++] = slice_of(result.p + 1, result.n - 2);
	}
	if (info.n > 0) {
		parts[count++] = SLICE_LIT(",\"_meta\":{\"" META "serverInfo\":");
		parts[count++] = info;
	}
	parts[count++] = info.n > 0 ? SLICE_LIT("}}") : SLICE_LIT("}");
	CHECK(count <= ERA_PARTS_MAX);
	return count;
}

/* The rest of an object that has begun: what is copied of the server's, with `info` in its _meta if it is a result. */
static void append_rest(struct buf *out, struct slice object, struct slices dropped,
			struct slice info, bool is_result)
{
	struct rebuild rebuild = {
		.out = out, .dropped = dropped, .info = info, .is_result = is_result
	};

	copy_members(&rebuild, object);
	if (!rebuild.has_meta && info.n > 0)
		append_meta(out, SLICE_LIT("{}"), info);
	buf_append_char(out, '}');
}

void era_append_result(struct buf *out, const struct method *method, struct slice result,
		       struct slice info)
{
	buf_append_slice(out, kind_of(method));
	append_rest(out, result, (struct slices){ kind_names, ARRAY_LEN(kind_names) }, info, true);
}

/*
 * Appends a server's value if it is valid, or else `otherwise`. If the server gave several, the
 * first counts.
 */
static void append_or(struct buf *out, const char *name, struct json value, bool is_fine,
		      const char *otherwise)
{
	buf_printf(out, ",\"%s\":", name);
	if (is_fine)
		splice_append(out, value.text, NULL, 0, SPLICE_ONE_LINE);
	else
		buf_append_str(out, otherwise);
}

static void append_passed_kind(struct buf *out, const struct method *method, struct slice result,
			       struct slice state, bool is_private)
{
	struct json ttl = scan_member(result, SLICE_LIT("ttlMs"));
	struct json scope = scan_member(result, SLICE_LIT("cacheScope"));
	struct json requests = scan_member(result, SLICE_LIT("inputRequests"));
	struct slice scope_name = scan_plain_string(scope);
	long long ms;

	if (state.n > 0) {
		buf_append_str(out, "{\"resultType\":\"input_required\",\"requestState\":");
		buf_append_slice(out, state);
		if (requests.type == JSON_OBJECT)
			append_or(out, "inputRequests", requests, true, NULL);
		return;
	}
	buf_append_str(out, "{\"resultType\":\"complete\"");
	if (!is_cacheable(method))
		return;
	append_or(out, "ttlMs", ttl, value_read_integer(ttl, &ms) == 0 && ms >= 0, "0");
	append_or(out, "cacheScope", scope,
		  !is_private && slice_is_equal(scope_name, SLICE_LIT("public")), "\"private\"");
}

void era_append_passed_result(struct buf *out, const struct method *method, struct slice result,
			      struct slice info, struct slice state, bool is_private)
{
	append_passed_kind(out, method, result, state, is_private);
	append_rest(out, result, (struct slices){ kind_names, ARRAY_LEN(kind_names) }, info, true);
}

/* Whether the result says what a client is to be told about keeping it. MOD-RES-03, -04 */
static bool is_kept_right(const struct method *method, const struct envelope *env, bool is_private)
{
	struct slice scope = scan_plain_string(env->cache_scope);
	long long ms;

	if (!is_cacheable(method))
		return env->ttl_ms.type == JSON_ABSENT && env->cache_scope.type == JSON_ABSENT;
	return value_read_integer(env->ttl_ms, &ms) == 0 && ms >= 0 &&
	       (slice_is_equal(scope, SLICE_LIT("private")) ||
		(!is_private && slice_is_equal(scope, SLICE_LIT("public"))));
}

/* Whether the result is complete, and has no member that a client must not get. */
static bool is_passable(const struct method *method, const struct envelope *env, struct slice info,
			bool is_private)
{
	return env->result.type == JSON_OBJECT && !env->is_odd_result &&
	       (env->result_type.type == JSON_ABSENT ||
		slice_is_equal(scan_plain_string(env->result_type), SLICE_LIT("complete"))) &&
	       env->input_requests.type == JSON_ABSENT &&
	       env->resumable_state.type == JSON_ABSENT &&
	       (env->result_meta.type == JSON_ABSENT || env->result_meta.type == JSON_OBJECT) &&
	       env->related_task.type == JSON_ABSENT &&
	       (env->server_info.type == JSON_ABSENT ||
		slice_is_equal(env->server_info.text, info)) &&
	       is_kept_right(method, env, is_private);
}

size_t era_split_passed_result(const struct method *method, const struct envelope *env,
			       struct slice info, bool is_private,
			       struct slice parts[ERA_PARTS_MAX])
{
	struct slice result = env->result.text;
	struct slice meta = env->result_meta.text;
	const char *end = result.p + result.n - 1; /* its closing brace */
	bool has_meta = env->result_meta.type == JSON_OBJECT;
	size_t count = 0;

	CHECK(!env->has_line_break);
	if (!is_passable(method, env, info, is_private))
		return 0;
	if (env->result_type.type == JSON_ABSENT) {
		parts[count++] = memchr(result.p, '"', result.n) == NULL ?
					 SLICE_LIT("{\"resultType\":\"complete\"") :
					 SLICE_LIT("{\"resultType\":\"complete\",");
		result = slice_between(result.p + 1, end + 1);
	}
	if (info.n == 0 || env->server_info.type != JSON_ABSENT) {
		parts[count++] = result;
		return count;
	}
	if (has_meta)
		end = meta.p + meta.n - 1;
	parts[count++] = slice_between(result.p, end);
	if (!has_meta)
		parts[count++] = SLICE_LIT(",\"_meta\":{\"" META "serverInfo\":");
	else if (memchr(meta.p, '"', meta.n) == NULL)
		parts[count++] = SLICE_LIT("\"" META "serverInfo\":");
	else
		parts[count++] = SLICE_LIT(",\"" META "serverInfo\":");
	parts[count++] = info;
	if (!has_meta)
		parts[count++] = SLICE_LIT("}");
	parts[count++] = slice_between(end, result.p + result.n);
	CHECK(count <= ERA_PARTS_MAX);
	return count;
}

void era_append_task(struct buf *out, const char *kind, struct slice result, struct slice info,
		     struct slice id)
{
	static const struct slice names[] = { SLICE("resultType"), SLICE("cacheScope"),
					      SLICE("taskId"),     SLICE("inputRequests"),
					      SLICE("_meta"),      SLICE("requestState") };
	struct json requests = scan_member(result, SLICE_LIT("inputRequests"));

	buf_append_char(out, '{');
	if (kind != NULL)
		buf_printf(out, "\"resultType\":\"%s\"", kind);
	if (id.n > 0)
		write_member(out, SLICE_LIT("taskId"), id);
	if (requests.type == JSON_OBJECT)
		append_or(out, "inputRequests", requests, true, NULL);
	append_rest(out, result, (struct slices){ names, ARRAY_LEN(names) }, info, kind != NULL);
}

/*
 * Replaces codes that the modern era does not have, or that mean something else there. bridging.md
 * §2.3.5
 */
static int modern_code(const struct method *method, struct json written)
{
	long long code;

	if (value_read_integer(written, &code) < 0 || (code <= -32020 && code >= -32099))
		return MCP_INTERNAL_ERROR;
	if (code == RESOURCE_NOT_FOUND)
		return MCP_INVALID_PARAMS;
	/* The method is offered, so it is the name that the server does not know. */
	if (code == MCP_METHOD_NOT_FOUND && method->flags & METHOD_ASKING)
		return MCP_INVALID_PARAMS;
	return code >= INT_MIN && code <= INT_MAX ? (int)code : MCP_INTERNAL_ERROR;
}

/*
 * Of the modern era's own errors, only that of a missing capability is about the client's request;
 * the others are between the server and us.
 */
static int passed_code(struct json written)
{
	long long code;

	if (value_read_integer(written, &code) < 0 || code < INT_MIN || code > INT_MAX ||
	    (code <= -32020 && code >= -32099 && code != MCP_MISSING_CAPABILITY))
		return MCP_INTERNAL_ERROR;
	return (int)code;
}

static void append_error(struct buf *out, struct slice error, int code)
{
	static const struct slice names[] = { SLICE("code") };

	buf_printf(out, "{\"code\":%d", code);
	append_rest(out, error, (struct slices){ names, ARRAY_LEN(names) }, slice_of(NULL, 0),
		    false);
}

void era_append_passed_error(struct buf *out, struct slice error, int *code_r)
{
	*code_r = passed_code(scan_member(error, SLICE_LIT("code")));
	append_error(out, error, *code_r);
}

void era_append_error(struct buf *out, const struct method *method, struct slice error, int *code_r)
{
	*code_r = modern_code(method, scan_member(error, SLICE_LIT("code")));
	append_error(out, error, *code_r);
}

/* ---- requests of servers ---- */

void era_append_input_request(struct buf *out, struct slice key, struct slice message)
{
	static const struct slice names[] = { SLICE("_meta"), SLICE("task"),
					      SLICE("elicitationId") };
	struct rebuild rebuild = { .out = out, .dropped = { names, ARRAY_LEN(names) } };
	struct slice method = scan_member(message, SLICE_LIT("method")).text;
	struct slice params = scan_member(message, SLICE_LIT("params")).text;

	buf_printf(out, "%s\"%.*s\":{\"method\":", out->len > 0 ? "," : "", SLICE_ARG(key));
	buf_append_slice(out, method);
	buf_append_str(out, ",\"params\":{");
	copy_members(&rebuild, params);
	buf_append_str(out, "}}");
}

/* ---- discovery ---- */

static struct slice initialize_member(const struct pool *pool, const char *name)
{
	const char *const path[] = { "result", name };

	if (pool->initialize_result == NULL)
		return slice_of(NULL, 0);
	return scan_path(pool->initialize_result->text, path, 2).text;
}

struct slice era_server_info(struct slice response)
{
	static const char *const path[] = { "result", "serverInfo" };
	struct json info = scan_path(response, path, ARRAY_LEN(path));

	return info.type == JSON_OBJECT ? info.text : slice_of(NULL, 0);
}

void era_append_discovery(struct buf *out, const struct pool *pool)
{
	struct slice capabilities = initialize_member(pool, "capabilities");
	struct slice instructions = initialize_member(pool, "instructions");

	buf_append_slice(out, kind_of(method_find(SLICE_LIT("server/discover"))));
	buf_append_str(out, ",\"supportedVersions\":");
	revision_append_served(out);
	buf_append_str(out, ",\"capabilities\":");
	if (scan_type(capabilities) != JSON_OBJECT)
		buf_append_str(out, "{}");
	else if (pool_is_modern(pool))
		buf_append_slice(out, capabilities);
	else
		task_extension_append_without(out, capabilities);
	if (scan_type(instructions) == JSON_STRING)
		write_member(out, SLICE_LIT("instructions"), instructions);
	if (pool->server_info.n > 0)
		append_meta(out, SLICE_LIT("{}"), pool->server_info);
	buf_append_char(out, '}');
}

/* ---- requests ---- */

const struct envelope *era_request(struct convert *convert, const struct envelope *env)
{
	static const struct slice names[] = { SLICE("inputResponses"), SLICE("requestState") };
	struct rebuild rebuild = { .out = &convert->text, .dropped = { names, ARRAY_LEN(names) } };
	struct slice params = env->params.text;

	if (env->input_responses.type == JSON_ABSENT && env->request_state.type == JSON_ABSENT)
		return env;
	buf_append_slice(&convert->text, slice_between(env->text.p, params.p));
	buf_append_char(&convert->text, '{');
	copy_members(&rebuild, params);
	buf_append_char(&convert->text, '}');
	return convert_finish(convert, env, params);
}

/* ---- task extension ---- */

/*
 * The extension's name may be written with escapes, so it is compared decoded, as later readers
 * will read it.
 */

static const struct slice tasks = SLICE("io.modelcontextprotocol/tasks");

static bool is_meant(struct slice name, struct slice wanted)
{
	at_end(buf_fini) struct buf room = { 0 };
	struct slice meant;

	return scan_read_name(name, &room, &meant) < 0 || slice_is_equal(meant, wanted);
}

bool task_extension_is_declared(struct slice capabilities)
{
	static const char *const path[] = { "extensions", "io.modelcontextprotocol/tasks" };

	return scan_path(capabilities, path, ARRAY_LEN(path)).type == JSON_OBJECT;
}

void task_extension_append_others(struct buf *out, struct slice extensions)
{
	buf_append_char(out, '{');
	SCAN_MEMBERS(member, extensions)
		if (!is_meant(member.name, tasks))
			splice_member(out, member.name, member.value.text);
	buf_append_char(out, '}');
}

void task_extension_append_without(struct buf *out, struct slice capabilities)
{
	buf_append_char(out, '{');
	SCAN_MEMBERS(member, capabilities) {
		bool is_extensions = member.value.type == JSON_OBJECT &&
				     is_meant(member.name, SLICE_LIT("extensions"));

		if (is_meant(member.name, SLICE_LIT("tasks")))
			continue;
		splice_member(out, member.name,
			      is_extensions ? slice_of(NULL, 0) : member.value.text);
		if (is_extensions)
			task_extension_append_others(out, member.value.text);
	}
	buf_append_char(out, '}');
}

/* ---- what a server offers ---- */

/*
 * Reads the capabilities of an InitializeResult. A capability that is not of the expected type is
 * not offered.
 */

void server_capabilities_read(struct server_capabilities *capabilities, struct slice result,
			      bool is_modern)
{
	static const struct {
		const char *name;
		const char *member;
		struct server_capabilities means;
	} rows[] = {
		{ "tools", NULL, { .offers = OFFER_TOOLS } },
		{ "tools", "listChanged", { .tells = OFFER_TOOLS } },
		{ "prompts", NULL, { .offers = OFFER_PROMPTS } },
		{ "prompts", "listChanged", { .tells = OFFER_PROMPTS } },
		{ "resources", NULL, { .offers = OFFER_RESOURCES } },
		{ "resources", "listChanged", { .tells = OFFER_RESOURCES } },
		{ "resources", "subscribe", { .offers = OFFER_SUBSCRIBE } },
		{ "completions", NULL, { .offers = OFFER_COMPLETIONS } },
		{ "logging", NULL, { .offers = OFFER_LOGGING } },
	};
	struct slice text = scan_member(result, SLICE_LIT("capabilities")).text;

	*capabilities = (struct server_capabilities){ 0, 0 };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *const path[] = { rows[i].name, rows[i].member };
		bool has_member = rows[i].member != NULL;

		if (scan_path(text, path, has_member ? 2 : 1).type !=
		    (has_member ? JSON_TRUE : JSON_OBJECT))
			continue;
		capabilities->offers |= rows[i].means.offers;
		capabilities->tells |= rows[i].means.tells;
	}
	if (is_modern ? task_extension_is_declared(text) :
			scan_member(text, SLICE_LIT("tasks")).type == JSON_OBJECT)
		capabilities->offers |= OFFER_TASKS;
}

/*
 * A log message does not say whose call it is about, nor does a task say whose it is. bridging.md
 * §1.3, §2.5
 */
static void append_shared(struct buf *out, struct slice object, bool is_of_capabilities,
			  bool has_logging)
{
	buf_append_char(out, '{');
	SCAN_MEMBERS(member, object) {
		struct slice name = member.name, text = member.value.text;

		if (is_of_capabilities &&
		    (slice_is_equal(name, SLICE_LIT("tasks")) ||
		     (!has_logging && slice_is_equal(name, SLICE_LIT("logging")))))
			continue;
		write_name(out, name);
		if (!is_of_capabilities && member.value.type == JSON_OBJECT &&
		    slice_is_equal(name, SLICE_LIT("capabilities")))
			append_shared(out, text, true, has_logging);
		else
			splice_append(out, text, NULL, 0, SPLICE_ONE_LINE);
	}
	buf_append_char(out, '}');
}

struct msg *server_capabilities_share(struct slice result, bool has_logging)
{
	at_end(buf_fini) struct buf out = { 0 };
	struct buf text = { 0 };

	append_shared(&out, result, false, has_logging);
	write_result(&text, SLICE_LIT("0"), buf_slice(&out));
	return msg_new_take(&text);
}
