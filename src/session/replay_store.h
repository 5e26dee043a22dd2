/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resumable streams of a session: each answer that became an event stream, from its beginning
 * until some time after its end. In memory, but the interface would also suit an external store.
 * FRONT-RES-01 … -03, -07, -08, CXL-01.
 */
#ifndef MCPGATED_SESSION_REPLAY_STORE_H
#define MCPGATED_SESSION_REPLAY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "obs/reason.h"
#include "session/stream.h"

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
	struct stream_budget budget;
	struct map callers;
	struct ranking ranking; /* of the callers, by what their streams hold */
	struct timer sweep;
};

/* The streams of one caller: of its sessions, and those without one. */
struct store_caller {
	struct store *store;
	uint64_t number;
	unsigned int refs;
	struct stream_budget budget; /* a part of the store's */
};

/* The streams of one session. */
struct replay_store {
	struct store *store;
	struct store_caller *caller;
	struct stream_budget budget; /* also for the session's own stream */
	struct list streams;         /* ended ones in the order they ended */
	size_t finished_count;
	struct list expired; /* the requests of streams that were forgotten, oldest first */
	size_t expired_count;
	/* Random, so that ids of other sessions or earlier processes do not match. */
	uint32_t epoch;
	uint64_t last_number; /* 0 is the session's own stream, which is not in the replay store */
};

struct stored_stream {
	struct stream stream;
	struct list link;
	struct replay_store *replay_store; /* NULL: it can no longer be found */
	struct store_caller *caller;
	unsigned int refs;
	uint64_t number;
	bool is_known; /* an id of it was sent before its first message */
	struct timer expiry;
	size_t request_id_length;
	char request_id[]; /* as written by the client; empty for a batch */
};

/* conf is borrowed for the store's life. */
void store_init(struct store *store, struct loop *loop, const struct store_conf *conf);
void store_fini(struct store *store);
/* Returns a reference to the caller with this number (session/holder). */
struct store_caller *store_get_caller(struct store *store, uint64_t number);
/* Accepts a pointer to NULL; sets the pointer to NULL. */
void store_caller_unref(struct store_caller **caller);
void replay_store_init(struct replay_store *replay_store, struct store *store, uint64_t caller);
/* Makes all streams unfindable; each lives until its last reference is dropped. */
void replay_store_fini(struct replay_store *replay_store);

/* Returns a new stream; the caller has one reference. */
struct stored_stream *replay_store_open(struct replay_store *replay_store, struct slice request_id);
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
/* Borrowed. */
struct slice stored_stream_request_id(const struct stored_stream *stored);

#endif
