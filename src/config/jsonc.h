/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON as editors write it: with comments, trailing commas and a byte order mark. Comments
 * and trailing commas are blanked out, and jansson checks the rest. Since jansson records no
 * positions, every byte stays at its offset, and scan.h can find values with their positions. Of other
 * forms (toml.h), a list says where in the file each value is.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

/* Where a value stands in the original, in bytes. */
struct jsonc_span {
	size_t from;  /* all that says it: its names or header, too; of JSON, the value alone */
	size_t name;  /* its own; of JSON and of an element, as value */
	size_t value; /* of a table that stands in lines: what is behind its header, or as from */
	size_t to;
	bool is_apart; /* other things stand in between */
};

struct jsonc_mark {
	size_t at; /* in the text, of a name, whose `value` is `name`, or of a value */
	struct jsonc_span span;
};

/* Zeroed before use. */
struct jsonc {
	struct buf text;          /* strict JSON, as long as the original if there are no marks */
	struct slice original;    /* without a byte order mark */
	struct jsonc_mark *marks; /* in the order of the text; NULL: it is the same byte by byte */
	size_t mark_count;
	/* how far jsonc_place has counted */
	size_t counted;
	unsigned line;
	unsigned column;
};

/*
 * Reads `text`, which is borrowed until jsonc_fini. Returns -1 on failure, with `LINE:COLUMN:
 * reason` in err, which quotes nothing of the text. Failures: a syntax error, a duplicate name in
 * an object, half a surrogate pair or a NUL character in a string, more than 2048 levels of
 * nesting.
 */
int jsonc_read(struct jsonc *json, struct slice text, struct error *err) must_check;
/* Overwrites and frees. */
void jsonc_fini(struct jsonc *json);

/* The text without a byte order mark, which editors of Windows put there. YAML's reader leaves it out, too. */
struct slice jsonc_without_mark(struct slice text);

/* Of a value, which lies in json->text. */
struct jsonc_span jsonc_span(const struct jsonc *json, struct slice value);
/*
 * Line and column in the file, from 1, of a byte of json->text; if there are marks, of the name or value before it. Columns count
 * characters. Fast if it is near the previous one.
 */
void jsonc_place(struct jsonc *json, const char *at, unsigned *line_r, unsigned *column_r);

/*
 * ---- TOML (toml.c) ----
 *
 * Read into what JSON is read into, so that whoever reads clients' files knows one form. Strict: what TOML 1.1 forbids is refused,
 * with the rules about tables that are defined twice or in two ways.
 */

#define TOML_BYTES_MAX ((size_t)1 << 20)
#define TOML_DEPTH_MAX 64
#define TOML_NAMES_MAX 4096 /* of one table */

/*
 * Reads `text`, which is borrowed until jsonc_fini. json->text is the same as JSON, in the order in which the file names things first:
 * strings, true and false, and numbers in decimal as such. What JSON lacks (dates, inf, numbers in other bases) is an array
 * with its text, since nobody expects one there. jsonc_span tells where in the file each value is.
 *
 * Returns -1 on failure, with `LINE:COLUMN: reason` in err, which quotes nothing of the text. Failures: it is not valid, not UTF-8, larger
 * than what stands above, or has a text with a NUL character.
 */
int toml_read(struct jsonc *json, struct slice text, struct error *err) must_check;
/* Appends a JSON value, which is valid, as TOML on one line. There is no null in it. */
void toml_append(struct buf *out, struct slice value);
