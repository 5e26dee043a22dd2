/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claims of its principal that a server's process gets: `${claim:NAME}` in its env. AUTH-DWN-02
 */
#ifndef MCPGATED_UPSTREAM_CLAIMS_H
#define MCPGATED_UPSTREAM_CLAIMS_H

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

struct server_conf;
struct principal;

/*
 * Appends the claims that the server declares, with the values of the principal's last token, in
 * the format of IPC_START; nothing if it declares none. Returns -1 if a claim is missing, which is
 * logged.
 */
int claims_append(struct buf *out, const struct server_conf *conf,
		  const struct principal *principal) must_check;

#endif
