/* SPDX-License-Identifier: Apache-2.0 */
/* Where the operator is served: the admin socket, the address for /metrics and that of the status page, as parts of the gateway. */
#ifndef MCPGATED_ADMIN_SERVER_H
#define MCPGATED_ADMIN_SERVER_H

#include <stddef.h>

#include "process/server.h"
#include "process/spawn.h"
#include "endpoint/frontend.h"
#include "http/conn.h"
#include "router/client_session.h"
#include "router/router.h"

struct admin_server;

/* All borrowed for the admin server's life, but http and the listeners only until the return. */
struct admin_server_conf {
	struct loop *loop;
	struct spawner *spawner; /* knows who is no operator */
	struct router *router;
	struct server *servers;
	size_t server_count;
	const struct http_server *front; /* that clients use */
	void (*on_drain)(void);          /* the operator wants the daemon to end */
	uint64_t (*on_reload)(void);     /* … to read the configuration again */
	void (*on_deny_list)(void);      /* the entries against tokens have changed */
	const struct endpoint
		*endpoints; /* that clients use, one for each server; room for SERVERS_MAX */
	const struct frontend_conf *frontend;
	const struct http_conf *http;
	const struct process_views *views;
	const char *origin;     /* in the URLs of clients; NULL: there is none */
	const char *auth_mode;  /* as the configuration has it */
	const char *page_token; /* of the same; until the return */
	const int *listeners;   /* as in enum listener_more; -1: none */
};

struct admin_server *admin_server_new(const struct admin_server_conf *conf);
/*
 * Another configuration: the endpoints, and what servers there are, have changed. A server that has gone from its place is no
 * longer referred to.
 */
void admin_server_renew(struct admin_server *admin_server, size_t server_count, const char *origin,
			const char *auth_mode);
/* As admin_reloaded. */
void admin_server_tell_reloaded(struct admin_server *admin_server, uint64_t order, bool is_used,
				struct slice report);
/* As admin_leave. */
void admin_server_leave(struct admin_server *admin_server);
/* Also NULL. */
void admin_server_free(struct admin_server **admin_server);

#endif
