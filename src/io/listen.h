/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepting connections on a socket that the keeper has bound. When descriptors run out accepting
 * pauses and goes on by timer, and a reserve descriptor turns waiting peers away meanwhile: no spin,
 * no flood in the log. REL-44.
 */
#ifndef MCPGATED_IO_LISTEN_H
#define MCPGATED_IO_LISTEN_H

#include "io/loop.h"
#include "io/peer.h"

struct listener;

/* Takes fd: connected, non-blocking, close-on-exec, and TCP_NODELAY where it is TCP. */
typedef void listener_fn(struct listener *listener, int fd, const struct peer *peer);

struct listener {
	struct loop *loop;
	struct watch watch;
	struct timer retry;
	int fd;
	int reserve_fd;
	listener_fn *on_accept;
};

/* Borrows fd until listener_fini; starts accepting. */
void listener_init(struct listener *listener, struct loop *loop, int fd, listener_fn *on_accept);
/* Accepts all who wait already: when the socket is closed, they are reset. */
void listener_accept_waiting(struct listener *listener);
/* Stops accepting; fd stays open. */
void listener_fini(struct listener *listener);

#endif
