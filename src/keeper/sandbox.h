/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox of a server (servers.NAME.sandbox): what every program needs, what the configuration
 * lists, and nothing else. A restriction that the kernel cannot enforce is refused, never weakened.
 * SEC-62.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

/* What failed; errno says why. */
enum sandbox_result { SANDBOX_DONE, SANDBOX_READ, SANDBOX_WRITE, SANDBOX_KERNEL };

/* Checks that a kernel with this Landlock version (below 1: none) can enforce the configuration. */
int sandbox_check(const struct config_server *server, int version, struct error *err) must_check;

/*
 * Describes what of a server's sandbox is in force with that version, and what needs a newer
 * kernel.
 */
void sandbox_describe(const struct config_server *server, int version,
		      struct server_confinement *confinement_r);

/* Writes that for the running kernel into the conf of every server, for reports. */
void sandbox_describe_all(struct config *config, int version);

/*
 * What its rules grant (enum landlock_fs) at a path without links, for reports: the rules are compared by name, and
 * the kernel is not asked.
 */
uint64_t sandbox_rights(const struct config_server *server, const char *path);

/*
 * Confines this process and its future children as `server`, one of config's. `programs`,
 * terminated by NULL: paths that may be executed in any case, if they exist. Async-signal-safe;
 * no_new_privs must be set.
 */
enum sandbox_result sandbox_enter(const struct config *config, const struct config_server *server,
				  char *const *programs) must_check;

/* ---- read-only mounts ---- */

/*
 * A mount namespace in which everything except the writable directories is read-only. Landlock does
 * not cover chmod, utimes and the like; on read-only mounts the kernel refuses them. Only root can
 * create one, and not in every container.
 */

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
