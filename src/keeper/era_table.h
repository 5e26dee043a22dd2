/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of which era of MCP programs are, by their digest, and the text in which that is kept in a file. Others may have
 * written the file: it is read like any input, as a whole or not at all. BACK-ERA-06
 *
 *	mcpgated eras 1
 *	DIGEST legacy 1767225600 0
 *
 * The digest in hexadecimal digits; legacy, modern or unknown; when that was noted, and when the program was asked, in
 * seconds since 1970 (0: never).
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

#define ERA_TABLE_MAX 512
#define ERA_TABLE_TEXT_MAX ((size_t)64 * 1024) /* of all of them */

struct era_entry {
	struct program_digest digest;
	struct era_memory memory;
	uint64_t noted_at_ms; /* since 1970 */
};

/* All zeros is an empty one. */
struct era_table {
	struct era_entry entries[ERA_TABLE_MAX];
	size_t count;
};

/* NULL: nothing is known of it. */
const struct era_entry *era_table_find(const struct era_table *table,
				       const struct program_digest *digest);
/* In place of what was known of it, or, when the table is full, of the entry that was noted first. */
void era_table_set(struct era_table *table, const struct era_entry *entry);
void era_table_write(const struct era_table *table, struct buf *out);
/* -1: it is no such text; then the table is empty. */
int era_table_read(struct era_table *table_r, struct slice text, struct error *err) must_check;

#endif
