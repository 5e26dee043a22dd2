/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session of the legacy era: a client that began with initialize, the session that fronts find it by, its membership of
 * the pool that serves it. It outlives processes: when one fails, the next request gets another one with the same
 * handshake. bridging.md §1, §2.1, §4.
 */
#ifndef MCPGATED_ROUTER_CLIENT_SESSION_H
#define MCPGATED_ROUTER_CLIENT_SESSION_H

#include <stdint.h>

#include "jsonrpc/scan.h"
#include "router/client.h"
#include "router/pool.h"
#include "router/wait_queue.h"
#include "session/session.h"

struct admitted;
struct call;
struct peer;
struct router;

#define CLIENT_PROGRAM_BYTES 48

struct client_session {
	struct client client;
	struct session session;
	struct pool_member member;
	struct wait_queue opening; /* the client's initialize request, until it is answered */
	bool has_begun;            /* it was logged that it has */
	uint64_t restarts_since_ms;
	unsigned int restarts;              /* since then */
	char program[CLIENT_PROGRAM_BYTES]; /* clientInfo.name, cut off; empty: not known */
};

/*
 * Serves the initialize request of this principal that `admitted` has gone to, sent from `peer`: a new session. `call`
 * was prepared with call_init; its front hears of the outcome, and finds the session, if it began, in call->client->session.
 */
void client_session_open(struct router *router, struct server *server, struct principal *principal,
			 const struct peer *peer, struct call *call, struct admitted *admitted);
/* What the client of a session calls itself; empty: not known. */
const char *client_session_program(struct session *session);
/* The client of a session. */
struct client *client_session_client(struct session *session);
/*
 * A request of this session is about to be judged and passed on. What that looks at is asked of the memory all at once here; of
 * thousands of sessions nothing is in the processor's caches, and each look would wait by itself. Changes nothing.
 */
void client_session_warm(const struct session *session);

#endif
