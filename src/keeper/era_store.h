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
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "io/ipc.h"
#include "keeper/era_table.h"
#include "keeper/launch.h"
#include "keeper/server_slots.h"

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
