/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of a stdio server: its pipes, its lines, its exit. What the lines mean is unknown
 * here.
 *
 *	starting -> running -> stopping -> gone
 *
 * BACK-FRAME-03, -06, -07, BACK-PROC-01, -02.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "io/aside.h"
#include "io/outq.h"
#include "io/wire.h"
#include "obs/reason.h"
#include "process/server.h"
#include "process/spawn.h"

struct child;

/* Begins a line of stderr about what a sandbox would refuse; the rest is what to add to the configuration. */
#define CHILD_REPORT_MARK "mcpgated: the sandbox would refuse something, unless "
/*
 * Lines of mcpgated-remote, which goes on: its server does not work (the rest says why), and works again.
 * Any other program may write them, too, of itself.
 */
#define CHILD_AWAY_MARK "mcpgated-remote: away: "
/* The same of credentials that it refuses: where each caller has his own, that is his matter alone. */
#define CHILD_REFUSED_MARK "mcpgated-remote: refused: "
#define CHILD_BACK_LINE "mcpgated-remote: back"
/* The last line of one whose server has refused its session: what it was asked, and did not answer, has not been executed. */
#define CHILD_FORGOTTEN "the server does not know the session"
#define CHILD_FORGOTTEN_LINE "mcpgated-remote: " CHILD_FORGOTTEN

/*
 * Lines that mcpgated-remote reads: the Authorization field of what it sends from now on, or why there is none, in which
 * case it answers itself. A message, which is JSON, begins like neither.
 */
#define CHILD_CREDENTIAL_MARK "Authorization: Bearer "
#define CHILD_NO_CREDENTIAL_MARK "No authorization: "

struct child_ops {
	/* The process runs: lines can be written. */
	void (*on_started)(struct child *child);
	/*
	 * One line of its stdout, not blank, without line ending or byte order mark; borrowed until
	 * the return.
	 */
	void (*on_line)(struct child *child, struct slice line);
	/*
	 * The next part of a line that is longer than the server may write; is_end: the line ends
	 * with it. Only from a process that was ready.
	 */
	void (*on_long_line)(struct child *child, struct slice part, bool is_end);
	/* It says that its server refuses the credential (was_refused). NULL: nobody gives it one. */
	void (*on_refused)(struct child *child);
	/*
	 * It failed: no more lines come or are accepted. Called at most once, never after
	 * child_stop. The process may not have exited yet.
	 */
	void (*on_lost)(struct child *child, enum reason reason);
	/*
	 * The process and everything that belongs to it is gone; the last callback. The memory may
	 * be freed (deferred).
	 */
	void (*on_gone)(struct child *child);
};

enum child_state { CHILD_STARTING, CHILD_RUNNING, CHILD_STOPPING, CHILD_GONE };

/* Embedded by whoever speaks to it (upstream/stdio). */
struct child {
	const struct child_ops *ops;
	struct server *server;
	struct list link; /* of the server's children in this state's list */
	enum child_state state;
	struct spawned spawned;
	int pid;
	struct pipe_state *pipe; /* for the next gateway; from on_started on */
	struct wire in;          /* its stdin, which we write */
	struct wire out;         /* its stdout, which we read */
	struct wire err;         /* its stderr */
	struct buf line;         /* the beginning of an incomplete line */
	struct aside taking;     /* of a long line: until it has been taken, nothing more is read */
	size_t taking_bytes;
	uint64_t long_bytes; /* of a line that is too long, so far; 0: there is none */
	struct buf error_line;
	struct buf last_words; /* the end of its stderr, lines joined by " | " */
	struct buf failure;    /* why it failed, for the operator; empty: it has not */
	/* The first line of stdout before it was ready that was not a message. */
	struct buf garbage;
	uint64_t ran_ms;         /* until it failed */
	uint64_t failure_number; /* server->stats->failures then */
	/* The number of consecutive failed starts, including this one; 0: it had started. */
	unsigned int failed_try;
	char exit[32];     /* how it exited by itself; empty: it was stopped, or runs */
	struct outq queue; /* what waits to be written to its stdin */
	struct task flush;
	struct timer stall;         /* it does not read its stdin */
	struct timer stop_sequence; /* the next step of stopping */
	struct timer drain;         /* it has exited, but another process holds its stdout open */
	uint64_t started_at_ms;
	uint64_t answered;      /* calls */
	uint64_t stderr_second; /* the second that stderr_lines counts in */
	unsigned int stderr_lines;
	unsigned int stop_sequence_step;
	enum reason lost_reason; /* of on_lost; REASON_NONE: not called */
	enum reason end_reason;  /* why it is stopped; REASON_NONE: it is not */
	bool is_ready;           /* it has done what it was started for: child_note_ready */
	bool is_forgotten;       /* it says that its server does not know the session */
	bool is_away; /* it says that its server does not work; counted in server->away */
	bool was_refused; /* it says that its server refuses the credential; whoever gets another one resets it */
	bool holds;         /* its owner holds messages back until it has a credential */
	bool is_held;       /* inherited, and not needed yet: its stdout is not read */
	bool is_disposable; /* its failure does not count as a failure of the server */
	bool is_exited;     /* the keeper has reaped it, or it was never started */
};

/*
 * Asks the keeper for a process of `server`, which must have agreed (server_admit). For claims
 * see spawned_start.
 */
void child_start(struct child *child, struct server *server, struct slice claims,
		 const struct child_ops *ops);

/*
 * Takes over a process of the gateway before that the keeper offers, with its pipes; see
 * spawned_inherit. Its stdout is not read before child_resume.
 */
void child_inherit(struct child *child, struct server *server, uint64_t number, int pid,
		   const int fds[3], const struct child_ops *ops);
/* It is needed: reads its stdout, and ends what may be half a message in its stdin. */
void child_resume(struct child *child);

/*
 * Queues bytes for its stdin: whole lines, each ended by LF. They are written at the end of the
 * turn, together with everything else of the turn. Only between on_started and on_lost or
 * child_stop. If the queue grows far beyond its limit, the process is treated as hung.
 */
void child_write(struct child *child, struct slice bytes);
/* The same without a copy: takes over buf's bytes. */
void child_write_take(struct child *child, struct buf *buf);
/* Whether no message is on its way: none waits for its stdin, and of none only a part has come. */
bool child_is_quiet(const struct child *child);
/* Whether its stdin queue has room for a message of `size` more bytes. */
bool child_has_room(const struct child *child, size_t size);

/*
 * Stops it: closes stdin, sends SIGTERM after the grace period, then SIGKILL; on_gone follows. Call
 * it only once.
 */
void child_stop(struct child *child, enum reason reason);
/* Stops it with SIGKILL immediately. */
void child_kill(struct child *child, enum reason reason);
/* There is no credential of its caller for the server: that is no failure of the server's. */
void child_lack_credential(struct child *child);
/* The same as child_kill for all remaining children of the server. */
void child_kill_all(struct server *server, enum reason reason);

/*
 * It has failed; only the first reason noted counts. It is logged when the process is gone, on one
 * line with the end of its stderr; by then its owner was notified, and has set failed_try.
 * BACK-PROC-06
 */
void child_note_failure(struct child *child, const char *error);
/*
 * The end of its stderr so far, at most 700 bytes: whole lines if they are short enough, without
 * stack traces. Borrowed.
 */
struct slice child_last_words(const struct child *child);

/*
 * It has started: from now on its stderr, and what is not a message on its stdout, is logged. Until
 * then the first line of the latter is, and both are kept for the line that says why it failed.
 */
void child_note_ready(struct child *child);
/* Logs, at a bounded rate, that it wrote something that is not a message. */
void child_note_garbage(struct child *child, struct slice line, const char *why);
