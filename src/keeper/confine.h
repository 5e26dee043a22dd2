/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confinement of the processes that face the network: code execution there must not become code
 * execution on the host. Each measure is logged in one line (CONFINE): on, or why not. SEC-61,
 * DEF-20, DEF-24.
 */
#ifndef MCPGATED_KEEPER_CONFINE_H
#define MCPGATED_KEEPER_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

struct confinement {
	/*
	 * For what talks to other hosts (mcpgated-fetch, mcpgated-remote): may connect, start
	 * threads (to resolve names) and read the files that resolving needs; a deny-list replaces
	 * the allow-list.
	 */
	bool fetches;
	uint16_t port; /* if it does, the only one (TCP) that it may connect to; 0: any */
};

/*
 * Applies all measures that the kernel and the process's rights allow; one that fails is logged and
 * the rest is applied. Afterwards the process opens no files, makes no connections, starts nothing,
 * and cannot undo any of it. A system call that is not on the list in confine.c terminates it, with
 * one line in the log (GATEWAY_FORBIDDEN). Clears the parent-death signal if the user changes.
 */
void confine_apply(const struct confinement *what);

#endif
