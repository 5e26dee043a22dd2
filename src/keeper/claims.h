/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claims that come with the start of one process: read from the gateway's pipe, compared with what the server
 * declares, put into its environment. Nothing that the gateway sends is trusted. AUTH-DWN-02, -03
 */
#ifndef MCPGATED_KEEPER_CLAIMS_H
#define MCPGATED_KEEPER_CLAIMS_H

#include <stddef.h>

#include "base/check.h"
#include "config/config.h"

/*
 * Makes the environment of one process out of `envp`, that of its server, and of "NAME\0VALUE\0…" in the pipe fd
 * (-1: none; else all of it must be there already). Returns NULL and *envp_r (end it with claims_free_env), or
 * why this is refused.
 */
const char *claims_make_env(const struct config_server *server, char **envp, int fd, char ***envp_r)
	must_check;
/* Overwrites and frees what claims_make_env made; does nothing if that was the server's own envp. */
void claims_free_env(char **envp, char **made);

#endif
