/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads YAML with libyaml's events, so that every value keeps its line and column. It knows nothing
 * of options. What a reader of the file could understand in two ways is refused (see the header).
 *
 * The file may hold secrets: the buffers of libyaml that can be reached and the tree are
 * overwritten before they are freed. What libyaml's scanner moved while a text grew is out of
 * reach; a secret that stands in a file of its own ({file: PATH}) never comes here.
 *
 * Nesting is counted while events arrive: libyaml's time is quadratic in it, and this recursion
 * needs the bound too. YAML 1.1 as libyaml reads it.
 */
#include "config/tree.h"

#include <stdint.h>
#include <string.h>
#include <yaml.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/unicode.h"

struct reader {
	yaml_parser_t parser;
	struct slice text;
	const char *file;
	unsigned depth;
	struct error *err;
};

static struct tree *read_value(struct reader *reader, yaml_event_t *event);

static int refuse(struct reader *reader, const yaml_mark_t *mark, const char *reason)
{
	return error_set(reader->err, ERROR_INVALID, "%zu:%zu: %s", mark->line + 1,
			 mark->column + 1, reason);
}

/* libyaml tells only the byte where its decoder stumbled. */
static int refuse_bytes(struct reader *reader)
{
	size_t line = 1, column = 1;
	size_t end = reader->parser.problem_offset;

	for (size_t i = 0; i < end && i < reader->text.n; i++) {
		column++;
		if (reader->text.p[i] == '\n') {
			line++;
			column = 1;
		}
	}
	return error_set(reader->err, ERROR_SYNTAX, "%zu:%zu: not valid YAML: %s", line, column,
			 reader->parser.problem);
}

/* The usual cause of libyaml's message, which does not name it. */
static const char *guess(const struct reader *reader, const yaml_mark_t *mark)
{
	static const struct {
		const char *problem;
		const char *text;
	} guesses[] = {
		{ "mapping values are not allowed in this context",
		  " (is the line indented like its neighbours? A text with ': ' in it needs "
		  "quotes)" },
		{ "did not find expected key", " (is the line indented like its neighbours?)" },
		{ "could not find expected ':'",
		  " (is there a ':' and a space after the key, and is the line indented like its "
		  "neighbours?)" },
		{ "found character that cannot start any token",
		  " (a text that begins like this needs quotes)" },
		{ "did not find expected alphabetic or numeric character",
		  " (a text that begins with * or & needs quotes)" },
		{ "found unexpected end of stream", " (is there a quote that is not closed?)" },
		{ "did not find expected ',' or ']'", " (is there a '[' that is not closed?)" },
		{ "did not find expected ',' or '}'", " (is there a '{' that is not closed?)" },
	};
	struct slice text = reader->text;
	size_t at = 0;

	for (size_t line = 0; line < mark->line && at < text.n; at++)
		line += text.p[at] == '\n';
	/* A mark counts characters: bytes here, since nothing but spaces stands before a tab that is refused. */
	if (mark->column < text.n - at && text.p[at + mark->column] == '\t')
		return " (a tab: indent with spaces)";
	for (size_t i = 0; i < ARRAY_LEN(guesses); i++) {
		if (strcmp(reader->parser.problem, guesses[i].problem) == 0)
			return guesses[i].text;
	}
	return "";
}

static int next_event(struct reader *reader, yaml_event_t *event_r)
{
	const yaml_parser_t *parser = &reader->parser;
	const yaml_mark_t *mark = &parser->problem_mark;

	if (yaml_parser_parse(&reader->parser, event_r) == 1)
		return 0;
	if (parser->problem == NULL)
		return error_set(reader->err, ERROR_SYSTEM, "1:1: not enough memory to read it");
	if (parser->error == YAML_READER_ERROR)
		return refuse_bytes(reader);
	return error_set(reader->err, ERROR_SYNTAX, "%zu:%zu: not valid YAML: %s%s%s%s",
			 mark->line + 1, mark->column + 1, parser->problem,
			 parser->context != NULL ? ", " : "",
			 parser->context != NULL ? parser->context : "", guess(reader, mark));
}

static void end_event(yaml_event_t *event)
{
	if (event->type == YAML_SCALAR_EVENT)
		explicit_bzero(event->data.scalar.value, event->data.scalar.length);
	yaml_event_delete(event);
}

/* What a value's event may not carry. */
static int check_event(struct reader *reader, const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (event->type == YAML_ALIAS_EVENT)
		return refuse(reader, &event->start_mark,
			      "aliases (*name) are not supported; a text that begins with '*' "
			      "needs quotes");
	if (event->type == YAML_SCALAR_EVENT) {
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
	} else if (event->type == YAML_SEQUENCE_START_EVENT) {
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
	} else if (event->type == YAML_MAPPING_START_EVENT) {
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
	}
	if (anchor != NULL)
		return refuse(reader, &event->start_mark,
			      "anchors (&name) are not supported; a text that begins with '&' "
			      "needs quotes");
	if (tag != NULL)
		return refuse(reader, &event->start_mark,
			      "tags (!name) are not supported; a text that begins with '!' "
			      "needs quotes");
	return 0;
}

static struct tree *value_at(struct reader *reader, enum tree_kind kind, const yaml_event_t *event)
{
	struct tree *value = tree_new(kind, reader->file);

	value->line = (unsigned)event->start_mark.line + 1;
	value->column = (unsigned)event->start_mark.column + 1;
	return value;
}

static int check_key(struct reader *reader, const struct tree *map, const yaml_event_t *event)
{
	const struct tree *first;
	const char *key = (const char *)event->data.scalar.value;

	if (check_event(reader, event) != 0)
		return -1;
	if (event->type != YAML_SCALAR_EVENT)
		return refuse(reader, &event->start_mark, "a key must be a text");
	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(key, "<<") == 0)
		return refuse(reader, &event->start_mark, "merge keys (<<) are not supported");
	if (event->data.scalar.length > YAML_KEY_MAX)
		return refuse(reader, &event->start_mark, "a key is longer than 200 bytes");
	if (memchr(key, '\0', event->data.scalar.length) != NULL)
		return refuse(reader, &event->start_mark, "a key holds a NUL character");
	first = tree_find(map, key);
	if (first != NULL)
		return error_set(reader->err, ERROR_INVALID,
				 "%zu:%zu: the key '%.100s' occurs twice, first in line %u",
				 event->start_mark.line + 1, event->start_mark.column + 1, key,
				 first->key_line);
	return 0;
}

/* One member; `key_event` is its key's event, which stays the caller's. */
static int read_member(struct reader *reader, struct tree *map, const yaml_event_t *key_event)
{
	struct tree *child;
	yaml_event_t event;

	if (check_key(reader, map, key_event) != 0 || next_event(reader, &event) != 0)
		return -1;
	child = read_value(reader, &event);
	end_event(&event);
	if (child == NULL)
		return -1;
	tree_add(map, (const char *)key_event->data.scalar.value, child);
	child->key_line = (unsigned)key_event->start_mark.line + 1;
	child->key_column = (unsigned)key_event->start_mark.column + 1;
	return 0;
}

/* Everything up to the end event of the list or map. */
static int read_items(struct reader *reader, struct tree *parent)
{
	yaml_event_type_t end =
		parent->kind == TREE_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
	bool is_end = false;
	int result = 0;

	CHECK(parent->kind != TREE_TEXT && parent->count == 0);
	while (!is_end && result == 0) {
		struct tree *item;
		yaml_event_t event;

		if (next_event(reader, &event) != 0)
			return -1;
		is_end = event.type == end;
		if (is_end)
			result = 0;
		else if (parent->count == YAML_ITEMS_MAX)
			result = refuse(reader, &event.start_mark,
					"more than 4096 entries in one list or map");
		else if (parent->kind == TREE_MAP)
			result = read_member(reader, parent, &event);
		else if ((item = read_value(reader, &event)) != NULL)
			tree_add(parent, NULL, item);
		else
			result = -1;
		end_event(&event);
	}
	return result;
}

static struct tree *read_value(struct reader *reader, yaml_event_t *event)
{
	struct tree *value;
	int result = 0;

	if (check_event(reader, event) != 0)
		return NULL;
	if (event->type == YAML_SCALAR_EVENT) {
		const char *text = (const char *)event->data.scalar.value;

		value = value_at(reader, TREE_TEXT, event);
		value->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
		if (memchr(text, '\0', event->data.scalar.length) != NULL)
			result = refuse(reader, &event->start_mark, "a text holds a NUL character");
		else
			value->text = mem_strdup(text);
	} else if (reader->depth == YAML_DEPTH_MAX) {
		refuse(reader, &event->start_mark, "nested deeper than 32 levels");
		return NULL;
	} else {
		bool is_map = event->type == YAML_MAPPING_START_EVENT;

		value = value_at(reader, is_map ? TREE_MAP : TREE_LIST, event);
		CHECK(reader->depth < YAML_DEPTH_MAX);
		reader->depth++;
		result = read_items(reader, value);
		reader->depth--;
	}
	if (result != 0)
		tree_free(&value);
	return value;
}

/* The next event must be of this type. */
static int expect(struct reader *reader, yaml_event_type_t type)
{
	yaml_event_t event;
	int result = 0;

	if (next_event(reader, &event) != 0)
		return -1;
	if (event.type != type)
		result = refuse(reader, &event.start_mark,
				"a second document begins here; only one "
				"is allowed");
	end_event(&event);
	return result;
}

static struct tree *read_document(struct reader *reader)
{
	struct tree *root;
	yaml_event_t event;

	if (expect(reader, YAML_STREAM_START_EVENT) != 0 || next_event(reader, &event) != 0)
		return NULL;
	if (event.type == YAML_STREAM_END_EVENT) {
		root = value_at(reader, TREE_MAP, &event);
		end_event(&event);
		return root;
	}
	end_event(&event);
	if (next_event(reader, &event) != 0)
		return NULL;
	root = read_value(reader, &event);
	end_event(&event);
	if (root != NULL && (expect(reader, YAML_DOCUMENT_END_EVENT) != 0 ||
			     expect(reader, YAML_STREAM_END_EVENT) != 0))
		tree_free(&root);
	return root;
}

/* Of what the library has read into, as far as a text of so many bytes has come. */
static void wipe(unsigned char *start, const unsigned char *end, size_t bytes)
{
	size_t room = (size_t)(end - start);

	explicit_bzero(start, bytes < room ? bytes : room);
}

struct tree *yaml_read(struct slice text, const char *file, struct error *err)
{
	struct reader reader = { .text = text, .file = file, .err = err };
	yaml_parser_t *parser = &reader.parser;
	struct tree *root;

	if (text.n > YAML_BYTES_MAX) {
		error_set(err, ERROR_LIMIT, "1:1: larger than 16 MiB");
		return NULL;
	}
	if (yaml_parser_initialize(parser) != 1) {
		error_set(err, ERROR_SYSTEM, "1:1: not enough memory to read it");
		return NULL;
	}
	yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(parser, (const unsigned char *)text.p, text.n);
	root = read_document(&reader);
	CHECK(reader.depth == 0 && (root == NULL || root->parent == NULL));
	wipe(parser->raw_buffer.start, parser->raw_buffer.end, text.n);
	wipe(parser->buffer.start, parser->buffer.end, text.n);
	yaml_parser_delete(parser);
	return root;
}

/* ---- writing: YAML 1.1 §5.1 printable characters, §5.6 escapes ---- */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool needs_quotes(const char *text)
{
	/* Texts that need none begin with one of LETTERS or '/', and go on with these. */
	static const char plain[] = LETTERS "/0123456789_-.";
	/* Words that a YAML reader might take for something else than a text. */
	static const char *const words[] = { "null", "true", "false", "yes", "no",
					     "on",   "off",  "y",     "n" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return text[0] == '\0' || strchr(LETTERS "/", text[0]) == NULL ||
	       text[strspn(text, plain)] != '\0';
}

static bool is_printable(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code < 0xa0))
		return false;
	/* Line ends and what YAML does not allow as it is. */
	return code != 0x2028 && code != 0x2029 && code != 0xfeff && code != 0xfffe &&
	       code != 0xffff;
}

void yaml_append_text(struct buf *out, const char *text)
{
	struct slice rest = slice_str(text);

	if (!needs_quotes(text)) {
		buf_append_str(out, text);
		return;
	}
	buf_append_char(out, '"');
	while (rest.n > 0) {
		size_t length = text_utf8_length(rest);
		uint32_t code = length > 0 ? unicode_decode(slice_of(rest.p, length)) : 0xfffd;

		if (code == '"' || code == '\\')
			buf_append_char(out, '\\');
		if (length == 0)
			buf_append_str(out, "\\uFFFD");
		else if (is_printable(code))
			buf_append(out, rest.p, length);
		else
			buf_printf(out, "\\u%04X", (unsigned)code);
		length = length > 0 ? length : 1;
		rest = slice_of(rest.p + length, rest.n - length);
	}
	buf_append_char(out, '"');
}
