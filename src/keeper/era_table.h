/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MCP eras of programs, by digest, and their text format in a file. Others may have written the
 * file: it is parsed as untrusted input, entirely or not at all. BACK-ERA-06
 *
 *	mcpgated eras 1
 *	DIGEST legacy 1767225600 0
 *
 * The digest in hexadecimal digits; legacy, modern or unknown; when that was noted, and when the
 * program was last probed, in seconds since 1970 (0: never).
 */
#ifndef MCPGATED_KEEPER_ERA_TABLE_H
#define MCPGATED_KEEPER_ERA_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "keeper/program_digest.h"
#include "process/era.h"

#define ERA_TABLE_FIRST_LINE SLICE_LIT("mcpgated eras 1")
#define ERA_TABLE_MAX 512
#define ERA_TABLE_TEXT_MAX ((size_t)64 * 1024) /* of the whole table */

struct era_entry {
	struct program_digest digest;
	struct era_memory memory;
	uint64_t noted_at_ms; /* since 1970 */
};

/* A zeroed table is empty. */
struct era_table {
	struct era_entry entries[ERA_TABLE_MAX];
	size_t count;
};

/* NULL: not in the table. */
const struct era_entry *era_table_find(const struct era_table *table,
				       const struct program_digest *digest);
/* Replaces the program's entry or, if the table is full, the entry noted longest ago. */
void era_table_set(struct era_table *table, const struct era_entry *entry);
void era_table_write(const struct era_table *table, struct buf *out);
/* -1: the text is invalid, and the table is empty. */
int era_table_read(struct era_table *table_r, struct slice text, struct error *err) must_check;

#endif
