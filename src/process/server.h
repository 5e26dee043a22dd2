/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configured server: how many processes it may have, and whether another may be started now. The
 * delay after a failure is process/backoff.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "obs/latency_histogram.h"
#include "obs/reason.h"
#include "policy/call_limits.h"
#include "policy/permissions.h"
#include "policy/pins.h"
#include "policy/sanitize.h"
#include "policy/shown.h"
#include "process/backoff.h"
#include "process/call_stats.h"
#include "process/era.h"
#include "process/spawn.h"
#include "process/stderr_ring.h"

/* Recently used is not idle: between two calls of one client there is often one. */
#define SERVER_IDLE_MS 2000
/* Server numbers are below: YAML_ITEMS_MAX of a configuration, and as many earlier ones. */
#define SERVERS_MAX 8192

/* Whom one process serves. bridging.md §1.2 */
enum isolation { ISOLATION_SESSION, ISOLATION_PRINCIPAL, ISOLATION_SHARED };

/* Whether an idle session gives up its process to another one. */
enum reclaim_mode { RECLAIM_NEVER, RECLAIM_IDLE };

/*
 * One of the servers that an endpoint over several servers consists of. Clients of the endpoint see
 * its tools and prompts with the prefix before their names.
 */
struct server_leg {
	struct slice server; /* its name */
	struct slice prefix;
};

struct server_legs {
	struct server_leg *items;
	size_t count;
};

/* The server whose prefix a name begins with that clients see; NULL: none, or several. */
const struct server_leg *server_leg_find(const struct server_legs *legs, struct slice shown);

/* As spelled in the configuration. */
const char *isolation_name(enum isolation isolation);

/* Shared by all servers. */
struct fleet {
	size_t count; /* of processes, and of places reserved */
	size_t max;
};

/* The time-out for calls of this tool. */
struct tool_timeout {
	struct slice tool;
	uint64_t timeout_ms;
};

struct tool_timeouts {
	struct tool_timeout *items;
	size_t count;
};

/* The confinement of its processes: words for people, separated by commas; empty: none. */
struct server_confinement {
	char in_force[160];
	char lacking[96]; /* what the kernel cannot do */
	bool only_reports; /* nothing is refused; its stderr tells what would be: CHILD_REPORT_MARK */
};

/* Filled by the options of the configuration; what follows from them comes last. */
struct server_conf {
	const char *name;        /* borrowed for the server's life, as is everything here */
	struct server_legs legs; /* it is an endpoint over these servers; none: it has processes */
	bool searches;           /* an endpoint: its tools are found by a search, and not listed */
	enum isolation isolation;
	enum era era;        /* in which it is addressed */
	bool never_asks;     /* it sends clients no requests: no capabilities are declared to it */
	bool tells_progress; /* reports progress to it while a modern client is being asked */
	uint64_t pool_max;   /* processes at most */
	uint64_t pool_min;   /* kept running, with ISOLATION_SHARED */
	uint64_t warm;       /* started ahead, with the others */
	/* for processes that belong to one session: */
	enum reclaim_mode reclaims; /* when no more may be started */
	uint64_t share_percent;     /* of pool_max, that one caller may keep while others wait */
	/* A process whose session is idle for this long is stopped; 0: never. */
	uint64_t sleep_after_ms;
	uint64_t sleep_gone_ms; /* the same once the client has closed its stream */
	uint64_t start_rate;    /* starts per second; 0: unlimited */
	/* for processes that sessions share: */
	uint64_t calls_per_process;
	uint64_t queue_calls;      /* that wait because all processes are busy */
	uint64_t queue_timeout_ms; /* how long they may wait */
	uint64_t idle_ms;          /* a process without a call for this long is stopped */
	/* How long what the last process said about the server is used; 0: not at all. */
	uint64_t remember_ms;
	uint64_t max_age_ms; /* then it gets no more calls; 0: unlimited */
	uint64_t sessions_per_process;
	bool is_tried; /* started once with the gateway, for a look (upstream/prestart) */
	uint64_t start_timeout_ms;
	uint64_t backoff_min_ms;
	uint64_t backoff_max_ms;
	uint64_t give_up_after; /* consecutive failed starts before callers are refused at once */
	uint64_t stop_grace_ms; /* from closing its stdin to SIGTERM */
	uint64_t stop_term_ms;  /* from SIGTERM to SIGKILL */
	uint64_t request_timeout_ms;
	uint64_t request_timeout_max_ms;
	struct tool_timeouts tool_timeouts;
	struct permissions permissions; /* what clients may use of it */
	struct shown shown;             /* what clients see of it by other names and words */
	struct needs needs;             /* which scopes that requires */
	struct call_limits limits;      /* rate and concurrency of each caller's calls */
	enum pin_mode pin;              /* what happens to definitions that nobody has approved */
	bool checks_schemas; /* arguments of calls are checked against the tools' schemas. SEC-59 */
	struct sanitize_rules sanitize;
	struct redact_rules redact;
	uint32_t server;      /* its number at the keeper */
	struct fleet *fleet;  /* NULL: none */
	struct slices claims; /* of its principal, that a process gets */
	/* Its number, from 1, among the servers whose processes get a token (upstream/credential); 0: they get none. */
	uint32_t credential;
	bool for_caller; /* that token is made for each caller */
	bool in_meta; /* and stands in _meta of each request: the process is no mcpgated-remote */
	struct server_confinement confinement;
	uint64_t line_max;  /* bytes of one line of stdout */
	uint64_t queue_max; /* bytes that may be queued for one process's stdin */
	uint64_t stall_ms;  /* a process that reads nothing for this long is hung */
};

/* It has no processes of its own. */
static inline bool server_is_endpoint(const struct server_conf *conf)
{
	return conf->legs.count > 0;
}

/* The time-out for calls of one tool; 0: the default. */
uint64_t server_tool_timeout_ms(const struct server_conf *conf, struct slice tool);

/* Since the start, for all servers that have had this name: a reload resets nothing. */
struct server_stats {
	size_t users;                      /* servers */
	struct latency_histogram answered; /* calls, and how long they took */
	struct call_stats calls;           /* the same calls by kind and outcome */
	uint64_t failed;                   /* calls that got an error of ours instead */
	uint64_t starts;                   /* of processes */
	uint64_t failures;                 /* of processes */
	bool has_worked;                   /* one has answered its handshake */
	uint64_t ends[REASON_COUNT];       /* of processes */
	uint64_t failed_at_ms;             /* time of the latest failure, since 1970; 0: never */
	char failure[512];                 /* and its cause */
	struct sanitize_counts sanitized;  /* in their output */
	struct redact_counts redacted;
	struct redact_pace redact_pace;
	struct stderr_ring stderr_ring; /* what their processes wrote to stderr */
};

/* Which `deny` entries for tools fit one that the server has listed (router/listing). */
struct deny_watch {
	uint64_t rules; /* as server->rules was; else it is out of date */
	uint64_t
		fitting; /* a bit for each of the first DENY_WATCHED, as permissions_deny_at counts */
	bool is_whole;   /* a list has come to its end */
	uint64_t page;   /* the next one of the list whose pages have all come under these rules */
};
#define DENY_WATCHED 64

struct server {
	struct server_conf conf;
	struct loop *loop;
	struct spawner *spawner;
	struct list children;
	size_t count;    /* of children that are not gone */
	size_t away;     /* of children that say that the server does not work (child->is_away) */
	size_t reserved; /* places for processes that wait for the back-off */
	struct era_verdict verdict;
	uint64_t restarts;        /* ordered by the operator */
	uint64_t rules;           /* how often a reload has changed them */
	uint64_t collisions_told; /* rules + 1, when it was reported that names collide */
	struct deny_watch deny_watch;
	struct backoff backoff; /* notified of starts that succeed or fail, and of crashes */
	struct server_stats *stats;
	struct call_counts own;        /* its own share of that */
	struct pins pins;              /* empty with PIN_OFF */
	struct pin_memory *pin_memory; /* for the next gateway; NULL: none */
	uint64_t pins_told_since_ms;
	unsigned int pins_told;       /* log lines since then */
	bool pins_have_overflown;     /* this was logged */
	uint64_t full_quiet_until_ms; /* SERVER_FULL is not logged again before this time */
	size_t users;    /* references besides its children; unless 0 it must not be freed */
	bool is_retired; /* removed or replaced by a reload; its sessions go on */
};

/* Counts an answered call, and a call that got our own error; also for the server's name. */
void server_note_answer(struct server *server, uint64_t took_ms, uint64_t now_ms);
void server_note_failed_call(struct server *server);

/* Whether it has neither references nor processes. */
bool server_is_unused(const struct server *server);

void server_init(struct server *server, struct loop *loop, struct spawner *spawner,
		 const struct server_conf *conf);
/* Makes it share the statistics of `other`, past and future, which it replaces. */
void server_share_stats(struct server *server, const struct server *other);

/*
 * Whether a process may be started. Returns REASON_NONE, with how long to wait first in *wait_ms_r;
 * or the reason why not, with how long a caller should wait before it retries.
 */
enum reason server_admit(struct server *server, uint64_t *wait_ms_r);

/* Whether all servers together have reached their limit of processes. */
bool server_is_fleet_full(const struct server *server);
/* Whether this server has reached its own limit. */
bool server_is_full(const struct server *server);
/* Whether another process is possible now. */
bool server_has_room(const struct server *server);
/* How many of its processes one caller may keep while others wait. */
size_t server_share(const struct server *server);
/* Reserves a place for a process to be started, and gives it back. */
void server_reserve(struct server *server);
void server_release(struct server *server);
/* Counts the processes themselves. Called by child. */
void server_count_child(struct server *server, bool is_new);

/* Records why a process failed, for the operator. */
void server_note_failure(struct server *server, const char *error, const char *exit);
/*
 * Adds the last line that it wrote to stderr, a part of it if it is long. For one that mcpgated-remote
 * wrote, the line is all: behind a URL there is no process to speak of.
 */
void server_note_last_line(struct server *server, struct slice line);
/* As server_note_failure, of a process that goes on. */
void server_note_away(struct server *server, struct slice error);
/* Whether its processes fail to start, or say that it does not work. */
bool server_is_failing(const struct server *server);
/* Frees what it owns; its children must be gone. */
void server_fini(struct server *server);
