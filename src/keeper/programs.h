/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's other programs. They are opened once, at startup, so that later installations do not
 * mix with what runs. Each is executed anew, to get its own address layout, libraries and memory.
 * SEC-61.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/config.h"
#include "io/ipc.h"
#include "keeper/records.h"

struct handover;

/* ---- memory files ---- */

/* Anonymous files that processes of the daemon pass to each other. */

/* A sealed, immutable file with this content. Returns a descriptor (close-on-exec), or -1. */
int memory_file_sealed(const char *name, struct slice content, struct error *err) must_check;
/* Likewise, with what `print` writes about the configuration, which may be secret. */
int memory_file_printed(const char *name, void (*print)(const struct config *config, FILE *out),
			const struct config *config, struct error *err) must_check;
/* Likewise, with `size` random bytes, at most MEMORY_FILE_RANDOM_MAX. */
#define MEMORY_FILE_RANDOM_MAX 64
int memory_file_random(const char *name, size_t size, struct error *err) must_check;
/*
 * `size` zero bytes, to be mapped and written by its holders; the size is fixed. Returns as above.
 */
int memory_file_shared(const char *name, size_t size, struct error *err) must_check;

enum program { PROGRAM_GATEWAY, PROGRAM_FETCHER, PROGRAM_STORE, PROGRAM_REAPER, PROGRAM_COUNT };

struct programs {
	int fds[PROGRAM_COUNT]; /* close-on-exec */
};

/*
 * Opens all of them: next to the running program (in a build), else in libexecdir/mcpgated. Returns
 * 0, or -1 with nothing open, and err says what is missing and where.
 */
int programs_open(struct programs *programs_r, struct error *err) must_check;
/*
 * Writes them for the next program; the one that falls back takes them: those at their places are not
 * its own any more. False: they are not there.
 */
void programs_hand_over(const struct programs *programs, struct handover *to);
bool programs_take(struct programs *programs_r, struct handover *from) must_check;
/*
 * Where a program of ours may be that is started by its path, as those of servers are: next to the
 * running program, and in libexecdir/mcpgated. A list that ends with NULL; the caller frees the
 * texts and the list.
 */
char **programs_find(const char *name) must_check;
void programs_close(struct programs *programs);

/* ---- the reaper ---- */

/*
 * The reaper (mcpgated-reaper): a tiny program that briefly outlives the keeper. It knows the
 * children's process groups, and kills them and removes their cgroups if the keeper is gone without
 * having done so itself (`kill -9`). The kernel's parent-death signal reaches only the children,
 * not what they have started. BACK-PROC-03, REL-43.
 */

struct reaper {
	const struct programs *programs; /* borrowed */
	const char *cgroups; /* the parent directory of the children's cgroups, or NULL; borrowed */
	int fd;              /* our end of its pipe, which closes with the keeper; -1: no reaper */
	pid_t pid;
};

/*
 * Starts it with reaper->programs and reaper->cgroups. It ends with the keeper or with reaper_stop.
 */
int reaper_start(struct reaper *reaper, struct error *err) must_check;
/*
 * Adds a group to kill; removes one that has ended. Async-signal-safe; false: the reaper cannot be
 * told.
 */
bool reaper_add(const struct reaper *reaper, pid_t group);
bool reaper_remove(const struct reaper *reaper, pid_t group);
/* Makes it kill the groups that it knows and exit; the caller reaps it. */
void reaper_stop(struct reaper *reaper);
/* Kills all other children of this process, including adopted ones. */
void reaper_kill_siblings(const struct reaper *reaper);

/* ---- the gateway ---- */

/*
 * The process that runs the gateway: starts it, and decides when to restart it. REL-43.
 *
 *	off -> running -> off …
 */

/*
 * It is restarted after up to this many deaths within GATEWAY_DEATHS_WINDOW_MS; one more ends the
 * daemon.
 */
#define GATEWAY_DEATHS_MAX 5
#define GATEWAY_DEATHS_WINDOW_MS 60000

struct gateway_process {
	pid_t pid;                              /* 0: off */
	int fd;                                 /* our end of the socket, or -1 */
	bool is_closed;                         /* its end is: nothing comes until it is reaped */
	uint64_t deaths_ms[GATEWAY_DEATHS_MAX]; /* the latest, as a ring */
	size_t death_count;
	uint64_t restart_at_ms; /* while off: when to restart it */
};

/* It may be started at once. */
void gateway_process_init(struct gateway_process *process);
/*
 * Creates a memory file for a gateway: the numbers of the servers of its configuration. Returns a
 * descriptor, or -1.
 */
int gateway_process_number_servers(const uint32_t *numbers, size_t count, struct error *err)
	must_check;
/*
 * Starts it with fds[i] as descriptor i, by enum gateway_descriptor (-1: closed); all borrowed. The
 * standard ones and GATEWAY_KEEPER are filled in here.
 */
int gateway_process_start(struct gateway_process *process, const struct programs *programs,
			  int *fds, size_t count, struct error *err) must_check;
/* It has been reaped: sets restart_at_ms. False: it has died too often. */
bool gateway_process_on_exit(struct gateway_process *process);

/* ---- helpers ---- */

/*
 * Processes that connect where the gateway may not: to issuers and the trace collector
 * (mcpgated-fetch), to the cluster's store (mcpgated-store); each if that is configured. Each gateway
 * has its own, started after it, and receives the other end of its socket in a message. A process
 * that dies is restarted after increasing delays; the daemon continues meanwhile.
 *
 *	off -> running -> off …
 */

/* What its program gets, and nothing else, not even an environment. 0 and 1 are the null device. */
enum helper_descriptor {
	HELPER_LOG = 2,      /* a pipe to the keeper: records.h */
	HELPER_GATEWAY = 3,  /* protocol: io/ipc.h */
	HELPER_CONFIG = 4,   /* a memory file: what config_print_for_fetcher or _for_store writes */
	HELPER_SESSIONS = 5, /* of mcpgated-store, to read: the gateway's GATEWAY_SESSIONS */
	HELPER_STREAMS = 6,  /* likewise: GATEWAY_STREAMS */
	HELPER_DESCRIPTORS
};

struct helper_process {
	enum ipc_helper which;
	const struct programs *programs;
	int sessions;    /* a memory file for HELPER_SESSIONS, borrowed; -1: not for it */
	int streams;     /* likewise, for HELPER_STREAMS */
	int config;      /* a memory file; -1: it is not needed, and all functions are no-ops */
	int gateway_fd;  /* of the gateway it serves, borrowed; -1: none */
	int gateway_end; /* of the socket pair, until the gateway has it; else -1 */
	struct log_relay log_relay;
	pid_t pid; /* 0: off */
	bool is_stopped;
	unsigned int failures; /* consecutive */
	uint64_t started_ms;
	uint64_t restart_at_ms;
};

int helper_process_init(struct helper_process *process, enum ipc_helper which,
			const struct config *config, const struct programs *programs,
			struct error *err) must_check;
void helper_process_fini(struct helper_process *process);
/*
 * The process started for the next gateway will have this configuration. -1: the configuration
 * cannot be written.
 */
int helper_process_renew(struct helper_process *process, const struct config *config,
			 struct error *err) must_check;

/* There is another gateway, or none (-1). Kills the process of the previous one. */
void helper_process_set_gateway(struct helper_process *process, int gateway_fd);
/* Starts the process if due; returns when it will be, or UINT64_MAX. */
uint64_t helper_process_do_due(struct helper_process *process);
/* The process has been reaped. */
void helper_process_on_exit(struct helper_process *process, int status);

/* Sends the gateway its end, if it has not got it and the socket has room. */
void helper_process_tell(struct helper_process *process);
bool helper_process_has_untold(const struct helper_process *process);
