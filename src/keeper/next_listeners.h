/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of the next configuration. Those at an address already in use are the same sockets,
 * so that no connection is refused; the others are opened before anything else changes.
 */
#ifndef MCPGATED_KEEPER_NEXT_LISTENERS_H
#define MCPGATED_KEEPER_NEXT_LISTENERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

struct next_listeners {
	const struct config *config; /* borrowed; NULL: none */
	int32_t *kept;               /* config_match_listeners */
	int *fds;                    /* opened for it, in order; -1: an existing one is kept */
	size_t sent;
};

/*
 * Opens those that `now` lacks. -1: one cannot be opened, and err names it; nothing is left open.
 */
int next_listeners_open(struct next_listeners *next_r, const struct config *now,
			const struct config *config, struct error *err) must_check;
/* They will not be used: closes what was opened. No-op if there are none. */
void next_listeners_forget(struct next_listeners *next);
/* Sends IPC_LISTENER for each, as far as the socket has room. 0: all are sent. */
int next_listeners_tell(struct next_listeners *next, int gateway_fd) must_check;
/*
 * They replace those of `now`: replaces the array of listeners_open, in which the operator's
 * listeners stay, and gives up the sockets that are no longer used.
 */
void next_listeners_use(struct next_listeners *next, const struct config *now, int **listeners);

#endif
