/* SPDX-License-Identifier: Apache-2.0 */
/* The log: where it goes, and what other processes write to it. */
#ifndef MCPGATED_KEEPER_LOG_WRITER_H
#define MCPGATED_KEEPER_LOG_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "keeper/records.h"
#include "obs/log.h"

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

#endif
