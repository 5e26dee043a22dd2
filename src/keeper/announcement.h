/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stderr lines that say where the servers are, printed once in the life of a daemon. The line
 * of a server with a trial start (start.try) also says what the server is; it waits for the gateway
 * to report that, for two seconds at most. systemd and probes do not wait. mcpgated(1).
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "config/config.h"
#include "io/ipc.h"

struct announcement {
	const struct config *config; /* borrowed; NULL: nothing more to print */
	const int *listeners;        /* config->listen_count sockets, borrowed; NULL: not begun */
	struct announced *servers;   /* one per server of config */
	uint64_t until_ms;           /* the wait ends; UINT64_MAX: not waiting */
};

/* Prints nothing yet. */
void announcement_init(struct announcement *announcement, const struct config *config);
void announcement_fini(struct announcement *announcement);
/* The gateway serves: prints what can be printed. Must not be called twice. */
void announcement_begin(struct announcement *announcement, const int *listeners);
/*
 * A reload is about to switch to `config`: prints what was still waiting. If nothing was begun yet,
 * the servers of `config` will be announced, without waiting: what is reported meanwhile may be
 * about others.
 */
void announcement_renew(struct announcement *announcement, const struct config *config);
/* Handles IPC_FOUND, whose contents are not trusted. It may come before announcement_begin. */
void announcement_take(struct announcement *announcement, const struct ipc_message *message);
/* Prints what has waited long enough. Returns when to call it again, or UINT64_MAX. */
uint64_t announcement_do_due(struct announcement *announcement);

/* ---- what systemd is told ---- */

/* sd_notify(3) without the library. A no-op without NOTIFY_SOCKET. REL-52. */

struct notify {
	int fd; /* -1: no NOTIFY_SOCKET */
	struct sockaddr_un address;
	socklen_t size;
	uint64_t watchdog_ms; /* interval of WATCHDOG=1; 0: never */
};

/* Reads NOTIFY_SOCKET and WATCHDOG_* and removes them from the environment. */
void notify_init(struct notify *notify);
/* Sends one datagram, e.g. "READY=1". Never blocks; drops what cannot be delivered. */
void notify_send(const struct notify *notify, const char *text);
