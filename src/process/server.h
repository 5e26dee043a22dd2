/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One configured server: how many processes it may have, and whether another may be started now. When it
 * may be tried again after a failure is process/backoff.
 */
#ifndef MCPGATED_PROCESS_SERVER_H
#define MCPGATED_PROCESS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/needs.h"
#include "policy/permissions.h"
#include "policy/call_limits.h"
#include "policy/pins.h"
#include "process/backoff.h"
#include "process/call_stats.h"
#include "process/era.h"
#include "process/stderr_ring.h"
#include "process/spawn.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "obs/latency_histogram.h"
#include "obs/reason.h"
#include "policy/redact.h"
#include "policy/sanitize.h"

/* What was used a moment ago is not idle: between two calls of one client often is one. */
#define SERVER_IDLE_MS 2000
/* Their numbers are below: those of a configuration (YAML_ITEMS_MAX), and as many of those before it. */
#define SERVERS_MAX 8192

/* Whom one process serves. bridging.md §1.2 */
enum isolation { ISOLATION_SESSION, ISOLATION_PRINCIPAL, ISOLATION_SHARED };

/* Whether a session that does nothing gives its process to another one. */
enum reclaim_mode { RECLAIM_NEVER, RECLAIM_IDLE };

/* As the configuration calls it. */
const char *isolation_name(enum isolation isolation);

/* What all servers share. */
struct fleet {
	size_t count; /* of processes, and of places reserved */
	size_t max;
};

/* Calls of this tool may take so long. */
struct tool_timeout {
	struct slice tool;
	uint64_t timeout_ms;
};

struct tool_timeouts {
	struct tool_timeout *items;
	size_t count;
};

/* What keeps its processes in: lists of words for people, with commas; empty: nothing. */
struct server_confinement {
	char in_force[160];
	char lacking[96]; /* what the kernel cannot do */
};

/* Filled by the options of the configuration; what follows from them comes last. */
struct server_conf {
	const char *name; /* borrowed for the server's life, as is everything here */
	enum isolation isolation;
	enum era era;    /* that it is spoken to in */
	bool never_asks; /* it sends clients no requests: they are told of no capabilities */
	bool tells_progress; /* while it waits for what a modern client is asked: that it is being worked on */
	uint64_t pool_max; /* processes at most */
	uint64_t pool_min; /* kept running, with ISOLATION_SHARED */
	uint64_t warm;     /* started ahead, with the others */
	/* of those that one session has for itself: */
	enum reclaim_mode reclaims; /* where no more may be started */
	uint64_t share_percent;     /* of pool_max, that one caller may keep while others wait */
	uint64_t sleep_after_ms; /* one whose session was idle for so long is stopped; 0: never */
	uint64_t start_rate;     /* starts a second; 0: any number */
	/* of processes that sessions share: */
	uint64_t calls_per_process;
	uint64_t queue_calls;      /* that wait because all processes are busy */
	uint64_t queue_timeout_ms; /* and for how long */
	uint64_t idle_ms;          /* a process without a call for so long is stopped */
	uint64_t
		remember_ms; /* what the last one said of the server is told for so long; 0: not at all */
	uint64_t max_age_ms; /* gets no more calls then; 0: never */
	uint64_t sessions_per_process;
	bool is_tried; /* started once with the gateway, to see what it is */
	uint64_t start_timeout_ms;
	uint64_t backoff_min_ms;
	uint64_t backoff_max_ms;
	uint64_t give_up_after; /* failed starts in a row, before callers are refused at once */
	uint64_t stop_grace_ms; /* from the end of its stdin to SIGTERM */
	uint64_t stop_term_ms;  /* from SIGTERM to SIGKILL */
	uint64_t request_timeout_ms;
	uint64_t request_timeout_max_ms;
	struct tool_timeouts tool_timeouts;
	struct permissions permissions; /* what of it may be used */
	struct needs needs;             /* which scopes that takes */
	struct call_limits limits;      /* how often, and how many at once, by each caller */
	enum pin_mode pin;              /* what becomes of definitions that nobody has approved */
	bool checks_schemas; /* arguments of calls are held against the schemas of tools. SEC-59 */
	struct sanitize_rules sanitize;
	struct redact_rules redact;
	uint32_t server;      /* its number for the keeper */
	struct fleet *fleet;  /* NULL: none */
	struct slices claims; /* of its principal, that a process is told */
	struct server_confinement confinement;
	uint64_t line_max;  /* bytes of one line of stdout */
	uint64_t queue_max; /* bytes that may wait for one process's stdin */
	uint64_t stall_ms;  /* a process that takes nothing for so long is hung */
};

/* The time-out of calls of one tool; 0: the usual one. */
uint64_t server_tool_timeout_ms(const struct server_conf *conf, struct slice tool);

/* What has happened since the start, to all servers that have had the name: what a reload changes begins nothing anew. */
struct server_stats {
	size_t users;                      /* servers */
	struct latency_histogram answered; /* calls, and how long they took */
	struct call_stats calls;           /* the same by what they were and how they ended */
	uint64_t failed;                   /* calls that got an error of ours instead */
	uint64_t starts;                   /* of processes */
	uint64_t failures;                 /* of processes */
	uint64_t ends[REASON_COUNT];       /* of processes */
	uint64_t failed_at_ms;             /* when one failed last, since 1970; 0: never */
	char failure[256];                 /* and why */
	struct sanitize_counts sanitized;  /* in what they wrote */
	struct redact_counts redacted;
	struct redact_pace redact_pace;
	struct stderr_ring stderr_ring; /* what their processes wrote there */
};

struct server {
	struct server_conf conf;
	struct loop *loop;
	struct spawner *spawner;
	struct list children;
	size_t count;    /* of children that are not gone */
	size_t reserved; /* places for processes that wait for the back-off to pass */
	struct era_verdict verdict;
	uint64_t restarts;      /* that the operator has ordered */
	struct backoff backoff; /* is told of starts that succeed or fail, and of crashes */
	struct server_stats *stats;
	struct call_counts own;        /* what of that it has done itself */
	struct pins pins;              /* empty with PIN_OFF */
	struct pin_memory *pin_memory; /* for the next gateway; NULL: there is none */
	uint64_t pins_told_since_ms;
	unsigned int pins_told;       /* lines of the log since then */
	bool pins_have_overflown;     /* which was logged */
	uint64_t full_quiet_until_ms; /* until then SERVER_FULL is not logged again */
	size_t users; /* who refer to it, besides its children: it must not be freed */
	bool is_retired; /* a reload has another one in its place, or none: sessions that it has go on */
};

/* A call was answered, after so long; was given an error of ours. Both are counted for its name as well. */
void server_note_answer(struct server *server, uint64_t took_ms, uint64_t now_ms);
void server_note_failed_call(struct server *server);

/* Whether nobody refers to a server any more, and it has no processes. */
bool server_is_unused(const struct server *server);
/* A reload has changed what is no matter of processes: takes that over. All borrowed likewise. */
void server_take_rules(struct server *server, const struct server_conf *conf);

void server_init(struct server *server, struct loop *loop, struct spawner *spawner,
		 const struct server_conf *conf);
/* What has happened to the other, before and from now on, has happened to this one as well: it takes the other's place. */
void server_share_stats(struct server *server, const struct server *other);

/*
 * Whether a process may be started. Returns REASON_NONE, and in *wait_ms_r how long to wait first; or why not,
 * and in *wait_ms_r how long a caller should wait before it asks again.
 */
enum reason server_admit(struct server *server, uint64_t *wait_ms_r);

/* Whether all servers together have as many processes as they may. */
bool server_is_fleet_full(const struct server *server);
/* Whether it has as many as it may itself. */
bool server_is_full(const struct server *server);
/* Whether there may be another process now. */
bool server_has_room(const struct server *server);
/* How many of its processes one caller may keep while others wait for one. */
size_t server_share(const struct server *server);
/* Keeps a place for a process that is to be started, and gives it back. */
void server_reserve(struct server *server);
void server_release(struct server *server);
/* The same for processes themselves. Called by child. */
void server_count_child(struct server *server, bool is_new);

/* Why a process has failed, for the operator. */
void server_note_failure(struct server *server, const char *error, const char *exit);
/* Frees what it keeps; its children must be gone. */
void server_fini(struct server *server);

#endif
