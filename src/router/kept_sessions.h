/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the next gateway, and the next daemon, need to continue the sessions of this one
 * (`sessions.persist`): the gateway's side of keeper/text_store. A session that was kept sleeps
 * until its client's next request wakes it (client_session_wake). bridging.md §4.1
 *
 * One line of JSON for each session:
 *
 *	{"id":…,"owner":…,"server":…,"began":…,"agreed":…,"offers":…,"tells":…,"initialize":{…}
 *	,"level":…,"subscriptions":[…],"marks":[…]}
 *
 * `id` and `owner` are SHA-256 in base64url: nobody can read from them how to use a session, and no
 * token is in it. Others may have written the text: it is parsed like any untrusted input.
 * The line of an endpoint's leg begins with "leg" in place of "id": it goes on with the session of
 * that endpoint, and takes no room from sessions.
 *
 * The keeper is told whose each process is: of a session that has it to itself, or of a shared pool. If
 * this gateway dies, it offers them to the next one (IPC_INHERIT), which holds each, unread, until the
 * client comes back, or the pool is needed. It has as long as any client that has closed its stream
 * (pool.sleep_when_gone), or any idle process of a pool (pool.idle_timeout), and gives way to whoever
 * needs the place. Lines of shared pools: kept_pools.h. bridging.md §4.2
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/halves.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "io/loop.h"
#include "obs/reason.h"
#include "router/digest.h"
#include "router/era.h"
#include "router/kept_pools.h"
#include "session/deny_list.h"
#include "session/stream_log.h"

struct client;
struct cluster;
struct kept_facts;
struct ipc_message;
struct principal;
struct revision;
struct server;
struct session;
struct session_conf;
struct spawner;
struct upstream;

#define KEPT_SESSIONS_TEXT_BYTES ((size_t)16 * 1024 * 1024)
#define KEPT_SESSIONS_FIRST_LINE "mcpgated sessions 1\n"
#define KEPT_ENDED_MAX 256 /* that are remembered, against what the store still has of them */
#define KEPT_SESSIONS_FILE_BYTES HALVES_BYTES(KEPT_SESSIONS_TEXT_BYTES)

struct kept_session {
	struct list link;      /* of the set's live ones, or of those asleep */
	struct map_link by_id; /* of those that sleep, or of the live ones */
	struct digest id;
	struct client *client;      /* whose session it is; NULL: it sleeps */
	struct upstream *process;   /* inherited, and held for it; NULL: none */
	struct digest process_bond; /* of that process, as the keeper knows it */
	struct digest bond;         /* of this session and its owner, while it is live */
	struct buf line;
	struct kept_facts *facts; /* what the line says, once that was asked while it sleeps */
	struct stream_log_owner
		logs;    /* of its streams, which another gateway has left, until it is woken */
	size_t fixed;    /* the beginning of the line, which does not change */
	bool is_changed; /* what follows it has changed */
	bool is_leg;
};

/* All zeros but for the lists and timers: nothing is kept. */
struct kept_sessions {
	struct loop *loop;
	struct halves *file; /* NULL: it could not be mapped */
	struct stream_logs logs;
	struct spawner *spawner;
	const struct session_conf *conf; /* borrowed */
	bool is_on;                      /* sessions.persist */
	bool is_full;                    /* there is no room for all, and that was logged */
	size_t bytes;                    /* of all lines */
	uint64_t seed;                   /* of the keys: whoever wrote the text chose the digests */
	struct list live;
	struct list asleep;
	struct map by_id;      /* those asleep */
	struct map live_by_id; /* the others */
	struct kept_pools pools;
	struct timer saving;
	uint64_t saved_at_ms;
	struct timer forgetting; /* those asleep: nobody has come back for them */
	struct timer holding;    /* of processes */
	struct task reading;     /* what lines say, before anybody asks: that takes several turns */
	uint64_t held_since_ms, gave_way_ms;
	/* What is kept has changed, for other nodes of a cluster; NULL: there are none. */
	void (*on_saved)(struct kept_sessions *kept);
	struct cluster *cluster;             /* of on_saved */
	struct digest ended[KEPT_ENDED_MAX]; /* a ring */
	size_t ended_count;                  /* ever */
	/* A denial of what a session was begun with ends it while it sleeps, too. AUTH-SES-07 */
	struct deny_observer denials;
};

void kept_sessions_init(struct kept_sessions *kept, struct loop *loop);
/*
 * Reads what the previous gateway left in the memory file of fd, which stays mapped, and keeps
 * sessions from now on: at most as many as conf allows, and those that nobody wakes within its
 * idle_ms are forgotten. `conf` is borrowed for the life of the set.
 */
void kept_sessions_open(struct kept_sessions *kept, struct spawner *spawner, int fd, bool is_on,
			const struct session_conf *conf);
/*
 * Takes from this memory file (session/stream_log.h), which stays mapped, what the gateway before has
 * left for the clients of sessions that sleep, and logs streams of sessions there.
 */
void kept_sessions_open_streams(struct kept_sessions *kept, int fd);
/* Off forgets all. On keeps sessions that begin from now on, and the processes of shared pools that run. */
void kept_sessions_use(struct kept_sessions *kept, bool is_on);
/* Forgets those of this server that sleep: it was removed. */
void kept_sessions_forget_server(struct kept_sessions *kept, struct slice server);
/* Forgets those of this principal that sleep. */
void kept_sessions_forget_owner(struct kept_sessions *kept, const struct principal *owner);
/* Leaves everything to the next gateway. */
void kept_sessions_hand_over(struct kept_sessions *kept);
/* The daemon ends: what clients could still get stays in the file, for the other nodes of a cluster. */
void kept_sessions_leave(struct kept_sessions *kept);
/* Saves what has not been saved. Live sessions must have ended. */
void kept_sessions_fini(struct kept_sessions *kept);

/*
 * Keeps a live session, whose client began with these params of initialize, under this id, which is not
 * to be found in what is written: its own or, of an endpoint's leg, one that follows from the id of the
 * endpoint's session, and is longer. NULL: sessions are not kept, or there is no room for long params.
 */
struct kept_session *kept_session_new(struct client *client, struct slice id, struct slice params);
/* Appends the id under which the leg at a server is kept, of the endpoint's session with this id. */
void kept_leg_id(struct buf *out, struct slice session_id, struct slice server);
/* The params of its client's initialize, until the session ends. */
struct slice kept_session_params(const struct kept_session *one);
/* Its log level or its subscriptions have changed. Accepts NULL. */
void kept_session_note(struct kept_session *one);
/*
 * The session has ended: forgets it, unless it ended only because this gateway does. The client
 * must still be whole. Accepts a pointer to NULL; sets the pointer to NULL.
 */
void kept_session_end(struct kept_session **one, enum reason reason);

/* The beginning of the line of a session (or leg) with this id and this owner. */
void kept_session_name(struct buf *out, struct slice id, const struct principal *owner);

/* What is known of a session that sleeps. */
struct kept_state {
	struct slice params; /* of its initialize request; borrowed */
	const struct revision *agreed;
	struct server_capabilities capabilities;
	uint64_t age_ms;
};

/*
 * The session of this server that is kept under this id, if it sleeps and belongs to this principal;
 * NULL: there is none.
 */
struct kept_session *kept_sessions_find(const struct kept_sessions *kept, struct slice id,
					const struct principal *principal,
					const struct server *server, struct kept_state *state_r);
/*
 * It goes on as this client's, which gets its log level and its subscriptions; its session, which
 * is live, the marks of the token that it was begun with. id: that it was found by.
 */
void kept_session_wake(struct kept_session *one, struct client *client, struct slice id);
/* The session has a process to itself, or another one: tells the keeper. */
void kept_session_note_process(struct kept_session *one);
/*
 * The keeper offers a process of the gateway before (IPC_INHERIT). Takes the descriptors, if a
 * session of this server that sleeps, or a shared pool, had it. False: it is to be forgotten.
 */
bool kept_sessions_inherit(struct kept_sessions *kept, struct server *server,
			   const struct ipc_message *message);
/* The process that is held for this client's session, for upstream_adopt; NULL: none. */
struct upstream *kept_session_take_process(struct client *client);
/* Whether there is one. */
bool kept_session_has_process(const struct client *client);
/* Stops one of the processes that are held of this server, or of any, if there are too many. */
void kept_sessions_give_way(struct kept_sessions *kept, const struct server *server);
/* Stops all of them. */
void kept_sessions_end_processes(struct kept_sessions *kept, enum reason reason);
/*
 * ---- of other nodes of a cluster ----
 *
 * Appends what the store is asked for the session of this id and owner at this server, and for its legs:
 * FETCH_STORE_TAKE.
 */
void kept_sessions_question(const struct kept_sessions *kept, struct buf *out, struct slice id,
			    const struct principal *owner, const struct server *server);
/*
 * Appends the digests of those that have ended here, from number `since` on, with a space behind each;
 * returns the number of the next one. Only the last KEPT_ENDED_MAX are known.
 */
size_t kept_sessions_ended(const struct kept_sessions *kept, size_t since, struct buf *out);
/* Whether one with this digest of its id sleeps here. */
bool kept_sessions_have(const struct kept_sessions *kept, const struct digest *id);
/*
 * These lines, which another node has written, are this one's from now on: their sessions sleep here.
 * Behind the line of a session are the logs of its streams, each "log BYTES", a line end and its text.
 * is_ours: it was this node itself; what is here is newer. Live ones stay as they are.
 */
void kept_sessions_take(struct kept_sessions *kept, struct slice lines, bool is_ours);
/* Another node has the session with this digest (as in its line): it ends here. */
void kept_sessions_lose(struct kept_sessions *kept, struct slice digest);
/* It cannot go on. */
void kept_session_forget(struct kept_sessions *kept, struct kept_session *one);
