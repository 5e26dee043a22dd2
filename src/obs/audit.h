/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Audit records: what was decided about each request and how it ended. A record is one JSON object
 * per line; its members are the rows of audit.def. Records go into a pipe to the keeper, which
 * writes them to their destination (keeper/records). router/audit_call decides what a record
 * says.
 *
 * Writing never blocks. Lines that the pipe does not accept wait here in bounded memory; beyond
 * that bound they are lost and counted, and the next line written reports the count: first those of
 * the caller that has most (obs/audit). Refusals before admission and requests that are no
 * calls, of which anybody can cause many, get only a share of the pipe and of the memory; the rest
 * is for calls of tools and prompts. SEC-63.
 *
 * If `on_gathering` is set, the records of calls of one turn of the event loop are gathered and
 * written together: the owner calls audit_flush before any answer leaves, and at the end of the
 * turn. So a client that has the answer to a call has a record of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/ranking.h"
#include "base/slice.h"
#include "obs/line.h"

/* ---- audit backlog ---- */

/*
 * Records that wait because their pipe is full, in bounded memory. Calls of tools and prompts, other
 * requests, and refusals before admission have separate room, so that what costs nothing cannot
 * displace the records of calls. Where the room of a share is used up, the caller that has most of
 * it loses its newest records, so that nobody displaces those of others. SEC-63
 */

enum audit_share { AUDIT_CALLS, AUDIT_OTHERS, AUDIT_REFUSALS, AUDIT_SHARES };

/* In bytes. Calls: room for the records of as many as a session may have, and some more. */
#define AUDIT_CALLS_WAITING_MAX (4 * 1024 * 1024)
#define AUDIT_OTHERS_WAITING_MAX (1024 * 1024)
#define AUDIT_REFUSALS_WAITING_MAX (1024 * 1024)

/* All zeros is an empty backlog. */
struct audit_backlog {
	struct audit_backlog_share {
		struct list records; /* oldest first */
		size_t count;
		size_t bytes;
		struct map callers; /* that have records here */
		struct ranking ranking;
	} shares[AUDIT_SHARES];
};

enum audit_field {
#define X(field, name, bytes_max, help) AUDIT_##field,
#include "obs/audit.def"
	AUDIT_FIELD_COUNT
};

struct audit_conf {
	char *to;         /* absolute path of a file, "journal", or unix:PATH; NULL: no records */
	bool is_required; /* calls that cannot be recorded are refused */
	bool is_refused_only; /* allowed calls are not recorded */
	bool shows_arguments;
};

/* As much as a write to a pipe transfers either whole or not at all, and how many lines at most. */
#define AUDIT_GATHERED_BYTES TEXT_LINE_BYTES
#define AUDIT_GATHERED_LINES 64

/* All zeros except conf, fd, pipe_bytes, on_gathering and on_waiting, which the owner sets. */
struct audit {
	struct audit_conf conf;
	int fd;            /* the write end of the pipe; non-blocking */
	size_t pipe_bytes; /* capacity of the pipe; 0: unknown */
	/*
	 * Called when the first record has been gathered: the owner arranges for audit_flush. NULL:
	 * records are not gathered.
	 */
	void (*on_gathering)(struct audit *audit);
	void (*on_waiting)(struct audit
				   /*
			 * Called when the first line waits: the owner arranges for audit_drain
			 * soon. NULL: lines that do not fit are lost.
			 */
				   *audit);
	struct audit_backlog backlog;
	bool is_failing;  /* the keeper reports that it cannot write */
	int last_error;   /* errno of the keeper's last failure; 0: it never failed */
	uint64_t written; /* lines passed to the keeper */
	uint64_t lost;    /* lines lost since one was last written */
	uint64_t said_at_ms;
	size_t gathered_lines;
	size_t gathered_length;
	struct audit_gathered {
		uint64_t caller;
		enum audit_share share;
		size_t length;
	} gathered_are[AUDIT_GATHERED_LINES];
	char gathered[AUDIT_GATHERED_BYTES];
};

/* Begins a record. Finish it with audit_write or audit_write_now. */
void audit_line_begin(struct text_line *line, const char *event);
/*
 * Adds a field from a peer, escaped, and truncated to the bytes_max of its row. Adds nothing if the
 * text is empty. Returns false if the text was truncated or had no room.
 */
bool audit_put_text(struct text_line *line, enum audit_field field, struct slice text);
/*
 * The room that a text of this length has a right to, whatever its characters: all it can need, but
 * no more than the bytes_max of its row.
 */
size_t audit_room(enum audit_field field, size_t length);
/* Like audit_put_text, for our own texts, which normally need no escaping. */
void audit_put_own(struct text_line *line, enum audit_field field, struct slice text);
/* Adds the field with the value true. */
void audit_put_true(struct text_line *line, enum audit_field field);
void audit_put_number(struct text_line *line, enum audit_field field, uint64_t number);
/*
 * Finishes the line and writes it, gathers it or queues it. `caller` is whoever caused it, as a
 * number (session/principal). Returns false if a record is lost.
 */
bool audit_write(struct audit *audit, enum audit_share share, uint64_t caller,
		 struct text_line *line);
/* Writes the gathered lines or queues them. Returns false if some are lost. */
bool audit_flush(struct audit *audit);
/*
 * Like audit_write, for a record of a call that may neither be gathered nor queued. Returns true
 * only if the keeper has been given it.
 */
bool audit_write_now(struct audit *audit, enum audit_share share, struct text_line *line)
	must_check;
/*
 * Writes queued lines as far as the pipe accepts them, alternating between the shares. Returns
 * false if some still wait.
 */
bool audit_drain(struct audit *audit) must_check;
/*
 * At the end of the process: waits up to half a second for the pipe to accept the queued lines and
 * counts the rest as lost.
 */
void audit_finish(struct audit *audit);

/* The name and help text of a row. */
const char *audit_field_name(enum audit_field field);
const char *audit_field_help(enum audit_field field);
