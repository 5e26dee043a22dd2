/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A legacy session: the client that sent initialize, the session by which fronts find it, and its
 * membership in the pool that serves it. It outlives processes: when one fails, the next request
 * gets a new one with the same handshake. bridging.md §1, §2.1, §4.
 */
#pragma once

#include <stdint.h>

#include "router/call.h"
#include "router/client.h"
#include "router/pool.h"
#include "session/session.h"

struct peer;

#define CLIENT_PROGRAM_BYTES 48

struct client_session {
	struct client client;
	struct session session;
	struct pool_member member;
	struct wait_queue opening; /* the client's initialize request, until it is answered */
	struct msg *params; /* of that request, until the session is kept; NULL: it cannot be */
	bool may_be_kept;   /* client_session_keep was called */
	bool has_begun;     /* its start was logged */
	uint64_t restarts_since_ms;
	unsigned int restarts;              /* since restarts_since_ms */
	char program[CLIENT_PROGRAM_BYTES]; /* clientInfo.name, truncated; empty: not known */
};

/*
 * Serves the current message of `admitted`, an initialize request of this principal sent from
 * `peer`, by opening a session. `call` was prepared with call_init; its front learns the outcome
 * and finds the session, if it began, in call->client->session. is_part: it is a part of another
 * session (session_init_part).
 */
void client_session_open(struct router *router, struct server *server, struct principal *principal,
			 const struct peer *peer, struct call *call, struct admitted *admitted,
			 bool is_part);
/*
 * From now on later gateways can continue this live session, if sessions are kept
 * (kept_sessions.h). To be called while its initialize request is being answered.
 */
void client_session_keep(struct session *session);
/* From now on sessions are kept, also those that are live; or no longer (kept_sessions_use). */
void client_session_keep_all(struct router *router, bool is_on);
/*
 * The session with this id, any bytes from a client, which began in an earlier gateway: it is live
 * from now on, with a fresh process once that is needed, and its client is told that lists may have
 * changed. NULL: no session of this principal at this server sleeps under it, and *reason_r is
 * REASON_NONE, or there is one and *reason_r is why it cannot go on now. bridging.md §4.1
 */
struct session *client_session_wake(struct router *router, struct server *server,
				    struct principal *principal, const struct peer *peer,
				    struct slice id, enum reason *reason_r);
/*
 * The same for a part of another session, which was kept under this id (kept_session_new); its client
 * gets an id of its own. NULL: there is none, or it cannot go on. *capabilities_r: what its server
 * offers.
 */
struct session *client_session_wake_part(struct router *router, struct server *server,
					 struct principal *principal, const struct peer *peer,
					 struct slice id,
					 struct server_capabilities *capabilities_r);
/*
 * Its calls fail for this reason, and servers get answers to their questions, and are told `why`. May
 * end the session.
 */
void client_session_end_calls(struct session *session, enum reason reason, const char *why);
/* The name that the session's client gave itself; empty: not known. */
const char *client_session_program(struct session *session);
/* The client of a session. */
struct client *client_session_client(struct session *session);
/*
 * Prefetches what judging and forwarding a request of this session will read. With thousands of
 * sessions none of it is in the processor's caches, and each access would stall separately. Changes
 * nothing.
 */
void client_session_warm(const struct session *session);
