/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Streamable HTTP session: its id, its lifetime, its standalone stream. What it is connected to
 * is the business of higher layers. FRONT-SESS-*.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "io/loop.h"
#include "obs/reason.h"
#include "session/deny_list.h"
#include "session/principal.h"
#include "session/stream.h"

/* ---- session table ---- */

/* Session ids, and the look-up by id. FRONT-SESS-02. */

/*
 * 192 random bits as base64url. Of a node of a cluster the first characters are its name and '.': by
 * them proxies find the node, and 138 bits are left. CLU-ID-01
 */
#define SESSION_ID_BYTES 24
#define SESSION_NODE_MAX 8
#define SESSION_ID_LENGTH 32
/* The operator may be shown this many characters of an id, behind the node; the rest stays secret. */
#define SESSION_ID_SHOWN 8

/* All zeros: an empty table. */
struct session_table {
	struct map by_key;
	struct slice node; /* whose ids it makes; borrowed; empty: there is no cluster */
};

/* Embedded by whatever has the id. */
struct session_entry {
	uint64_t key; /* session_id_key of the id */
	char id[SESSION_ID_LENGTH];
};

/* Ids that are made from now on begin with this name, of at most SESSION_NODE_MAX letters and digits. */
void session_table_name(struct session_table *table, struct slice node);
/* The node's name in an id, which may be any bytes; empty: there is none. */
struct slice session_id_node(struct slice id);
/* Gives the entry a new id, by which it can be found until it is removed. */
void session_table_add(struct session_table *table, struct session_entry *entry);
/* The entry must be in the table. */
void session_table_remove(struct session_table *table, const struct session_entry *entry);
/* The entry with this id, which may be any bytes from a client; NULL: none. */
struct session_entry *session_table_find(const struct session_table *table, struct slice id);
/* All entries must have been removed. */
void session_table_fini(struct session_table *table);

struct session;

struct session_ops {
	/* The session has ended and can no longer be found; release what it holds. */
	void (*on_end)(struct session *session, enum reason reason);
};

/*
 * For whoever serves a session through a single stream: answers go to `standalone` as well, which
 * lasts as long as the session. The owner sets `owner` itself, once. HTTP+SSE.
 */
struct session_owner;
struct session_owner_ops {
	/* The session is gone. */
	void (*on_end)(struct session_owner *owner);
};
struct session_owner {
	const struct session_owner_ops *ops;
};

struct session_conf {
	uint64_t max_sessions;
	uint64_t max_per_principal; /* per principal, except the anonymous one: see session_init */
	uint64_t idle_ms;           /* without a request, open stream or call in flight */
	uint64_t max_age_ms;        /* in total */
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
	struct list idle;           /* live ones not in use; idle longest first */
	size_t count;               /* live ones */
	size_t reserved;            /* places reserved for sessions in their handshake */
};

enum session_state {
	SESSION_NEW,  /* in its handshake: has a place, and no id yet */
	SESSION_LIVE, /* can be found by its id */
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
	struct session_entry entry; /* its id, once it is live or the id was promised; else empty */
	unsigned int holds;
	uint64_t began_at_ms;  /* once it is live */
	uint64_t rested_at_ms; /* since when it is not held */
	bool is_doubtful;      /* see session_doubt; until it is used */
	bool is_part;          /* of another session */
	bool is_continued; /* it began in an earlier process: its client may name events of then */
	struct timer idle;
	struct timer age;
	struct stream standalone;         /* for messages that belong to no request */
	struct session_owner *owner;      /* NULL: none; borrowed */
	struct replay_store replay_store; /* answers that can be resumed */
	struct deny_watcher deny_watcher;
	struct denial_marks *marks; /* of a token whose denial ends it; NULL: none */
};

void session_set_init(struct session_set *set, struct loop *loop, const struct session_conf *conf);
/*
 * Another configuration is in use from now on: for open sessions and their streams, too. What is too
 * old by it ends at the end of the turn; what is too much goes at once.
 */
void session_set_renew(struct session_set *set, const struct session_conf *conf);
void session_set_fini(struct session_set *set);

/*
 * Initializes a session of this principal, connecting from `peer`, and reserves a place. It cannot
 * be found yet. If there are already limits.sessions, or limits.sessions_per_principal of this
 * principal, an unused one is ended to make room: the one idle longest of the caller that has most.
 * Returns -1 if there is none. While at least half of limits.sessions are open, an anonymous caller
 * (an address) may have at most a quarter of them, or eight; addresses of this machine are exempt.
 */
int session_init(struct session *session, struct session_set *set, struct principal *principal,
		 const struct peer *peer, const struct session_ops *ops) must_check;
/*
 * The same for a part of another session, an endpoint's over several servers: it needs no room, does
 * not count, and has no age or idle time of its own. Its owner ends it.
 */
void session_init_part(struct session *session, struct session_set *set,
		       struct principal *principal, const struct peer *peer,
		       const struct session_ops *ops);
/*
 * The minimum time in milliseconds until there is room for a session of this principal; UINT64_MAX:
 * unknown.
 */
uint64_t session_set_wait_ms(const struct session_set *set, const struct principal *principal);
/*
 * From now until session_forget_marks, the session ends if the token with these marks is denied.
 * Only one token at a time. Copies the marks.
 */
void session_keep_marks(struct session *session, const struct denial_marks *marks);
/* Also valid if there are none. */
void session_forget_marks(struct session *session);
/* Makes the session live: it has its id and can be found from now on. */
void session_begin(struct session *session);
/*
 * The same for a session that began in an earlier process, `age_ms` ago, with this id of
 * SESSION_ID_LENGTH. `age_ms` is less than max_age_ms; it may become a little older than that.
 * Returns false, and nothing has changed, if another one's id is too much like it.
 */
bool session_begin_again(struct session *session, struct slice id, uint64_t age_ms) must_check;
/* The live session with this id if it belongs to this principal; else NULL. FRONT-SESS-04, -05. */
struct session *session_find(const struct session_set *set, struct slice id,
			     const struct principal *principal);
/* Borrowed for the session's life. */
struct slice session_id(const struct session *session);
/* What the operator may see of the id; empty before the session has one. */
struct slice session_shown_id(const struct session *session);
/*
 * The time since it began, and the time it has had neither a request nor an open stream. Live
 * sessions only.
 */
uint64_t session_age_ms(const struct session *session);
uint64_t session_idle_ms(const struct session *session);
/* The time until it ends if it stays unused; UINT64_MAX: it is in use. */
uint64_t session_left_ms(const struct session *session);
/*
 * Assigns a new session its id early, so that its client can be told. It can be found only once it
 * is live.
 */
struct slice session_promise_id(struct session *session);
/*
 * The client may not have received the id: the session ends if it is not used soon. Live sessions
 * only.
 */
void session_doubt(struct session *session);
/* A held session does not idle out. */
void session_hold(struct session *session);
void session_release(struct session *session);
/* Ends a live or new session; on_end is called. Call it only once. */
void session_end(struct session *session, enum reason reason);
