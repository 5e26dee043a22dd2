/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of a stdio server: its pipes, its lines, its end. What the lines mean is not known here.
 *
 *	starting -> running -> stopping -> gone
 *
 * BACK-FRAME-03, -06, -07, BACK-PROC-01, -02.
 */
#ifndef MCPGATED_PROCESS_CHILD_H
#define MCPGATED_PROCESS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/server.h"
#include "process/spawn.h"
#include "base/buf.h"
#include "base/slice.h"
#include "io/outq.h"
#include "io/wire.h"
#include "obs/reason.h"

struct child;

struct child_ops {
	/* The process runs: lines may be written. */
	void (*on_started)(struct child *child);
	/* One line of its stdout, not blank, without line end and byte order mark; borrowed until the return. */
	void (*on_line)(struct child *child, struct slice line);
	/*
	 * It failed: no line will come and none is taken any more. Called at most once, never after
	 * child_stop. The process may still be on its way out.
	 */
	void (*on_lost)(struct child *child, enum reason reason);
	/* The process and everything of it is gone; the last call. The memory may be freed (deferred). */
	void (*on_gone)(struct child *child);
};

enum child_state { CHILD_STARTING, CHILD_RUNNING, CHILD_STOPPING, CHILD_GONE };

/* Embedded by who speaks to it (upstream/stdio). */
struct child {
	const struct child_ops *ops;
	struct server *server;
	struct list link; /* of the server's children in this state's list */
	enum child_state state;
	struct spawned spawned;
	int pid;
	struct wire in;  /* its stdin: we write */
	struct wire out; /* its stdout: we read */
	struct wire err; /* its stderr */
	struct buf line; /* the beginning of a line whose end has not come */
	struct buf error_line;
	struct buf last_words; /* the end of what it wrote to stderr, lines parted by " | " */
	struct buf failure;    /* why it has failed, for the operator; empty: it has not */
	struct buf garbage; /* the first line of stdout that was no message, before it was ready */
	uint64_t ran_ms;    /* until it failed */
	unsigned int
		failed_try; /* its start was the last of so many that failed in a row; 0: it had started */
	char exit[32];     /* how it has ended by itself; empty: it was ended, or runs */
	struct outq queue; /* what waits for its stdin */
	struct task flush;
	struct timer stall;         /* it does not read its stdin */
	struct timer stop_sequence; /* the next step of stopping */
	struct timer drain;         /* it has exited, but another process holds its stdout */
	uint64_t started_at_ms;
	uint64_t answered;      /* calls */
	uint64_t stderr_second; /* the second that stderr_lines counts in */
	unsigned int stderr_lines;
	unsigned int stop_sequence_step;
	enum reason lost_reason; /* of on_lost; REASON_NONE: not called */
	enum reason end_reason;  /* why it is stopped; REASON_NONE: it is not */
	bool is_ready;           /* it has done what it was started for: child_note_ready */
	bool is_disposable;      /* its failure is no failure of the server */
	bool is_exited;          /* the keeper has collected it, or it was never started */
};

/*
 * Asks the keeper for a process of `server`, which must have agreed (server_admit). Takes claims_fd: see
 * spawned_start.
 */
void child_start(struct child *child, struct server *server, int claims_fd,
		 const struct child_ops *ops);

/*
 * Queues bytes for its stdin: whole lines, each ended by LF. They are written at the end of the turn, together
 * with everything else of the turn. Only between on_started and on_lost or child_stop. If far more waits than
 * there is room for, the process counts as hung.
 */
void child_write(struct child *child, struct slice bytes);
/* The same, without a copy: takes buf's bytes. */
void child_write_take(struct child *child, struct buf *buf);
/* Whether its stdin queue may take a message of `size` bytes more. */
bool child_has_room(const struct child *child, size_t size);

/* Stops it: stdin closed, after the grace SIGTERM, then SIGKILL; on_gone follows. Not called twice. */
void child_stop(struct child *child, enum reason reason);
/* Stops it with SIGKILL at once. */
void child_kill(struct child *child, enum reason reason);
/* The same to all children that the server has left. */
void child_kill_all(struct server *server, enum reason reason);

/*
 * It has failed: the first reason that is noted counts. The log has it when the process is gone, in one line with the end of
 * its stderr; its owner has been told then, and has noted which try it was (failed_try). BACK-PROC-06
 */
void child_note_failure(struct child *child, const char *error);
/* The end of its stderr so far, at most 700 bytes: whole lines, if they are short enough, without those of a stack trace. Borrowed. */
struct slice child_last_words(const struct child *child);

/* It has started: what it writes to stderr and stdout is logged from now on. Before, it is kept for a line that says why it failed. */
void child_note_ready(struct child *child);
/* Logs, at a bounded rate, that it wrote something which is no message. */
void child_note_garbage(struct child *child, struct slice line, const char *why);

#endif
