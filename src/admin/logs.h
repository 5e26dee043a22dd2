/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of a server's stderr, once or continuously. */
#ifndef MCPGATED_ADMIN_LOGS_H
#define MCPGATED_ADMIN_LOGS_H

#include "admin/value.h"
#include "process/server.h"
#include "http/conn.h"

/* All stored lines, as one object; owned by the caller. */
struct json_t *logs_describe(const struct server *server);
/* Returns the exchange that sends an event for each stored line, and then for each new one. */
struct http_exchange *logs_follow(struct server *server);

#endif
