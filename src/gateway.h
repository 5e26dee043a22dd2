/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All parts of the network process, for the two files that know them: gateway.c and
 * gateway_reload.c.
 */
#pragma once

#include "admin_server.h"
#include "auth/dpop.h"
#include "auth/fetch_client.h"
#include "auth/verifier.h"
#include "base/heap.h"
#include "cluster/cluster.h"
#include "endpoint/frontend.h"
#include "http/acceptor.h"
#include "http/conn.h"
#include "obs/audit.h"
#include "ports.h"
#include "process/pin_memory.h"
#include "process/spawn.h"
#include "router/router.h"
#include "server_table.h"
#include "session/deny_list.h"
#include "trace/exporter.h"

enum gateway_state {
	GATEWAY_SERVING,
	GATEWAY_LEAVING,   /* reports that it is not ready, so that no more clients are sent */
	GATEWAY_FINISHING, /* calls in flight continue; nothing new begins */
	GATEWAY_STOPPING,  /* sessions have ended, processes are exiting */
};

struct gateway {
	struct loop *loop;
	const struct config *config; /* in use; owned by the table */
	struct spawner *spawner;
	struct server_table table;
	struct fetch_client *fetch_client; /* NULL: nothing to fetch */
	struct exporter *exporter;
	struct verifier *verifier;
	struct dpop_memory *proofs;
	struct audit audit;
	struct task records; /* flushes records that no answer has flushed */
	struct timer audit_waiting;
	struct router router;
	struct cluster cluster;
	struct frontend frontend;
	struct http_server *http;
	struct acceptor acceptor;
	struct ports ports;
	/* What is there before the ports are opened: all certificates; what is inherited. */
	bool has_certificates, has_inherited;
	bool shares_pipes;    /* their states, with other gateways */
	const int *listeners; /* from the start of the process: gateway_entry.h */
	char *origin;         /* of the URLs for clients, or NULL */
	struct admin_server *admin_server;
	enum gateway_state state;
	uint64_t state_since_ms;
	uint64_t drain_until_ms;
	bool hands_over;     /* to another gateway; else the daemon stops */
	uint64_t read_bytes; /* meanwhile: of clients, and when some had come */
	uint64_t read_at_ms;
	struct timer drain;
	struct heap heap;
	struct timer heap_look;
	struct pin_memory pin_memory;
	const struct process_views *views;
	struct halves *deny_snapshot; /* shared by all gateways that the keeper starts */
};

#define PROOFS_MAX 100000 /* remembered proofs of possession, so that none is accepted twice */

/*
 * Applies the configuration's entries against tokens: at the start, and whenever there is a new
 * configuration.
 */
void gateway_use_deny_list(struct gateway *g);
/*
 * How requests and connections of clients are served, from the configuration and from what this
 * process has.
 */
struct frontend_conf gateway_frontend_conf(const struct gateway *g);
struct http_conf gateway_http_conf(const struct config *config);
/* Enables or disables audit records, as the configuration in use says. */
void gateway_use_audit(struct gateway *g);
/* Enables or disables the export of spans, as the configuration in use says. */
void gateway_export(struct gateway *g);
/*
 * Switches to another configuration completely or, if that is not possible, not at all; then it
 * logs why. Takes the descriptors of IPC_CONFIG. Informs the keeper.
 */
void gateway_reload(struct gateway *g, const int fds[2], bool has_other_issuers);
