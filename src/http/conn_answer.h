/* SPDX-License-Identifier: Apache-2.0 */
/* What conn.c needs of the answers of its connection; http_reply and http_stream_* stand in http/conn.h. */
#ifndef MCPGATED_HTTP_CONN_ANSWER_H
#define MCPGATED_HTTP_CONN_ANSWER_H

#include "http/conn_state.h"

#define CONN_LINGER_MS 2000

/* Writes what is queued, as far as the socket takes it. May end the connection. */
void conn_flush(struct http_conn *conn);
/* An answer of this layer, in the words of the handler; the connection ends with it. */
void conn_refuse(struct http_conn *conn, int status, const char *reason);

#endif
