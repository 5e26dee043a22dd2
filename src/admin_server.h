/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the operator inside the gateway: the admin socket, and the addresses of /metrics and of
 * the status page.
 */
#pragma once

#include <stddef.h>

#include "admin/admin.h"
#include "http/conn.h"

struct admin_server;

/*
 * Everything is borrowed as long as the admin server lives, except http, the page token and the
 * listeners, which are needed only during admin_server_new.
 */
struct admin_server_conf {
	struct admin_conf admin; /* but for paths, mcp and version */
	struct loop *loop;
	struct spawner *spawner; /* recognizes the servers' own processes, which are rejected */
	/* that clients use, one per server; room for SERVERS_MAX */
	const struct endpoint *endpoints;
	const struct http_conf *http;
	const int *listeners; /* indexed by enum listener_more; -1: none */
};

struct admin_server *admin_server_new(const struct admin_server_conf *conf);
/*
 * There is a new configuration: endpoints and servers have changed. Servers that are gone from
 * their places are no longer referred to.
 */
void admin_server_renew(struct admin_server *admin_server, size_t server_count, const char *origin,
			const char *auth_mode);
/* Like admin_reloaded. */
void admin_server_tell_reloaded(struct admin_server *admin_server, uint64_t order, bool is_used,
				struct slice report);
/* What came of the last upgrade: enum ipc_upgrade, or any number. */
void admin_server_tell_upgrade(struct admin_server *admin_server, unsigned int outcome);
/* Which enum ipc_text cannot be saved, a bit for each. */
void admin_server_tell_unsaved(struct admin_server *admin_server, unsigned int kinds);
/* Like admin_leave. */
void admin_server_leave(struct admin_server *admin_server);
/* Accepts NULL. */
void admin_server_free(struct admin_server **admin_server);
