/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values are found in the text without comments, and copied from the original, which has the same bytes at the same places. */
#include "ctl/entry_text.h"

#include <stdbool.h>
#include <string.h>

#include "jsonrpc/scan.h"

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
	static const char *const moved[] = { "command", "args", "env",       "env_vars",
					     "cwd",     "type", "transport", "source" };

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
