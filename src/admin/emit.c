/* SPDX-License-Identifier: Apache-2.0 */
/* What was written last says whether a comma is due. */
#include "admin/emit.h"

#include "jsonrpc/write.h"

static void emit_name(struct buf *out, const char *name)
{
	char last = out->len > 0 ? out->data[out->len - 1] : '{';

	if (last != '{' && last != '[')
		buf_append_char(out, ',');
	if (name == NULL)
		return;
	write_string(out, slice_str(name));
	buf_append_char(out, ':');
}

void emit_open(struct buf *out, const char *name, char bracket)
{
	emit_name(out, name);
	buf_append_char(out, bracket);
}

void emit_close(struct buf *out, char bracket)
{
	buf_append_char(out, bracket);
}

void emit_text(struct buf *out, const char *name, struct slice text)
{
	emit_name(out, name);
	write_string(out, text);
}

void emit_string(struct buf *out, const char *name, const char *text)
{
	emit_text(out, name, slice_str(text));
}

void emit_number(struct buf *out, const char *name, uint64_t value)
{
	emit_name(out, name);
	buf_append_u64(out, value);
}

void emit_bool(struct buf *out, const char *name, bool value)
{
	emit_name(out, name);
	buf_append_str(out, value ? "true" : "false");
}

void emit_null(struct buf *out, const char *name)
{
	emit_name(out, name);
	buf_append_str(out, "null");
}
