/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switches to another configuration while the daemon runs. It is read and checked here, as at
 * startup; then the gateway judges whether it can use it; then both switch. Nothing changes before
 * that. Finally certificates are reread. architecture.md, "Reload".
 *
 *	idle -> waiting -> sending -> judged -> certificates -> idle
 *
 * A refused configuration continues with the certificates. If a gateway exits before it has judged,
 * the reload waits for the next one, once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "config/config.h"
#include "io/ipc.h"
#include "keeper/announcement.h"
#include "keeper/records.h"
#include "keeper/cgroups.h"
#include "keeper/children.h"
#include "keeper/programs.h"
#include "keeper/launch.h"
#include "keeper/listeners.h"
#include "keeper/server_slots.h"
#include "keeper/text_store.h"

/* Inputs, and what a reload changes; all borrowed. */
struct reload_parts {
	const struct config_request *request; /* NULL: there is nothing to reread */
	struct server_slots *slots;
	struct launch *launch;
	struct children *children;
	const struct cgroups *cgroups;
	struct text_stores *text_stores;
	struct helper_process *fetcher;
	struct certificates *certificates;
	struct audit_writer *audit;
	struct announcement *announcement;
	const struct notify *notify;
	int **listeners; /* from listeners_open, for the configuration in use */
	int *log_fd;
	int *gateway_config; /* the memory file for the next gateway */
};

/*
 * How long the gateway may take to judge, and again for certificates. A hanging one cannot block
 * reloads.
 */
#define RELOAD_VERDICT_MS 30000

enum reload_state {
	RELOAD_IDLE,
	RELOAD_WAITING,      /* for a gateway that serves; nothing is read before */
	RELOAD_SENDING,      /* the configuration, to the gateway */
	RELOAD_JUDGED,       /* the gateway has to say whether it uses it */
	RELOAD_CERTIFICATES, /* likewise for the certificates, if any */
};

/* Limits orders of a gateway, which may be compromised: a burst, then one per interval. */
#define RELOAD_ORDERS_AT_ONCE 16
#define RELOAD_ORDER_EACH_MS 200

struct reload {
	struct reload_parts parts;
	enum reload_state state;
	struct config *next;
	uint32_t *numbers; /* of its servers */
	bool has_other_issuers;
	/* The sockets and files if `listen` has changed; else empty. */
	struct next_listeners listeners;
	struct certificates certificates;
	int log_fd; /* for a different log.target; else -1 */
	int text;   /* memory files for IPC_CONFIG; else -1 */
	int servers;
	uint64_t asked;    /* a gateway's last order; if it is not `answered`, a reload is due */
	uint64_t answered; /* the last order that this reload answers */
	/*
	 * The outcome so far, in lines: "error", "warning" and a problem; "added", "changed",
	 * "removed" or "rules" and the name of a server; "listen_added", "listen_changed" or
	 * "listen_removed" and an address. Sent with IPC_RELOADED to whoever ordered it.
	 */
	struct buf report;
	int report_file;            /* to be sent; -1: none */
	struct ipc_message outcome; /* the message that it accompanies */
	bool is_used;
	bool is_serving;     /* the current gateway serves */
	bool is_owed;        /* requested by a signal, and not begun */
	bool is_tried_again; /* with another gateway */
	bool is_stopped;
	/* When earlier orders are paid off, at one RELOAD_ORDER_EACH_MS each. */
	uint64_t orders_due_ms;
	uint64_t judge_by_ms; /* 0: nothing to judge, or no gateway */
};

void reload_init(struct reload *reload, const struct reload_parts *parts);

/*
 * For SIGHUP: reopens the log and the audit; reload_do_due does the rest. Requests during a reload
 * run after it.
 */
void reload_ask(struct reload *reload);
/*
 * The same, but entirely when due: a gateway's IPC_RELOAD with this number; it is told the outcome.
 */
void reload_on_order(struct reload *reload, uint64_t number);
/* Counts an order, of a reload or of an upgrade. False: it comes too early. */
bool reload_may_follow(struct reload *reload) must_check;
/* Answers an order that is no reload, with a report of `text`. */
void reload_answer(struct reload *reload, uint64_t order, bool is_used, struct slice text);
/*
 * Begins what was requested. A gateway (-1: none) that has not judged in time is killed, and what
 * it had to judge is not used. Returns when to call it again; UINT64_MAX: on the next event.
 */
uint64_t reload_do_due(struct reload *reload, int gateway_fd, pid_t gateway);
/* IPC_CONFIG_USED: whether the gateway uses the configuration. Ignored if it was not asked. */
void reload_on_verdict(struct reload *reload, bool is_used, int gateway_fd);
/* IPC_CERTIFICATES_USED, likewise. */
void reload_on_certificates(struct reload *reload, bool is_used);
/*
 * The gateway has exited: what it has not judged is not used, but tried once more with the next
 * one.
 */
void reload_on_gateway_exit(struct reload *reload);
/* The next gateway serves. */
void reload_on_gateway_ready(struct reload *reload);
/*
 * Kills overdue processes of servers of earlier configurations, and frees servers without
 * processes.
 */
void reload_free_slots(const struct reload *reload);
/* The daemon is about to stop: from now on only the log and the audit are reopened. */
void reload_stop(struct reload *reload, int gateway_fd);

/* Sends what is pending, as far as the socket has room. */
void reload_tell(struct reload *reload, int gateway_fd);
bool reload_has_untold(const struct reload *reload);
