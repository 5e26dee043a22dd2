/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration reload for the HTTP server. */
#ifndef MCPGATED_HTTP_SERVER_RENEW_H
#define MCPGATED_HTTP_SERVER_RENEW_H

#include "http/conn.h"

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

#endif
