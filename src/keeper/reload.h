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
#include "keeper/announcement.h"
#include "keeper/audit_writer.h"
#include "keeper/certificates.h"
#include "keeper/cgroups.h"
#include "keeper/children.h"
#include "keeper/era_store.h"
#include "keeper/fetcher_process.h"
#include "keeper/launch.h"
#include "keeper/notify.h"
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
	struct audit_writer *audit;
	struct announcement *announcement;
	const struct notify *notify;
	int *log_fd;
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
	int text; /* memory files for IPC_CONFIG; else -1 */
	int servers;
	uint64_t asked;    /* the last order of a gateway; 0: none */
	uint64_t answered; /* the last that this reload answers */
	/*
	 * What has come of it so far, in lines: "error", "warning" and a problem; "added", "changed", "removed" or "rules" and the
	 * name of a server. Sent with IPC_RELOADED to whoever has asked for it.
	 */
	struct buf report;
	int report_file; /* to be sent; -1: none */
	bool is_used;
	bool is_under_way;   /* asked for, and not all is done */
	bool is_owed;        /* asked for meanwhile */
	bool is_tried_again; /* with another gateway */
	bool is_stopped;
};

void reload_init(struct reload *reload, const struct reload_parts *parts);
void reload_fini(struct reload *reload);
/* A memory file for a gateway: what config_print_for_gateway writes. A descriptor, or -1. */
int reload_write_config(const struct config *config, struct error *err) must_check;

/*
 * SIGHUP. The log and the audit are opened again; the configuration is read and judged by the gateway, if there is one (-1);
 * then certificates are read again. What is asked for meanwhile is done afterwards.
 */
void reload_ask(struct reload *reload, int gateway_fd);
/* The same by a gateway's IPC_RELOAD of this number, which is told of the outcome. */
void reload_on_order(struct reload *reload, uint64_t number, int gateway_fd);
/* IPC_CONFIG_USED: the gateway uses the configuration, or does not. Nothing if it was not asked. */
void reload_on_verdict(struct reload *reload, bool is_used, int gateway_fd);
/* IPC_CERTIFICATES_USED, likewise. */
void reload_on_certificates(struct reload *reload, bool is_used, int gateway_fd);
/* There is no gateway any more: what it has not judged is not used, but tried once more with the next. */
void reload_on_gateway_exit(struct reload *reload);
void reload_on_gateway_ready(struct reload *reload, int gateway_fd);
/* The daemon is about to stop: from now on the log and the audit alone are opened again. */
void reload_stop(struct reload *reload);

/* Sends what there is to send, as far as the socket takes it. */
void reload_tell(struct reload *reload, int gateway_fd);
bool reload_has_untold(const struct reload *reload);

#endif
