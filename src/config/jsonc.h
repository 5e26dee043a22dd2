/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON as editors write it: with comments, trailing commas and a byte order mark. Comments
 * and trailing commas are blanked out, and jansson checks the rest. Since jansson records no
 * positions, every byte stays at its offset, and scan.h can find values with their positions.
 */
#ifndef MCPGATED_CONFIG_JSONC_H
#define MCPGATED_CONFIG_JSONC_H

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

/* Zeroed before use. */
struct jsonc {
	struct buf text;       /* strict JSON, as long as the original */
	struct slice original; /* without a byte order mark */
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

/*
 * Line and column, from 1, of a byte of json->text; columns count characters. Fast if it is near
 * the previous one.
 */
void jsonc_place(struct jsonc *json, const char *at, unsigned *line_r, unsigned *column_r);

#endif
