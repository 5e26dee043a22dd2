/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/trace_message.h"

#include "base/check.h"
#include "jsonrpc/splice.h"

static const struct slice parent_name = SLICE("traceparent"), state_name = SLICE("tracestate");

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

bool trace_message_add(struct buf *out, const struct envelope *env, const char *members)
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

bool trace_message_set_parent(struct buf *out, const struct envelope *env, const char *parent)
{
	struct json there = { .type = JSON_ABSENT };
	struct splice_edit edit;
	struct buf members = { 0 };
	bool is_set;

	if (env->has_more_meta)
		there = scan_member(env->meta.text, parent_name);
	if (there.type != JSON_ABSENT) {
		buf_printf(&members, "\"%s\"", parent);
		edit = (struct splice_edit){ there.text, buf_slice(&members) };
		splice_append(out, env->text, &edit, 1, 0);
		is_set = true;
	} else {
		buf_printf(&members, "\"traceparent\":\"%s\"", parent);
		is_set = trace_message_add(out, env, buf_terminate(&members));
	}
	buf_fini(&members);
	return is_set;
}
