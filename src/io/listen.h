/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepts connections on a socket that the keeper has bound. If descriptors run out, accepting
 * pauses and is retried by a timer, and a reserve descriptor is used to turn waiting peers away: no
 * busy loop, no flood in the log. REL-44.
 */
#pragma once

#include "io/loop.h"
#include "io/peer.h"

struct listener;

/*
 * Called for each connection; the callee owns fd: connected, non-blocking, close-on-exec, and with
 * TCP_NODELAY if it is TCP.
 */
typedef void listener_fn(struct listener *listener, int fd, const struct peer *peer);

struct listener {
	struct loop *loop;
	struct watch watch;
	struct timer retry;
	int fd;
	int reserve_fd;
	listener_fn *on_accept;
};

/* Borrows fd until listener_fini. Starts accepting. */
void listener_init(struct listener *listener, struct loop *loop, int fd, listener_fn *on_accept);
/* Accepts all connections in the backlog; closing the socket would reset them. */
void listener_accept_waiting(struct listener *listener);
/* Stops accepting; fd stays open. */
void listener_fini(struct listener *listener);
