/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sequence of messages to one client. Producers append messages. One reader at a time takes as
 * many as its connection has room for, and is woken when there are more. The stream is bounded in
 * bytes: when it is full, progress is dropped first, then logs, then other notifications, whose
 * content a later list call would return as well. Responses and requests are never dropped; if they
 * overflow, the reader is detached.
 *
 * A message is numbered when it is first taken, and then kept for a while: a reader that lost its
 * connection continues after the last number it has seen. Numbers are 1, 2, 3 … without gaps,
 * whatever was dropped before. Kept messages are forgotten oldest first, so a resumed sequence has
 * no holes: a reader that asks for forgotten messages is refused.
 *
 * Streams share budgets: one per session, one per caller, one for all. When a session's budget is
 * exhausted, the stream with the least important message drops it; when that of all is, the caller
 * that has most of it does. A reader with room is served before anything is dropped.
 * FRONT-SSE-11, -13, FRONT-GET-03, -04, FRONT-RES-01, -02, -05, -08.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/ranking.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/write.h"
#include "obs/reason.h"
#include "session/stream_log.h"

/* The kind of a message, least important first, which is the order of dropping. */
enum stream_kind {
	STREAM_PROGRESS,
	STREAM_LOG,
	STREAM_NOTIFICATION, /* list_changed, updated, all others */
	STREAM_REQUEST,      /* and its cancellation */
	STREAM_RESPONSE,
	STREAM_KINDS
};

enum stream_state {
	STREAM_OPEN,
	STREAM_ENDED, /* no more messages; waiting ones can still be taken */
};

struct stream_conf {
	uint64_t max_bytes;     /* of waiting messages; the same again of kept ones */
	uint64_t replay_events; /* max. kept */
	uint64_t replay_age_ms; /* how long they are kept */
};

/* Bytes that streams share. */
struct stream_budget {
	size_t bytes; /* of waiting and kept messages, with their overhead */
	size_t max_bytes;
	struct stream_budget *parent;      /* counts the same bytes; or NULL */
	struct list streams[STREAM_KINDS]; /* by the kind that each can drop; the longest first */
	struct ranking *callers;           /* of budgets below this one; NULL: not by caller */
	struct ranked ranked;              /* among the callers of its parent, if that has them */
};
#define STREAM_BUDGETS 3 /* of a session, of its caller, of all */

struct replay_store;

struct stream_share {
	struct list link; /* in a list of the budget */
	struct stream *stream;
};

struct stream_reader;

struct stream_reader_ops {
	/*
	 * There are messages to take: called at the end of the turn, or at once if more came than
	 * may wait.
	 */
	void (*on_wake)(struct stream_reader *reader);
	/*
	 * The stream detached this reader before its end: taken over, too slow, or the session is
	 * gone.
	 */
	void (*on_detached)(struct stream_reader *reader, enum reason reason);
};

/* Embedded by whatever writes to a connection. */
struct stream_reader {
	const struct stream_reader_ops *ops;
	struct stream *stream; /* NULL: detached */
	uint64_t position;     /* the number of the last message it has; 0: none */
	struct list *cursor;   /* that message among the kept ones, or their head */
};

struct stream {
	struct loop *loop;
	const struct stream_conf *conf;
	struct stream_budget *budget;
	struct stream_share shares[STREAM_BUDGETS]; /* in the budget and its parent */
	enum stream_kind rank; /* in which of their lists; STREAM_KINDS: none */
	struct list events[STREAM_KINDS];
	struct map by_key; /* messages that have a key */
	uint64_t last_number;
	size_t count;        /* of waiting messages */
	size_t bytes;        /* of waiting messages, with their overhead */
	size_t dropped;      /* since this was last logged */
	uint64_t told_at_ms; /* when it was last logged */
	struct list kept;    /* taken ones, oldest first */
	size_t kept_count;
	size_t kept_bytes;
	uint64_t taken; /* the number of the last message taken */
	bool keeps_nothing;
	struct stream_reader *reader;
	uint64_t left_at_ms; /* when it lost its last reader; 0: it has one, or had none */
	struct task wake;
	enum stream_state state;
	enum reason end_reason; /* once it has ended */
	struct stream_log *log; /* NULL: it is not for another gateway, or has had nothing yet: */
	const struct replay_store *logged_by; /* whose own stream it then is; or NULL */
	size_t log_head;                      /* bytes of its first line */
};

/* Borrows conf and budget for the stream's life. */
void stream_init(struct stream *stream, struct loop *loop, const struct stream_conf *conf,
		 struct stream_budget *budget);
/* If it has ended, serves the reader once more. Drops waiting messages; detaches the reader, if any. */
void stream_fini(struct stream *stream);

/*
 * Appends a message (shared; the stream takes its own reference). `key` identifies it for
 * stream_drop and for coalescing: it replaces a waiting message with the same key. 0: no key. If
 * too much waits after that, the reader is served first; then messages are dropped by kind, or the
 * reader is detached.
 */
void stream_push(struct stream *stream, enum stream_kind kind, uint64_t key, struct msg *msg);
/* Drops the waiting message with this key; returns whether there was one. */
bool stream_drop(struct stream *stream, uint64_t key);
/* No more messages: the reader gets the waiting ones, then finds the stream drained. */
void stream_end(struct stream *stream, enum reason reason);
/* Makes it not resumable: taken messages are not kept. FRONT-OLD-04 */
void stream_keep_nothing(struct stream *stream);

/* Begin with the first message that was never taken. */
#define STREAM_FROM_HERE UINT64_MAX

/*
 * The client has message `after`, although this gateway knows of fewer: it has a copy of the stream that
 * another node wrote. What waits counts as taken, up to an answer: a client that has that does not come
 * back. No change if that cannot be. CLU-SESS-04
 */
void stream_skip_to(struct stream *stream, uint64_t after);
/*
 * Reads on after message number `after`, or STREAM_FROM_HERE. A previous reader is detached with
 * REASON_TAKEN_OVER; the new one is woken if there is something to take. Returns false, without any
 * change, if messages after `after` are no longer kept, or `after` has not been taken yet.
 */
bool stream_attach(struct stream *stream, struct stream_reader *reader,
		   const struct stream_reader_ops *ops, uint64_t after);
/* Detaches the reader without calling on_detached. Also valid for a detached one. */
void stream_detach(struct stream_reader *reader);
/*
 * The next message and its number; the caller has one reference. NULL: none yet; on_wake follows
 * when there is one.
 */
struct msg *stream_take(struct stream_reader *reader, uint64_t *number_r);
bool stream_is_ended(const struct stream *stream);
/* Whether it has ended and there is nothing after message number `after`. */
bool stream_is_drained(const struct stream *stream, uint64_t after);
bool stream_has_reader(const struct stream *stream);
/* Milliseconds since it lost its reader; 0 if it has one, or never had. */
uint64_t stream_unread_ms(const struct stream *stream);
/* Whether there is no reader and no more messages may wait: do not push more requests. */
bool stream_is_full(const struct stream *stream);

/* ---- streams kept for a reconnect ---- */

/*
 * The resumable streams of a session: each answer that became an event stream, from its beginning
 * until some time after its end. In memory, but the interface would also suit an external store.
 * FRONT-RES-01 … -03, -07, -08, CXL-01.
 */

/* Ended streams that one session may keep. */
#define REPLAY_STORE_STREAMS_MAX 64
#define REPLAY_STORE_EXPIRED_MAX 256

struct store_conf {
	struct stream_conf stream;
	uint64_t session_bytes; /* of one session's streams, open and ended */
	uint64_t total_bytes;   /* of all streams */
};

/* All streams of the process. */
struct store {
	struct loop *loop;
	const struct store_conf *conf;
	struct stream_logs *logs; /* of streams whose session has a name; borrowed */
	struct stream_budget budget;
	struct map callers;
	struct list replay_stores;
	struct ranking ranking; /* of the callers, by what their streams hold */
	struct timer sweep;
};

/* The streams of one caller: of its sessions, and those without one. */
struct store_caller {
	struct store *store;
	uint64_t number;
	unsigned int refs;
	struct stream_budget budget; /* a part of the store's */
	struct stream_log_owner logs;
};

/* The streams of one session. */
struct replay_store {
	struct store *store;
	struct list link; /* in the store */
	struct store_caller *caller;
	struct stream_budget budget; /* also for the session's own stream */
	struct list streams;         /* ended ones in the order they ended */
	size_t finished_count;
	struct list expired; /* the requests of streams that were forgotten, oldest first */
	size_t expired_count;
	/* Random, so that ids of other sessions or earlier processes do not match. */
	uint32_t epoch;
	uint64_t last_number; /* 0 is the session's own stream, which is not in the replay store */
	char name[STREAM_LOG_NAME_MAX]; /* in the logs of its streams */
	size_t name_length;             /* 0: they have none */
};

struct stored_stream {
	struct stream stream;
	struct list link;
	struct replay_store *replay_store; /* NULL: it can no longer be found */
	struct store_caller *caller;
	unsigned int refs;
	uint64_t number; /* 0: it has no session, and nobody can come back to it */
	bool is_known;   /* an id of it was sent before its first message */
	struct timer expiry;
	size_t request_id_length;
	char request_id[]; /* as written by the client; empty for a batch */
};

/* conf is borrowed for the store's life. */
void store_init(struct store *store, struct loop *loop, const struct store_conf *conf);
/*
 * conf has changed; before, streams were kept for `was_age_ms` after their end. What is too much, or
 * too old, is forgotten.
 */
void store_renew(struct store *store, uint64_t was_age_ms);
void store_fini(struct store *store);
void replay_store_init(struct replay_store *replay_store, struct store *store, uint64_t caller);
/* Makes all streams unfindable; each lives until its last reference is dropped. */
void replay_store_fini(struct replay_store *replay_store);

/*
 * Returns a new stream of a session; the caller has one reference. is_known: an id of it will be
 * sent before its first message.
 */
struct stored_stream *replay_store_open(struct replay_store *replay_store, struct slice request_id,
					bool is_known);
/* The same without a session, for the caller with this number: nobody can come back to it. */
struct stored_stream *stored_stream_new(struct store *store, uint64_t caller);
/* Returns a reference to the stream with this number, or NULL. */
struct stored_stream *replay_store_find(const struct replay_store *replay_store, uint64_t number);

/*
 * The id of the request that an expired stream belonged to, as written by the client; empty if
 * unknown.
 */
struct slice replay_store_find_expired(const struct replay_store *replay_store, uint64_t number);

/*
 * No more messages will be pushed. If the client has seen an event id to resume from, the stream is
 * kept for conf->stream.replay_age_ms; otherwise it is freed with the last reference.
 */
void stored_stream_finish(struct stored_stream *stored, enum reason reason);
/* Whether the client knows an event id of it, and so can resume it. */
bool stored_stream_is_known(const struct stored_stream *stored);
/* Accepts a pointer to NULL; sets the pointer to NULL. */
void stored_stream_unref(struct stored_stream **stored);

/* ---- for another gateway ---- */

/*
 * What the client of a session could get by its own stream, and by those of its answers, is in logs
 * from now on, under this name of at most STREAM_LOG_NAME_MAX bytes, without spaces or line ends. Once
 * more: nothing changes.
 */
void replay_store_log(struct replay_store *replay_store, struct stream *own, struct slice name);
/*
 * Takes what the text of a log says, of which nothing is believed; for each log of the session,
 * before anything else is done with the two. Event ids mean what they meant. A call that was not
 * answered ends with an error: it may have been executed. FRONT-RES-11
 */
void replay_store_read(struct replay_store *replay_store, struct stream *own, struct slice text);
