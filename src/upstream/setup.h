/* SPDX-License-Identifier: Apache-2.0 */
/* What a server is told at its start, and who it is asked for. */
#ifndef MCPGATED_UPSTREAM_SETUP_H
#define MCPGATED_UPSTREAM_SETUP_H

#include "base/buf.h"
#include "jsonrpc/msg.h"

struct revision;
struct upstream_era;

/* What the owner's handshake says; borrowed while it is the owner's. */
struct upstream_setup {
	struct msg *initialize;          /* the request; NULL: of the modern era, and nobody's */
	const struct revision *revision; /* that is asked for */
	struct buf claims;               /* that the server is told (claims.h) */
	const struct upstream_era *era;  /* NULL: legacy */
	struct buf capabilities;         /* of its clients, as the modern era says it: JSON text */
};

#endif
