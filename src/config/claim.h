/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `${claim:NAME}` in values of env: replaced, for each process, with the claim in its caller's
 * token. AUTH-DWN-02
 */
#ifndef MCPGATED_CONFIG_CLAIM_H
#define MCPGATED_CONFIG_CLAIM_H

#include <stdbool.h>

#include "base/check.h"
#include "base/slice.h"
#include "config/config.h"

#define CLAIM_NAME_MAX 64
#define CLAIMS_MAX 8 /* per server */

/*
 * Removes from *text everything up to and including its first claim; sets *before_r to the text
 * before the claim, and *name_r to its name. Returns 1; 0 if there is no claim (*before_r is the
 * whole text); -1 if the claim is malformed.
 */
int claim_cut(struct slice *text, struct slice *before_r, struct slice *name_r) must_check;
/* Whether the text contains the beginning of a claim. */
bool claim_is_in(const char *text);
/* Whether the text consists of claims only. */
bool claim_is_alone(const char *text);
/* Collects in server->conf the claim names that its values of env need, each once. */
void claim_collect(struct config_server *server);

#endif
