/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of another process: a pipe that it writes lines to, and that the keeper writes out, so that a gateway that
 * was taken over can neither change what the log holds nor speak for anybody else. What is no line of that process's log
 * (a report of a sanitizer, say) becomes one of ours that quotes it. So many lines a second at most: what is written
 * beyond does not fit into the pipe, and the writer counts it as lost. REL-47, SEC-61.
 */
#ifndef MCPGATED_KEEPER_LOG_RELAY_H
#define MCPGATED_KEEPER_LOG_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "obs/log.h"

#define LOG_RELAY_LINES 10000
#define LOG_RELAY_LINES_DEBUG 200000 /* where every step of a call is logged */

/* Lines in the second that began then. */
struct log_budget {
	uint64_t second_began_ms;
	unsigned int lines;
};

struct log_relay {
	const char *process; /* what its lines say of who wrote them */
	int in;              /* what to poll, and the keeper reads */
	int out;             /* the other process's end */
	struct log_budget budget;
	size_t length;    /* of a line whose end has not come */
	bool is_skipping; /* the rest of a line that was too long */
	char line[LOG_LINE_MAX];
};

/* 0, or how long to wait before there may be more lines, in ms. */
int log_budget_pause_ms(struct log_budget *budget);
/* process: what the other process gives to log_set_process; a literal. */
int log_relay_open(struct log_relay *relay, const char *process, struct error *err) must_check;
/* Takes back what the other process can have changed of its end: the next one gets the same. */
void log_relay_restore(struct log_relay *relay);
void log_relay_close(struct log_relay *relay);
/* 0, or how long to wait before reading on, in ms. */
int log_relay_pause_ms(struct log_relay *relay);
/* Writes out what is there, a bounded part of it. */
void log_relay_read(struct log_relay *relay);
/* It has ended: writes out what it has left, and what was begun as a line; what is too much for this second is lost. */
void log_relay_flush(struct log_relay *relay);

#endif
