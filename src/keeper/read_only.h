/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mount namespace in which all but the directories for writing is read-only. Landlock does not see chmod, utimes and
 * their kin; on what is mounted read-only the kernel refuses them. Only root can make one, and not in every container.
 */
#ifndef MCPGATED_KEEPER_READ_ONLY_H
#define MCPGATED_KEEPER_READ_ONLY_H

#include <stdbool.h>

#include "base/check.h"
#include "config/config.h"

/*
 * Finds out whether this process can make one, in a child, if any server is to have one. read_only_is_possible says so in
 * it and in its children.
 */
void read_only_probe(const struct config *config);

/* Whether the server is to be put into one: it has a sandbox and directories for writing, and it can be had. */
bool read_only_is_possible(const struct config_server *server);

/*
 * Puts this process, which has the capability to, into one. Returns 0, or -1 with errno. Paths that are not there are
 * left out. Async-signal-safe.
 */
int read_only_enter(const struct config *config, const struct config_server *server) must_check;

#endif
