/* SPDX-License-Identifier: Apache-2.0 */
/* What the process of a server is told of its principal: `${claim:NAME}` in its env. AUTH-DWN-02 */
#ifndef MCPGATED_ROUTER_CLAIMS_H
#define MCPGATED_ROUTER_CLAIMS_H

#include <stdbool.h>

#include "base/check.h"

struct backend_conf;
struct principal;

/* Whether the principal has all that the server declares. If not, it is logged. */
bool claims_are_there(const struct backend_conf *conf, const struct principal *principal);
/* A pipe with them for the keeper (the caller's); -1: none are declared, or there can be no such pipe. */
int claims_open(const struct backend_conf *conf, const struct principal *principal) must_check;

#endif
