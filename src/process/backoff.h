/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a server may be started again: after a wait that doubles with each failed start, and no more
 * often than start.rate allows. BACK-PROC-04, REL-29.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct server_conf;

struct backoff {
	const struct server_conf *conf;
	unsigned int failures; /* consecutive failed starts; child.c logs them */
	unsigned int crashes;  /* of young processes that had not answered any call */
	uint64_t crashed_at_ms;
	uint64_t retry_at_ms;      /* no start before this time */
	uint64_t next_start_at_us; /* at start.rate; there may be several a millisecond */
};

/* conf is borrowed for the backoff's life. */
void backoff_init(struct backoff *backoff, const struct server_conf *conf);

/* How long the failures so far delay the next start; 0: not at all. */
uint64_t backoff_wait_ms(const struct backoff *backoff);
/* Whether so many starts have failed that callers are refused instead of waiting. */
bool backoff_has_given_up(const struct backoff *backoff);
/*
 * Takes a turn at start.rate, with bursts of up to one second's worth; *wait_ms_r is how long to
 * wait for it. Returns false, and takes no turn, if that is longer than a start may take
 * (start.timeout).
 */
bool backoff_take_turn(struct backoff *backoff, uint64_t *wait_ms_r);
/* Returns a turn that was taken but not used for a start. */
void backoff_return_turn(struct backoff *backoff);
/* The time until a turn can be taken; 0: now. */
uint64_t backoff_refuses_for_ms(const struct backoff *backoff);

/* A process answered its handshake, or failed before it did. */
void backoff_note_started(struct backoff *backoff);
void backoff_note_failed(struct backoff *backoff);
/*
 * A process that became ready at that time answered a call, or failed without having answered one.
 */
void backoff_note_answered(struct backoff *backoff, uint64_t ready_at_ms);
void backoff_note_crashed(struct backoff *backoff, uint64_t ready_at_ms);
/* The operator wants another attempt: forgets the failures so far. */
void backoff_forget_failures(struct backoff *backoff);
