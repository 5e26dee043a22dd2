/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets that clients connect to, in the order of config->listen: what they begin with, and other ones at a reload. A change comes
 * in parts (IPC_LISTENER, IPC_CERTIFICATE), is judged as a whole, and used in one turn of the loop.
 */
#ifndef MCPGATED_PORTS_H
#define MCPGATED_PORTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "http/acceptor.h"
#include "io/loop.h"
#include "server_certificates.h"

struct port;

/* What has come of a change. */
struct ports_change {
	struct ports_socket *sockets;
	size_t socket_count; /* 0: the listeners stay as they are */
	struct ports_files *files;
	size_t files_count;
	bool is_broken; /* the keeper has sent something else, or there was no descriptor left for it */
	struct server_certificates certificates;
	bool is_judged; /* certificates are those of a configuration */
};

struct ports {
	struct loop *loop;
	struct acceptor *acceptor;
	const struct config *config; /* in use */
	struct server_certificates certificates;
	int *fds;            /* of config->listen */
	struct port **items; /* NULL: not listening yet */
	struct ports_change change;
	unsigned int last_number;
};

/* All borrowed; fds are those of config->listen, and are owned from now on. */
void ports_init(struct ports *ports, struct loop *loop, struct acceptor *acceptor,
		const struct config *config, const int *fds);
void ports_fini(struct ports *ports);
/* Begins to accept. */
void ports_listen(struct ports *ports);
bool ports_is_listening(const struct ports *ports);

/* No more is accepted at sockets of the service manager: who connects waits there for the next daemon. */
void ports_leave_kept(struct ports *ports);
/* Accepts those who wait at all others, and closes them. */
void ports_close(struct ports *ports);

/* A part of a change. Both take the descriptors. */
void ports_take_socket(struct ports *ports, size_t listener, int kept, int fd);
void ports_take_files(struct ports *ports, size_t listener, size_t entry, const int *fds,
		      size_t count);
/* Whether what has come is what `next` needs; if nothing has come, it needs what is there. */
int ports_judge(struct ports *ports, const struct config *next, struct error *err) must_check;
/*
 * Uses it, after ports_judge: what goes is closed before the return, but for sockets of the service manager. `next` is borrowed
 * instead of the other.
 */
void ports_use(struct ports *ports, const struct config *next);
/* Nothing of it is used. */
void ports_forget(struct ports *ports);

#endif
