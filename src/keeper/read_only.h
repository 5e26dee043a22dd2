/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mount namespace in which everything except the writable directories is read-only. Landlock does
 * not cover chmod, utimes and the like; on read-only mounts the kernel refuses them. Only root can
 * create one, and not in every container.
 */
#ifndef MCPGATED_KEEPER_READ_ONLY_H
#define MCPGATED_KEEPER_READ_ONLY_H

#include <stdbool.h>

#include "base/check.h"
#include "config/config.h"

/*
 * Finds out, in a child, whether this process can create one, if any server is to have one. The
 * result is used by read_only_is_possible in this process and its children.
 */
void read_only_probe(const struct config *config);

/*
 * Whether the server gets one: it has a sandbox and writable directories, and namespaces are
 * possible.
 */
bool read_only_is_possible(const struct config_server *server);

/*
 * Puts this process, which must have the capability, into one. Returns 0, or -1 with errno. Skips
 * paths that do not exist. Async-signal-safe.
 */
int read_only_enter(const struct config *config, const struct config_server *server) must_check;

#endif
