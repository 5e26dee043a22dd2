/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets that clients connect to, in the order of config->listen: those from the start, and
 * those that a reload brings. A change arrives in parts (IPC_LISTENER, IPC_CERTIFICATE), is checked
 * as a whole, and takes effect in one turn of the loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "http/acceptor.h"
#include "io/loop.h"
#include "server_certificates.h"

struct port;

/* The parts of a change received so far. */
struct ports_change {
	struct ports_socket *sockets;
	size_t socket_count; /* 0: the listeners do not change */
	struct ports_files *files;
	size_t files_count;
	bool is_broken; /* the keeper sent something unexpected, or no descriptor was free for it */
	struct server_certificates certificates;
	bool is_judged; /* certificates is initialized */
};

struct ports {
	struct loop *loop;
	struct acceptor *acceptor;
	const struct config *config; /* in use */
	struct server_certificates certificates;
	int *fds;            /* one per entry of config->listen */
	struct port **items; /* NULL: not listening yet */
	struct ports_change change;
	unsigned int last_number;
	bool has_left; /* all of them */
};

/*
 * Everything is borrowed, except the sockets in fds, one per entry of config->listen, which it owns
 * from now on.
 */
void ports_init(struct ports *ports, struct loop *loop, struct acceptor *acceptor,
		const struct config *config, const int *fds);
void ports_fini(struct ports *ports);
/* Begins to accept connections. */
void ports_listen(struct ports *ports);
bool ports_is_listening(const struct ports *ports);

/*
 * Stops accepting on sockets of the service manager, or on all: clients that connect wait there for
 * the next daemon, or for the next gateway.
 */
void ports_leave_kept(struct ports *ports);
void ports_leave_all(struct ports *ports);
/* Accepts again after ports_leave_all. Both may be repeated. */
void ports_return(struct ports *ports);
/* Accepts the pending connections on all other sockets and closes the sockets. */
void ports_close(struct ports *ports);

/* Adds a part of a change. Both take the descriptors. */
void ports_take_socket(struct ports *ports, size_t listener, int kept, int fd);
void ports_take_files(struct ports *ports, size_t listener, size_t entry, const int *fds,
		      size_t count);
/*
 * 0: the parts received are what `next` needs. If none were received, the present sockets stay, and
 * their number must match.
 */
int ports_judge(struct ports *ports, const struct config *next, struct error *err) must_check;
/*
 * Applies the change, after ports_judge. Removed sockets are closed before it returns, except those
 * of the service manager. From now on `next` is borrowed instead of the previous configuration.
 */
void ports_use(struct ports *ports, const struct config *next);
/* Discards the change. */
void ports_forget(struct ports *ports);
