/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of streams (session/stream.h), in a memory file that all gateways share: what a client could
 * still get is there before the client can know of it, so that the next gateway can go on if this
 * one dies. A log is a text that grows at its end, and is whole after each append.
 *
 * The file: a header, and pages of STREAM_LOG_PAGE_BYTES. A log is a chain of pages. For each page
 * there is the number of the page that follows, and a mark: if a log begins there, its size and its
 * generation (which tells it from one that began there before), else 0. An append writes the bytes,
 * then the mark. Only this process writes; another may read at any time, and must expect that what
 * it has read was overwritten unless the mark is the same behind it.
 *
 * Everybody's logs share the file. If it is full, the owner that has most loses his oldest log.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/list.h"
#include "base/ranking.h"
#include "base/slice.h"

#define STREAM_LOG_NAME_MAX 43 /* a digest as text */
#define STREAM_LOG_PAGE_BYTES 1024
#define STREAM_LOG_PAGES (64 * 1024)
/* A log cannot become longer: its stream has bounds of its own. */
#define STREAM_LOG_BYTES_MAX (32 * 1024 * 1024)

struct stream_log_file {
	uint64_t form;         /* STREAM_LOG_FORM: it is one */
	_Atomic uint32_t used; /* pages from here on were never used */
	_Atomic uint64_t marks[STREAM_LOG_PAGES];
	_Atomic uint32_t next[STREAM_LOG_PAGES];
	unsigned char pages[STREAM_LOG_PAGES][STREAM_LOG_PAGE_BYTES];
};

#define STREAM_LOG_FORM \
	UINT64_C(0x3167656c6d747300) /* greater than any size of what was there before */
#define STREAM_LOG_FILE_BYTES sizeof(struct stream_log_file)

/* All logs of this gateway. */
struct stream_logs {
	struct stream_log_file *file; /* NULL: streams have no logs */
	struct buf free;              /* uint32_t each: pages that were used */
	size_t count;                 /* of logs */
	uint32_t generation;
	struct ranking ranking; /* of the owners */
	bool is_full;           /* a log was lost, and that was logged */
	bool is_left;           /* set by the owner: all stays in the file, as this process ends */
	/* The file has changed, for copies of it elsewhere; NULL: there are none. */
	void (*on_change)(struct stream_logs *logs);
};

/* Whose logs they are; embedded. */
struct stream_log_owner {
	struct ranked ranked;
	struct list logs; /* oldest first */
	size_t pages;
};

struct stream_log {
	struct stream_logs *logs;
	struct stream_log_owner *owner;
	struct stream_log **holder; /* whose pointer to it becomes NULL if it is lost; or NULL */
	struct list link;
	uint32_t first, last, at; /* pages: `at` has the end of the text */
	uint32_t generation;
	size_t pages;
	size_t size;
};

/*
 * What the gateway before has left: called for each log, with its text, borrowed. Returns the owner
 * that it gets; NULL: it is freed.
 */
typedef struct stream_log_owner *stream_log_found_fn(void *arg, struct slice text);

/*
 * Maps the file, of STREAM_LOG_FILE_BYTES and zeroed initially, for the life of the process, and
 * reads it; whoever wrote it may have been anybody. One that is none becomes an empty one. If it
 * cannot be mapped, *logs has no file, and there are no logs.
 */
void stream_logs_open(struct stream_logs *logs, int fd, stream_log_found_fn *on_found, void *arg);
/* There must be no logs left. */
void stream_logs_fini(struct stream_logs *logs);

void stream_log_owner_init(struct stream_log_owner *owner);
/* Frees the logs that it has. */
void stream_log_owner_fini(struct stream_log_owner *owner);

/*
 * A new log for *holder, empty, which another gateway sees as soon as something is appended. Sets
 * *holder; to NULL if there are no logs.
 */
void stream_log_new(struct stream_logs *logs, struct stream_log_owner *owner,
		    struct stream_log **holder);
#define STREAM_LOG_NONE UINT64_MAX
/* Appends a line, "WORD FIRST SECOND TEXT", without what is STREAM_LOG_NONE or empty. `word` has no more than 16 bytes. */
void stream_log_write(struct buf *out, const char *word, uint64_t first, uint64_t second,
		      struct slice text);
/* The same at the end of a log, as stream_log_append. */
void stream_log_note(struct stream_log **holder, const char *word, uint64_t first, uint64_t second,
		     struct slice text);
/* Appends these texts and a line end, all or none. If there is no room, or it becomes too long, it is lost: *holder is NULL. */
void stream_log_append(struct stream_log **holder, struct slice head, struct slice text);
/* Replaces its text. Another gateway sees the one or the other. */
void stream_log_replace(struct stream_log **holder, struct slice text);
/* Appends its text to `out`. */
void stream_log_read(const struct stream_log *log, struct buf *out);
/* Appends the text of this owner's oldest log to `out`, and frees it. False: he has none. */
bool stream_log_take(struct stream_log_owner *owner, struct buf *out);
/* A log with this text, which nobody but its owner has a pointer to. */
void stream_log_add(struct stream_logs *logs, struct stream_log_owner *owner, struct slice text);
/* Accepts a pointer to NULL; sets it to NULL. */
void stream_log_free(struct stream_log **holder);

/* The name in the text of a stream's log, which begins "of NAME "; empty: it is none. */
struct slice stream_log_name(struct slice text);

/* ---- for who only reads ---- */

/* Maps it for the life of the process. NULL: that is not possible. */
const struct stream_log_file *stream_log_file_map(int fd);
/*
 * Appends to `out` what the log that begins at this page has behind its first `from` bytes. Returns
 * its mark: 0, or another one than before, if that is nothing to rely on.
 */
uint64_t stream_log_file_read(const struct stream_log_file *file, size_t page, size_t from,
			      struct buf *out);
static inline uint32_t stream_log_size_of(uint64_t mark)
{
	return (uint32_t)mark;
}
static inline uint32_t stream_log_generation_of(uint64_t mark)
{
	return (uint32_t)(mark >> 32);
}
