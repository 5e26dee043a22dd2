/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry is read as a file of its own: its members are found in what it says as JSON, and copied from where they are written. The lines
 * of TOML begin with a header, [mcp_servers.NAME], or with a key, mcp_servers.NAME.command or NAME.command.
 */
#include "ctl/entry_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/jsonc.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"

/* What says how a server is reached: members of the clients' own, and ours. */
static const char *const moved[] = {
	"command", "args",      "env",          "env_vars",         "cwd",
	"type",    "source",    "url",          "httpUrl",          "serverUrl",
	"headers", "transport", "http_headers", "env_http_headers", "bearer_token_env_var"
};

/* ---- reading ---- */

struct entry {
	struct jsonc json;
	struct buf file; /* of TOML */
	struct slice value;
	struct jsonc_span span; /* of TOML */
	bool is_toml, is_braced;
};

static void entry_fini(struct entry *entry)
{
	jsonc_fini(&entry->json);
	buf_wipe(&entry->file);
}

struct only {
	struct slice name, value;
	size_t count;
};

/* Of an object with one member. */
static struct only only_of(struct slice object)
{
	struct only only = { { "", 0 }, { "", 0 }, 0 };

	SCAN_MEMBERS(member, object)
		only = (struct only){ member.name, member.value.text, only.count + 1 };
	if (only.count != 1)
		only.value = slice_of("", 0); /* what is said in several places is not to be lost */
	return only;
}

/* -1: it is not one. In any case the caller calls entry_fini. */
static int entry_read(struct entry *entry, struct slice original, bool is_toml)
{
	struct only only;

	*entry = (struct entry){ .is_toml = is_toml,
				 .is_braced = original.n > 0 && original.p[0] == '{' };
	if (!is_toml) {
		if (!entry->is_braced || jsonc_read(&entry->json, original, NULL) < 0)
			return -1;
		entry->value = buf_slice(&entry->json.text);
		return 0;
	}
	buf_append_str(&entry->file, entry->is_braced ? "e=" : "");
	buf_append_slice(&entry->file, original);
	if (toml_read(&entry->json, buf_slice(&entry->file), NULL) < 0)
		return -1;
	only = only_of(buf_slice(&entry->json.text));
	if (slice_is_equal(only.name, SLICE_LIT("mcp_servers")) && only.count == 1)
		only = only_of(only.value);
	if (scan_type(only.value) != JSON_OBJECT)
		return -1;
	entry->value = only.value;
	entry->span = jsonc_span(&entry->json, only.value);
	return 0;
}

/* Of a member: all that says it. */
static struct jsonc_span written(const struct entry *entry, struct slice name, struct slice value)
{
	struct jsonc_span span = jsonc_span(&entry->json, value);

	if (!entry->is_toml)
		span.from = (size_t)(name.p - 1 - entry->json.text.data);
	return span;
}

static struct slice cut(const struct entry *entry, size_t from, size_t to)
{
	CHECK(from <= to && to <= entry->json.original.n);
	return slice_of(entry->json.original.p + from, to - from);
}

/* ---- writing ---- */

/* How its text is laid out. */
struct layout {
	struct buf *out;
	const struct entry *entry;
	const struct entry_member *members;
	size_t count;
	bool has_lines;
	bool is_table; /* of lines of TOML */
	const char *line_end;
	struct slice indent, close_indent;
	struct slice begin,
		prefix; /* of lines of TOML: the header and what is behind it; of a key before the member's name */
	size_t before; /* of lines of TOML, the end of the member before */
	size_t seen, written;
	bool is_odd;
};

static struct slice indent_before(const struct entry *entry, size_t at)
{
	struct slice text = cut(entry, 0, at);
	const char *line = at > 0 ? memrchr(text.p, '\n', at) : NULL;
	struct slice indent = line != NULL ? slice_between(line + 1, text.p + at) : slice_of("", 0);

	return slice_trim(indent).n == 0 ? indent : slice_of("", 0);
}

static void begin_member(struct layout *layout)
{
	const char *comma = layout->is_table ? "" : layout->has_lines ? "," : ", ";

	if (layout->written++ > 0)
		buf_append_str(layout->out, comma);
	else if (layout->is_table)
		return; /* what is before it is there */
	if (layout->has_lines) {
		buf_append_str(layout->out, layout->line_end);
		buf_append_slice(layout->out, layout->indent);
	}
}

static void write_member(struct layout *layout, const struct entry_member *member)
{
	begin_member(layout);
	buf_append_slice(layout->out, layout->prefix);
	if (!layout->entry->is_toml) {
		buf_printf(layout->out, "\"%s\": %s", member->name, member->text);
		return;
	}
	buf_printf(layout->out, "%s = ", member->name);
	toml_append(layout->out, slice_str(member->text));
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
	struct jsonc_span span = written(layout->entry, name, value.text);
	size_t before = layout->before;

	layout->is_odd |=
		span.is_apart || (!layout->entry->is_toml && memchr(name.p, '\\', name.n) != NULL);
	layout->before = span.to;
	if (layout->seen++ == 0)
		before = 0; /* that is written already */
	if (is_moved(layout, name))
		return 0;
	if (layout->is_table && before > 0)
		span.from = before; /* comments and blank lines */
	else
		begin_member(layout);
	buf_append_slice(layout->out, cut(layout->entry, span.from, span.to));
	return 0;
}

/* Of the first member; in lines of TOML that begin with it, of the second. */
static int find_indent(struct slice name, struct json value, void *arg)
{
	struct layout *layout = arg;
	struct jsonc_span span = written(layout->entry, name, value.text);
	size_t header = layout->entry->span.value;

	layout->indent = indent_before(layout->entry, span.from);
	if (!layout->is_table || layout->seen++ > 0)
		return -1;
	layout->is_odd |= span.from < header || (header == 0 && layout->entry->file.data[0] == '[');
	if (layout->is_odd)
		return -1;
	layout->begin = cut(layout->entry, 0, span.from);
	if (header == 0)
		layout->prefix = cut(layout->entry, 0, span.name);
	return header > 0 ? -1 : 0;
}

int entry_text_write(struct slice original, bool is_toml, const struct entry_member *members,
		     size_t count, struct buf *out)
{
	const char *end = original.n > 0 ? memchr(original.p, '\n', original.n) : NULL;
	at_end(entry_fini) struct entry entry = { .is_toml = false };
	struct layout layout = {
		.out = out,
		.entry = &entry,
		.members = members,
		.count = count,
		.line_end = end != NULL && end > original.p && end[-1] == '\r' ? "\r\n" : "\n",
	};

	if (entry_read(&entry, original, is_toml) < 0)
		return -1;
	layout.is_table = is_toml && !entry.is_braced;
	layout.has_lines = layout.is_table || (end != NULL && !is_toml);
	if (!layout.is_table)
		layout.close_indent = indent_before(&entry, original.n - 1);
	scan_members(entry.value, find_indent, &layout);
	layout.is_odd |= layout.is_table && layout.seen == 0;
	layout.seen = 0;
	buf_append_str(out, layout.is_table ? "" : "{");
	buf_append_slice(out, layout.begin);
	for (size_t i = 0; i < count; i++)
		write_member(&layout, &members[i]);
	scan_members(entry.value, keep_member, &layout);
	CHECK(layout.written >= count);
	if (layout.has_lines && !layout.is_table) {
		buf_append_str(out, layout.line_end);
		buf_append_slice(out, layout.close_indent);
	}
	buf_append_str(out, layout.is_table ? "" : "}");
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

/* What has been changed since has nothing to do with how the server is reached: it stays. */
static int restore_members(struct slice original, bool is_toml, const struct entry *was,
			   struct buf *out)
{
	struct entry_member members[ENTRY_MEMBERS_MAX];
	size_t count = 0, before = out->len;
	int result;

	SCAN_MEMBERS(member, was->value) {
		struct jsonc_span span = jsonc_span(&was->json, member.value.text);
		struct slice text =
			was->is_toml ? member.value.text : cut(was, span.value, span.to);

		for (size_t i = 0; i < ARRAY_LEN(moved) && count < ENTRY_MEMBERS_MAX; i++)
			if (slice_is_equal(member.name, slice_str(moved[i])))
				members[count++] =
					(struct entry_member){ moved[i], mem_dup_slice(text) };
	}
	result = entry_text_write(original, is_toml, members, count, out);
	for (size_t i = 0; i < count; i++) {
		explicit_bzero(members[i].text, strlen(members[i].text));
		free(members[i].text);
	}
	if (result < 0)
		out->len = before;
	return result;
}

int entry_text_restore(struct slice original, bool is_toml, struct slice was, struct slice is,
		       struct buf *out)
{
	at_end(entry_fini) struct entry is_entry = { .is_toml = false },
					now_entry = { .is_toml = false },
					was_entry = { .is_toml = false };
	at_end(buf_wipe) struct buf now = { 0 }, then = { 0 };
	int result = entry_read(&was_entry, was, is_toml);

	result |= entry_read(&is_entry, is, is_toml);
	result |= entry_read(&now_entry, original, is_toml);
	if (result == 0 && canonical_append(&now, now_entry.value, SCAN_DEPTH_MAX) == 0 &&
	    canonical_append(&then, is_entry.value, SCAN_DEPTH_MAX) == 0 &&
	    leads_as(buf_slice(&now), buf_slice(&then))) {
		/* Both say where they belong: in braces or of JSON, where the value stands; with a header, wherever that is. */
		if (slice_is_equal(buf_slice(&now), buf_slice(&then)) &&
		    (!is_toml ||
		     (original.p[0] == was.p[0] && (was.p[0] == '[' || was.p[0] == '{'))))
			buf_append_slice(out, was);
		else
			result = restore_members(original, is_toml, &was_entry, out);
	} else {
		result = -1;
	}
	return result;
}
