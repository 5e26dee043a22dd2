/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.x connection: reads requests one after the other and passes each to an exchange, which
 * answers with http_reply (whole) or http_stream_* (piece by piece). This layer handles deadlines,
 * keep-alive, pipelining, half-close and limits; the layers above interpret requests.
 *
 * 	idle -> head -> body -> busy -> replying | streaming -> idle | lingering -> closed
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "http/parse.h"
#include "http/places.h"
#include "io/loop.h"
#include "io/peer.h"
#include "io/tls.h"
#include "obs/reason.h"

struct http_conn;
struct http_exchange;
struct http_server;

/* Answers one request. Embedded by the endpoints, which also free it. */
struct http_exchange_ops {
	/*
	 * The request is complete. `body` is borrowed until the return. The exchange answers now or
	 * later. A long one comes aside (io/aside): if this gives way, on_gone may come meanwhile.
	 */
	void (*on_body)(struct http_exchange *exchange, struct slice body);
	/* Whose it is, as a number: a long body waits for others of its caller (io/aside). NULL: 0 */
	uint64_t (*caller)(const struct http_exchange *exchange);
	/* The output queue has room again after http_conn_has_room returned false. NULL: nothing waits for it */
	void (*on_room)(struct http_exchange *exchange);
	/*
	 * The connection is closed or can no longer carry this exchange: ->conn is NULL, and no
	 * further callbacks follow. Not called once the answer is complete.
	 */
	void (*on_gone)(struct http_exchange *exchange, enum reason reason);
	/*
	 * A client that closes its sending direction before the answer begins ends the exchange.
	 * CXL-04
	 */
	bool ends_when_left;
};

struct http_exchange {
	const struct http_exchange_ops *ops;
	struct http_conn *conn; /* NULL: gone, or answered */
};

/* Dispatches requests by path. Embedded by its owner. */
struct http_handler {
	/*
	 * A request head has been read; `request` is borrowed until the return. Returns the
	 * exchange that takes the body and answers; or NULL if the handler has already answered
	 * with http_reply or the connection has ended. If the body has not arrived by then, it is
	 * not read: the connection ends after the reply.
	 */
	struct http_exchange *(*on_request)(struct http_handler *handler, struct http_conn *conn,
					    const struct http_request *request);
	/*
	 * Appends to `body` the text for an error that this layer answers itself (400, 408, 413 …).
	 */
	void (*write_error)(struct http_handler *handler, int status, const char *reason,
			    struct buf *body);
	/* Called before bytes of answers are written to a socket. May be NULL. */
	void (*before_write)(struct http_handler *handler);
};

struct http_conf {
	uint64_t header_bytes;
	uint64_t body_bytes;
	uint64_t header_timeout_ms; /* from the first byte of a request to the end of its head */
	uint64_t body_timeout_ms;   /* from the end of the head to the end of the body */
	/* between requests; also before the first one unless places are scarce */
	uint64_t idle_timeout_ms;
	/* longest time in which the peer accepts no byte of a queued answer */
	uint64_t stall_timeout_ms;
	uint64_t max_connections;
	bool logs_access;        /* one line per request */
	struct http_trust trust; /* trusted proxies; borrowed for the lifetime of the server */
};

/* Borrows loop and handler until http_server_free, and copies *conf. The caller owns the result. */
struct http_server *http_server_new(struct loop *loop, const struct http_conf *conf,
				    struct http_handler *handler);
/* Closes every connection at once; sets the pointer to NULL. */
void http_server_free(struct http_server **server);

/* An accepted connection. */
struct http_arrival {
	int fd;
	struct tls *tls; /* handshake complete; NULL: no TLS */
	struct peer peer;
	unsigned int port; /* the number of its port; 0: a port that always stays */
	bool is_leaving;   /* that port has been closed meanwhile */
};
/*
 * Takes ownership of fd and tls. If no place is free (http/places.h), sends 503 and closes. Must
 * not be called from a callback of a connection.
 */
void http_server_accept(struct http_server *server, const struct http_arrival *arrival);
/* Like http_server_accept, for a connection that held a place in the acceptor until just now. */
void http_server_take(struct http_server *server, const struct http_arrival *arrival);
/* Shared with the acceptor. */
struct places *http_server_places(struct http_server *server);
/*
 * From now on each answer carries `Connection: close` and is the last of its connection; this
 * includes new connections.
 */
void http_server_leave(struct http_server *server);
/*
 * Closes connections after their current answer, and idle ones at once; a connection that has not
 * sent a request yet gets a short time to send one.
 */
void http_server_drain(struct http_server *server);
/*
 * Whether a client is still receiving an answer: it has recently accepted some of it, but not all.
 */
bool http_server_is_writing(const struct http_server *server);
size_t http_server_connection_count(const struct http_server *server);
/* Statistics for the operator. */
struct http_usage {
	size_t connections_max;
	uint64_t read_bytes; /* plaintext, received; the next: handed to connections to send */
	uint64_t written_bytes;
};
struct http_usage http_server_usage(const struct http_server *server);

/*
 * Only in on_request: the decision on the head takes longer. The body is neither read nor requested
 * until http_conn_resume. The exchange that on_request returns may answer, and is told by on_gone
 * if the peer leaves.
 */
void http_conn_hold(struct http_conn *conn);
/*
 * The decision is made: `exchange` takes the request as if on_request had returned it. Must not be
 * called from a callback of conn.
 */
void http_conn_resume(struct http_conn *conn, struct http_exchange *exchange);

#define HTTP_REPLY_PARTS_MAX 12

/* A complete answer. */
struct http_reply {
	int status;
	const char *content_type;   /* NULL: none */
	const struct slice *fields; /* concatenated: further header lines, each with CRLF */
	size_t field_count;
	const struct slice *parts; /* concatenated: the body */
	size_t part_count;         /* at most HTTP_REPLY_PARTS_MAX */
};

/*
 * Sends the answer and ends the exchange; all is borrowed until the return. Short answers are
 * written together at the end of the turn.
 */
void http_reply(struct http_conn *conn, const struct http_reply *reply);

/*
 * Begins an answer of unknown length: 200, text/event-stream. `fields` are further header lines.
 * Must not be called in on_request, nor for HEAD.
 */
void http_stream_begin(struct http_conn *conn, struct slice fields);
/* Sends bytes of the answer. Check http_conn_has_room first: they are queued regardless. */
void http_stream_write(struct http_conn *conn, struct slice bytes);
/* Completes the answer. */
void http_stream_end(struct http_conn *conn);
/* Whether the output queue is below its high-water mark. If not, on_room is called later. */
bool http_conn_has_room(struct http_conn *conn);

/* Closes the connection without an answer. */
void http_conn_end(struct http_conn *conn, enum reason reason);

/* The client of the current request, as reported by trusted proxies if there are any. */
const struct peer *http_conn_client(const struct http_conn *conn);
/* Whether the peer of the connection is a trusted proxy. */
bool http_conn_is_trusted(const struct http_conn *conn);
bool http_conn_has_tls(const struct http_conn *conn);
/*
 * SHA-256 of the client's certificate, for certificate-bound tokens (RFC 8705 §3.1); false: none.
 */
bool http_conn_peer_thumbprint(const struct http_conn *conn,
			       unsigned char thumbprint_r[TLS_THUMBPRINT_BYTES]);
/* The peer has closed its sending direction: it may still be reading, or be gone. */
bool http_conn_may_be_left(const struct http_conn *conn);
struct loop *http_conn_loop(const struct http_conn *conn);
bool http_conn_is_draining(const struct http_conn *conn);

/* ---- server renew ---- */

/* Configuration reload for the HTTP server. */

/*
 * Applies a new configuration to new connections and to requests that begin from now on. What it
 * points to is borrowed.
 */
void http_server_renew(struct http_server *server, const struct http_conf *conf);

/*
 * The port is closed. For its existing connections, each answer that begins from now on is the
 * last; idle ones are closed at the end of the turn; one that has not sent a request yet gets a
 * short time to send one.
 */
void http_server_leave_port(struct http_server *server, unsigned int port);
