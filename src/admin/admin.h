/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operator asks and orders, over HTTP on a socket of its own: reports as JSON, numbers for
 * Prometheus, the servers' stderr, a few commands, and the servers themselves at /mcp/NAME. Whoever may open
 * the socket is the operator; the servers' own processes are turned away. product.md §3, SEC-17.
 */
#ifndef MCPGATED_ADMIN_ADMIN_H
#define MCPGATED_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/viewers.h"
#include "process/server.h"
#include "endpoint/frontend.h"
#include "http/conn.h"
#include "obs/process_usage.h"
#include "router/client_session.h"
#include "router/router.h"

/* The path below which the admin socket has the servers' MCP endpoints: /mcp/NAME. */
#define ADMIN_MCP_PATH "/mcp/"

/* All borrowed for the admin's life. */
struct admin_conf {
	struct router *router;
	struct server *servers;
	size_t server_count;                         /* those without a name are none */
	const struct slice *paths;                   /* of the servers, for clients */
	const struct http_server *front;             /* has the connections of clients */
	const struct frontend_conf *client_frontend; /* checks the requests of clients */
	struct http_handler *mcp;                    /* serves ADMIN_MCP_PATH */
	const struct process_views *views; /* what they use of the machine; NULL: it is not told */
	const char *version;
	const char *origin;     /* in the URLs of clients; NULL: there is none */
	const char *auth_mode;  /* as the configuration has it */
	const char *page_token; /* admin.page_token; copied */
	void (*on_drain)(void); /* the daemon is to stop */
	uint64_t (*on_reload)(
		void); /* the configuration is to be read again; returns the number of the order */
	void (*on_deny_list)(void); /* their entries have changed */
};

struct admin {
	struct list reloads; /* orders that have not been carried out (admin/reload_order) */
	bool is_leaving;     /* and none will be any more */
	struct http_handler handler;
	struct http_handler metrics_handler; /* GET /metrics and nothing else */
	struct http_handler page_handler;    /* the status page, and what it needs: admin/page */
	struct viewers viewers;              /* of the page, at either address */
	uint64_t refusal_said_ms;            /* of a wrong token there; 0: never */
	char *page_token; /* NULL: nobody gives orders at the address of the page */
	struct admin_conf conf;
	uint64_t started_at_ms;
};

/* A request of the operator's. */
struct inquiry {
	struct admin *admin;
	struct http_conn *conn;
	const struct http_request *http;
	bool may_order;
};

void admin_init(struct admin *admin, const struct admin_conf *conf);
/* Its connections have ended. */
void admin_fini(struct admin *admin);
/* Another configuration: what of it is said to the operator. */
void admin_renew(struct admin *admin, size_t server_count, const char *origin,
		 const char *auth_mode);
/* What has come of the orders of on_reload up to this number: the text of keeper/reload.h. */
void admin_reloaded(struct admin *admin, uint64_t order, bool is_used, struct slice report);
/* The daemon is about to stop: the orders to reload that wait, and those that come, are refused. */
void admin_leave(struct admin *admin);
/* The server of this name, or NULL. */
struct server *admin_find_server(const struct admin *admin, struct slice name);
/* The value of a parameter of the query, or empty. Nothing is decoded: names and ids need none. */
struct slice admin_parameter(struct slice query, const char *name);

#endif
