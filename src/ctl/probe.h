/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server process under examination: its three streams, line by line, with a time limit for each
 * answer.
 */
#ifndef MCPGATED_CTL_PROBE_H
#define MCPGATED_CTL_PROBE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "keeper/reaper.h"
#include "keeper/launch.h"

#define PROBE_STDERR_BYTES (16 * 1024)

struct probe {
	struct launched process;
	struct launch_verdict verdict; /* why it could not be started; error 0: it was started */
	struct buf out;                /* its stdout that has not been parsed yet */
	struct buf err;                /* the end of its stderr */
	size_t garbage;                /* lines of stdout that were not messages */
	char *first_garbage;
	bool is_closed; /* its stdout has ended */
	bool is_ended;  /* it has been reaped */
	int status;     /* as wait(2) gives it */
	int last_id;
};

/*
 * Starts a server: a spec of launch's, or a copy of one. -1: it could not be started. Call
 * probe_fini in both cases.
 */
int probe_start(struct probe *probe, const struct launch *launch, const struct launch_spec *spec,
		const struct reaper *reaper) must_check;
/*
 * Takes params. Returns the whole response (owned by the caller), or NULL: none came in time, or
 * the process has ended.
 */
json_t *probe_ask(struct probe *probe, const char *method, json_t *params, uint64_t timeout_ms);
void probe_notify(struct probe *probe, const char *method);
/* Waits for it to end, at most this long. */
bool probe_has_ended_within(struct probe *probe, uint64_t time_ms);
/*
 * Closes its stdin, and kills it if it does not exit by itself. Returns the signal that was needed,
 * or 0.
 */
int probe_stop(struct probe *probe, uint64_t grace_ms, uint64_t term_ms);
void probe_fini(struct probe *probe);

#endif
