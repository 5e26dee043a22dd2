/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of a server's stderr, at once or for as long as the operator listens. */
#ifndef MCPGATED_ADMIN_LOGS_H
#define MCPGATED_ADMIN_LOGS_H

#include "admin/value.h"
#include "process/server.h"
#include "http/conn.h"

/* All lines that are kept, as one object; the caller's. */
struct json_t *logs_describe(const struct server *server);
/* The exchange that answers with an event for each line that is kept, and for each new one. */
struct http_exchange *logs_follow(struct server *server);

#endif
