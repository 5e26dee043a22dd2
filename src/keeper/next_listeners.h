/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of a configuration that is not in use yet: those at the same address as one in use are its very sockets, so that nobody
 * is refused; the others are opened before anything else changes.
 */
#ifndef MCPGATED_KEEPER_NEXT_LISTENERS_H
#define MCPGATED_KEEPER_NEXT_LISTENERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

struct next_listeners {
	const struct config *config; /* borrowed; NULL: there are none */
	int32_t *kept;               /* config_match_listeners */
	int *fds;                    /* opened for it, in order; -1: it is kept */
	size_t sent;
};

/* Opens what `now` has not. -1: one cannot be opened, err names it; nothing is left open. */
int next_listeners_open(struct next_listeners *next_r, const struct config *now,
			const struct config *config, struct error *err) must_check;
/* They are not used: closes what was opened. Nothing if there are none. */
void next_listeners_forget(struct next_listeners *next);
/* Sends IPC_LISTENER for each, as far as the socket takes them. 0: all are sent. */
int next_listeners_tell(struct next_listeners *next, int gateway_fd) must_check;
/*
 * They are in use instead of those of `now`, in the array of listeners_open: makes another one of it, in which those for the operator
 * are as they were, and gives up the sockets that are not listened on any more.
 */
void next_listeners_use(struct next_listeners *next, const struct config *now, int **listeners);

#endif
