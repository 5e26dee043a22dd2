/* SPDX-License-Identifier: Apache-2.0 */
/* A reload of the configuration, as connections see it. */
#ifndef MCPGATED_HTTP_SERVER_RENEW_H
#define MCPGATED_HTTP_SERVER_RENEW_H

#include "http/conn.h"

/* Another configuration, for connections that come and requests that begin from now on. What it points to is borrowed. */
void http_server_renew(struct http_server *server, const struct http_conf *conf);

/*
 * Nobody comes by this port any more: of those who came, each answer that begins from now on is the connection's last, and one between
 * two requests is closed with the turn; one that has not sent any request yet gets a short time to send one.
 */
void http_server_leave_port(struct http_server *server, unsigned int port);

#endif
