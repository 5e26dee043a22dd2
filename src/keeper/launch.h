/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting one process of a configured server. All that it needs (arguments, environment, places to
 * look for the command) is prepared when the daemon starts, so that nothing but plain system calls
 * happens between fork and exec. FRONT-SEC-08, BACK-PROC-03, SEC-60.
 */
#ifndef MCPGATED_KEEPER_LAUNCH_H
#define MCPGATED_KEEPER_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "keeper/reaper.h"

struct launch_spec {
	char **candidates; /* paths to execute: the first that is there */
	const char **argv; /* the strings are the configuration's */
	char **envp;
	const struct config_server *server;
	bool has_user; /* uid, gid and groups are set */
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	int group_count;
	struct rlimit open_files;
};

struct launch {
	struct launch_spec
		*specs; /* SERVERS_MAX: one per server of config; all zeros where there is none */
	const struct config *config;
	struct rlimit open_files; /* what the daemon itself was given */
	pid_t keeper_pid;
};

/* What a started process reports before it is the server's: read from verdict_fd. */
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
	int verdict_fd; /* non-blocking: a struct launch_verdict, or the end if exec succeeded */
};

/*
 * Prepares all servers; fails if there is no such user as one of them shall run as. The configuration is
 * borrowed as long as launch is used. launch_fini is due in both cases.
 */
int launch_init(struct launch *launch, const struct config *config, struct error *err) must_check;
void launch_fini(struct launch *launch);
/*
 * Prepares one anew, after its record in the configuration has changed; the array of servers is where it was. Fails as
 * launch_init; then it must not be started.
 */
int launch_renew(struct launch *launch, size_t server, struct error *err) must_check;
/* Raises the daemon's own limit of open files; the children get the old one. */
void launch_raise_limits(struct launch *launch);
/*
 * Reads the files of a server's secrets again: the next process gets what they hold now. A secret whose file cannot
 * be read stays as it was. AUTH-DWN-05
 */
void launch_renew_secrets(struct launch *launch, size_t server);

/*
 * Makes a process of `spec`, one of launch's or a copy of one, in the cgroup of cgroups_make (-1: none). Returns 0
 * (all descriptors are the caller's), or -1 with *error_r an errno. Whether exec succeeds is told by the verdict.
 * Where the server has no user, sandbox, directory and limits of its own, it shares the memory of this process until it
 * executes (keeper/new_process.h).
 */
int launch_start(const struct launch *launch, const struct launch_spec *spec,
		 const struct reaper *reaper, int cgroup_fd, struct launched *launched_r,
		 int *error_r) must_check;

/* The step in words, like "cannot execute the command". */
const char *launch_step_text(int step);

/* What the cause may be, to be appended to the text of the failure: "; ...", or "". */
const char *launch_hint(const struct launch_verdict *verdict, const char *command);

#endif
