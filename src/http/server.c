/* SPDX-License-Identifier: Apache-2.0 */
/* All connections of the process: how many there may be, and that they end. Knows nothing of requests. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "http/conn_state.h"
#include "http/server_renew.h"
#include "obs/counters.h"
#include "obs/log.h"

/* While draining, a client that takes nothing for so long is not waited for. */
#define DRAIN_STALL_MS 5000
#define REFUSAL_LOG_MS 10000

struct http_server *http_server_new(struct loop *loop, const struct http_conf *conf,
				    struct http_handler *handler)
{
	struct http_server *server = mem_zalloc(sizeof(*server));

	CHECK(handler != NULL && conf->max_connections > 0);
	server->loop = loop;
	server->conf = *conf;
	server->handler = handler;
	list_init(&server->conns);
	places_init(&server->places, conf->max_connections, &server->conf.trust);
	return server;
}

void http_server_renew(struct http_server *server, const struct http_conf *conf)
{
	CHECK(conf->max_connections > 0);
	server->conf = *conf;
	server->places.max = conf->max_connections;
}

void http_server_free(struct http_server **server)
{
	struct http_server *s = *server;

	if (s == NULL)
		return;
	while (!list_is_empty(&s->conns))
		http_conn_end(container_of(s->conns.next, struct http_conn, link), REASON_DRAINING);
	CHECK(s->count == 0 && s->gathered_count == 0);
	places_fini(&s->places);
	buf_fini(&s->scratch);
	buf_fini(&s->gathered);
	free(s);
	*server = NULL;
}

/* There is no room: says so, if the socket takes the answer at once, and closes. */
static void server_turn_away(struct http_server *server, const struct http_arrival *arrival,
			     const char *reason)
{
	static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\n"
				   "Content-Length: 0\r\nConnection: close\r\n\r\n";
	struct tls *tls = arrival->tls;
	uint64_t now_ms = clock_now_ms();
	char client[PEER_TEXT_BYTES];

	counter_add(COUNTER_CONNECTIONS_REFUSED);
	if (server->refusal_said_ms == 0 || now_ms - server->refusal_said_ms >= REFUSAL_LOG_MS) {
		server->refusal_said_ms = now_ms;
		peer_format(&arrival->peer, client);
		LOG_BY(CONN_REFUSED, peer_key(&arrival->peer, 0), LOG_STR("client", client),
		       LOG_STR("reason", reason));
	}
	/* Unread bytes would turn the end into a reset, which may overtake the answer. */
	if (tls == NULL && read(arrival->fd, loop_buffer(server->loop), LOOP_BUFFER_BYTES) != 0 &&
	    write(arrival->fd, text, sizeof(text) - 1) >= 0)
		shutdown(arrival->fd, SHUT_WR);
	tls_free(&tls);
	close(arrival->fd);
}

struct places *http_server_places(struct http_server *server)
{
	return &server->places;
}

void http_server_take(struct http_server *server, const struct http_arrival *arrival)
{
	counter_add(COUNTER_CONNECTIONS);
	conn_start(server, arrival);
}

void http_server_accept(struct http_server *server, const struct http_arrival *arrival)
{
	const char *reason = places_make_room(&server->places, &arrival->peer);

	if (reason == NULL)
		http_server_take(server, arrival);
	else
		server_turn_away(server, arrival, reason);
}

void http_server_leave(struct http_server *server)
{
	server->is_leaving = true;
}

void http_server_leave_port(struct http_server *server, unsigned int port)
{
	CHECK(port > 0);
	LIST_FOREACH(node, &server->conns) {
		struct http_conn *conn = container_of(node, struct http_conn, link);

		if (conn->port != port)
			continue;
		conn->is_leaving = true;
		if (conn->state == CONN_IDLE)
			task_schedule(server->loop, &conn->task);
	}
}

void http_server_drain(struct http_server *server)
{
	server->is_leaving = true;
	server->is_draining = true;
	LIST_FOREACH(node, &server->conns) {
		struct http_conn *conn = container_of(node, struct http_conn, link);

		if (conn->state == CONN_IDLE) /* it ends with the turn, if no request comes in it */
			task_schedule(server->loop, &conn->task);
	}
}

bool http_server_is_writing(const struct http_server *server)
{
	uint64_t latest_ms = clock_now_ms() + server->conf.stall_timeout_ms;

	LIST_FOREACH(node, &server->conns) {
		const struct http_conn *conn = container_of(node, struct http_conn, link);

		if (conn->out.bytes > 0 && conn->deadline.due_ms + DRAIN_STALL_MS > latest_ms)
			return true;
	}
	return false;
}

size_t http_server_connection_count(const struct http_server *server)
{
	return server->count;
}

struct http_usage http_server_usage(const struct http_server *server)
{
	return (struct http_usage){ server->conf.max_connections, server->read_bytes,
				    server->written_bytes };
}
