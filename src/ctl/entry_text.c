/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values are found in the text without comments, and copied from the original, which has the same bytes at the same places. */
#include "ctl/entry_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/jsonc.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"

/* What says how a server is reached: members of the clients' own, and ours. */
static const char *const moved[] = { "command", "args",      "env",     "env_vars",
				     "cwd",     "type",      "source",  "url",
				     "httpUrl", "serverUrl", "headers", "transport" };

/* How its text is laid out. */
struct layout {
	struct buf *out;
	const char *original;
	const char *value;
	const struct entry_member *members;
	size_t count;
	bool has_lines;
	const char *line_end;
	struct slice indent, close_indent;
	size_t written;
	bool is_odd;
};

static struct slice indent_before(const char *begin, const char *at)
{
	const char *line = memrchr(begin, '\n', (size_t)(at - begin));
	struct slice indent = line != NULL ? slice_between(line + 1, at) : slice_of("", 0);

	return slice_trim(indent).n == 0 ? indent : slice_of("", 0);
}

static void begin_member(struct layout *layout)
{
	if (layout->written++ > 0)
		buf_append_str(layout->out, layout->has_lines ? "," : ", ");
	if (layout->has_lines) {
		buf_append_str(layout->out, layout->line_end);
		buf_append_slice(layout->out, layout->indent);
	}
}

/* What says how the server is reached; the rest is the client's own, and stays. */
static bool is_moved(const struct layout *layout, struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(moved); i++)
		if (slice_is_equal(name, slice_str(moved[i])))
			return true;
	for (size_t i = 0; i < layout->count; i++)
		if (slice_is_equal(name, slice_str(layout->members[i].name)))
			return true;
	return false;
}

static int keep_member(struct slice name, struct json value, void *arg)
{
	struct layout *layout = arg;
	size_t at = (size_t)(name.p - 1 - layout->value);
	size_t end = (size_t)(value.text.p + value.text.n - layout->value);

	layout->is_odd |= memchr(name.p, '\\', name.n) != NULL;
	if (is_moved(layout, name))
		return 0;
	begin_member(layout);
	buf_append_slice(layout->out, slice_of(layout->original + at, end - at));
	return 0;
}

static int find_indent(struct slice name, struct json value, void *arg)
{
	struct layout *layout = arg;

	(void)value;
	layout->indent = indent_before(layout->value, name.p - 1);
	return -1;
}

int entry_text_write(struct slice value, const char *original, const struct entry_member *members,
		     size_t count, struct buf *out)
{
	const char *end = memchr(original, '\n', value.n);
	struct layout layout = {
		.out = out,
		.original = original,
		.value = value.p,
		.members = members,
		.count = count,
		.has_lines = end != NULL,
		.line_end = end != NULL && end > original && end[-1] == '\r' ? "\r\n" : "\n",
	};

	CHECK(value.n >= 2 && original[0] == '{' && original[value.n - 1] == '}');
	layout.close_indent = indent_before(value.p, value.p + value.n - 1);
	scan_members(value, find_indent, &layout);
	buf_append_char(out, '{');
	for (size_t i = 0; i < count; i++) {
		begin_member(&layout);
		buf_printf(out, "\"%s\": %s", members[i].name, members[i].text);
	}
	scan_members(value, keep_member, &layout);
	CHECK(layout.written >= count);
	if (layout.has_lines) {
		buf_append_str(out, layout.line_end);
		buf_append_slice(out, layout.close_indent);
	}
	buf_append_char(out, '}');
	return layout.is_odd ? -1 : 0;
}

/* ---- back again ---- */

/* Both in canonical form. */
static bool leads_as(struct slice now, struct slice then)
{
	for (size_t i = 0; i < ARRAY_LEN(moved); i++) {
		struct json a = scan_member(now, slice_str(moved[i]));
		struct json b = scan_member(then, slice_str(moved[i]));

		if (a.type != b.type || !slice_is_equal(a.text, b.text))
			return false;
	}
	return true;
}

struct copied {
	const struct jsonc *json;
	struct entry_member members[ENTRY_MEMBERS_MAX];
	size_t count;
};

static int copy_moved(struct slice name, struct json value, void *arg)
{
	struct copied *copied = arg;
	size_t at = (size_t)(value.text.p - copied->json->text.data);

	for (size_t i = 0; i < ARRAY_LEN(moved) && copied->count < ENTRY_MEMBERS_MAX; i++)
		if (slice_is_equal(name, slice_str(moved[i])))
			copied->members[copied->count++] = (struct entry_member){
				moved[i],
				mem_dup_slice(slice_of(copied->json->original.p + at, value.text.n))
			};
	return 0;
}

/* What has been changed since has nothing to do with how the server is reached: it stays. */
static int restore_members(struct slice value, const char *original, const struct jsonc *was,
			   struct buf *out)
{
	struct copied copied = { .json = was };
	size_t before = out->len;
	int result;

	CHECK(was->text.len == was->original.n);
	scan_members(buf_slice(&was->text), copy_moved, &copied);
	result = entry_text_write(value, original, copied.members, copied.count, out);
	for (size_t i = 0; i < copied.count; i++) {
		explicit_bzero(copied.members[i].text, strlen(copied.members[i].text));
		free(copied.members[i].text);
	}
	if (result < 0)
		out->len = before;
	return result;
}

int entry_text_restore(struct slice value, const char *original, struct slice was, struct slice is,
		       struct buf *out)
{
	struct jsonc was_json = { .line = 0 }, is_json = { .line = 0 };
	struct buf now = { 0 }, then = { 0 };
	struct error err;
	int result = -1;

	if (jsonc_read(&was_json, was, &err) == 0 && jsonc_read(&is_json, is, &err) == 0 &&
	    canonical_append(&now, value, SCAN_DEPTH_MAX) == 0 &&
	    canonical_append(&then, buf_slice(&is_json.text), SCAN_DEPTH_MAX) == 0) {
		if (slice_is_equal(buf_slice(&now), buf_slice(&then))) {
			buf_append_slice(out, was);
			result = 0;
		} else if (leads_as(buf_slice(&now), buf_slice(&then))) {
			result = restore_members(value, original, &was_json, out);
		}
	}
	buf_wipe(&now);
	buf_wipe(&then);
	jsonc_fini(&was_json);
	jsonc_fini(&is_json);
	return result;
}
