/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extension's name may be written with escapes, so it is compared decoded, as later readers
 * will read it.
 */
#include "router/task_extension.h"

#include <string.h>

#include "jsonrpc/scan.h"
#include "jsonrpc/splice.h"

static const struct slice tasks = SLICE("io.modelcontextprotocol/tasks");

static bool is_meant(struct slice name, struct slice wanted)
{
	struct json quoted = { JSON_STRING, true, slice_of(name.p - 1, name.n + 2) };
	struct buf plain = { 0 };
	bool is_wanted;

	if (memchr(name.p, '\\', name.n) == NULL)
		return slice_is_equal(name, wanted);
	is_wanted =
		scan_decode_string(quoted, &plain) < 0 || slice_is_equal(buf_slice(&plain), wanted);
	buf_fini(&plain);
	return is_wanted;
}

static void append_name(struct buf *out, struct slice name)
{
	if (out->data[out->len - 1] != '{')
		buf_append_char(out, ',');
	splice_append(out, slice_of(name.p - 1, name.n + 2), NULL, 0,
		      SPLICE_ONE_LINE | SPLICE_ESCAPE_SEPARATORS);
	buf_append_char(out, ':');
}

static void append_member(struct buf *out, struct slice name, struct slice value)
{
	append_name(out, name);
	splice_append(out, value, NULL, 0, SPLICE_ONE_LINE | SPLICE_ESCAPE_SEPARATORS);
}

static int copy_extension(struct slice name, struct json value, void *arg)
{
	if (!is_meant(name, tasks))
		append_member(arg, name, value.text);
	return 0;
}

static int copy_capability(struct slice name, struct json value, void *arg)
{
	if (is_meant(name, SLICE_LIT("tasks")))
		return 0;
	if (value.type != JSON_OBJECT || !is_meant(name, SLICE_LIT("extensions"))) {
		append_member(arg, name, value.text);
		return 0;
	}
	append_name(arg, name);
	task_extension_append_others(arg, value.text);
	return 0;
}

bool task_extension_is_declared(struct slice capabilities)
{
	static const char *const path[] = { "extensions", "io.modelcontextprotocol/tasks" };

	return scan_path(capabilities, path, ARRAY_LEN(path)).type == JSON_OBJECT;
}

void task_extension_append_others(struct buf *out, struct slice extensions)
{
	buf_append_char(out, '{');
	scan_members(extensions, copy_extension, out);
	buf_append_char(out, '}');
}

void task_extension_append_without(struct buf *out, struct slice capabilities)
{
	buf_append_char(out, '{');
	scan_members(capabilities, copy_capability, out);
	buf_append_char(out, '}');
}
