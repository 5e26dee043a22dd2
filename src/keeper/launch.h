/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts one process of a configured server. All that it needs (arguments, environment, places to
 * look for the command) is prepared when the daemon starts, so that only plain system calls happen
 * between fork and exec. FRONT-SEC-08, BACK-PROC-03, SEC-60.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/config.h"
#include "keeper/programs.h"

struct launch_spec {
	char **candidates; /* paths to execute: the first one that exists */
	const char **argv; /* the strings belong to the configuration */
	char **envp;
	char message_bytes[24]; /* an argument of mcpgated-remote */
	const struct config_server *server;
	bool has_user; /* uid, gid and groups are set */
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	int group_count;
	struct rlimit open_files;
};

struct launch {
	struct launch_spec *specs; /* one per server of config; zeroed where there is none */
	const struct config *config;
	struct rlimit open_files; /* the daemon's own limit at startup */
	pid_t keeper_pid;
	uint64_t not_default; /* signals to reset in a process: 1 << (number - 1); at first all */
};

/* What a started process reports before it executes the server: read from verdict_fd. */
struct launch_verdict {
	int step;  /* enum launch_step */
	int error; /* errno */
};

enum launch_step {
	LAUNCH_SETUP,
	LAUNCH_CGROUP,
	LAUNCH_USER,
	LAUNCH_CWD,
	LAUNCH_SANDBOX,
	LAUNCH_SANDBOX_READ,
	LAUNCH_SANDBOX_WRITE,
	LAUNCH_EXEC
};

struct launched {
	pid_t pid;
	int fds[3];     /* our ends of its stdin, stdout, stderr: non-blocking, close-on-exec */
	int verdict_fd; /* non-blocking: a struct launch_verdict, or EOF if exec succeeded */
};

/*
 * The program that is started: the command, or mcpgated-remote for a url. NULL: it has neither,
 * which a configuration without problems does not have.
 */
const char *launch_program(const struct config_server *server);
/*
 * Prepares all servers; fails if a server's configured user does not exist. The configuration is
 * borrowed as long as launch is used, and may grow to `room` servers meanwhile. launch_fini must
 * follow in both cases.
 */
int launch_init(struct launch *launch, const struct config *config, size_t room, struct error *err)
	must_check;
void launch_fini(struct launch *launch);
/*
 * Prepares a server again after its configuration has changed; the array of servers must not have
 * moved. Fails like launch_init; then the server must not be started.
 */
int launch_renew(struct launch *launch, size_t server, struct error *err) must_check;
/*
 * Raises the daemon's own limit of open files; children get the original one, which the program
 * before (`from`) may have raised.
 */
void launch_raise_limits(struct launch *launch, const struct handover *from);
/* Writes the original limit for the next program. */
void launch_hand_over(const struct launch *launch, struct handover *to);
/* Records which signals are ignored: only these are reset. They must not change afterwards. */
void launch_note_signals(struct launch *launch);
/*
 * Rereads the server's secret files: the next process gets their current contents. A secret whose
 * file cannot be read keeps its value. AUTH-DWN-05
 */
void launch_renew_secrets(struct launch *launch, size_t server);

/*
 * Starts a process from `spec`, one of launch's or a copy of one, in the cgroup of cgroups_make
 * (-1: none). Returns 0 (the caller owns all descriptors), or -1 with *error_r an errno. The
 * verdict tells whether exec succeeded. If the server has no user, sandbox, directory and limits of
 * its own, the process shares this one's memory until it executes (keeper/new_process.h).
 */
int launch_start(const struct launch *launch, const struct launch_spec *spec,
		 const struct reaper *reaper, int cgroup_fd, struct launched *launched_r,
		 int *error_r) must_check;

/* The step as text, e.g. "cannot execute the command". */
const char *launch_step_text(int step);

/* The likely cause, to be appended to the error text: "; ...", or "". */
const char *launch_hint(const struct launch_verdict *verdict, const struct config *config,
			const char *command);

/* ---- claims ---- */

/*
 * The claims for the start of one process: what the gateway sends is checked against what the
 * server declares, and put into its environment. Nothing that the gateway sends is trusted.
 * AUTH-DWN-02, -03
 */

/*
 * Builds the environment of one process from `envp`, its server's, and from "NAME\0VALUE\0…"
 * (empty: none), with the caller's own files. Returns 0 and sets *envp_r, which is freed with
 * claims_free_env. -1: err has why the claims are refused; with ERROR_BUSY they are as they should be,
 * but there is no usable file for this caller, who may get one later.
 */
int claims_make_env(const struct config *config, const struct config_server *server, char **envp,
		    struct slice text, char ***envp_r, struct error *err) must_check;
/* Overwrites and frees what claims_make_env made; no-op if that was the server's own envp. */
void claims_free_env(char **envp, char **made);
