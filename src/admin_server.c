/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two small HTTP servers beside the one for clients. They are not drained: how far the daemon is with its
 * stopping can be asked until the end. On the admin socket the servers are at /mcp/NAME, with a frontend of its own:
 * who could open the socket needs no further leave.
 */
#include "admin_server.h"

#include <stdlib.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/mem.h"
#include "io/listen.h"
#include "keeper/keeper.h"
#include "obs/log.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define CONNECTIONS_MAX 64

struct admin_server {
	struct admin admin;
	struct frontend frontend;
	struct endpoint *endpoints; /* of the frontend */
	struct slice *paths;        /* where clients find the servers */
	size_t count;
	struct http_server *admin_http;
	struct http_server *metrics_http;
	struct listener admin_listener;
	struct listener metrics_listener;
};

static void admin_server_on_admin_accept(struct listener *listener, int fd, const struct peer *peer)
{
	struct admin_server *admin_server =
		container_of(listener, struct admin_server, admin_listener);

	if (admin_may_connect(&admin_server->admin, fd)) {
		http_server_accept(admin_server->admin_http,
				   &(struct http_arrival){ .fd = fd, .peer = *peer });
		return;
	}
	LOG(ADMIN_REFUSED, LOG_STR("reason", "the process belongs to a server of this daemon"));
	close(fd);
}

static void admin_server_on_metrics_accept(struct listener *listener, int fd,
					   const struct peer *peer)
{
	http_server_accept(container_of(listener, struct admin_server, metrics_listener)
				   ->metrics_http,
			   &(struct http_arrival){ .fd = fd, .peer = *peer });
}

/* The operator's own tool speaks plain HTTP, and takes whole answers. */
static void admin_server_make_frontend(struct admin_server *admin_server,
				       const struct admin_server_conf *conf)
{
	static const struct slice host = SLICE("localhost");
	struct frontend_conf frontend = {
		.endpoint_count = conf->server_count,
		.hosts = { &host, 1 },
		.response = FRONTEND_RESPONSE_JSON,
		.grace_ms = conf->frontend->grace_ms,
		.keepalive_ms = conf->frontend->keepalive_ms,
		.retry_ms = conf->frontend->retry_ms,
	};

	admin_server->count = conf->server_count;
	admin_server->endpoints =
		mem_zalloc((admin_server->count + 1) * sizeof(*admin_server->endpoints));
	admin_server->paths = mem_zalloc((admin_server->count + 1) * sizeof(*admin_server->paths));
	for (size_t i = 0; i < admin_server->count; i++) {
		struct server *server = &conf->servers[i];
		char *path = mem_printf(ADMIN_MCP_PATH "%s", server->conf.name);

		admin_server->paths[i] = conf->endpoints[i].path;
		admin_server->endpoints[i] =
			(struct endpoint){ .path = slice_str(path), .server = server };
	}
	frontend.endpoints = admin_server->endpoints;
	frontend_init(&admin_server->frontend, conf->router, &frontend);
}

static void admin_server_make_admin(struct admin_server *admin_server,
				    const struct admin_server_conf *conf)
{
	admin_init(&admin_server->admin,
		   &(struct admin_conf){ .router = conf->router,
					 .servers = conf->servers,
					 .server_count = conf->server_count,
					 .paths = admin_server->paths,
					 .front = conf->front,
					 .client_frontend = conf->frontend,
					 .mcp = &admin_server->frontend.handler,
					 .version = PACKAGE_VERSION,
					 .on_drain = conf->on_drain,
					 .on_reload = conf->on_reload,
					 .on_deny_list = conf->on_deny_list });
}

struct admin_server *admin_server_new(const struct admin_server_conf *conf)
{
	struct admin_server *admin_server = mem_zalloc(sizeof(*admin_server));
	struct http_conf http = *conf->http;

	CHECK(conf->on_drain != NULL && conf->on_reload != NULL && conf->on_deny_list != NULL);
	admin_server_make_frontend(admin_server, conf);
	admin_server_make_admin(admin_server, conf);
	http.max_connections = CONNECTIONS_MAX;
	if (conf->listeners[LISTENER_ADMIN] >= 0) {
		admin_server->admin_http =
			http_server_new(conf->loop, &http, &admin_server->admin.handler);
		listener_init(&admin_server->admin_listener, conf->loop,
			      conf->listeners[LISTENER_ADMIN], admin_server_on_admin_accept);
	}
	if (conf->listeners[LISTENER_METRICS] >= 0) {
		admin_server->metrics_http =
			http_server_new(conf->loop, &http, &admin_server->admin.metrics_handler);
		listener_init(&admin_server->metrics_listener, conf->loop,
			      conf->listeners[LISTENER_METRICS], admin_server_on_metrics_accept);
	}
	return admin_server;
}

void admin_server_free(struct admin_server **admin_server)
{
	struct admin_server *d = *admin_server;

	*admin_server = NULL;
	if (d == NULL)
		return;
	if (d->admin_http != NULL)
		listener_fini(&d->admin_listener);
	if (d->metrics_http != NULL)
		listener_fini(&d->metrics_listener);
	http_server_free(&d->admin_http);
	http_server_free(&d->metrics_http);
	frontend_fini(&d->frontend);
	for (size_t i = 0; i < d->count; i++)
		free((char *)(uintptr_t)d->endpoints[i].path.p);
	free(d->endpoints);
	free(d->paths);
	free(d);
}
