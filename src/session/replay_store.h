/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams that a session's client may resume: each answer that became an event stream, from its
 * beginning until some time after its end. In memory; what callers see would suit a store elsewhere as
 * well. FRONT-RES-01 … -03, -07, -08, CXL-01.
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

/* Ended streams that one session may hold. */
#define REPLAY_STORE_STREAMS_MAX 64
#define REPLAY_STORE_EXPIRED_MAX 256

struct store_conf {
	struct stream_conf stream;
	uint64_t session_bytes; /* in the streams of one session, open and ended ones */
	uint64_t total_bytes;   /* in all streams */
};

/* All streams of the process. */
struct store {
	struct loop *loop;
	const struct store_conf *conf;
	struct stream_budget budget;
	struct timer sweep;
};

/* Those of one session. */
struct replay_store {
	struct store *store;
	struct stream_budget budget; /* also for the session's own stream */
	struct list streams;         /* ended ones in the order of their ends */
	size_t finished_count;
	struct list expired; /* the requests of streams that are gone, oldest first */
	size_t expired_count;
	uint32_t
		epoch; /* random: ids of another session, or of an earlier process, are not found */
	uint64_t last_number; /* 0 is the session's own stream, which is not on the replay store */
};

struct stored_stream {
	struct stream stream;
	struct list link;
	struct replay_store *replay_store; /* NULL: it cannot be found any more */
	unsigned int refs;
	uint64_t number;
	bool is_known; /* an id of it was sent before its first message */
	struct timer expiry;
	size_t request_id_length;
	char request_id[]; /* as the client wrote it; empty for a batch */
};

/* conf is borrowed for the store's life. */
void store_init(struct store *store, struct loop *loop, const struct store_conf *conf);
void store_fini(struct store *store);
void replay_store_init(struct replay_store *replay_store, struct store *store);
/* No stream can be found any more; each lives on until its last reference is dropped. */
void replay_store_fini(struct replay_store *replay_store);

/* A new stream; the caller has one reference. */
struct stored_stream *replay_store_open(struct replay_store *replay_store, struct slice request_id);
/* A reference to the stream of this number, or NULL. */
struct stored_stream *replay_store_find(const struct replay_store *replay_store, uint64_t number);

/* The request that an expired stream belonged to, as its client wrote the id; empty if not known. */
struct slice replay_store_find_expired(const struct replay_store *replay_store, uint64_t number);

/*
 * No more messages will be pushed. The stream is kept for conf->stream.replay_age_ms if its client has seen an
 * event number to resume from; else it goes with the last reference.
 */
void stored_stream_finish(struct stored_stream *stored, enum reason reason);
/* Whether the client can name an event of it, and so resume. */
bool stored_stream_is_known(const struct stored_stream *stored);
/* Accepts a pointer to NULL; sets the pointer to NULL. */
void stored_stream_unref(struct stored_stream **stored);
/* Borrowed. */
struct slice stored_stream_request_id(const struct stored_stream *stored);

#endif
