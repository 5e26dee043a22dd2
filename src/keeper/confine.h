/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confinement of the process that faces the network: code execution there must not be code execution
 * on the host. Every measure is one log line (CONFINE): on, or why not. SEC-61, DEF-20, DEF-24.
 */
#ifndef MCPGATED_KEEPER_CONFINE_H
#define MCPGATED_KEEPER_CONFINE_H

#include <stdbool.h>

/*
 * Applies all measures that kernel and rights allow; a measure that fails is logged and the rest is
 * applied. Afterwards the process opens no file, connects nowhere, starts nothing and cannot take any
 * of it back. Clears the parent-death signal if the user changes.
 *
 * fetches   it has to ask issuers for keys: it may connect, start threads (they resolve names) and read
 *           the files that resolving names needs, nothing else
 */
void confine_apply(bool fetches);

#endif
