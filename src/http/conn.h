/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP/1.x connection: requests in, one after the other, each handed to an exchange that answers
 * it with http_reply (whole) or http_stream_* (piece by piece). Deadlines, keep-alive, pipelining,
 * half-close and limits are dealt with here; what a request means is decided above.
 *
 *	idle -> head -> body -> busy -> replying | streaming -> idle | lingering -> closed
 */
#ifndef MCPGATED_HTTP_CONN_H
#define MCPGATED_HTTP_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "http/forwarded.h"
#include "http/parse.h"
#include "io/loop.h"
#include "io/peer.h"
#include "io/tls.h"
#include "obs/reason.h"

struct http_conn;
struct http_exchange;
struct http_server;
struct places;

/* What answers one request. Embedded by the endpoints; freed by them. */
struct http_exchange_ops {
	/*
	 * The request is complete. `body` is borrowed until the return. From now on the exchange must
	 * answer, at any time.
	 */
	void (*on_body)(struct http_exchange *exchange, struct slice body);
	/* The queue towards the client has room again after http_conn_has_room said no. */
	void (*on_room)(struct http_exchange *exchange);
	/*
	 * The connection is no more, or can no longer carry this exchange: ->conn is NULL and nothing more
	 * is called. Not called after the answer is complete.
	 */
	void (*on_gone)(struct http_exchange *exchange, enum reason reason);
	/* Who closes its direction of the connection before the answer has begun wants none. CXL-04 */
	bool ends_when_left;
};

struct http_exchange {
	const struct http_exchange_ops *ops;
	struct http_conn *conn; /* NULL: gone, or answered */
};

/* Knows the paths. Embedded by its owner. */
struct http_handler {
	/*
	 * A head has come; `request` is borrowed until the return. Returns the exchange that takes the
	 * body and answers, or NULL if it was refused with http_reply already, or the connection ended.
	 * Then a body that is still on its way is not read: the connection ends after the reply.
	 */
	struct http_exchange *(*on_request)(struct http_handler *handler, struct http_conn *conn,
					    const struct http_request *request);
	/* The text of an error that this layer answers itself (400, 408, 413 …), appended to body. */
	void (*write_error)(struct http_handler *handler, int status, const char *reason,
			    struct buf *body);
	/* Bytes of answers are about to be written to some socket. NULL: of no interest. */
	void (*before_write)(struct http_handler *handler);
};

struct http_conf {
	uint64_t header_bytes;
	uint64_t body_bytes;
	uint64_t header_timeout_ms; /* from a request's first byte to the end of its head */
	uint64_t body_timeout_ms;   /* from there to the end of its body */
	uint64_t
		idle_timeout_ms; /* between requests; before the first one as long as places are plenty */
	uint64_t stall_timeout_ms; /* no byte of a queued answer was taken */
	uint64_t max_connections;
	bool logs_access;        /* a line for each request */
	struct http_trust trust; /* proxies; borrowed for the server's life */
};

struct http_server *http_server_new(struct loop *loop, const struct http_conf *conf,
				    struct http_handler *handler);
/* Ends every connection at once. */
void http_server_free(struct http_server **server);

/* A connection that has come in. */
struct http_arrival {
	int fd;
	struct tls *tls; /* its handshake is done; NULL: plain */
	struct peer peer;
	unsigned int port; /* the number of that by which it came; 0: one that stays */
	bool is_leaving;   /* that one has been left meanwhile */
};
/* Takes fd and tls. Where http/places.h has none for it, it gets a 503 and is closed. Not in a callback of a conn. */
void http_server_accept(struct http_server *server, const struct http_arrival *arrival);
/* The same for one that had its place already, until just now. */
void http_server_take(struct http_server *server, const struct http_arrival *arrival);
/* For those on their way to it. */
struct places *http_server_places(struct http_server *server);
/* From now on each answer says `Connection: close`, and is its connection's last; new connections are served likewise. */
void http_server_leave(struct http_server *server);
/*
 * Connections are closed after their answer, and at once between two requests; one that has not sent any request
 * yet gets a short time to send one.
 */
void http_server_drain(struct http_server *server);
/* Whether a client is still taking an answer: it has taken some of it lately, and not yet all. */
bool http_server_is_writing(const struct http_server *server);
size_t http_server_connection_count(const struct http_server *server);
/* For the operator. */
struct http_usage {
	size_t connections_max;
	uint64_t
		read_bytes; /* of HTTP, without TLS; the next: what connections were given to write */
	uint64_t written_bytes;
};
struct http_usage http_server_usage(const struct http_server *server);

/*
 * In on_request only: the request's head is still being judged. Its body is not read, nor asked for, until
 * http_conn_resume; the exchange that on_request returns may answer, or hears in on_gone that the peer has left.
 */
void http_conn_hold(struct http_conn *conn);
/* The verdict is there: `exchange` takes the request, as if on_request had returned it. Not in a callback of conn. */
void http_conn_resume(struct http_conn *conn, struct http_exchange *exchange);

#define HTTP_REPLY_PARTS_MAX 12

/* A whole answer. */
struct http_reply {
	int status;
	const char *content_type; /* NULL: none */
	const struct slice
		*fields; /* their concatenation is further field lines, each ended by CRLF */
	size_t field_count;
	const struct slice *parts; /* the body is their concatenation */
	size_t part_count;         /* at most HTTP_REPLY_PARTS_MAX */
};

/*
 * Sends it and ends the exchange; everything is borrowed until the return. A short one is written at the end of the turn of the
 * loop, with all the others of that turn.
 */
void http_reply(struct http_conn *conn, const struct http_reply *reply);

/*
 * Begins an answer whose length is not known: 200, text/event-stream. Not in on_request, nor for
 * HEAD.
 */
void http_stream_begin(struct http_conn *conn, struct slice fields);
/* Sends bytes on it. Ask http_conn_has_room first: what is appended nevertheless is queued. */
void http_stream_write(struct http_conn *conn, struct slice bytes);
/* The answer is complete. */
void http_stream_end(struct http_conn *conn);
/* Whether the queue towards the client is below its mark. */
bool http_conn_has_room(struct http_conn *conn);

/* Ends the connection without an answer. */
void http_conn_end(struct http_conn *conn, enum reason reason);

/* The client of the current request: the one behind the proxies that are trusted. */
const struct peer *http_conn_client(const struct http_conn *conn);
/* Whether who has connected is one of the proxies that are trusted. */
bool http_conn_is_trusted(const struct http_conn *conn);
bool http_conn_has_tls(const struct http_conn *conn);
/*
 * SHA-256 of the certificate that the client has proved to have: for tokens that are bound to one
 * (RFC 8705 §3.1). False: it has shown none.
 */
bool http_conn_peer_thumbprint(const struct http_conn *conn,
			       unsigned char thumbprint_r[TLS_THUMBPRINT_BYTES]);
/* The peer has closed its direction: it may still read the answer, or be gone altogether. */
bool http_conn_may_be_left(const struct http_conn *conn);
struct loop *http_conn_loop(const struct http_conn *conn);
bool http_conn_is_draining(const struct http_conn *conn);

#endif
