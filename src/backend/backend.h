/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One configured server: how many processes it may have, and whether it may be tried again now.
 * BACK-PROC-04, REL-29.
 */
#ifndef MCPGATED_BACKEND_BACKEND_H
#define MCPGATED_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backlog.h"
#include "backend/spawn.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "obs/meter.h"
#include "obs/reason.h"

/* Whom one process serves. bridging.md §1.2 */
enum isolation { ISOLATION_SESSION, ISOLATION_PRINCIPAL, ISOLATION_SHARED };

/* As the configuration calls it. */
const char *isolation_name(enum isolation isolation);

/* What all backends share. */
struct fleet {
	size_t count; /* of processes, and of places reserved */
	size_t max;
};

struct backend_conf {
	struct fleet *fleet; /* NULL: none */
	const char *name;    /* borrowed for the backend's life, as is everything here */
	uint32_t server;     /* its number for the keeper */
	enum isolation isolation;
	const struct slice *claims; /* of its principal, that a process is told */
	size_t claim_count;
	bool never_asks;     /* it sends clients no requests: they are told of no capabilities */
	size_t pool_max;     /* processes at most */
	size_t pool_min;     /* kept running, with ISOLATION_SHARED */
	size_t warm;         /* started ahead, with the others */
	uint64_t start_rate; /* starts a second; 0: any number */
	/* of processes that sessions share: */
	size_t calls_per_process;
	size_t queue_calls;        /* that wait because all processes are busy */
	uint64_t queue_timeout_ms; /* and for how long */
	uint64_t idle_ms;          /* a process without a call for so long is stopped */
	uint64_t max_age_ms;       /* gets no more calls then; 0: never */
	size_t sessions_per_process;
	size_t line_max;  /* bytes of one line of stdout */
	size_t queue_max; /* bytes that may wait for one process's stdin */
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

/* What has happened since the start. */
struct backend_stats {
	struct meter answered; /* calls, and how long they took */
	uint64_t failed;       /* calls that got an error of ours instead */
	uint64_t starts;       /* of processes */
	uint64_t failures;     /* of processes */
	uint64_t failed_at_ms; /* when one failed last, since 1970; 0: never */
	char failure[256];     /* and why */
};

struct backend {
	struct backend_conf conf;
	struct loop *loop;
	struct spawner *spawner;
	struct list children;
	size_t count;          /* of children that are not gone */
	size_t reserved;       /* places of those that wait for the back-off to pass */
	unsigned int failures; /* starts that failed, in a row */
	unsigned int crashes;  /* of young processes that had not answered a single call */
	uint64_t crashed_at_ms;
	uint64_t next_start_at_us; /* at the permitted rate; there may be several a millisecond */
	uint64_t retry_at_ms;
	struct backend_stats stats;
	struct backlog backlog;       /* of its processes' stderr */
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

/* A process that was ready at that time has answered a call. */
void backend_note_answered(struct backend *backend, uint64_t ready_at_ms);

/* It failed after that, at once: without having answered a call. REL-29 */
void backend_note_crashed(struct backend *backend, uint64_t ready_at_ms);

/* Whether all backends together have as many processes as they may. */
bool backend_is_fleet_full(const struct backend *backend);
/* Whether it has as many as it may itself. */
bool backend_is_full(const struct backend *backend);
/* Whether there may be another process now. */
bool backend_has_room(const struct backend *backend);
/* Keeps a place for a process that is to be started; and gives it back. */
void backend_reserve(struct backend *backend);
void backend_release(struct backend *backend);
/* The same for processes themselves. Called by child. */
void backend_count_child(struct backend *backend, bool is_new);

/* Why a process has failed, for the operator. */
void backend_note_failure(struct backend *backend, const char *error, const char *exit);
/* The operator wants another try: what has failed before does not count. */
void backend_forget_failures(struct backend *backend);

/* Frees what it keeps; its children must be gone. */
void backend_fini(struct backend *backend);
/* SIGKILL to all that is left. */
void backend_kill_all(struct backend *backend);

#endif
