/* SPDX-License-Identifier: Apache-2.0 */
/* A connection as its own files see it: conn.c reads, conn_answer.c writes. Everybody else uses http/conn.h. */
#ifndef MCPGATED_HTTP_CONN_STATE_H
#define MCPGATED_HTTP_CONN_STATE_H

#include "base/buf.h"
#include "http/body.h"
#include "http/conn.h"
#include "http/server.h"
#include "io/outq.h"
#include "io/wire.h"

enum conn_state {
	CONN_IDLE,      /* between requests */
	CONN_HEAD,      /* a part of a head is there, or a whole one */
	CONN_JUDGING,   /* the head waits for a verdict that takes a while */
	CONN_BODY,      /* the body is on its way */
	CONN_BUSY,      /* the exchange works on its answer */
	CONN_STREAMING, /* the answer comes piece by piece */
	CONN_REPLYING,  /* the answer is complete and being written */
	CONN_LINGERING, /* all said; what the peer still sends is dropped until it closes */
	CONN_CLOSED,
};

struct http_conn {
	struct list link;
	struct http_server *server;
	struct peer peer;
	struct peer client; /* of the last request */
	struct wire wire;
	struct timer deadline;
	struct task task; /* flush, or go on with bytes that wait */
	enum conn_state state;
	struct http_exchange *exchange;
	struct buf in;
	size_t head_seen;
	struct outq out;
	struct http_body_reader body_reader;
	struct buf body;
	size_t lingered;
	bool keep_alive;
	bool is_head_request;
	bool is_chunked;
	bool is_old;   /* HTTP/1.0 */
	bool was_used; /* it has brought a request */
	bool has_unread_body;
	bool is_held;
	bool held_continue; /* while judging: 100 Continue is waited for */
	enum http_body held_body;
	uint64_t held_length;
	bool peer_closed;
	bool wants_room;
	bool is_processing; /* conn_process is on the stack and goes on by itself */
};

/* The one place where the state changes. */
void conn_set_state(struct http_conn *conn, enum conn_state state);
/* In so many milliseconds conn.c ends what takes too long. */
void conn_set_deadline(struct http_conn *conn, uint64_t after_ms);
/* Takes the exchange off the connection; NULL: there was none. */
struct http_exchange *conn_detach_exchange(struct http_conn *conn);
/* Tells the exchange that nothing more can be sent. */
void conn_drop_exchange(struct http_conn *conn, enum reason reason);

#endif
