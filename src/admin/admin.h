/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's interface, over HTTP on its own socket: reports as JSON, metrics for Prometheus,
 * the servers' stderr, a few commands, and the servers themselves at /mcp/NAME. Whoever can open
 * the socket is the operator; the servers' own processes are rejected. mcpgated(1), SEC-17.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/page.h"
#include "endpoint/frontend.h"
#include "http/conn.h"
#include "obs/process_usage.h"
#include "process/server.h"
#include "router/client_session.h"
#include "router/router.h"

/* The path on the admin socket below which the servers' MCP endpoints are: /mcp/NAME. */
#define ADMIN_MCP_PATH "/mcp/"

/* One that clients are shown. Texts are borrowed, as the configuration has them. */
struct certificate_report {
	const char *listener; /* its address */
	const char *file;
	uint64_t not_after_ms; /* since 1970 */
};

/* Everything is borrowed as long as the admin lives. */
struct admin_conf {
	struct router *router;
	struct server *servers;
	size_t server_count;                         /* those without a name do not exist */
	const struct fleet *fleet;                   /* all their processes */
	const struct slice *paths;                   /* of the servers, for clients */
	const struct http_server *front;             /* has the client connections */
	const struct frontend_conf *client_frontend; /* checks the requests of clients */
	struct http_handler *mcp;                    /* serves ADMIN_MCP_PATH */
	const struct process_views *views; /* the processes' resource usage; NULL: not reported */
	const char *version;
	const char *origin;     /* of the URLs for clients; NULL: none */
	const char *auth_mode;  /* as in the configuration */
	const char *page_token; /* admin.page_token; copied */
	void (*on_drain)(void); /* the daemon is to stop */
	uint64_t (*on_reload)(
		bool is_upgrade); /* rereads the configuration, or the program; returns the order's number */
	void (*on_deny_list)(void); /* the operator's entries have changed */
	/* Number `index` of those in use; false: there are no more. NULL: there is no TLS. */
	bool (*on_certificate)(size_t index, struct certificate_report *report_r);
};

struct admin {
	struct list reloads; /* orders not yet carried out (admin/commands) */
	bool is_leaving;     /* no further orders will be carried out */
	struct http_handler handler;
	struct http_handler metrics_handler; /* GET /metrics and nothing else */
	struct http_handler page_handler;    /* the status page and what it needs: admin/page */
	struct viewers viewers;              /* of the page, at both addresses */
	uint64_t refusal_said_ms;            /* when a wrong token was last logged; 0: never */
	char *reload_error;                  /* the first of the last reload; NULL: none */
	uint64_t reload_failed_ms;           /* when that was, since 1970 */
	unsigned int upgrade;                /* what came of the last one: enum ipc_upgrade */
	unsigned int unsaved; /* which enum ipc_text cannot be saved, a bit for each */
	char *page_token;     /* NULL: the address of the page is read-only */
	struct admin_conf conf;
	uint64_t started_at_ms;
};

/* A request from the operator. */
struct admin_request {
	struct admin *admin;
	struct http_conn *conn;
	const struct http_request *http;
	bool may_order;
};

void admin_init(struct admin *admin, const struct admin_conf *conf);
/* Its connections must have ended. */
void admin_fini(struct admin *admin);
/* There is a new configuration: updates what is reported about it. */
void admin_renew(struct admin *admin, size_t server_count, const char *origin,
		 const char *auth_mode);
/*
 * A reload is over: reports the result of the orders of on_reload up to this number, which is 0 if
 * somebody else has ordered it. `report` is the text of keeper/reload.h.
 */
void admin_reloaded(struct admin *admin, uint64_t order, bool is_used, struct slice report);
/* The daemon is about to stop: refuses pending and further reload orders. */
void admin_leave(struct admin *admin);

/*
 * ---- commands.c: the operator's commands ----
 *
 * Each answers at once, or returns the exchange that answers: what needs the body of its request, or takes time.
 */

typedef struct http_exchange *command_fn(const struct admin_request *asked);

/* Replaces a server's processes; ends a session, by the beginning of its id; stops the daemon. */
command_fn command_restart, command_end_session, command_drain;
/* The operator's entries against tokens: lists, adds and removes them. AUTH-SES-07 */
void command_deny_report(const struct admin *admin, struct buf *out);
command_fn command_deny_add, command_deny_remove;
/* The definitions from servers' lists, and decisions on those that wait. SEC-65 */
command_fn command_pins, command_pins_approve, command_pins_reject;
/* The last lines of a server's stderr, once or continuously. */
command_fn command_logs;
/*
 * Explains whether somebody may use something, and by which rule, using the code that decides it
 * for requests. SEC-56
 */
command_fn command_can;
/*
 * Rereads the configuration. It is answered when the new one is in use, or when its errors are
 * known.
 */
command_fn command_reload;
/* The same with the program: it is answered when another one is about to take over, or is refused. */
command_fn command_upgrade;
/* Like admin_reloaded. */
void command_reload_tell(struct admin *admin, uint64_t order, bool is_used, struct slice report);
/* Like admin_leave, for the pending orders. */
void command_reload_refuse_all(struct admin *admin);
