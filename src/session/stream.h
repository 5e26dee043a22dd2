/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sequence of messages to one client. Producers append; one reader at a time pulls what its
 * connection has room for, and is woken when there is more. Bounded in bytes: when it is full,
 * progress goes first, then logs, then other notifications, which a later list call would tell as well; responses
 * and requests are never dropped, their overflow ends the reader instead.
 *
 * A message gets its number when it is taken for the first time, and is kept for a while: a reader whose
 * connection was lost goes on behind the last number that it has seen. Numbers are 1, 2, 3 … without a
 * gap, whatever was dropped before. Kept messages are forgotten oldest first, so that a resumed sequence has
 * no holes: a reader that asks for what is forgotten is refused.
 *
 * Streams share budgets: one for a session, one for all. When one is used up, the stream with the least
 * important message gives that up; a reader with room is served before anything is dropped.
 * FRONT-SSE-11, -13, FRONT-GET-03, -04, FRONT-RES-01, -02, -05, -08.
 */
#ifndef MCPGATED_SESSION_STREAM_H
#define MCPGATED_SESSION_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "obs/reason.h"

/* What a message is, least important first: the order of dropping. */
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
	STREAM_ENDED, /* no message comes any more; what waits can still be taken */
};

struct stream_conf {
	uint64_t max_bytes;     /* of messages that wait; and of those that are kept */
	uint64_t replay_events; /* kept at most */
	uint64_t replay_age_ms; /* kept for so long */
};

/* Bytes that streams share. */
struct stream_budget {
	size_t bytes; /* of messages that wait or are kept, with what each costs beside its text */
	size_t max_bytes;
	struct stream_budget *parent; /* counts the same bytes; or NULL */
	struct list streams
		[STREAM_KINDS]; /* by the kind that each can give up; the longest there first */
};
#define STREAM_BUDGETS 2 /* a stream's own and its parent */

struct stream_share {
	struct list link; /* in a list of the budget */
	struct stream *stream;
};

struct stream_reader;

struct stream_reader_ops {
	/* There is something to take: called at the end of the turn, or at once if more came than may wait. */
	void (*on_wake)(struct stream_reader *reader);
	/* The stream has detached this reader before its end: taken over, too slow, or gone with its session. */
	void (*on_detached)(struct stream_reader *reader, enum reason reason);
};

/* Embedded by who writes to a connection. */
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
	struct map by_key; /* those that have one */
	uint64_t last_number;
	size_t count;        /* of messages that wait */
	size_t bytes;        /* of them, with what each costs beside its text */
	size_t dropped;      /* since the log was told */
	uint64_t told_at_ms; /* when the log was told */
	struct list kept;    /* taken ones, oldest first */
	size_t kept_count;
	size_t kept_bytes;
	uint64_t taken; /* the number of the last one taken */
	bool keeps_nothing;
	struct stream_reader *reader;
	struct task wake;
	enum stream_state state;
	enum reason end_reason; /* once it has ended */
};

/* All borrowed for the stream's life. */
void stream_init(struct stream *stream, struct loop *loop, const struct stream_conf *conf,
		 struct stream_budget *budget);
/* Drops the messages that wait; detaches the reader, if there is one. */
void stream_fini(struct stream *stream);

/*
 * Appends a message (shared; the stream takes a reference of its own). `key` identifies it for
 * stream_drop and for joining: a waiting message of the same key is replaced. 0: none. If too much waits then, the
 * reader is served first; then messages are dropped by kind, or the reader is detached.
 */
void stream_push(struct stream *stream, enum stream_kind kind, uint64_t key, struct msg *msg);
/* Takes a waiting message back; returns whether it was still there. */
bool stream_drop(struct stream *stream, uint64_t key);
/* No more messages: the reader gets what waits, and then finds the stream drained. */
void stream_end(struct stream *stream, enum reason reason);
/* Wakes the reader now, not at the end of the turn. */
void stream_flush(struct stream *stream);
/* It cannot be resumed: messages are not kept once they were taken. FRONT-OLD-04 */
void stream_keep_nothing(struct stream *stream);

/* Begin with the first message that was never taken. */
#define STREAM_FROM_HERE UINT64_MAX

/*
 * Reads on behind the message numbered `after`, or STREAM_FROM_HERE. The reader before, if any, is detached with
 * REASON_TAKEN_OVER; the new one is woken if there is something to take. Returns false, and changes
 * nothing, if what follows `after` is no longer kept, or `after` has not been taken yet.
 */
bool stream_attach(struct stream *stream, struct stream_reader *reader,
		   const struct stream_reader_ops *ops, uint64_t after);
/* The reader leaves; on_detached is not called. Also for one that is detached already. */
void stream_detach(struct stream_reader *reader);
/*
 * The next message and its number; the caller has one reference. NULL: none now; on_wake tells when there
 * is.
 */
struct msg *stream_take(struct stream_reader *reader, uint64_t *number_r);
bool stream_is_ended(const struct stream *stream);
/* Ended, and nothing comes behind the message numbered `after`. */
bool stream_is_drained(const struct stream *stream, uint64_t after);
bool stream_has_reader(const struct stream *stream);
/* There is no reader, and as much waits as may: no more requests should be pushed. */
bool stream_is_full(const struct stream *stream);
/* Forgets what was kept for longer than it should be. */
void stream_forget_old(struct stream *stream);

/* parent is borrowed for the budget's life, or NULL. All streams must have left it before its end. */
void stream_budget_init(struct stream_budget *budget, size_t max_bytes,
			struct stream_budget *parent);
/* The stream moves over to another budget. */
void stream_set_budget(struct stream *stream, struct stream_budget *budget);

#endif
