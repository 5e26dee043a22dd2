/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/long_line.h"

#include <string.h>

#include "base/check.h"

static void append(char *text, size_t *length, char c)
{
	if (*length < LONG_LINE_TEXT_BYTES)
		text[*length] = c;
	if (*length <= LONG_LINE_TEXT_BYTES)
		++*length;
}

static void end_message(struct long_line *line, long_line_fn *on_id, void *arg)
{
	bool is_response = line->has_id && !line->has_method && line->id_length > 0 &&
			   line->id_length <= LONG_LINE_TEXT_BYTES;

	line->has_id = line->has_method = line->is_id = line->is_name = false;
	if (is_response)
		on_id(slice_of(line->id, line->id_length), arg);
}

static bool is_name(const struct long_line *line, struct slice name)
{
	return line->length == name.n && memcmp(line->text, name.p, name.n) == 0;
}

/* Between a member's name and its value. */
static void begin_value(struct long_line *line)
{
	if (!line->is_name)
		return;
	line->is_name = false;
	line->is_id = is_name(line, SLICE_LIT("id")) && !line->has_id;
	line->has_method = line->has_method || is_name(line, SLICE_LIT("method"));
	if (line->is_id) {
		line->has_id = true;
		line->id_length = 0;
	}
}

static void begin_name(struct long_line *line)
{
	line->is_name = true;
	line->is_id = false;
	line->length = 0;
}

static void take_bracket(struct long_line *line, char c, long_line_fn *on_id, void *arg)
{
	bool is_message = c == '{' || c == '}';

	if (c == '{' || c == '[') {
		if (line->members == 0)
			line->members = c == '{' ? 1 : 2;
		if (++line->depth == line->members && is_message)
			begin_name(line);
		return;
	}
	if (line->depth == line->members && is_message)
		end_message(line, on_id, arg);
	line->depth -= line->depth > 0;
}

static void take_in_string(struct long_line *line, char c)
{
	if (line->is_escaped)
		line->is_escaped = false;
	else if (c == '\\')
		line->is_escaped = true;
	else
		line->is_string = c != '"';
	if (line->depth != line->members)
		return;
	if (line->is_name && line->is_string)
		append(line->text, &line->length, c);
	else if (line->is_id)
		append(line->id, &line->id_length, c);
}

static void take(struct long_line *line, char c, long_line_fn *on_id, void *arg)
{
	bool is_member = line->depth == line->members && line->depth > 0;

	if (c == '{' || c == '[' || c == '}' || c == ']') {
		take_bracket(line, c, on_id, arg);
		return;
	}
	if (c == '"')
		line->is_string = true;
	else if (is_member && c == ':')
		begin_value(line);
	else if (is_member && c == ',')
		begin_name(line);
	if (is_member && line->is_id && c != ':' && c != ' ' && c != '\t' && c != '\r')
		append(line->id, &line->id_length, c);
}

void long_line_take(struct long_line *line, struct slice part, bool is_end, long_line_fn *on_id,
		    void *arg)
{
	for (size_t i = 0; i < part.n; i++) {
		if (line->is_string)
			take_in_string(line, part.p[i]);
		else
			take(line, part.p[i], on_id, arg);
	}
	CHECK(line->length <= LONG_LINE_TEXT_BYTES + 1);
	CHECK(line->id_length <= LONG_LINE_TEXT_BYTES + 1);
	if (is_end)
		end_message(line, on_id, arg);
}
