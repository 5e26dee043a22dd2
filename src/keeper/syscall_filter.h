/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of a sandbox: what Landlock does not see and a server has no use for. Sockets by an allow-list of
 * families and protocols, nothing about other processes, no way into other parts of the kernel. SEC-62
 */
#ifndef MCPGATED_KEEPER_SYSCALL_FILTER_H
#define MCPGATED_KEEPER_SYSCALL_FILTER_H

#include <stdbool.h>

#include "base/check.h"

/* What is not refused. */
struct syscall_grants {
	bool tcp; /* sockets; to which ports is Landlock's */
	bool udp;
	bool listen;
	bool unix_sockets;
	bool attributes; /* rights and times of files, of those that the user owns */
};

/* Whether the kernel has such filters. */
bool syscall_filter_is_known(void);

/*
 * From now on for this process and its children; no_new_privs must be set. Returns 0 or -1 with errno.
 * Async-signal-safe.
 */
int syscall_filter_enter(const struct syscall_grants *grants) must_check;

/*
 * Likewise, for every server, as far as the kernel can: refuses splice(2) and sendfile(2); programs then read and
 * write instead. While they wait they hold the lock of a pipe; the gateway would wait uninterruptibly at its other end. REL-26
 */
void syscall_filter_enter_always(void);

#endif
