/* SPDX-License-Identifier: Apache-2.0 */
/* `${claim:NAME}` in values of env: what a token says about its caller, put in for one process. AUTH-DWN-02 */
#ifndef MCPGATED_CONFIG_CLAIM_H
#define MCPGATED_CONFIG_CLAIM_H

#include <stdbool.h>

#include "base/check.h"
#include "base/slice.h"
#include "config/config.h"

#define CLAIM_NAME_MAX 64
#define CLAIMS_MAX 8 /* of one server */

/*
 * Takes what stands before the first claim of *text off into *before_r, and its name into *name_r. Returns 1, 0 if
 * there is none (*before_r is all of it), -1 if what begins as one is none.
 */
int claim_cut(struct slice *text, struct slice *before_r, struct slice *name_r) must_check;
/* Whether the text has something that begins as a claim. */
bool claim_is_in(const char *text);
/* Whether nothing but claims is in it. */
bool claim_is_alone(const char *text);
/* Notes in server->conf, each once, the names that values of its env need. */
void claim_collect(struct config_server *server);

#endif
