/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From accept to the first byte of HTTP: PROXY header and TLS handshake, for connections that need
 * them, under one deadline from accept on, and for a bounded number of connections at a time. Then
 * the connection passes to the http_server. Until then it holds a place (http/places.h), which has
 * no address until the PROXY header names the client.
 *
 * 	accepted -> [PROXY header] -> [handshake] -> the server
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "io/peer.h"

/* Time limit from accept until HTTP may begin. SEC-25. */
#define ACCEPTOR_MS 5000
/* At most this many at a time; when one more arrives, the oldest is closed. SEC-34, REL-51. */
#define ACCEPTOR_MAX 1024

struct acceptor {
	struct loop *loop;
	struct http_server *http;
	struct list entries; /* oldest first */
	size_t count;
};

/* Borrows loop and http until acceptor_fini. */
void acceptor_init(struct acceptor *acceptor, struct loop *loop, struct http_server *http);
/* Closes all connections still in the acceptor. */
void acceptor_fini(struct acceptor *acceptor);

/* How connections on a port begin. */
struct acceptor_port {
	/* PROXY header, version 1 or 2, expected: it names the client */
	bool has_proxy_header;
	struct tls_server *tls_server; /* NULL: no TLS */
	unsigned int number;           /* for acceptor_leave_port; 0: a port that always stays */
};
/* Takes ownership of fd, which must be non-blocking. The port is borrowed for the call. */
void acceptor_accept(struct acceptor *acceptor, int fd, const struct peer *peer,
		     const struct acceptor_port *port);
/*
 * The port is closed. For its connections, here and in the server, see http_server_leave_port in
 * http/conn.h.
 */
void acceptor_leave_port(struct acceptor *acceptor, unsigned int number);
