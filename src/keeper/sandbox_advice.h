/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to add to a configuration so that a sandbox allows what it refuses. Only advice: a path is compared to the rules
 * by name, and what a server writes is believed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "config/config.h"

/*
 * Each appends the line to add, like servers.NAME.sandbox.read: ["/srv"], and returns true; false: the sandbox allows
 * that, or nothing can be said.
 */

/* For these rights (enum landlock_fs) at an absolute path; where nothing is there, it is about to be created. */
bool sandbox_advise_path(const struct config_server *server, const char *path, uint64_t wanted,
			 struct buf *out);
/* For connecting to a TCP port, or listening on it. */
bool sandbox_advise_port(const struct config_server *server, uint64_t port, bool listens,
			 struct buf *out);
/* For connecting to a unix socket, or making one, at a path; where none is, nothing can be said. */
bool sandbox_advise_socket(const struct config_server *server, const char *path, struct buf *out);
/* For what a line of a server's output, or an error message of it, says was refused. */
bool sandbox_advise_line(const struct config_server *server, struct slice line, struct buf *out);
