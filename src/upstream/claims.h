/* SPDX-License-Identifier: Apache-2.0 */
/* What the process of a server is told of its principal: `${claim:NAME}` in its env. AUTH-DWN-02 */
#ifndef MCPGATED_UPSTREAM_CLAIMS_H
#define MCPGATED_UPSTREAM_CLAIMS_H

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

struct server_conf;
struct principal;

/*
 * Appends what the server declares, as the principal's last token has it, in the form of IPC_START; nothing if it
 * declares nothing. -1: one of them is missing, which is logged.
 */
int claims_append(struct buf *out, const struct server_conf *conf,
		  const struct principal *principal) must_check;

#endif
