/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the lines of the log and the records of the audit go, and what other processes write to both.
 * They share pipes through which those processes write lines, and files that the daemon appends to.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "obs/log.h"

#define RECORDS_PIPE_BYTES (1 << 20)
#define RECORDS_JOURNAL "/run/systemd/journal/socket"

struct records_pipe {
	int in;  /* to be read by the keeper; -1: closed */
	int out; /* the other process's end */
};

/* Undoes what the other process may have changed on its end: the next one uses the same. */
void records_pipe_restore(const struct records_pipe *pipe);
/* No-op if it is closed. */
void records_pipe_close(struct records_pipe *pipe);

/* ---- the log ---- */

/* The log: where it goes, and what other processes write to it. */

/* ---- what other processes write ---- */

/*
 * The log of another process: a pipe that it writes lines to and that the keeper writes out, so
 * that a compromised gateway can neither change the existing log nor impersonate another process.
 * Anything that is not a log line of that process (such as a sanitizer report) is quoted in a line
 * of ours. The rate is limited: excess lines fill the pipe, and the writer counts them as lost.
 * REL-47, SEC-61.
 */

#define LOG_RELAY_LINES 10000
#define LOG_RELAY_LINES_DEBUG 200000 /* where every step of a call is logged */

/* The lines of the current second. */
struct log_budget {
	uint64_t second_began_ms;
	unsigned int lines;
};

struct log_relay {
	const char *process; /* how its lines identify the writer */
	struct records_pipe pipe;
	struct log_budget budget;
	size_t length;    /* of an incomplete line */
	bool is_skipping; /* the rest of an overlong line */
	char line[LOG_LINE_MAX];
};

/* 0, or the time until more lines are allowed, in ms. */
int log_budget_pause_ms(struct log_budget *budget);
/* process: what the other process passes to log_set_process; a literal. */
int log_relay_open(struct log_relay *relay, const char *process, struct error *err) must_check;
/* 0, or the time until the next read, in ms. */
int log_relay_pause_ms(struct log_relay *relay);
/* Writes out a bounded amount of what is there. */
void log_relay_read(struct log_relay *relay);
/*
 * The process has exited: writes out what it left, including an incomplete line; what exceeds the
 * limit for this second is lost.
 */
void log_relay_flush(struct log_relay *relay);

/* ---- where the log goes ---- */

/*
 * The file of log.target, or the descriptor that the daemon was started with. Returns it; or -1, and err
 * names the place in the configuration.
 */
int log_file_open(const struct config *config, struct error *err) must_check;
/*
 * Checks that the log can be written there; does not create a file. -1: err says what is in the
 * way.
 */
int log_file_try(const struct config *config, struct error *err) must_check;
/* Reopens the file, after it was renamed; on failure the log continues in the open one. */
void log_file_reopen(const struct config *config, int *fd);
/*
 * Continues the log in `fresh`, from log_file_open for this configuration, and closes the old one.
 */
void log_file_use(const struct config *config, int fresh, int *fd);
/*
 * Closes a log_file_open descriptor, but not the one that the daemon was started with. No-op for
 * -1.
 */
void log_file_close(int *fd);

/* ---- the audit ---- */

/*
 * Writes the audit records (obs/audit.h): gateways write lines into a pipe, and the keeper writes
 * them to a file, the journal or a socket. So a compromised gateway can write false records, but
 * can neither change nor remove earlier ones, nor fill the disk faster than a fixed rate. What
 * cannot be written waits here and in the pipe, and is retried; when both are full, the gateway
 * drops and counts records, or refuses calls. There is no fsync: what the kernel has not written
 * yet is lost in a power failure. SEC-63.
 */

#define AUDIT_WRITER_BYTES 65536
#define AUDIT_WRITER_POLLS 2

struct audit_writer {
	const char *to;      /* as in struct audit_conf; NULL: no audit, and the pipe is not read */
	const char *journal; /* its socket; tests use their own */
	struct records_pipe pipe; /* from the gateway */
	int fd;                   /* the output; -1: it cannot be opened at the moment */
	int next_fd;              /* from audit_writer_open_next; or -1 */
	uint64_t gather_ms;       /* how long input stays in the pipe, to be read in one go */
	uint64_t gather_until_ms;
	uint64_t second_began_ms;
	size_t second_bytes; /* read in that second */
	uint64_t retry_at_ms;
	uint64_t look_at_ms; /* when to check that the file is still there */
	bool is_failing;
	int error;        /* errno of the current or the latest failure */
	bool is_told;     /* the gateway knows that it fails, or that it does not */
	bool is_blocked;  /* the reader of a socket or FIFO has no room */
	bool is_skipping; /* the rest of an overlong line */
	size_t written;   /* of `whole` */
	size_t whole;     /* of `length`: complete lines that are records */
	size_t length;
	char bytes[AUDIT_WRITER_BYTES];
};

/*
 * Returns -1 if a file cannot be opened. A socket that does not exist yet is waited for. `to` is
 * borrowed until another one is used.
 */
int audit_writer_open(struct audit_writer *writer, const char *to, struct error *err) must_check;
/* Opens the target for a reload, likewise; NULL: none. Closes one opened earlier this way. */
int audit_writer_open_next(struct audit_writer *writer, const char *to, struct error *err)
	must_check;
/*
 * Switches to `to`, which was opened if it is a different one; records that could not be written so
 * far go there too.
 */
void audit_writer_use_next(struct audit_writer *writer, const char *to);
/* Checks that `to` can be opened; does not create a file. -1: err says what is in the way. */
int audit_writer_try(const char *to, struct error *err) must_check;
/* Reopens the file, after it was renamed; on failure the open one stays in use. */
void audit_writer_reopen(struct audit_writer *writer);
/* There will be another gateway: undoes what the last one may have changed on the pipe. */
void audit_writer_set_gateway(struct audit_writer *writer);
/* What to poll; -1 where nothing is. */
void audit_writer_poll_fill(const struct audit_writer *writer,
			    struct pollfd polls_r[AUDIT_WRITER_POLLS]);
/* Reads and writes a bounded amount. Returns the latest time for the next call. */
uint64_t audit_writer_run(struct audit_writer *writer);
/* The gateway has exited: writes what it left in the pipe. */
void audit_writer_flush(struct audit_writer *writer);
/*
 * Tells the gateway whether records can be written, unless it knows; the socket may have no room.
 */
void audit_writer_tell(struct audit_writer *writer, int gateway_fd);
bool audit_writer_has_untold(const struct audit_writer *writer);
/* Writes what is there. Returns whether that was all, so that it can be closed without a loss. */
bool audit_writer_is_through(struct audit_writer *writer) must_check;
/* Logs how many records are lost. No-op if nothing was opened. */
void audit_writer_close(struct audit_writer *writer);
