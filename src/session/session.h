/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session of Streamable HTTP: its id, its life, its standalone stream. What it is connected to is
 * known above. FRONT-SESS-*.
 */
#ifndef MCPGATED_SESSION_SESSION_H
#define MCPGATED_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "obs/reason.h"
#include "session/deny_list.h"
#include "session/holder.h"
#include "session/principal.h"
#include "session/replay_store.h"
#include "session/session_table.h"
#include "session/stream.h"

struct session;

struct session_ops {
	/* It has ended and can no longer be found; release what it holds. */
	void (*on_end)(struct session *session, enum reason reason);
};

/*
 * Who serves a session by its one stream: answers go to `standalone` as well, which lasts as long as the session. Set by
 * itself, once. HTTP+SSE.
 */
struct session_owner;
struct session_owner_ops {
	/* The session is no more. */
	void (*on_end)(struct session_owner *owner);
};
struct session_owner {
	const struct session_owner_ops *ops;
};

struct session_conf {
	uint64_t max_sessions;
	uint64_t max_per_principal; /* of each principal but the anonymous one: see session_init */
	uint64_t idle_ms;           /* without request, open stream or call in flight */
	uint64_t max_age_ms;        /* in all */
	struct store_conf store;
};

struct session_set {
	struct loop *loop;
	struct session_conf conf;
	struct principal_set principals;
	struct holder_set holders; /* of these sessions, and of servers' processes */
	struct deny_list deny_list;
	struct store store;
	struct session_table table; /* live ones */
	struct list sessions;       /* new and live ones */
	struct list idle;           /* live ones that nobody uses; longest first */
	size_t count;               /* live ones */
	size_t reserved;            /* places kept for sessions whose handshake runs */
};

enum session_state {
	SESSION_NEW,  /* its handshake runs: it has a place, and no id yet */
	SESSION_LIVE, /* it is found by its id */
	SESSION_ENDED,
};

/* Embedded by the router. */
struct session {
	const struct session_ops *ops;
	struct session_set *set;
	struct principal *principal; /* its owner, from its start to its end */
	struct holder *holder;       /* how many its caller has */
	struct list link;
	struct list idle_link, own_idle_link; /* of the set's idle ones, and of its caller's */
	enum session_state state;
	struct session_entry entry; /* its id, once it is live or that was promised; else empty */
	unsigned int holds;
	uint64_t rested_at_ms; /* since when it is not held */
	bool is_doubtful;      /* see session_doubt; until it is used */
	struct timer idle;
	struct timer age;
	struct stream standalone;         /* what belongs to no request */
	struct session_owner *owner;      /* NULL: none; borrowed */
	struct replay_store replay_store; /* answers that may be resumed */
	struct deny_watcher deny_watcher;
	struct denial_marks *marks; /* of a token that it ends with; NULL: none */
};

void session_set_init(struct session_set *set, struct loop *loop, const struct session_conf *conf);
void session_set_fini(struct session_set *set);

/*
 * Initialises a session of this principal, who comes from `peer`, that cannot be found yet. Reserves a place. Where there are
 * limits.sessions already, or limits.sessions_per_principal of this principal, one that nobody uses ends for it: of the
 * caller who has most, the one that has been idle for longest; -1: there is none. While half of limits.sessions are open,
 * an anonymous caller, which is an address, has a quarter at most, or eight; but for this machine.
 */
int session_init(struct session *session, struct session_set *set, struct principal *principal,
		 const struct peer *peer, const struct session_ops *ops) must_check;
/* In how many milliseconds there is room for one of this principal at the earliest; UINT64_MAX: nobody knows. */
uint64_t session_set_wait_ms(const struct session_set *set, const struct principal *principal);
/* If the token of these marks is denied, the session ends, until it forgets them. One at a time; they are copied. */
void session_keep_marks(struct session *session, const struct denial_marks *marks);
/* Also if there are none. */
void session_forget_marks(struct session *session);
/* The session gets its id and can be found from now on. */
void session_begin(struct session *session);
/* The live session of this id, if it is this principal's; or NULL. FRONT-SESS-04, -05. */
struct session *session_find(const struct session_set *set, struct slice id,
			     const struct principal *principal);
/* Borrowed for the session's life. */
struct slice session_id(const struct session *session);
/* How long ago it began, and for how long it has had neither a request nor an open stream. Live ones only. */
uint64_t session_age_ms(const struct session *session);
uint64_t session_idle_ms(const struct session *session);
/* In how long it ends if nobody uses it; UINT64_MAX: it is in use. */
uint64_t session_left_ms(const struct session *session);
/* The id that a new one has from now on, so that its client can be told; it is found by it once it is live. */
struct slice session_promise_id(struct session *session);
/* The client may not have got the id: if the session is not used soon, it ends. Live ones only. */
void session_doubt(struct session *session);
/* While held it does not idle out. */
void session_hold(struct session *session);
void session_release(struct session *session);
/* Ends it, live or new; on_end is called. Once. */
void session_end(struct session *session, enum reason reason);

#endif
