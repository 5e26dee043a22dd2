/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another configuration while the daemon runs. It is read and checked here, as at the start; then the gateway, which has
 * to be able to use it, judges; then both use it. Until then nothing is changed. In the end certificates are read again.
 * architecture.md, "Reload".
 *
 *	idle -> waiting -> sending -> judged -> certificates -> idle
 *
 * What is refused goes on with the certificates; a gateway that ends before it has judged is waited for again, once.
 */
#ifndef MCPGATED_KEEPER_RELOAD_H
#define MCPGATED_KEEPER_RELOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
#include "keeper/next_listeners.h"
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
	int **listeners; /* of listeners_open, for the configuration in use */
	int *log_fd;
	int *gateway_config; /* the memory file for the next gateway */
};

/* So long the gateway may take to judge, and so long again for certificates. A hanging one stops no reload. */
#define RELOAD_VERDICT_MS 30000

enum reload_state {
	RELOAD_IDLE,
	RELOAD_WAITING,      /* for a gateway that serves: nothing is read before */
	RELOAD_SENDING,      /* the gateway has to get the configuration */
	RELOAD_JUDGED,       /* it has it, and has to say whether it uses it */
	RELOAD_CERTIFICATES, /* the same of the certificates, if there are any */
};

/* Orders of gateways that are followed at once, and so often after that. One that was taken over may give any number. */
#define RELOAD_ORDERS_AT_ONCE 16
#define RELOAD_ORDER_EACH_MS 200

struct reload {
	struct reload_parts parts;
	enum reload_state state;
	struct config *next;
	uint32_t *numbers; /* of its servers */
	bool has_other_issuers;
	/* Where `listen` says something else: its sockets and files. Else there are none. */
	struct next_listeners listeners;
	struct certificates certificates;
	int log_fd; /* of another log.target; else -1 */
	int text;   /* memory files for IPC_CONFIG; else -1 */
	int servers;
	uint64_t asked;    /* the last order of a gateway; not `answered`: it has to be begun */
	uint64_t answered; /* the last that this reload answers */
	/*
	 * What has come of it so far, in lines: "error", "warning" and a problem; "added", "changed", "removed" or "rules" and the
	 * name of a server; "listen_added", "listen_changed" or "listen_removed" and an address. Sent with IPC_RELOADED to whoever has asked for it.
	 */
	struct buf report;
	int report_file;            /* to be sent; -1: none */
	struct ipc_message outcome; /* that it goes with */
	bool is_used;
	bool is_serving;     /* the gateway that there is */
	bool is_owed;        /* asked for by a signal, and not begun */
	bool is_tried_again; /* with another gateway */
	bool is_stopped;
	uint64_t
		orders_due_ms; /* what was ordered is paid for by then, one RELOAD_ORDER_EACH_MS each */
	uint64_t judge_by_ms; /* 0: nothing is waited for, or there is no gateway */
};

void reload_init(struct reload *reload, const struct reload_parts *parts);
void reload_fini(struct reload *reload);

/* SIGHUP. The log and the audit are opened again; all else is done by reload_do_due, what is asked for meanwhile afterwards. */
void reload_ask(struct reload *reload);
/* All of that when its time has come, by a gateway's IPC_RELOAD of this number, which is told of the outcome. */
void reload_on_order(struct reload *reload, uint64_t number);
/*
 * Begins what is asked for. A gateway (-1: there is none) that has not judged in time is killed, and what it had to judge
 * is not used. Returns when there will be something to do; UINT64_MAX: when something happens.
 */
uint64_t reload_do_due(struct reload *reload, int gateway_fd, pid_t gateway);
/* IPC_CONFIG_USED: the gateway uses the configuration, or does not. Nothing if it was not asked. */
void reload_on_verdict(struct reload *reload, bool is_used, int gateway_fd);
/* IPC_CERTIFICATES_USED, likewise. */
void reload_on_certificates(struct reload *reload, bool is_used);
/* There is no gateway any more: what it has not judged is not used, but tried once more with the next. */
void reload_on_gateway_exit(struct reload *reload);
/* The next one serves. */
void reload_on_gateway_ready(struct reload *reload);
/* Kills what is left of servers of earlier configurations when its time is over, and frees those that have no process. */
void reload_free_slots(const struct reload *reload);
/* The daemon is about to stop: from now on the log and the audit alone are opened again. */
void reload_stop(struct reload *reload, int gateway_fd);

/* Sends what there is to send, as far as the socket takes it. */
void reload_tell(struct reload *reload, int gateway_fd);
bool reload_has_untold(const struct reload *reload);

#endif
