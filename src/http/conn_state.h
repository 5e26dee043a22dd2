/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection, and the list that it is in, as their own files see them: conn.c reads, conn_answer.c writes, server.c
 * has the list. Everybody else uses http/conn.h.
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
	uint64_t read_bytes; /* of HTTP: TLS is below */
	uint64_t written_bytes;
	struct places places; /* of the connections, and of what the acceptor still has */
	bool is_leaving;      /* each answer is its connection's last */
	bool is_draining;
	uint64_t refusal_said_ms; /* 0: never */
	uint64_t tls_said_ms;     /* likewise */
	struct buf scratch;       /* the head being written now */
	struct buf gathered;      /* answers that are written at the end of the turn */
	size_t gathered_count;    /* how many of them are still to be written */
};

enum conn_state {
	CONN_IDLE,      /* between requests */
	CONN_HEAD,      /* a part of a head is there, or a whole one */
	CONN_JUDGING,   /* the head waits for a verdict that takes a while */
	CONN_BODY,      /* the body is on its way */
	CONN_BUSY,      /* the exchange works on its answer */
	CONN_STREAMING, /* the answer comes piece by piece */
	CONN_FULL,      /* the same, and the exchange waits for room in the queue */
	CONN_REPLYING,  /* the answer is complete and being written */
	CONN_LINGERING, /* all is sent; what the peer still sends is dropped until it closes */
	CONN_CLOSED,
};

/* What the peer has done so far; each step implies the ones before it, or makes them irrelevant. */
enum conn_peer_state {
	CONN_PEER_NEW,    /* no request came */
	CONN_PEER_USED,   /* at least one did */
	CONN_PEER_CLOSED, /* it sends no more: it reads the answer, or has left */
};

/* What follows the answer. */
enum conn_persistence {
	CONN_PERSISTS, /* the next request */
	CONN_ENDS,     /* the end of the connection */
};

struct http_conn {
	struct list link;
	struct place place;
	struct http_server *server;
	struct peer peer;
	struct peer client; /* of the last request */
	struct wire wire;
	struct timer deadline;
	struct task task; /* flush, or go on with bytes that wait */
	enum conn_state state;
	enum conn_peer_state peer_state;
	enum conn_persistence persistence;
	unsigned int port; /* http_arrival */
	bool is_leaving;   /* its next answer is its last, and at once between two requests */
	struct http_exchange *exchange;
	struct buf in;
	size_t head_seen;
	struct outq out;
	/* The answer that waits for the end of the turn, in `gathered` of the server; of 0 bytes: none. */
	size_t gathered_at;
	size_t gathered_length;
	/* Of the request at hand. */
	struct buf target; /* its method and path, for the access log; empty: there is none */
	uint64_t began_at_ms;
	enum http_method method;
	bool is_old; /* HTTP/1.0 */
	bool expects_continue;
	struct http_body_reader body_reader;
	int body_status; /* what http_body_init said */
	struct buf body;
	size_t lingered;
	bool is_processing; /* conn_process is on the stack, and takes the next request by itself */
};

/* Whether each answer is its last. */
static inline bool conn_is_leaving(const struct http_conn *conn)
{
	return conn->is_leaving || conn->server->is_leaving;
}

/* Takes the arrival and adds its connection to the list. */
void conn_start(struct http_server *server, const struct http_arrival *arrival);
/* Writes what is queued, as far as the socket takes it. May end the connection. */
void conn_flush(struct http_conn *conn);
/* An answer of this layer, in the words of the handler; the connection ends with it. */
void conn_refuse(struct http_conn *conn, int status, const char *reason);

/* The only functions that write these three. */
void conn_set_state(struct http_conn *conn, enum conn_state state);
void conn_set_peer_state(struct http_conn *conn, enum conn_peer_state peer_state);
void conn_set_last(struct http_conn *conn); /* CONN_ENDS; also if it is that already */
/* Says whether the connection would give way; by itself at each change of state, and when `in` is empty again. */
void conn_settle_place(struct http_conn *conn);
/* For a line of the log: LOG evaluates its fields only where it is written. */
const char *conn_client_text(const struct http_conn *conn, char text_r[PEER_TEXT_BYTES]);
/* The line of the access log for the request at hand, if it has none yet. 0: there was no answer. */
void conn_log_access(struct http_conn *conn, int status);
/* Whether an answer that http_stream_begin began is on its way. */
bool conn_is_streaming(const struct http_conn *conn);
/* In so many milliseconds conn.c ends what takes too long. */
void conn_set_deadline(struct http_conn *conn, uint64_t after_ms);
/* Takes the answer that waits for the end of the turn. Valid until another one is gathered; empty: there is none. */
struct slice conn_take_gathered(struct http_conn *conn);
/* Takes the exchange off the connection; NULL: there was none. */
struct http_exchange *conn_detach_exchange(struct http_conn *conn);
/* Tells the exchange that nothing more can be sent. */
void conn_drop_exchange(struct http_conn *conn, enum reason reason);

#endif
