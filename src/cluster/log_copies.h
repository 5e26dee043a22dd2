/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logs of streams (session/stream_log.h) of this node, copied to the store (cluster/store_service.h) as
 * they grow. They follow from a comparison of the memory file with what was written before; the store gets
 * more when it has answered what it got. CLU-SESS-04
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "cluster/redis.h"
#include "session/stream_log.h"

/* Longer ones are not copied: with a session no more is taken (cluster/store_service). */
#define LOG_COPY_BYTES_MAX 3600000

struct log_copy;

struct log_copies {
	/* Set by the owner, and borrowed. */
	const char *node, *prefix;
	uint64_t life_ms;    /* what is not written for so long expires */
	struct redis *redis; /* ready whenever something else than _init and _fini is called */
	redis_reply_fn
		*on_reply; /* each reply; a text that is a session's ID: another node has it */
	void *arg;
	/* Its own. */
	const struct stream_log_file *file; /* NULL: it cannot be read, and nothing is copied */
	struct log_copy **by_page;          /* of the log that begins there; NULL: none */
	size_t page_count;                  /* there are none behind this one */
	struct map by_name;
	uint64_t seed;
	struct list removed;  /* those that have no log any more, or one that is too long */
	struct list writings; /* of copies, in the order in which they will be answered */
	bool must_compare;
	size_t next_page; /* to be looked at */
	uint64_t scanned; /* so many were, ever */
};

/* Maps the memory file. */
void log_copies_init(struct log_copies *copies, int fd);
void log_copies_fini(struct log_copies *copies);
/* Brings the store to what the gateway has, in as many steps as that needs. */
void log_copies_compare(struct log_copies *copies);
/* The same, also with what the store has refused. */
void log_copies_try_again(struct log_copies *copies);
/* All, as the store may have lost it. */
void log_copies_write_anew(struct log_copies *copies);
/* Whether the store has everything, or has refused it. */
bool log_copies_are_written(const struct log_copies *copies);

/*
 * Appends PREFIX:KIND:ID, the key of something of a session; kind: s, its record; e, the numbers of its
 * streams, and with ":NUMBER" the log of one.
 */
void store_key_append(struct buf *out, const char *prefix, char kind, struct slice id);
