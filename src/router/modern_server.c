/* SPDX-License-Identifier: Apache-2.0 */
/* A result is rewritten member by member, each value unchanged. */
#include "router/modern_server.h"

#include "base/check.h"
#include "jsonrpc/value.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "upstream/modern.h"

struct rewrite {
	struct buf *out;
	struct slices left_out;
	const struct method *method; /* NULL: this is not a result */
	struct slice structured;     /* of a tool, if that is not an object */
	bool has_content;
};

static void append_member(struct buf *out, struct slice name, struct slice value)
{
	if (out->data[out->len - 1] != '{')
		buf_append_char(out, ',');
	buf_append_slice(out, slice_between(name.p - 1, name.p + name.n + 1));
	buf_append_char(out, ':');
	buf_append_slice(out, value);
}

static int copy_meta_member(struct slice name, struct json value, void *arg)
{
	const struct rewrite *rewrite = arg;

	if (!slice_is_equal(name, SLICE_LIT(MODERN_META "serverInfo")) &&
	    !slice_is_equal(name, SLICE_LIT(MODERN_META "subscriptionId")))
		append_member(rewrite->out, name, value.text);
	return 0;
}

/* Copies _meta without what legacy clients do not know; a _meta with nothing else is left out. */
static void copy_meta(struct rewrite *rewrite, struct slice name, struct json meta)
{
	struct buf inside = { 0 };
	struct rewrite inner = { .out = &inside };

	buf_append_char(&inside, '{');
	scan_members(meta.text, copy_meta_member, &inner);
	buf_append_char(&inside, '}');
	if (inside.len > 2 || meta.text.n <= 2)
		append_member(rewrite->out, name, buf_slice(&inside));
	buf_fini(&inside);
}

/* ---- what tools return: before the modern era that was an object ---- */

#define WRAP_BEGIN "{\"type\":\"object\",\"properties\":{\"result\":"
#define WRAP_END "},\"required\":[\"result\"]}"

/*
 * An outputSchema that may allow both objects and other values is left out: nobody could tell which
 * values are to be wrapped.
 */
static int copy_tool_member(struct slice name, struct json value, void *arg)
{
	struct buf *out = arg;
	struct slice type = scan_plain_string(scan_member(value.text, SLICE_LIT("type")));

	if (!slice_is_equal(name, SLICE_LIT("outputSchema")) ||
	    slice_is_equal(type, SLICE_LIT("object"))) {
		append_member(out, name, value.text);
	} else if (type.n > 0) {
		append_member(out, name, SLICE_LIT(WRAP_BEGIN));
		buf_append_slice(out, value.text);
		buf_append_str(out, WRAP_END);
	}
	return 0;
}

static int copy_tool(struct slice tool, void *arg)
{
	struct buf *out = arg;

	if (out->data[out->len - 1] != '[')
		buf_append_char(out, ',');
	if (scan_type(tool) != JSON_OBJECT) {
		buf_append_slice(out, tool);
		return 0;
	}
	buf_append_char(out, '{');
	scan_members(tool, copy_tool_member, out);
	buf_append_char(out, '}');
	return 0;
}

static void copy_tools(struct buf *out, struct slice name, struct json tools)
{
	struct error err;

	append_member(out, name, SLICE_LIT("["));
	(void)!scan_array(tools.text, SIZE_MAX, copy_tool, out, &err);
	buf_append_char(out, ']');
}

static void copy_structured(struct rewrite *rewrite, struct slice name, struct json value)
{
	rewrite->structured = value.text;
	append_member(rewrite->out, name, SLICE_LIT("{\"result\":"));
	buf_append_slice(rewrite->out, value.text);
	buf_append_char(rewrite->out, '}');
}

/* Adds the value as text, for clients that read only that. */
static void append_fallback(const struct rewrite *rewrite)
{
	struct buf *out = rewrite->out;

	if (rewrite->structured.n == 0 || rewrite->has_content)
		return;
	buf_append_str(out, out->data[out->len - 1] == '{' ? "" : ",");
	buf_append_str(out, "\"content\":[{\"type\":\"text\",\"text\":");
	write_string(out, rewrite->structured);
	buf_append_str(out, "}]");
}

/* Returns false if the member is to be copied like any other. */
static bool copy_of_tools(struct rewrite *rewrite, struct slice name, struct json value)
{
	enum method_id method = rewrite->method != NULL ? rewrite->method->id : METHOD_OTHER;
	bool is_call = method == METHOD_TOOLS_CALL;

	if (method == METHOD_TOOLS_LIST && value.type == JSON_ARRAY &&
	    slice_is_equal(name, SLICE_LIT("tools"))) {
		copy_tools(rewrite->out, name, value);
		return true;
	}
	if (is_call && value.type != JSON_OBJECT &&
	    slice_is_equal(name, SLICE_LIT("structuredContent"))) {
		copy_structured(rewrite, name, value);
		return true;
	}
	rewrite->has_content |= slice_is_equal(name, SLICE_LIT("content"));
	return false;
}

static int copy_member(struct slice name, struct json value, void *arg)
{
	struct rewrite *rewrite = arg;

	if (slices_has(rewrite->left_out, name) || copy_of_tools(rewrite, name, value))
		return 0;
	if (value.type == JSON_OBJECT && slice_is_equal(name, SLICE_LIT("_meta")))
		copy_meta(rewrite, name, value);
	else
		append_member(rewrite->out, name, value.text);
	return 0;
}

static void append_object(struct buf *out, const struct method *method, struct slice object,
			  struct slices left_out)
{
	struct rewrite rewrite = { .out = out, .left_out = left_out, .method = method };

	buf_append_char(out, '{');
	scan_members(object, copy_member, &rewrite);
	append_fallback(&rewrite);
	buf_append_char(out, '}');
}

/* Completes the message in convert->text, which ends with what replaces `span`. */
static const struct envelope *finish(struct convert *convert, const struct envelope *env,
				     struct slice span)
{
	struct error err;

	buf_append_slice(&convert->text, slice_between(span.p + span.n, env->text.p + env->text.n));
	if (scan_envelope(buf_slice(&convert->text), &scan_limits_none, SCAN_LENIENT, &convert->env,
			  &err) < 0)
		return env; /* cannot happen: it was accepted before */
	return &convert->env;
}

static const struct envelope *write_object(struct convert *convert, const struct method *method,
					   const struct envelope *env, struct slice span,
					   struct slices left_out)
{
	buf_append_slice(&convert->text, slice_between(env->text.p, span.p));
	append_object(&convert->text, method, span, left_out);
	return finish(convert, env, span);
}

/* Replaces codes that only the modern era has. requirements.md §19 */
static const struct envelope *write_error_code(struct convert *convert, const struct envelope *env)
{
	struct json code = scan_member(env->error.text, SLICE_LIT("code"));
	long long number;

	if (value_read_integer(code, &number) < 0 ||
	    (number != MCP_HEADER_MISMATCH && number != MCP_MISSING_CAPABILITY &&
	     number != MCP_UNSUPPORTED_VERSION))
		return env;
	buf_append_slice(&convert->text, slice_between(env->text.p, code.text.p));
	buf_printf(&convert->text, "%d", MCP_INTERNAL_ERROR);
	return finish(convert, env, code.text);
}

const struct envelope *modern_server_response(struct convert *convert, const struct method *method,
					      const struct envelope *env)
{
	static const struct slice names[] = { SLICE("resultType"), SLICE("ttlMs"),
					      SLICE("cacheScope") };

	if (env->kind == ENVELOPE_ERROR)
		return write_error_code(convert, env);
	if (env->result.type != JSON_OBJECT)
		return env;
	return write_object(convert, method, env, env->result.text,
			    (struct slices){ names, ARRAY_LEN(names) });
}

const struct envelope *modern_server_notification(struct convert *convert,
						  const struct envelope *env)
{
	if (env->params.type != JSON_OBJECT)
		return env;
	return write_object(convert, NULL, env, env->params.text, (struct slices){ NULL, 0 });
}

enum modern_result modern_server_kind(struct slice result)
{
	struct json kind = scan_member(result, SLICE_LIT("resultType"));
	struct slice name = scan_plain_string(kind);

	if (kind.type == JSON_ABSENT || slice_is_equal(name, SLICE_LIT("complete")))
		return MODERN_COMPLETE;
	if (slice_is_equal(name, SLICE_LIT("input_required")))
		return MODERN_INPUT_REQUIRED;
	return slice_is_equal(name, SLICE_LIT("task")) ? MODERN_TASK : MODERN_UNKNOWN;
}
