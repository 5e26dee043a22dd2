/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was found out about the eras of servers, for the next gateway and the next daemon: the file `eras` in the state
 * directory, or, where there is none, this process's memory alone. The gateway tells it (IPC_ERA), by the number of a
 * server and no more; dates and digests are ours. A gateway that was taken over can so make the daemon speak to a server
 * in the wrong era until that refuses it, and have a small file written every ten seconds. BACK-ERA-06, SEC-61
 */
#ifndef MCPGATED_KEEPER_ERA_STORE_H
#define MCPGATED_KEEPER_ERA_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "io/ipc.h"
#include "keeper/era_table.h"
#include "keeper/launch.h"

#define ERA_STORE_GATHER_MS 1000 /* what comes together is written together */
#define ERA_STORE_EACH_MS 10000  /* and so often at most */

struct era_store {
	const struct config *config;
	const struct launch *launch;
	struct era_table *table;
	struct era_memory
		*noted;  /* of each server, what the gateway has told since the table was written */
	bool *is_noted;  /* whether it has */
	bool is_due;     /* one of them */
	bool has_failed; /* to write the file, which was logged */
	uint64_t write_at_ms;
	uint64_t written_at_ms; /* 0: never */
};

/* Reads the file, if there is one. Both are borrowed. */
void era_store_init(struct era_store *store, const struct config *config,
		    const struct launch *launch);
/* Writes what has not been written. */
void era_store_fini(struct era_store *store);
/* A gateway's IPC_ERA. One that makes no sense is logged and ignored. */
void era_store_note(struct era_store *store, const struct ipc_message *message);
/* Writes when it is time to. Returns when it will be; UINT64_MAX: there is nothing to write. */
uint64_t era_store_do_due(struct era_store *store);
/*
 * A memory file for a gateway: a struct gateway_server for each server of its configuration, which have these numbers here. A
 * descriptor, or -1.
 */
int era_store_hand_over(struct era_store *store, const uint32_t *numbers, size_t count,
			struct error *err) must_check;
/* The servers have changed: what was noted of the programs that they were is kept. */
void era_store_renew(struct era_store *store);

#endif
