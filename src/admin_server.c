/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two small HTTP servers beside the one for clients. They are not drained: how far the daemon is with its
 * stopping can be asked until the end. On the admin socket the servers are at /mcp/NAME, with a frontend of its own:
 * who can open the socket needs no token.
 */
#include "admin_server.h"

#include <build_version.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/listen.h"
#include "keeper/gateway_entry.h"
#include "obs/log.h"

#define CONNECTIONS_MAX 64
#define VISITORS_MAX 64

/* A connection to the admin socket: not a byte is read before the keeper has said that it may be the operator's. */
struct visitor {
	struct list link;
	struct spawner_question question;
	struct admin_server *admin_server;
	struct peer peer;
	int fd;
};

struct admin_server {
	struct spawner *spawner;
	struct list visitors;
	size_t visitor_count;
	struct admin admin;
	struct frontend frontend;
	struct server *servers;
	const struct endpoint *client_endpoints;
	struct endpoint
		*endpoints; /* of the frontend: one for each of those; SERVERS_MAX, like the next */
	struct slice *paths; /* where clients find the servers */
	size_t count;
	struct http_server *admin_http;
	struct http_server *metrics_http;
	struct http_server *page_http;
	struct listener admin_listener;
	struct listener metrics_listener;
	struct listener page_listener;
};

static void visitor_free(struct visitor *visitor)
{
	CHECK(visitor->admin_server->visitor_count > 0);
	visitor->admin_server->visitor_count--;
	list_remove(&visitor->link);
	free(visitor);
}

static void visitor_on_answer(struct spawner_question *question, bool is_allowed)
{
	struct visitor *visitor = container_of(question, struct visitor, question);
	struct http_arrival arrival = { .fd = visitor->fd, .peer = visitor->peer };

	struct pollfd poll_fd = { .fd = visitor->fd };

	if (is_allowed) {
		http_server_accept(visitor->admin_server->admin_http, &arrival);
	} else {
		/* Of one that has ended meanwhile nothing is known, and it gets nothing. */
		if (poll(&poll_fd, 1, 0) == 0 || !(poll_fd.revents & POLLHUP))
			LOG_BY(ADMIN_REFUSED, 0,
			       LOG_STR("reason", "the process belongs to a server of this daemon"));
		close(visitor->fd);
	}
	visitor_free(visitor);
}

static void admin_server_on_admin_accept(struct listener *listener, int fd, const struct peer *peer)
{
	struct admin_server *a = container_of(listener, struct admin_server, admin_listener);
	struct visitor *visitor;

	CHECK(a->admin_http != NULL);
	if (a->visitor_count == VISITORS_MAX) {
		LOG_BY(ADMIN_REFUSED, 0, LOG_STR("reason", "too many connect at once"));
		close(fd);
		return;
	}
	visitor = mem_zalloc(sizeof(*visitor));
	*visitor = (struct visitor){
		.question.on_answer = visitor_on_answer, .admin_server = a, .peer = *peer, .fd = fd
	};
	list_append(&a->visitors, &visitor->link);
	a->visitor_count++;
	spawner_ask(a->spawner, &visitor->question, fd);
}

static void admin_server_drop_visitors(struct admin_server *a)
{
	LIST_EACH_SAFE(struct visitor, visitor, &a->visitors, link) {
		spawner_drop_question(a->spawner, &visitor->question);
		close(visitor->fd);
		visitor_free(visitor);
	}
}

static void admin_server_on_metrics_accept(struct listener *listener, int fd,
					   const struct peer *peer)
{
	struct admin_server *a = container_of(listener, struct admin_server, metrics_listener);

	http_server_accept(a->metrics_http, &(struct http_arrival){ .fd = fd, .peer = *peer });
}

static void admin_server_on_page_accept(struct listener *listener, int fd, const struct peer *peer)
{
	struct admin_server *a = container_of(listener, struct admin_server, page_listener);

	http_server_accept(a->page_http, &(struct http_arrival){ .fd = fd, .peer = *peer });
}

/* The one of this number has come, gone, or changed. */
static void admin_server_set_endpoint(struct admin_server *a, size_t number)
{
	const struct endpoint *of_clients = &a->client_endpoints[number];
	struct endpoint *endpoint = &a->endpoints[number];

	if (endpoint->server != NULL && of_clients->server == NULL) {
		free((char *)(uintptr_t)endpoint->path.p);
		*endpoint = (struct endpoint){ .server = NULL };
	}
	a->paths[number] = of_clients->path;
	if (of_clients->server == NULL)
		return;
	if (endpoint->server == NULL)
		endpoint->path =
			slice_str(mem_printf(ADMIN_MCP_PATH "%s", a->servers[number].conf.name));
	endpoint->server = &a->servers[number];
	endpoint->arguments = of_clients->arguments; /* what follows is borrowed */
}

/* The operator's own tool speaks plain HTTP, and takes whole answers. */
static void admin_server_make_frontend(struct admin_server *a, const struct admin_server_conf *conf)
{
	static const struct slice host = SLICE("localhost");

	CHECK(a->endpoints == NULL && conf->endpoints != NULL);
	a->count = conf->admin.server_count;
	a->servers = conf->admin.servers;
	a->client_endpoints = conf->endpoints;
	a->endpoints = mem_zalloc(SERVERS_MAX * sizeof(*a->endpoints));
	a->paths = mem_zalloc(SERVERS_MAX * sizeof(*a->paths));
	for (size_t i = 0; i < a->count; i++)
		admin_server_set_endpoint(a, i);
	frontend_init(&a->frontend, conf->admin.router,
		      &(struct frontend_conf){ .endpoints = a->endpoints,
					       .endpoint_count = a->count,
					       .hosts = { &host, 1 },
					       .is_operators = true,
					       .authorization = { .takes_claims = true },
					       .response = FRONTEND_RESPONSE_JSON,
					       .grace_ms = conf->admin.client_frontend->grace_ms,
					       .keepalive_ms =
						       conf->admin.client_frontend->keepalive_ms,
					       .retry_ms = conf->admin.client_frontend->retry_ms });
}

void admin_server_renew(struct admin_server *a, size_t server_count, const char *origin,
			const char *auth_mode)
{
	CHECK(server_count >= a->count && server_count <= SERVERS_MAX);
	a->count = server_count;
	for (size_t i = 0; i < a->count; i++)
		admin_server_set_endpoint(a, i);
	a->frontend.conf.endpoint_count = server_count;
	admin_renew(&a->admin, server_count, origin, auth_mode);
}

void admin_server_tell_reloaded(struct admin_server *a, uint64_t order, bool is_used,
				struct slice report)
{
	admin_reloaded(&a->admin, order, is_used, report);
}

void admin_server_tell_upgrade(struct admin_server *a, unsigned int outcome)
{
	a->admin.upgrade = outcome;
}

void admin_server_tell_unsaved(struct admin_server *a, unsigned int kinds)
{
	a->admin.unsaved = kinds;
}

void admin_server_leave(struct admin_server *a)
{
	admin_leave(&a->admin);
}

struct admin_server *admin_server_new(const struct admin_server_conf *conf)
{
	struct admin_server *a = mem_zalloc(sizeof(*a));
	struct http_conf http = *conf->http;
	struct admin_conf admin = conf->admin;

	CHECK(admin.on_drain != NULL && admin.on_reload != NULL && admin.on_deny_list != NULL);
	a->spawner = conf->spawner;
	list_init(&a->visitors);
	admin_server_make_frontend(a, conf);
	admin.paths = a->paths;
	admin.mcp = &a->frontend.handler;
	admin.version = BUILD_VERSION;
	admin_init(&a->admin, &admin);
	http.max_connections = CONNECTIONS_MAX;
	http.trust = (struct http_trust){ 0 }; /* of a configuration that a reload may free */
	if (conf->listeners[LISTENER_ADMIN] >= 0) {
		a->admin_http = http_server_new(conf->loop, &http, &a->admin.handler);
		listener_init(&a->admin_listener, conf->loop, conf->listeners[LISTENER_ADMIN],
			      admin_server_on_admin_accept);
	}
	if (conf->listeners[LISTENER_METRICS] >= 0) {
		a->metrics_http = http_server_new(conf->loop, &http, &a->admin.metrics_handler);
		listener_init(&a->metrics_listener, conf->loop, conf->listeners[LISTENER_METRICS],
			      admin_server_on_metrics_accept);
	}
	if (conf->listeners[LISTENER_PAGE] >= 0) {
		a->page_http = http_server_new(conf->loop, &http, &a->admin.page_handler);
		listener_init(&a->page_listener, conf->loop, conf->listeners[LISTENER_PAGE],
			      admin_server_on_page_accept);
	}
	return a;
}

void admin_server_free(struct admin_server **admin_server)
{
	struct admin_server *a = *admin_server;

	*admin_server = NULL;
	if (a == NULL)
		return;
	admin_server_drop_visitors(a);
	if (a->admin_http != NULL)
		listener_fini(&a->admin_listener);
	if (a->metrics_http != NULL)
		listener_fini(&a->metrics_listener);
	if (a->page_http != NULL)
		listener_fini(&a->page_listener);
	http_server_free(&a->admin_http);
	http_server_free(&a->metrics_http);
	http_server_free(&a->page_http);
	admin_fini(&a->admin);
	frontend_fini(&a->frontend);
	for (size_t i = 0; i < a->count; i++)
		free((char *)(uintptr_t)a->endpoints[i].path.p);
	free(a->endpoints);
	free(a->paths);
	free(a);
}
