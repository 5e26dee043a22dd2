/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claims for the start of one process: what the gateway sends is checked against what the
 * server declares, and put into its environment. Nothing that the gateway sends is trusted.
 * AUTH-DWN-02, -03
 */
#ifndef MCPGATED_KEEPER_CLAIMS_H
#define MCPGATED_KEEPER_CLAIMS_H

#include <stddef.h>

#include "base/check.h"
#include "base/slice.h"
#include "config/config.h"

/*
 * Builds the environment of one process from `envp`, its server's, and from "NAME\0VALUE\0…"
 * (empty: none). Returns NULL and sets *envp_r, which is freed with claims_free_env; or returns why
 * the claims are refused.
 */
const char *claims_make_env(const struct config_server *server, char **envp, struct slice text,
			    char ***envp_r) must_check;
/* Overwrites and frees what claims_make_env made; no-op if that was the server's own envp. */
void claims_free_env(char **envp, char **made);

#endif
