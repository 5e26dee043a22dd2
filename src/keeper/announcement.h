/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines on stderr that say where servers are served, once in the life of a daemon. That of a server which is started once
 * with the daemon (start.try) says what it is, too: it waits for the gateway to tell, for two seconds at most. systemd and
 * probes do not wait. product.md §2.
 */
#ifndef MCPGATED_KEEPER_ANNOUNCEMENT_H
#define MCPGATED_KEEPER_ANNOUNCEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "io/ipc.h"

struct announcement {
	const struct config *config; /* borrowed; NULL: nothing more is to be said */
	const int *listeners;        /* config->listen_count sockets, borrowed; NULL: not begun */
	struct announced *servers;   /* those of config */
	uint64_t until_ms;           /* nothing is waited for any longer; UINT64_MAX: nothing is */
};

/* Nothing is said yet. */
void announcement_init(struct announcement *announcement, const struct config *config);
void announcement_fini(struct announcement *announcement);
/* The gateway serves: says what can be said. Not called twice. */
void announcement_begin(struct announcement *announcement, const int *listeners);
/*
 * A reload is about to use `config` in the place of the other: says what has waited. If it has not begun, it will say where the
 * servers of `config` are, and waits for none of them: what is found meanwhile may be about others.
 */
void announcement_renew(struct announcement *announcement, const struct config *config);
/* Takes IPC_FOUND, of which nothing is believed; text_fd is borrowed, or -1. It may come before announcement_begin. */
void announcement_take(struct announcement *announcement, const struct ipc_message *message,
		       int text_fd);
/* Says what has waited for long enough. Returns when that will be, or UINT64_MAX. */
uint64_t announcement_do_due(struct announcement *announcement);

#endif
