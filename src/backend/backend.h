/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One configured server: how many processes it may have, and whether it may be tried again now.
 * BACK-PROC-04, REL-29.
 */
#ifndef MCPGATED_BACKEND_BACKEND_H
#define MCPGATED_BACKEND_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "backend/spawn.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "obs/reason.h"

/* Whom one process serves. bridging.md §1.2 */
enum isolation { ISOLATION_SESSION, ISOLATION_PRINCIPAL, ISOLATION_SHARED };

struct backend_conf {
	const char *name; /* borrowed for the backend's life, as is everything here */
	uint32_t server;  /* its number for the keeper */
	enum isolation isolation;
	size_t pool_max; /* processes at most */
	/* of processes that sessions share: */
	size_t calls_per_process;
	size_t queue_calls;        /* that wait because all processes are busy */
	uint64_t queue_timeout_ms; /* and for how long */
	uint64_t idle_ms;          /* a process without a call for so long is stopped */
	size_t line_max;           /* bytes of one line of stdout */
	size_t queue_max;          /* bytes that may wait for one process's stdin */
	uint64_t start_timeout_ms;
	uint64_t backoff_min_ms;
	uint64_t backoff_max_ms;
	unsigned int give_up_after;
	uint64_t stop_grace_ms;
	uint64_t stop_term_ms;
	uint64_t stall_ms; /* a process that takes nothing for so long is hung */
	uint64_t request_timeout_ms;
	uint64_t request_timeout_max_ms;
	/* The time-out of one tool, or 0 for the usual one. */
	uint64_t (*tool_timeout_ms)(const struct backend_conf *conf, struct slice tool);
	const void *config; /* tool_timeout_ms finds its table here */
};

struct backend {
	struct backend_conf conf;
	struct loop *loop;
	struct spawner *spawner;
	struct list children;
	size_t count;          /* of children that are not gone */
	size_t reserved;       /* places of those that wait for the back-off to pass */
	unsigned int failures; /* starts that failed, in a row */
	uint64_t retry_at_ms;
	uint64_t full_quiet_until_ms; /* that the pool is full was said not long ago */
};

void backend_init(struct backend *backend, struct loop *loop, struct spawner *spawner,
		  const struct backend_conf *conf);

/*
 * Whether a process may be started. Returns REASON_NONE, and in *wait_ms_r how long to wait first;
 * or why not, and how long a caller had better wait before it asks again.
 */
enum reason backend_admit(struct backend *backend, uint64_t *wait_ms_r);

/* A process answered its handshake; or it failed before. */
void backend_note_started(struct backend *backend);
void backend_note_failed(struct backend *backend);

/* SIGKILL to all that is left. */
void backend_kill_all(struct backend *backend);

#endif
