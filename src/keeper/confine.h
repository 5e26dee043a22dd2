/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confinement of the processes that face the network: code execution there must not be code execution
 * on the host. Every measure is one log line (CONFINE): on, or why not. SEC-61, DEF-20, DEF-24.
 */
#ifndef MCPGATED_KEEPER_CONFINE_H
#define MCPGATED_KEEPER_CONFINE_H

#include <stdbool.h>

/*
 * Applies all measures that kernel and rights allow; a measure that fails is logged and the rest is
 * applied. Afterwards the process opens no file, connects nowhere, starts nothing and cannot take any
 * of it back; a system call that is not on the list in confine.c ends it with one line in the log (GATEWAY_FORBIDDEN).
 * Clears the parent-death signal if the user changes.
 *
 * fetches   it has to ask issuers (mcpgated-fetch): it may connect, start threads (they resolve names) and read
 *           the files that resolving names needs; a list of what is forbidden takes the place of that of what is allowed
 */
void confine_apply(bool fetches);

#endif
