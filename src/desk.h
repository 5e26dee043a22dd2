/* SPDX-License-Identifier: Apache-2.0 */
/* Where the operator is served: the admin socket and the address for /metrics, as parts of the gateway. */
#ifndef MCPGATED_DESK_H
#define MCPGATED_DESK_H

#include <stddef.h>

#include "backend/backend.h"
#include "endpoint/gate.h"
#include "http/conn.h"
#include "router/route.h"

struct desk;

/* All borrowed for the desk's life, but the endpoints, http and the listeners only until the return. */
struct desk_conf {
	struct loop *loop;
	struct router *router;
	struct backend *backends;
	size_t backend_count;
	const struct http_server *front;       /* that clients use */
	void (*on_drain)(void);                /* the operator wants the daemon to end */
	void (*on_reload)(void);               /* … to read log and certificates again */
	void (*on_denials)(void);              /* the entries against tokens have changed */
	const struct gate_endpoint *endpoints; /* that clients use, one for each backend */
	const struct gate_conf *gate;
	const struct http_conf *http;
	const int *listeners; /* as in enum listener_more; -1: none */
};

struct desk *desk_new(const struct desk_conf *conf);
/* Also NULL. */
void desk_free(struct desk **desk);

#endif
