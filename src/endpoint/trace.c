/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint/trace.h"

#include "base/mem.h"
#include "jsonrpc/splice.h"
#include "jsonrpc/write.h"
#include "mcp/trace_context.h"

static const struct slice parent_name = SLICE("traceparent"), state_name = SLICE("tracestate");

static bool has_once(const struct http_request *http, enum http_field field)
{
	return http_has(http, field) && (http->repeated & 1u << field) == 0;
}

char *trace_of_head(const struct http_request *http)
{
	struct slice parent = http->fields[HTTP_TRACEPARENT], state = http->fields[HTTP_TRACESTATE];
	struct buf members = { 0 };
	struct slice trace_id;
	char *text;

	if (!has_once(http, HTTP_TRACEPARENT) || !trace_parent_read(parent, &trace_id))
		return NULL;
	buf_append_str(&members, "\"traceparent\":");
	write_string(&members, parent);
	if (has_once(http, HTTP_TRACESTATE) && trace_state_is_valid(state)) {
		buf_append_str(&members, ",\"tracestate\":");
		write_string(&members, state);
	}
	text = mem_strdup(buf_terminate(&members));
	buf_fini(&members);
	return text;
}

/* Behind the brace that begins an object. */
static struct slice inside_of(struct slice object)
{
	return slice_of(object.p + 1, 0);
}

static bool is_empty(struct slice object)
{
	const char *p = object.p + 1;

	while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
		p++;
	return *p == '}';
}

/* Written into `object`, of which it becomes the first member, or the first ones. */
static void add(struct buf *out, const struct envelope *env, struct slice object,
		const char *before, const char *members, const char *after)
{
	struct buf with = { 0 };
	struct splice_edit edit = { .span = inside_of(object) };

	buf_printf(&with, "%s%s%s%s", before, members, after, is_empty(object) ? "" : ",");
	edit.with = buf_slice(&with);
	splice_append(out, env->text, &edit, 1, 0);
	buf_fini(&with);
}

bool trace_add(struct buf *out, const struct envelope *env, const char *members)
{
	if (env->kind != ENVELOPE_REQUEST || slice_is_equal(env->method, SLICE_LIT("initialize")))
		return false;
	if (env->meta.type == JSON_OBJECT) {
		if (scan_member(env->meta.text, parent_name).type != JSON_ABSENT ||
		    scan_member(env->meta.text, state_name).type != JSON_ABSENT)
			return false;
		add(out, env, env->meta.text, "", members, "");
	} else if (env->meta.type == JSON_ABSENT && env->params.type == JSON_OBJECT) {
		add(out, env, env->params.text, "\"_meta\":{", members, "}");
	} else if (env->params.type == JSON_ABSENT) {
		add(out, env, env->text, "\"params\":{\"_meta\":{", members, "}}");
	} else {
		return false;
	}
	return true;
}
