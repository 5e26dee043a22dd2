/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of JSON as editors write it, and of what is made of an imported file; the input is a file of any client, with or without
 * a byte order mark and comments in front. What must hold: nothing moves, only comments, commas and the mark become space; what was
 * strict JSON stays as it was; every byte has the place that counting finds, in any order; messages hold nothing that a terminal
 * obeys; a text with variables put in is no longer than its bound and its own length.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/unicode.h"
#include "config/import.h"
#include "config/jsonc.h"
#include "config/variables.h"
#include "jsonrpc/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_place(struct jsonc *json, size_t offset)
{
	unsigned line, column, line_now = 1, column_now = 1;

	for (size_t i = 0; i < offset; i++) {
		unsigned char c = (unsigned char)json->original.p[i];

		line_now += c == '\n';
		column_now = c == '\n' ? 1 : column_now + ((c & 0xC0) != 0x80);
	}
	jsonc_place(json, json->text.data + offset, &line, &column);
	CHECK(line == line_now && column == column_now);
}

static void check_blanks(const struct jsonc *json)
{
	struct slice text = slice_of(json->text.data, json->text.len);

	CHECK(text.n == json->original.n);
	for (size_t i = 0; i < text.n; i++)
		CHECK(text.p[i] == json->original.p[i] ||
		      (text.p[i] == ' ' && json->original.p[i] != '\n'));
}

/* Without a comment, a comma to leave out or a mark there is nothing to change. */
static void check_strict(struct slice text, const struct jsonc *json)
{
	if (memchr(text.p, '/', text.n) == NULL && memchr(text.p, ',', text.n) == NULL &&
	    text.p[0] != '\xEF')
		CHECK(slice_is_equal(text, slice_of(json->text.data, json->text.len)));
}

static void try_jsonc(struct slice text)
{
	struct jsonc json = { 0 };
	struct error err = { .kind = ERROR_NONE };

	if (jsonc_read(&json, text, &err) == 0) {
		CHECK(scan_type(slice_of(json.text.data, json.text.len)) == JSON_OBJECT ||
		      scan_type(slice_of(json.text.data, json.text.len)) == JSON_ARRAY);
		check_blanks(&json);
		check_strict(text, &json);
		for (size_t i = 0; i < json.text.len && i < 200; i++)
			check_place(&json, i * 7919 % (json.text.len + 1));
	} else {
		CHECK(err.kind == ERROR_SYNTAX && err.text[0] != '\0');
	}
	jsonc_fini(&json);
}

static void check_seen(const struct config_problems *problems)
{
	for (size_t i = 0; i < problems->count; i++) {
		struct slice rest = slice_str(problems->items[i]);

		while (rest.n > 0) {
			size_t n = text_utf8_length(rest);

			CHECK(n > 0 && !unicode_is_hidden(unicode_decode(slice_of(rest.p, n))));
			rest = slice_of(rest.p + n, rest.n - n);
		}
	}
}

static void try_import(struct slice text)
{
	struct config_problems problems = { 0 }, warnings = { 0 };
	struct tree *root = import_read(text, "f", &problems, &warnings);

	CHECK((root != NULL) == (problems.count == 0));
	check_seen(&problems);
	check_seen(&warnings);
	tree_free(&root);
	config_problems_fini(&problems);
	config_problems_fini(&warnings);
}

static void on_variable(struct slice written, const char *text, void *arg)
{
	const struct slice *whole = arg;

	CHECK(written.n > 0 && written.p[0] == '$' && text[0] != '\0');
	CHECK(written.p >= whole->p && written.p + written.n <= whole->p + whole->n);
}

static void try_variables(struct slice text)
{
	struct buf out = { 0 };

	if (text.n == 0)
		return;
	(void)variables_expand(text, true, &out, on_variable, &text);
	CHECK(out.len <= text.n + VARIABLES_BYTES_MAX);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy;
	struct slice text;

	if (size > (1 << 16))
		return 0;
	setenv("A", "value of ${A}", 1);
	copy = malloc(size > 0 ? size : 1); /* exact: a read behind it is seen */
	CHECK(copy != NULL);
	if (size > 0)
		memcpy(copy, data, size);
	text = slice_of(copy, size);
	try_jsonc(text);
	try_import(text);
	try_variables(text);
	free(copy);
	return 0;
}
