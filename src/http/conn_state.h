/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internals of connections and the server: conn.c reads, conn_answer.c writes, server.c manages
 * the list. All others use http/conn.h.
 */
#ifndef MCPGATED_HTTP_CONN_STATE_H
#define MCPGATED_HTTP_CONN_STATE_H

#include "base/buf.h"
#include "http/body.h"
#include "http/conn.h"
#include "http/places.h"
#include "io/outq.h"
#include "io/wire.h"

#define CONN_LINGER_MS 2000

struct http_server {
	struct loop *loop;
	struct http_conf conf;
	struct http_handler *handler;
	struct list conns;
	size_t count;
	uint64_t read_bytes; /* of HTTP, without TLS */
	uint64_t written_bytes;
	struct places places; /* of connections here and in the acceptor */
	bool is_leaving;      /* each answer is the last of its connection */
	bool is_draining;
	uint64_t refusal_said_ms; /* when refusals were last logged; 0: never */
	uint64_t tls_said_ms;     /* likewise for TLS on a plain port */
	struct buf scratch;       /* the head currently being written */
	struct buf gathered;      /* answers to write at the end of the turn */
	size_t gathered_count;    /* how many of them are still to be written */
};

enum conn_state {
	CONN_IDLE,      /* between requests */
	CONN_HEAD,      /* a head has arrived, in part or completely */
	CONN_JUDGING,   /* the head waits for an asynchronous decision */
	CONN_BODY,      /* the body is being read */
	CONN_BUSY,      /* the exchange prepares its answer */
	CONN_STREAMING, /* the answer is sent piece by piece */
	CONN_FULL,      /* likewise, and the exchange waits for room in the queue */
	CONN_REPLYING,  /* the answer is complete and being written */
	CONN_LINGERING, /* all is sent; input is discarded until the peer closes */
	CONN_CLOSED,
};

/* What the peer has done so far; each step implies the earlier ones or makes them irrelevant. */
enum conn_peer_state {
	CONN_PEER_NEW,    /* no request yet */
	CONN_PEER_USED,   /* at least one request */
	CONN_PEER_CLOSED, /* it sends no more: it reads the answer, or is gone */
};

/* What follows the answer. */
enum conn_persistence {
	CONN_PERSISTS, /* the next request */
	CONN_ENDS,     /* the connection is closed */
};

struct http_conn {
	struct list link;
	struct place place;
	struct http_server *server;
	struct peer peer;
	struct peer client; /* of the last request */
	struct wire wire;
	struct timer deadline;
	struct task task; /* flush, or continue with buffered input */
	enum conn_state state;
	enum conn_peer_state peer_state;
	enum conn_persistence persistence;
	unsigned int port; /* as in http_arrival */
	/* its port is closed: the next answer is the last; an idle connection closes at once */
	bool is_leaving;
	struct http_exchange *exchange;
	struct buf in;
	size_t head_seen;
	struct outq out;
	/*
	 * The answer waiting for the end of the turn, in `gathered` of the server; length 0: none.
	 */
	size_t gathered_at;
	size_t gathered_length;
	/* Of the current request. */
	struct buf target; /* method and path, for the access log; empty: no request */
	uint64_t began_at_ms;
	enum http_method method;
	bool is_old; /* HTTP/1.0 */
	bool expects_continue;
	struct http_body_reader body_reader;
	int body_status; /* result of http_body_init */
	struct buf body;
	size_t lingered;
	bool is_processing; /* conn_process is on the call stack and will take the next request */
};

/* Whether each answer is the connection's last. */
static inline bool conn_is_leaving(const struct http_conn *conn)
{
	return conn->is_leaving || conn->server->is_leaving;
}

/* Takes over the arrival and adds its connection to the list. */
void conn_start(struct http_server *server, const struct http_arrival *arrival);
/* Writes queued output as far as the socket accepts it. May end the connection. */
void conn_flush(struct http_conn *conn);
/* Sends an error of this layer, with the handler's text; the connection ends after it. */
void conn_refuse(struct http_conn *conn, int status, const char *reason);

/* Only these functions change the three fields. */
void conn_set_state(struct http_conn *conn, enum conn_state state);
void conn_set_peer_state(struct http_conn *conn, enum conn_peer_state peer_state);
void conn_set_last(struct http_conn *conn); /* sets CONN_ENDS; idempotent */
/*
 * Updates whether the connection would give up its place. Called on each state change, and when
 * `in` becomes empty.
 */
void conn_settle_place(struct http_conn *conn);
/* For log fields: LOG evaluates them only if the line is written. */
const char *conn_client_text(const struct http_conn *conn, char text_r[PEER_TEXT_BYTES]);
/*
 * Writes the access log line of the current request unless it has one. Status 0: there was no
 * answer.
 */
void conn_log_access(struct http_conn *conn, int status);
/* Whether an answer begun with http_stream_begin is in progress. */
bool conn_is_streaming(const struct http_conn *conn);
/* After so many milliseconds conn.c ends what takes too long. */
void conn_set_deadline(struct http_conn *conn, uint64_t after_ms);
/*
 * Takes the answer that waits for the end of the turn; empty if there is none. Valid until another
 * answer is gathered.
 */
struct slice conn_take_gathered(struct http_conn *conn);
/* Removes the exchange from the connection and returns it; NULL if there is none. */
struct http_exchange *conn_detach_exchange(struct http_conn *conn);
/* Tells the exchange that nothing more can be sent. */
void conn_drop_exchange(struct http_conn *conn, enum reason reason);

#endif
