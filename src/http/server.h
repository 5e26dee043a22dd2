/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection and the list that it is in know of each other; everybody else uses http/conn.h. */
#ifndef MCPGATED_HTTP_SERVER_H
#define MCPGATED_HTTP_SERVER_H

#include "http/conn.h"

struct http_server {
	struct loop *loop;
	struct http_conf conf;
	struct http_handler *handler;
	struct list conns;
	size_t count;
	bool is_draining;
	bool is_refusing;   /* the last connection was turned away: said once, not for each */
	struct buf scratch; /* the head being written now */
};

/* Takes the arrival and adds its connection to the list. */
void conn_start(struct http_server *server, const struct http_arrival *arrival);
struct http_conn *conn_of_link(struct list *link);
/* While draining: a connection between two requests ends at the end of the turn, if no request came meanwhile. */
void conn_drain(struct http_conn *conn);
/* Whether a part of an answer waits for its peer. */
bool conn_is_writing(const struct http_conn *conn);

#endif
