/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a connection, and its end. It reads and writes nothing. */
#include "http/conn_state.h"

#include "base/clock.h"
#include "obs/log.h"

#define TO(state) (1u << CONN_##state)
static const struct {
	const char *name;
	unsigned int next;
} states[] = {
	[CONN_IDLE] = { "idle", TO(HEAD) | TO(CLOSED) },
	[CONN_HEAD] = { "head", TO(JUDGING) | TO(BODY) | TO(BUSY) | TO(REPLYING) | TO(CLOSED) },
	[CONN_JUDGING] = { "judging", TO(BODY) | TO(BUSY) | TO(REPLYING) | TO(CLOSED) },
	[CONN_BODY] = { "body", TO(BUSY) | TO(REPLYING) | TO(CLOSED) },
	[CONN_BUSY] = { "busy", TO(STREAMING) | TO(REPLYING) | TO(CLOSED) },
	[CONN_STREAMING] = { "streaming", TO(FULL) | TO(REPLYING) | TO(CLOSED) },
	[CONN_FULL] = { "full", TO(STREAMING) | TO(REPLYING) | TO(CLOSED) },
	[CONN_REPLYING] = { "replying", TO(IDLE) | TO(LINGERING) | TO(CLOSED) },
	[CONN_LINGERING] = { "lingering", TO(CLOSED) },
	[CONN_CLOSED] = { "closed", 0 },
};
#undef TO

static const char *const peer_states[] = {
	[CONN_PEER_NEW] = "peer_new",
	[CONN_PEER_USED] = "peer_used",
	[CONN_PEER_CLOSED] = "peer_closed",
};

const char *conn_client_text(const struct http_conn *conn, char text_r[PEER_TEXT_BYTES])
{
	peer_format(&conn->client, text_r);
	return text_r;
}

void conn_log_access(struct http_conn *conn, int status)
{
	struct slice path = buf_slice(&conn->target);
	struct slice method = slice_cut(&path, ' ');
	char client[PEER_TEXT_BYTES];

	if (conn->target.len == 0)
		return;
	LOG_BY(ACCESS, peer_key(&conn->client, 0),
	       LOG_STR("client", conn_client_text(conn, client)), LOG_SLICE("method", method),
	       LOG_SLICE("path", path), LOG_INT("status", status),
	       LOG_INT("ms", clock_now_ms() - conn->began_at_ms));
	conn->target.len = 0;
}

void conn_settle_place(struct http_conn *conn)
{
	/* Most heads come whole, and the next state follows at once; conn.c sees to the others. */
	if (conn->state == CONN_HEAD || conn->state == CONN_CLOSED)
		return;
	/* A request that has come and waits for its turn is owed an answer. */
	place_set_use(&conn->place,
		      conn->state == CONN_IDLE && conn->in.len == 0 ? PLACE_KEPT : PLACE_USED);
}

void conn_set_state(struct http_conn *conn, enum conn_state state)
{
	char client[PEER_TEXT_BYTES];

	CHECK(states[conn->state].next & 1u << state);
	LOG(CONN_STATE, LOG_STR("client", conn_client_text(conn, client)),
	    LOG_INT("fd", conn->wire.fd), LOG_STR("from", states[conn->state].name),
	    LOG_STR("to", states[state].name));
	conn->state = state;
	conn_settle_place(conn);
}

void conn_set_peer_state(struct http_conn *conn, enum conn_peer_state peer_state)
{
	char client[PEER_TEXT_BYTES];

	CHECK(peer_state > conn->peer_state);
	LOG(CONN_STATE, LOG_STR("client", conn_client_text(conn, client)),
	    LOG_INT("fd", conn->wire.fd), LOG_STR("from", peer_states[conn->peer_state]),
	    LOG_STR("to", peer_states[peer_state]));
	conn->peer_state = peer_state;
}

void conn_set_last(struct http_conn *conn)
{
	char client[PEER_TEXT_BYTES];

	if (conn->persistence == CONN_ENDS)
		return;
	CHECK(conn->state != CONN_CLOSED);
	LOG(CONN_STATE, LOG_STR("client", conn_client_text(conn, client)),
	    LOG_INT("fd", conn->wire.fd), LOG_STR("from", "persists"), LOG_STR("to", "ends"));
	conn->persistence = CONN_ENDS;
}

bool conn_is_streaming(const struct http_conn *conn)
{
	return conn->state == CONN_STREAMING || conn->state == CONN_FULL;
}

void conn_set_deadline(struct http_conn *conn, uint64_t after_ms)
{
	CHECK(conn->state != CONN_CLOSED);
	timer_start(conn->server->loop, &conn->deadline, after_ms);
}

struct http_exchange *conn_detach_exchange(struct http_conn *conn)
{
	struct http_exchange *exchange = conn->exchange;

	CHECK(exchange == NULL || exchange->conn == conn);
	conn->exchange = NULL;
	if (exchange != NULL)
		exchange->conn = NULL;
	return exchange;
}

void conn_drop_exchange(struct http_conn *conn, enum reason reason)
{
	struct http_exchange *exchange = conn_detach_exchange(conn);

	if (exchange != NULL)
		exchange->ops->on_gone(exchange, reason);
}

struct slice conn_take_gathered(struct http_conn *conn)
{
	struct http_server *server = conn->server;
	struct slice answer = slice_of(server->gathered.data, 0);

	if (conn->gathered_length == 0)
		return answer;
	CHECK(server->gathered_count > 0);
	CHECK(conn->gathered_at + conn->gathered_length <= server->gathered.len);
	answer = slice_of(server->gathered.data + conn->gathered_at, conn->gathered_length);
	conn->gathered_length = 0;
	if (--server->gathered_count == 0)
		server->gathered.len = 0;
	return answer;
}

void http_conn_end(struct http_conn *conn, enum reason reason)
{
	struct http_server *server = conn->server;
	char client[PEER_TEXT_BYTES];

	if (conn->state == CONN_CLOSED)
		return;
	CHECK(server->count > 0 && reason != REASON_NONE);
	LOG(CONN_END, LOG_STR("client", conn_client_text(conn, client)),
	    LOG_STR("state", states[conn->state].name),
	    LOG_STR("reason", reason_get(reason)->text));
	conn_log_access(conn, 0);
	conn_set_state(conn, CONN_CLOSED);
	wire_close(&conn->wire);
	timer_stop(&conn->deadline);
	task_cancel(&conn->task);
	place_leave(&conn->place);
	list_remove(&conn->link);
	server->count--;
	conn_drop_exchange(conn, reason);
	outq_fini(&conn->out);
	(void)conn_take_gathered(conn);
	if (!conn->is_processing)
		buf_wipe(&conn->in); /* half a head. AUTH-DWN-01 */
	/* Slices of these may still be on the stack. */
	loop_defer_free(server->loop, conn->in.data);
	loop_defer_free(server->loop, conn->body.data);
	loop_defer_free(server->loop, conn->target.data);
	loop_defer_free(server->loop, conn);
}
