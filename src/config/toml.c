/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass makes a tree, in which each table and value knows the bytes that say it; the tree is written as JSON. Space, keys, texts and
 * values are read by functions that stand at their first byte and leave t->p behind them; each fails once, and says where.
 */
#include "config/jsonc.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"

enum kind {
	SCALAR,
	LIST,     /* [ … ] */
	INLINE,   /* { … }: nothing is added to it later */
	IMPLIED,  /* a table that only headers of tables below it name */
	DOTTED,   /* a table that keys with dots make */
	HEADED,   /* a table with a header */
	REPEATED, /* the list of those with a header in two brackets */
};

struct node {
	struct node *parent, *first, *last, *next;
	char *key;  /* NULL: of an element */
	char *text; /* of a scalar, as JSON */
	enum kind kind;
	size_t count, depth;
	struct jsonc_span span;
	size_t statement; /* the last that says something of it */
};

struct toml {
	const char *begin, *p, *end;
	struct node *table; /* of the last header */
	size_t statement;   /* a header, or a key with its value */
	regex_t scalar;
	struct error *err;
};

#define INTEGER "(0|[1-9](_?[0-9])*)"
#define TIME "([01][0-9]|2[0-3]):[0-5][0-9](:([0-5][0-9]|60)([.][0-9]+)?)?"
#define DATE "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
#define ZONE "([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
/* The first group is as in JSON, but for a sign + and _ between digits. */
#define SCALAR_RE                                                                              \
	"^((true|false|[+-]?" INTEGER "([.][0-9](_?[0-9])*)?([eE][+-]?[0-9](_?[0-9])*)?)|"     \
	"[+-]?(inf|nan)|0x[0-9A-Fa-f](_?[0-9A-Fa-f])*|0o[0-7](_?[0-7])*|0b[01](_?[01])*|" TIME \
	"|" DATE "([Tt ]" TIME ZONE "?)?)"
#define SCALAR_BYTES_MAX 64

static int fail(struct toml *t, const char *at, const char *why)
{
	size_t column = 1, line = 1;

	for (const char *p = t->begin; p < at; p++) {
		column = *p == '\n' ? 1 : column + (((unsigned char)*p & 0xC0) != 0x80);
		line += *p == '\n';
	}
	return error_set(t->err, ERROR_SYNTAX, "%zu:%zu: not valid TOML: %s", line, column, why);
}

/* ---- the tree ---- */

static size_t place(const struct toml *t)
{
	return (size_t)(t->p - t->begin);
}

/* Takes the key. NULL: there is no room, which has been told. */
static struct node *add(struct toml *t, struct node *parent, char *key, enum kind kind)
{
	struct node *node;

	if (parent->depth == TOML_DEPTH_MAX || (key != NULL && parent->count == TOML_NAMES_MAX)) {
		fail(t, t->p,
		     parent->depth == TOML_DEPTH_MAX ? "nested too deeply" : "one name too many");
		free(key);
		return NULL;
	}
	node = mem_zalloc(sizeof(*node));
	*node = (struct node){
		.parent = parent, .key = key, .kind = kind, .depth = parent->depth + 1
	};
	if (parent->last != NULL)
		parent->last->next = node;
	else
		parent->first = node;
	parent->last = node;
	parent->count++;
	return node;
}

static void free_tree(struct node *node)
{
	while (node->first != NULL) {
		struct node *child = node->first;

		node->first = child->next;
		free_tree(child);
		free(child);
	}
	if (node->text != NULL)
		explicit_bzero(node->text, strlen(node->text));
	free(node->text);
	free(node->key);
}

static struct node *find(const struct node *table, const char *key)
{
	struct node *child = table->first;

	while (child != NULL && strcmp(child->key, key) != 0)
		child = child->next;
	return child;
}

/* The table of this name, for what stands in it; takes the key. NULL: nothing may, which has been told. */
static struct node *enter(struct toml *t, struct node *table, char *key, size_t at, bool by_header)
{
	struct node *child = find(table, key);

	if (child == NULL) {
		child = add(t, table, key, by_header ? IMPLIED : DOTTED);
		if (child != NULL)
			child->span.name = at;
		return child;
	}
	free(key);
	if (child->kind == REPEATED && by_header)
		return child->last;
	if (child->kind == DOTTED || child->kind == IMPLIED ||
	    (child->kind == HEADED && by_header)) {
		if (!by_header)
			child->kind = DOTTED;
		return child;
	}
	fail(t, t->p, "a name is used in two ways");
	return NULL;
}

/* The statement from here to t->p says something of these tables, up to the root. */
static void extend(const struct toml *t, struct node *node, size_t from)
{
	for (; node != NULL; node = node->parent) {
		struct jsonc_span *span = &node->span;

		if (span->to == 0)
			span->from = span->value = from;
		else if (node->statement + 1 < t->statement)
			span->is_apart = true;
		node->statement = t->statement;
		span->to = place(t);
	}
}

/* ---- space, keys and texts ---- */

static char next(const struct toml *t)
{
	return t->p < t->end ? *t->p : '\0';
}

static bool is_at(const struct toml *t, struct slice text)
{
	return slice_has_prefix(slice_between(t->p, t->end), text);
}

static void skip_space(struct toml *t)
{
	while (next(t) == ' ' || next(t) == '\t')
		t->p++;
}

/* And comments and line ends. */
static void skip_lines(struct toml *t)
{
	for (skip_space(t); t->p < t->end && strchr("#\r\n", *t->p) != NULL; skip_space(t)) {
		const char *line_end = memchr(t->p, '\n', (size_t)(t->end - t->p));

		t->p = line_end != NULL ? line_end + 1 : t->end;
	}
}

/* A backslash at the end of a line, in a text of several: the next word follows at once. */
static int skip_fold(struct toml *t)
{
	const char *at = t->p++;

	skip_space(t);
	if (next(t) != '\n' && !is_at(t, SLICE_LIT("\r\n")))
		return fail(t, at, "a backslash that means nothing");
	while (t->p < t->end && strchr(" \t\r\n", *t->p) != NULL)
		t->p++;
	return 0;
}

/* As JSON writes it, which has a reader. */
static int append_code(struct buf *out, uint32_t code)
{
	char text[24]; /* like "\ud83d\ude00" */
	struct json value = { .type = JSON_STRING, .has_escape = true };

	if (code < 0x10000)
		snprintf(text, sizeof(text), "\"\\u%04x\"", code);
	else
		snprintf(text, sizeof(text), "\"\\u%04x\\u%04x\"", 0xD7C0 + (code >> 10),
			 0xDC00 | (code & 0x3FF));
	value.text = slice_str(text);
	return scan_decode_string(value, out);
}

static int read_escape(struct toml *t, bool has_lines, struct buf *out)
{
	static const char letters[] = "btnfre\"\\", meanings[] = "\b\t\n\f\r\x1b\"\\";
	char c = t->end - t->p > 1 ? t->p[1] : '\0';
	const char *letter = c != '\0' ? strchr(letters, c) : NULL;
	size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
	unsigned char bytes[4];
	uint32_t code = 0;

	if (letter != NULL) {
		buf_append_char(out, meanings[letter - letters]);
		t->p += 2;
		return 0;
	}
	if (digits == 0 && has_lines)
		return skip_fold(t);
	if (digits == 0 || (size_t)(t->end - t->p) < digits + 2 ||
	    text_from_hex(slice_of(t->p + 2, digits), bytes, digits / 2) < 0)
		return fail(t, t->p, "a backslash that means nothing");
	for (size_t i = 0; i < digits / 2; i++)
		code = code << 8 | bytes[i];
	if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
		return fail(t, t->p, "no character");
	t->p += digits + 2;
	return append_code(out, code);
}

static int read_string(struct toml *t, bool is_key, struct buf *out)
{
	char quote = next(t);
	const struct slice three = quote == '"' ? SLICE_LIT("\"\"\"") : SLICE_LIT("'''");
	bool has_lines = !is_key && is_at(t, three);
	const char *begin = t->p;

	t->p += has_lines ? 3 : 1;
	if (has_lines && (next(t) == '\n' || is_at(t, SLICE_LIT("\r\n"))))
		t->p += next(t) == '\n' ? 1 : 2;
	while (t->p < t->end && (has_lines || *t->p != '\n')) {
		if (*t->p == quote && (!has_lines || is_at(t, three))) {
			/* Two more may stand before those that end it. */
			for (int i = 0; has_lines && i < 2 && t->end - t->p > 3 && t->p[3] == quote;
			     i++)
				buf_append_char(out, *t->p++);
			t->p += has_lines ? 3 : 1;
			return 0;
		}
		if (*t->p == '\\' && quote == '"') {
			if (read_escape(t, has_lines, out) < 0)
				return -1;
		} else {
			buf_append_char(out, *t->p++);
		}
	}
	return fail(t, begin, "a text without an end");
}

/* One part of it, and the space behind. NULL: it fails. */
static char *read_key(struct toml *t)
{
	at_end(buf_fini) struct buf key = { 0 };
	int result = 0;

	if (next(t) == '"' || next(t) == '\'') {
		result = read_string(t, true, &key);
	} else {
		while (t->p < t->end && slice_is_name(slice_of(t->p, 1), "_-"))
			buf_append_char(&key, *t->p++);
		if (key.len == 0)
			result = fail(t, t->p, "a name is missing");
	}
	skip_space(t);
	return result == 0 ? mem_dup_slice(buf_slice(&key)) : NULL;
}

/* ---- values ---- */

static int read_value(struct toml *t, struct node *node) must_check;

static int read_scalar(struct toml *t, struct node *node)
{
	char written[SCALAR_BYTES_MAX + 1];
	size_t most = (size_t)(t->end - t->p), n;
	regmatch_t found[3];
	at_end(buf_fini) struct buf text = { 0 };

	most = most < SCALAR_BYTES_MAX ? most : SCALAR_BYTES_MAX;
	memcpy(written, t->p, most);
	written[most] = '\0';
	if (regexec(&t->scalar, written, ARRAY_LEN(found), found, 0) != 0)
		return fail(t, t->p, "no value");
	n = (size_t)found[0].rm_eo;
	if (t->p + n < t->end && strchr(" \t\r\n#,]}", t->p[n]) == NULL)
		return fail(t, t->p, "no value");
	for (size_t i = 0; i < n && found[2].rm_so >= 0; i++)
		if (written[i] != '_' && (written[i] != '+' || i > 0))
			buf_append_char(&text, written[i]);
	if (text.len == 0)
		buf_printf(&text, "[\"%.*s\"]", (int)n, written);
	t->p += n;
	node->text = mem_dup_slice(buf_slice(&text));
	return 0;
}

static int read_text(struct toml *t, struct node *node)
{
	at_end(buf_wipe) struct buf text = { 0 }, json = { 0 };
	int result = read_string(t, false, &text);

	write_string(&json, buf_slice(&text));
	node->text = mem_dup_slice(buf_slice(&json));
	return result;
}

/* A key, with dots, and its value. */
static int read_pair(struct toml *t, struct node *table, bool in_braces)
{
	size_t from = place(t), at = from;
	char *key = read_key(t);
	struct node *node;

	while (key != NULL && next(t) == '.') {
		table = enter(t, table, key, at, false);
		if (table == NULL)
			return -1;
		t->p++;
		skip_space(t);
		at = place(t);
		key = read_key(t);
	}
	if (key == NULL)
		return -1;
	if (next(t) != '=' || find(table, key) != NULL) {
		free(key);
		return fail(t, t->p, next(t) != '=' ? "no =" : "the same name once more");
	}
	node = add(t, table, key, SCALAR);
	t->p++;
	skip_space(t);
	if (node == NULL || read_value(t, node) < 0)
		return -1;
	node->span.from = from;
	node->span.name = at;
	if (!in_braces)
		extend(t, table, from);
	for (; in_braces && table->kind == DOTTED; table = table->parent)
		table->span.is_apart = true; /* there are commas in it */
	return 0;
}

/* A list, or a table in braces. */
static int read_items(struct toml *t, struct node *node, char close)
{
	for (t->p++; skip_lines(t), next(t) != close;) {
		struct node *element;

		if (node->kind == INLINE) {
			if (read_pair(t, node, true) < 0)
				return -1;
		} else {
			element = add(t, node, NULL, SCALAR);
			if (element == NULL || read_value(t, element) < 0)
				return -1;
			element->span.from = element->span.name = element->span.value;
		}
		skip_lines(t);
		if (next(t) == ',')
			t->p++;
		else if (next(t) != close)
			return fail(t, t->p, "a comma or a bracket is missing");
	}
	t->p++;
	return 0;
}

static int read_value(struct toml *t, struct node *node)
{
	char c = next(t);
	int result;

	node->span.value = place(t);
	if (c == '[' || c == '{') {
		node->kind = c == '[' ? LIST : INLINE;
		result = read_items(t, node, c == '[' ? ']' : '}');
	} else {
		result = c == '"' || c == '\'' ? read_text(t, node) : read_scalar(t, node);
	}
	node->span.to = place(t);
	return result;
}

/* ---- a file ---- */

/* The table that a header defines. NULL: it must not, which has been told. */
static struct node *define(struct toml *t, struct node *parent, char *key, size_t at,
			   bool is_repeated)
{
	struct node *node = find(parent, key);

	if (node == NULL) {
		node = add(t, parent, key, is_repeated ? REPEATED : HEADED);
		if (node != NULL)
			node->span.name = at;
	} else if (is_repeated ? node->kind == REPEATED : node->kind == IMPLIED) {
		node->kind = is_repeated ? REPEATED : HEADED;
		free(key);
	} else {
		free(key);
		fail(t, t->p, "a table is defined twice");
		return NULL;
	}
	return node != NULL && is_repeated ? add(t, node, NULL, HEADED) : node;
}

static int read_header(struct toml *t, struct node *root)
{
	size_t from = place(t), at;
	struct slice close = is_at(t, SLICE_LIT("[[")) ? SLICE_LIT("]]") : SLICE_LIT("]");
	struct node *table = root;
	char *key;

	t->p += close.n;
	for (;;) {
		skip_space(t);
		at = place(t);
		key = read_key(t);
		if (key == NULL)
			return -1;
		if (next(t) != '.')
			break;
		t->p++;
		table = enter(t, table, key, at, true);
		if (table == NULL)
			return -1;
	}
	table = define(t, table, key, at, close.n == 2);
	if (table == NULL)
		return -1;
	if (!is_at(t, close))
		return fail(t, t->p, "a bracket is missing");
	t->p += close.n;
	extend(t, table, from);
	table->span.value = place(t);
	t->table = table;
	return 0;
}

static int read_file(struct toml *t, struct node *root)
{
	t->table = root;
	for (const char *p = t->begin; p < t->end; p++)
		if (((unsigned char)*p < ' ' && *p != '\t' && *p != '\n' &&
		     (*p != '\r' || p + 1 == t->end || p[1] != '\n')) ||
		    *p == 0x7F)
			return fail(t, p, "a control character");
	for (skip_lines(t); t->p < t->end; skip_lines(t)) {
		t->statement++;
		if ((next(t) == '[' ? read_header(t, root) : read_pair(t, t->table, false)) < 0)
			return -1;
		skip_space(t);
		if (t->p < t->end && strchr("#\r\n", *t->p) == NULL)
			return fail(t, t->p, "more than one thing in a line");
	}
	return 0;
}

/* ---- as JSON ---- */

static void mark(struct jsonc *json, struct jsonc_span span)
{
	size_t count = json->mark_count;

	if ((count & (count - 1)) == 0)
		json->marks = mem_resize(json->marks, (count + 1) * 2 * sizeof(*json->marks));
	json->marks[json->mark_count++] = (struct jsonc_mark){ json->text.len, span };
}

static void write_node(struct jsonc *json, const struct node *node)
{
	bool is_list = node->kind == LIST || node->kind == REPEATED;

	mark(json, node->span);
	if (node->text != NULL) {
		buf_append_str(&json->text, node->text);
		return;
	}
	buf_append_char(&json->text, is_list ? '[' : '{');
	for (const struct node *child = node->first; child != NULL; child = child->next) {
		struct jsonc_span span = child->span;

		if (child != node->first)
			buf_append_char(&json->text, ',');
		if (child->key != NULL) {
			span.value = span.name;
			mark(json, span);
			write_string(&json->text, slice_str(child->key));
			buf_append_char(&json->text, ':');
		}
		write_node(json, child);
	}
	buf_append_char(&json->text, is_list ? ']' : '}');
}

int toml_read(struct jsonc *json, struct slice text, struct error *err)
{
	struct toml t = { .err = err };
	struct node root = { .kind = HEADED };
	int result;

	CHECK(json->text.len == 0 && json->marks == NULL);
	json->original = text = jsonc_without_mark(text);
	if (text.n > TOML_BYTES_MAX)
		return error_set(err, ERROR_LIMIT, "is larger than a file of TOML may be");
	t.begin = t.p = text.p;
	t.end = text.p + text.n;
	CHECK(regcomp(&t.scalar, SCALAR_RE, REG_EXTENDED) == 0);
	result = text_is_utf8(text) ? read_file(&t, &root) : fail(&t, t.p, "it is not UTF-8");
	if (result == 0)
		write_node(json, &root);
	regfree(&t.scalar);
	free_tree(&root);
	return result;
}

void toml_append(struct buf *out, struct slice value)
{
	bool is_in_text = false;

	for (const char *p = value.p; p < value.p + value.n; p++) {
		if (is_in_text && *p == '\\')
			buf_append_char(out, *p++);
		else if (*p == '"')
			is_in_text = !is_in_text;
		if (*p == 0x7F)
			buf_append_str(out, "\\u007F");
		else if (*p == ':' && !is_in_text)
			buf_append_str(out, p[1] == ' ' ? " =" : " = "); /* a value follows */
		else
			buf_append_char(out, *p);
	}
}
