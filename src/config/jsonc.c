/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass puts spaces in the place of what is no JSON, jansson judges the rest. Nothing is decoded here. The text may
 * hold secrets, and so do jansson's copies: both are overwritten.
 */
#include "config/jsonc.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* jansson frees strings as they are. */
static void wipe(json_t *json)
{
	const char *key;
	json_t *value;
	size_t i;

	if (json_is_string(json))
		explicit_bzero((char *)(uintptr_t)json_string_value(json),
			       json_string_length(json));
	json_array_foreach(json, i, value) wipe(value);
	json_object_foreach(json, key, value) wipe(value);
}

/* The end of a comment that begins at p; p if none does; NULL: it does not end. */
static char *skip_comment(char *p, char *end)
{
	char *close = NULL;

	if (end - p < 2 || p[0] != '/')
		return p;
	if (p[1] == '/') {
		close = memchr(p, '\n', (size_t)(end - p));
		return close != NULL ? close : end;
	}
	if (p[1] != '*')
		return p;
	close = memmem(p + 2, (size_t)(end - p) - 2, "*/", 2);
	return close != NULL ? close + 2 : NULL;
}

/* Line ends stay, so that lines are those of the file. */
static void blank(char *from, const char *to)
{
	for (; from < to; from++)
		if (*from != '\n')
			*from = ' ';
}

/* Behind the string that begins at p, or the end. */
static char *skip_string(char *p, char *end)
{
	for (p++; p < end && *p != '"'; p++)
		if (*p == '\\' && p + 1 < end)
			p++;
	return p < end ? p + 1 : end;
}

static void blank_what_is_no_json(char *p, char *end)
{
	char *comma = NULL; /* with nothing but space behind it so far */

	while (p < end) {
		char *next = skip_comment(p, end);

		if (next == NULL)
			return; /* the parser refuses it */
		if (next > p) {
			blank(p, next);
			p = next;
			continue;
		}
		if (comma != NULL && (*p == '}' || *p == ']'))
			*comma = ' ';
		if (*p == ',')
			comma = p;
		else if (strchr(" \t\r\n", *p) == NULL || *p == '\0')
			comma = NULL;
		p = *p == '"' ? skip_string(p, end) : p + 1;
	}
}

struct slice jsonc_without_mark(struct slice text)
{
	if (slice_has_prefix(text, SLICE_LIT("\xEF\xBB\xBF")))
		text = slice_of(text.p + 3, text.n - 3);
	return text;
}

int jsonc_read(struct jsonc *json, struct slice text, struct error *err)
{
	json_error_t error;
	json_t *root;
	char *quotation;

	CHECK(json->text.len == 0);
	text = jsonc_without_mark(text);
	json->original = text;
	buf_append_slice(&json->text, text);
	if (json->text.len > 0)
		blank_what_is_no_json(json->text.data, json->text.data + json->text.len);
	root = json_loadb(buf_terminate(&json->text), json->text.len,
			  JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
	if (root != NULL) {
		wipe(root);
		json_decref(root);
		return 0;
	}
	/* Of what jansson says, the text at which it stopped may be a secret. */
	quotation = strstr(error.text, " near ");
	if (quotation != NULL)
		*quotation = '\0';
	return error_set(err, ERROR_SYNTAX, "%d:%d: not valid JSON: %s", error.line, error.column,
			 json_error_code(&error) == json_error_null_character ?
				 "a text holds a NUL character" :
				 error.text);
}

void jsonc_fini(struct jsonc *json)
{
	buf_wipe(&json->text);
	free(json->marks);
	*json = (struct jsonc){ 0 };
}

/* The last one that is not behind the byte; the first stands at 0. */
static const struct jsonc_mark *find_mark(const struct jsonc *json, size_t offset)
{
	size_t low = 0, high = json->mark_count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (json->marks[middle].at <= offset)
			low = middle;
		else
			high = middle;
	}
	CHECK(low < json->mark_count && json->marks[low].at <= offset);
	return &json->marks[low];
}

struct jsonc_span jsonc_span(const struct jsonc *json, struct slice value)
{
	size_t at = (size_t)(value.p - json->text.data);

	CHECK(value.p >= json->text.data && at + value.n <= json->text.len);
	if (json->marks != NULL)
		return find_mark(json, at)->span;
	return (struct jsonc_span){ .from = at, .name = at, .value = at, .to = at + value.n };
}

static bool begins_character(char c)
{
	return ((unsigned char)c & 0xC0) != 0x80;
}

static void step_forward(struct jsonc *json)
{
	char c = json->original.p[json->counted++];

	if (c == '\n') {
		json->line++;
		json->column = 1;
	} else if (begins_character(c)) {
		json->column++;
	}
}

static void step_back(struct jsonc *json)
{
	const char *text = json->original.p;
	size_t i = --json->counted;

	if (text[i] != '\n') {
		json->column -= begins_character(text[i]);
		return;
	}
	json->line--;
	for (json->column = 1; i > 0 && text[i - 1] != '\n'; i--)
		json->column += begins_character(text[i - 1]);
}

void jsonc_place(struct jsonc *json, const char *at, unsigned *line_r, unsigned *column_r)
{
	size_t offset = (size_t)(at - json->text.data);

	CHECK(at >= json->text.data && offset <= json->text.len);
	if (json->marks != NULL)
		offset = find_mark(json, offset)->span.value;
	if (json->line == 0)
		json->line = json->column = 1;
	while (json->counted < offset)
		step_forward(json);
	while (json->counted > offset)
		step_back(json);
	*line_r = json->line;
	*column_r = json->column;
}
