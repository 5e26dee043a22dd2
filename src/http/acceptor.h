/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From accept to the first byte of HTTP: the PROXY header and the TLS handshake of connections that
 * need them, under one deadline from the moment of accept, and a bounded number of them at a time. Then
 * a connection goes to the http_server. Meanwhile it has a place of its (http/places.h): nobody's until the
 * PROXY header says whose, then that client's.
 *
 *	accepted -> [PROXY header] -> [handshake] -> the server's
 */
#ifndef MCPGATED_HTTP_ACCEPTOR_H
#define MCPGATED_HTTP_ACCEPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "http/conn.h"
#include "io/peer.h"
#include "io/tls.h"

/* From accept until HTTP may begin. SEC-25. */
#define ACCEPTOR_MS 5000
/* At most so many at a time; for one more, the oldest is closed. SEC-34, REL-51. */
#define ACCEPTOR_MAX 1024

struct acceptor {
	struct loop *loop;
	struct http_server *http;
	struct list entries; /* the oldest first */
	size_t count;
	uint64_t log_since_ms; /* of the lines in log_count */
	unsigned int log_count;
};

void acceptor_init(struct acceptor *acceptor, struct loop *loop, struct http_server *http);
/* Ends all that are on their way in. */
void acceptor_fini(struct acceptor *acceptor);

/* What connections of a port begin with. */
struct acceptor_port {
	bool has_proxy_header;         /* PROXY, version 1 or 2: the client is who it names */
	struct tls_server *tls_server; /* NULL: no TLS */
	unsigned int number;           /* for acceptor_leave_port; 0: it stays */
};
/* Takes fd, non-blocking. The port is borrowed for the call. */
void acceptor_accept(struct acceptor *acceptor, int fd, const struct peer *peer,
		     const struct acceptor_port *port);
/* Nobody comes by this port any more: http/server_renew.h says what becomes of those who came, or are on their way. */
void acceptor_leave_port(struct acceptor *acceptor, unsigned int number);

#endif
