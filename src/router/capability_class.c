/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A class leaves out roots.listChanged and tasks, which are declared only to a session's own
 * process, and unknown members. Extensions and experimental capabilities count as they were
 * written.
 */
#include "router/capability_class.h"

#include "jsonrpc/scan.h"
#include "jsonrpc/splice.h"
#include "jsonrpc/write.h"
#include "mcp/revision.h"
#include "router/era.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

static bool is_declared(struct json value)
{
	return value.type != JSON_ABSENT && value.type != JSON_NULL && value.type != JSON_FALSE;
}

static void append_name(struct buf *out, size_t begin, const char *name)
{
	buf_append_char(out, out->len > begin ? ',' : '{');
	buf_printf(out, "\"%s\":", name);
}

static void append_end(struct buf *out, size_t begin)
{
	buf_append_str(out, out->len > begin ? "}" : "{}");
}

/*
 * {"a":{},"b":{}} with those that `value` has; if it has neither, with `otherwise`, if that is
 * given.
 */
static void append_parts(struct buf *out, struct json value, const char *const parts[2],
			 const char *otherwise)
{
	size_t begin = out->len;

	for (size_t i = 0; i < 2; i++) {
		if (!is_declared(scan_member(value.text, slice_str(parts[i]))))
			continue;
		append_name(out, begin, parts[i]);
		buf_append_str(out, "{}");
	}
	if (out->len == begin && otherwise != NULL) {
		append_name(out, begin, otherwise);
		buf_append_str(out, "{}");
	}
	append_end(out, begin);
}

static void append_verbatim(struct buf *out, size_t begin, struct json value, const char *name)
{
	if (value.type != JSON_OBJECT)
		return;
	append_name(out, begin, name);
	splice_append(out, value.text, NULL, 0, SPLICE_ONE_LINE | SPLICE_ESCAPE_SEPARATORS);
}

/*
 * Except for that of tasks, which each request declares itself: it decides neither what a server
 * offers nor whether it asks.
 */
static void append_extensions(struct buf *out, size_t begin, struct json value)
{
	struct buf others = { 0 };

	if (value.type != JSON_OBJECT)
		return;
	task_extension_append_others(&others, value.text);
	if (others.len > 2) {
		append_name(out, begin, "extensions");
		buf_append_slice(out, buf_slice(&others));
	}
	buf_fini(&others);
}

enum kind { ROOTS, SAMPLING, ELICITATION, EXTENSIONS, EXPERIMENTAL, KINDS };

static const struct slice kinds[KINDS] = {
	[ROOTS] = SLICE("roots"),
	[SAMPLING] = SLICE("sampling"),
	[ELICITATION] = SLICE("elicitation"),
	[EXTENSIONS] = SLICE("extensions"),
	[EXPERIMENTAL] = SLICE("experimental"),
};

static int on_member(struct slice name, struct json value, void *arg)
{
	struct json *declared = arg;

	for (enum kind kind = 0; kind < KINDS; kind++)
		if (declared[kind].type == JSON_ABSENT && slice_is_equal(name, kinds[kind]))
			declared[kind] = value;
	return 0;
}

void capability_class_append(struct buf *out, struct slice capabilities, bool has_extras)
{
	static const char *const sampling_parts[] = { "tools", "context" };
	static const char *const elicitation_parts[] = { "form", "url" };
	struct json declared[KINDS] = { { .type = JSON_ABSENT } };
	size_t begin = out->len;

	scan_members(capabilities, on_member, declared);
	if (is_declared(declared[ROOTS])) {
		append_name(out, begin, "roots");
		buf_append_str(out, "{}");
	}
	if (is_declared(declared[SAMPLING])) {
		append_name(out, begin, "sampling");
		append_parts(out, declared[SAMPLING], sampling_parts, NULL);
	}
	if (is_declared(declared[ELICITATION])) {
		append_name(out, begin, "elicitation");
		append_parts(out, declared[ELICITATION], elicitation_parts, "form");
	}
	if (has_extras) {
		append_extensions(out, begin, declared[EXTENSIONS]);
		append_verbatim(out, begin, declared[EXPERIMENTAL], "experimental");
	}
	append_end(out, begin);
}

struct msg *capability_class_initialize(const struct revision *revision, struct slice class)
{
	struct buf params = { 0 };
	struct buf text = { 0 };

	buf_printf(&params,
		   "{\"protocolVersion\":\"%.*s\",\"capabilities\":", SLICE_ARG(revision->name));
	buf_append_slice(&params, class);
	buf_append_str(&params,
		       ",\"clientInfo\":{\"name\":\"mcpgated\",\"version\":\"" PACKAGE_VERSION
		       "\"}}");
	write_call(&text, SLICE_LIT("0"), SLICE_LIT("initialize"), buf_slice(&params));
	buf_fini(&params);
	return msg_new_take(&text);
}
