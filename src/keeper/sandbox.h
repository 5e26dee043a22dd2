/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox of a server (servers.NAME.sandbox): what every program needs, what the configuration
 * lists, and nothing else. A promise that the kernel cannot keep is refused, never weakened. SEC-62.
 */
#ifndef MCPGATED_KEEPER_SANDBOX_H
#define MCPGATED_KEEPER_SANDBOX_H

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

/* What failed; errno says why. */
enum sandbox_result { SANDBOX_DONE, SANDBOX_READ, SANDBOX_WRITE, SANDBOX_KERNEL };

/* Whether a kernel whose Landlock has this version (below 1: none) can keep what is configured. */
int sandbox_check(const struct config_server *server, int version, struct error *err) must_check;

/* Says what of a server's sandbox is in force with that version, and what the kernel would have to be newer for. */
void sandbox_describe(const struct config_server *server, int version,
		      struct server_confinement *confinement_r);

/* Writes that of the running kernel into the conf of every server, for the reports. */
void sandbox_describe_all(struct config *config, int version);

/*
 * Shuts this process and its future children in: as one of `server`, which is one of config's. `programs` ends with
 * NULL: the paths that may be executed in any case, as far as they are there. Async-signal-safe; no_new_privs must be
 * set.
 */
enum sandbox_result sandbox_enter(const struct config *config, const struct config_server *server,
				  char *const *programs) must_check;

#endif
