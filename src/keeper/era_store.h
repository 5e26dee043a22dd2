/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the detected eras of servers for the next gateway and the next daemon, in the file `eras`
 * in the state directory or, without one, in memory. The gateway reports an era (IPC_ERA) by server
 * number only; dates and digests are added here. So all that a compromised gateway can do is make
 * the daemon talk to a server in the wrong era until the server refuses it, and cause a small file
 * to be written every ten seconds. BACK-ERA-06, SEC-61
 */
#ifndef MCPGATED_KEEPER_ERA_STORE_H
#define MCPGATED_KEEPER_ERA_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "io/ipc.h"
#include "keeper/launch.h"
#include "keeper/server_slots.h"
#include "process/era.h"

/* ---- digests of programs ---- */

/*
 * Identifies a server in 32 bytes: its name, command and arguments, and the files that these name,
 * in their current state. A new version of the program, or of a script given to an interpreter, has
 * another digest. BACK-ERA-06
 */

struct program_digest {
	unsigned char bytes[32]; /* SHA-256 */
};

void program_digest_make(const struct launch_spec *spec, struct program_digest *digest_r);

/* ---- the table ---- */

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

/* ---- the store ---- */

#define ERA_STORE_GATHER_MS 1000 /* reports within this time are written together */
#define ERA_STORE_EACH_MS 10000  /* minimum interval between writes */

struct era_store {
	const struct server_slots *slots; /* what was reported since the table was written */
	const struct launch *launch;
	struct era_table *table;
	bool is_due;     /* at least one server's was reported */
	bool has_failed; /* writing the file failed, and that was logged */
	uint64_t write_at_ms;
	uint64_t written_at_ms; /* 0: never */
};

/* Reads the file, if any. Both arguments are borrowed. */
void era_store_init(struct era_store *store, const struct server_slots *slots,
		    const struct launch *launch);
/* Writes what has not been written. */
void era_store_fini(struct era_store *store);
/* Handles a gateway's IPC_ERA. An invalid one is logged and ignored. */
void era_store_note(struct era_store *store, const struct ipc_message *message);
/* Writes when due. Returns when that will be; UINT64_MAX: nothing to write. */
uint64_t era_store_do_due(struct era_store *store);
/*
 * Creates a memory file for a gateway: a struct gateway_server for each server of its
 * configuration, with these numbers. Returns a descriptor, or -1.
 */
int era_store_hand_over(struct era_store *store, const uint32_t *numbers, size_t count,
			struct error *err) must_check;
/*
 * Servers are about to change or to be freed: takes into the table what was reported about their
 * programs.
 */
void era_store_renew(struct era_store *store);

#endif
