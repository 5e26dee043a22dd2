/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the operator inside the gateway: the admin socket, and the addresses of /metrics and of
 * the status page.
 */
#pragma once

#include <stddef.h>

#include "process/server.h"
#include "endpoint/frontend.h"
#include "http/conn.h"
#include "router/router.h"

struct admin_server;
struct certificate_report;

/*
 * Everything is borrowed as long as the admin server lives, except http, page_token and the
 * listeners, which are needed only during admin_server_new.
 */
struct admin_server_conf {
	struct loop *loop;
	struct spawner *spawner; /* recognizes the servers' own processes, which are rejected */
	struct router *router;
	struct server *servers;
	size_t server_count;
	const struct fleet *fleet;       /* of all servers */
	const struct http_server *front; /* the one that clients use */
	void (*on_drain)(void);          /* the operator wants the daemon to stop */
	uint64_t (*on_reload)(
		bool is_upgrade); /* … to reread the configuration, or the program; returns the order's number */
	void (*on_deny_list)(void); /* the entries against tokens have changed */
	bool (*on_certificate)(size_t index, struct certificate_report *report_r);
	/* that clients use, one per server; room for SERVERS_MAX */
	const struct endpoint *endpoints;
	const struct frontend_conf *frontend;
	const struct http_conf *http;
	const struct process_views *views;
	const char *origin;     /* of the URLs for clients; NULL: none */
	const char *auth_mode;  /* as in the configuration */
	const char *page_token; /* from the configuration; copied */
	const int *listeners;   /* indexed by enum listener_more; -1: none */
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
