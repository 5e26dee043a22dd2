/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a process that will execute another program, as vfork(2) does or as fork(2) does, in a cgroup from its first
 * instruction on (clone3(2), CLONE_INTO_CGROUP). Where the kernel refuses that, or the processor is one whose few
 * instructions for it nobody has written, it is fork(2), and the new process has to join by itself.
 *
 * With a copy of the memory the new process may do what is allowed after fork(2). With the memory shared this process
 * stands still until the other one executes or ends, which saves copying the page tables and all faults after that. Then
 *
 *	memory        it writes its own stack, below all that is in use here, and errno; so it allocates nothing, has no
 *	              buffer of stdio and no line of the log, and calls no function that keeps something
 *	signals       all are blocked from before it exists until after it has gone, and it has no handlers, which clone3(2)
 *	              takes away: no handler of this program ever runs in it
 *	descriptors, directory, umask, limits, signal handlers, no_new_privs, seccomp, Landlock
 *	              are its own: none of CLONE_FILES, CLONE_FS, CLONE_SIGHAND, CLONE_THREAD is asked for
 *	dumpability   belongs to the memory. A change of the user sets it to fs.suid_dumpable, and for a moment a process of
 *	              that user's could be let at this memory, or stop the new process and this one with it: so it must not
 *	              change its user, its group, or gain capabilities
 *	waiting       this process waits for whatever it waits for: so it must not open what a stranger can make slow. What it
 *	              executes could be leased (fcntl(2)) by a server of the same user: keeper/syscall_filter refuses that
 *	out of memory a cgroup that is full has all processes killed that share the memory of one in it: so it must not be
 *	              put into one whose memory is limited
 *	namespaces    it may not make any: mounting waits, and a user namespace changes what it may do
 *	sanitizers    AddressSanitizer is told that what the other has left on the stack means nothing. It cannot be had with
 *	              ThreadSanitizer, and Valgrind has no clone3(2), so that there it is fork(2)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/check.h"

/* ---- descriptors ---- */

/* Handling of descriptors that the process did not open itself. */

/*
 * Opens the null device where 0, 1 or 2 is closed, so that none of our descriptors gets these
 * numbers.
 */
void descriptors_fill_standard(void);
/*
 * Marks everything from 3 on close-on-exec: what the daemon was started with is not for children.
 */
void descriptors_set_cloexec(void);
/*
 * Makes fds[i] descriptor i, kept open across exec, for each i; closes i where fds[i] is -1, and
 * everything from `count` on. Overwrites fds. Returns 0, or -1 if there are not enough descriptors.
 */
int descriptors_arrange(int *fds, size_t count) must_check;
/* Closes everything from `first` on; async-signal-safe. */
void descriptors_close_from(unsigned int first);

struct new_process {
	/* Runs in it, with all signals blocked. Must end in execve or _exit, and never return. */
	void (*run)(const struct new_process *process);
	bool shares_memory; /* afterwards: whether it did; fork(2) makes a copy */
	int cgroup_fd; /* the directory of the cgroup it is to be in; -1: that of this process */
	/* For `run`: */
	bool is_in_group; /* it is there already; else it has to join */
	bool has_no_handlers; /* every signal is ignored or as by default; else it has this process' handlers */
};

/* Returns its number, or -1 with errno; then there is none, and nothing has run. */
pid_t new_process_make(struct new_process *process);
