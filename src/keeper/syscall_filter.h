/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system call filter of a sandbox: what Landlock does not cover and servers do not need.
 * Sockets by an allow-list of families and protocols, no access to other processes, no way into
 * other parts of the kernel. SEC-62
 */
#pragma once

#include <stdbool.h>

#include "base/check.h"

/* What is allowed. */
struct syscall_grants {
	bool tcp; /* sockets; Landlock limits the ports */
	bool udp;
	bool listen;
	bool unix_sockets;
	bool attributes; /* mode and times of files that the user owns */
};

/* Whether the kernel supports such filters. */
bool syscall_filter_is_known(void);

/*
 * Applies to this process and its future children; no_new_privs must be set. Returns 0, or -1 with
 * errno. Async-signal-safe.
 */
int syscall_filter_enter(const struct syscall_grants *grants) must_check;

/*
 * Likewise, for every server, as far as the kernel can: refuses splice(2) and sendfile(2), so that
 * programs read and write instead. While these wait they hold the lock of a pipe, and the gateway
 * would wait uninterruptibly at the other end. REL-26
 */
void syscall_filter_enter_always(void);
