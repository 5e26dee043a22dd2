/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another configuration while the daemon runs. It is read and checked here, as at the start; then the gateway, which has
 * to be able to use it, judges; then both use it. Until then nothing is changed. architecture.md, "Reload".
 *
 *	idle -> sending -> judged -> idle
 */
#ifndef MCPGATED_KEEPER_RELOAD_H
#define MCPGATED_KEEPER_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "config/config.h"
#include "io/ipc.h"
#include "keeper/certificates.h"
#include "keeper/cgroups.h"
#include "keeper/children.h"
#include "keeper/era_store.h"
#include "keeper/fetcher_process.h"
#include "keeper/launch.h"
#include "keeper/pin_store.h"
#include "keeper/server_slots.h"

/* What is read, and what changes with it; all borrowed. */
struct reload_parts {
	const struct config_request *request; /* NULL: there is nothing to read again */
	struct server_slots *slots;
	struct launch *launch;
	struct children *children;
	const struct cgroups *cgroups;
	struct era_store *era_store;
	struct pin_store *pin_store;
	struct fetcher_process *fetcher;
	struct certificates *certificates;
	int *gateway_config; /* the memory file for the next gateway */
};

enum reload_state {
	RELOAD_IDLE,
	RELOAD_SENDING, /* the gateway has to get the configuration */
	RELOAD_JUDGED,  /* it has it, and has to say whether it uses it */
};

struct reload {
	struct reload_parts parts;
	enum reload_state state;
	struct config *next;
	uint32_t *numbers; /* of its servers */
	bool has_other_issuers;
	int text;      /* memory files for IPC_CONFIG; else -1 */
	int servers;
	uint64_t asked;    /* the last order of a gateway; 0: none */
	uint64_t answered; /* the last that this reload answers */
	struct buf report; /* what has come of it so far: see reload_end */
	int report_file;   /* to be sent; -1: none */
	bool is_used;
};

void reload_init(struct reload *reload, const struct reload_parts *parts);
void reload_fini(struct reload *reload);

/*
 * Reads the configuration. True: the gateway has to judge it (reload_tell, reload_on_verdict). Otherwise it is refused,
 * or, where there is no gateway (-1), in use.
 */
bool reload_begin(struct reload *reload, int gateway_fd) must_check;
/* The gateway has to judge it, and has not. */
bool reload_is_under_way(const struct reload *reload);
/* The gateway uses it, or does not. False: it was not asked. */
bool reload_on_verdict(struct reload *reload, bool is_used, int gateway_fd) must_check;
/* There is no gateway any more: what it has not judged is not used; is_again: it will be read again. */
void reload_on_gateway_exit(struct reload *reload, bool is_again);
/* Adds a line to the report: "error" or "warning" and what. */
void reload_report(struct reload *reload, const char *kind, const char *text);
/*
 * All is done: the report can be sent to whoever has asked for it. It is lines of text: "error", "warning" and a problem; "added",
 * "changed", "removed" or "rules" and the name of a server.
 */
void reload_end(struct reload *reload);
/* Whether a configuration is in use that was read by the last reload; for the service manager. */
bool reload_has_succeeded(const struct reload *reload);

/* Sends what there is to send, as far as the socket takes it. */
void reload_tell(struct reload *reload, int gateway_fd);
bool reload_has_untold(const struct reload *reload);

#endif
