/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two small HTTP servers beside the one for clients. They are not drained: how far the daemon is with its
 * stopping can be asked until the end. On the admin socket the servers are at /mcp/NAME, with a gate of its own:
 * who could open the socket needs no further leave.
 */
#include "desk.h"

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

struct desk {
	struct admin admin;
	struct gate gate;
	struct gate_endpoint *endpoints; /* of the gate */
	struct slice *paths;             /* where clients find the servers */
	size_t count;
	struct http_server *admin_http;
	struct http_server *metrics_http;
	struct listener admin_listener;
	struct listener metrics_listener;
};

static void desk_on_admin_accept(struct listener *listener, int fd, const struct peer *peer)
{
	struct desk *desk = container_of(listener, struct desk, admin_listener);

	if (admin_may_connect(&desk->admin, fd)) {
		http_server_accept(desk->admin_http,
				   &(struct http_arrival){ .fd = fd, .peer = *peer });
		return;
	}
	LOG(ADMIN_REFUSED, LOG_STR("reason", "the process belongs to a server of this daemon"));
	close(fd);
}

static void desk_on_metrics_accept(struct listener *listener, int fd, const struct peer *peer)
{
	http_server_accept(container_of(listener, struct desk, metrics_listener)->metrics_http,
			   &(struct http_arrival){ .fd = fd, .peer = *peer });
}

/* The operator's own tool speaks plain HTTP, and takes whole answers. */
static void desk_make_gate(struct desk *desk, const struct desk_conf *conf)
{
	static const struct slice host = SLICE("localhost");
	struct gate_conf gate = {
		.endpoint_count = conf->backend_count,
		.hosts = &host,
		.host_count = 1,
		.response = GATE_RESPONSE_JSON,
		.grace_ms = conf->gate->grace_ms,
		.keepalive_ms = conf->gate->keepalive_ms,
		.retry_ms = conf->gate->retry_ms,
	};

	desk->count = conf->backend_count;
	desk->endpoints = mem_zalloc((desk->count + 1) * sizeof(*desk->endpoints));
	desk->paths = mem_zalloc((desk->count + 1) * sizeof(*desk->paths));
	for (size_t i = 0; i < desk->count; i++) {
		struct backend *backend = &conf->backends[i];
		char *path = mem_printf(ADMIN_MCP_PATH "%s", backend->conf.name);

		desk->paths[i] = conf->endpoints[i].path;
		desk->endpoints[i] =
			(struct gate_endpoint){ .path = slice_str(path), .backend = backend };
	}
	gate.endpoints = desk->endpoints;
	gate_init(&desk->gate, conf->router, &gate);
}

static void desk_make_admin(struct desk *desk, const struct desk_conf *conf)
{
	admin_init(&desk->admin, &(struct admin_conf){ .router = conf->router,
						       .backends = conf->backends,
						       .backend_count = conf->backend_count,
						       .paths = desk->paths,
						       .front = conf->front,
						       .front_gate = conf->gate,
						       .mcp = &desk->gate.handler,
						       .version = PACKAGE_VERSION,
						       .on_drain = conf->on_drain,
						       .on_reload = conf->on_reload,
						       .on_denials = conf->on_denials });
}

struct desk *desk_new(const struct desk_conf *conf)
{
	struct desk *desk = mem_zalloc(sizeof(*desk));
	struct http_conf http = *conf->http;

	desk_make_gate(desk, conf);
	desk_make_admin(desk, conf);
	http.max_connections = CONNECTIONS_MAX;
	if (conf->listeners[LISTENER_ADMIN] >= 0) {
		desk->admin_http = http_server_new(conf->loop, &http, &desk->admin.handler);
		listener_init(&desk->admin_listener, conf->loop, conf->listeners[LISTENER_ADMIN],
			      desk_on_admin_accept);
	}
	if (conf->listeners[LISTENER_METRICS] >= 0) {
		desk->metrics_http =
			http_server_new(conf->loop, &http, &desk->admin.metrics_handler);
		listener_init(&desk->metrics_listener, conf->loop,
			      conf->listeners[LISTENER_METRICS], desk_on_metrics_accept);
	}
	return desk;
}

void desk_free(struct desk **desk)
{
	struct desk *d = *desk;

	*desk = NULL;
	if (d == NULL)
		return;
	if (d->admin_http != NULL)
		listener_fini(&d->admin_listener);
	if (d->metrics_http != NULL)
		listener_fini(&d->metrics_listener);
	http_server_free(&d->admin_http);
	http_server_free(&d->metrics_http);
	gate_fini(&d->gate);
	for (size_t i = 0; i < d->count; i++)
		free((char *)(uintptr_t)d->endpoints[i].path.p);
	free(d->endpoints);
	free(d->paths);
	free(d);
}
