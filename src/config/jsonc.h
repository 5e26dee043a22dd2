/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON as editors write it: with comments, with commas behind a last entry, with a byte order mark. jansson, which judges
 * what is left, keeps no places; here every byte stays where it was, so that scan.h finds values with theirs.
 */
#ifndef MCPGATED_CONFIG_JSONC_H
#define MCPGATED_CONFIG_JSONC_H

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

/* All zeros to begin with. */
struct jsonc {
	struct buf text;       /* strict JSON, as long as the original */
	struct slice original; /* without a byte order mark */
	/* what jsonc_place has counted so far */
	size_t counted;
	unsigned line;
	unsigned column;
};

/*
 * Reads `text`, which is borrowed until jsonc_fini. On failure -1, and in err `LINE:COLUMN: reason`, which shows nothing of
 * the text: syntax, a name twice in one object, half a surrogate pair or a NUL character in a string, more than 2048 values within each other.
 */
int jsonc_read(struct jsonc *json, struct slice text, struct error *err) must_check;
/* Overwrites and frees. */
void jsonc_fini(struct jsonc *json);

/* Line and column, from 1, of a byte of json->text; columns count characters. Quick for one near the last. */
void jsonc_place(struct jsonc *json, const char *at, unsigned *line_r, unsigned *column_r);

#endif
