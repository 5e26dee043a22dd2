/* SPDX-License-Identifier: Apache-2.0 */
/* What a server is told when it starts, and on whose behalf. */
#ifndef MCPGATED_UPSTREAM_SETUP_H
#define MCPGATED_UPSTREAM_SETUP_H

#include "base/buf.h"
#include "jsonrpc/msg.h"

struct revision;
struct upstream_era;

/* The owner's handshake; borrowed while the upstream has this owner. */
struct upstream_setup {
	struct msg *initialize; /* the request; NULL: modern era, and for no client in particular */
	const struct revision *revision; /* the one requested */
	struct buf claims;               /* that the process gets (claims.h) */
	const struct upstream_era *era;  /* NULL: legacy */
	struct buf capabilities; /* of its clients, in the form of the modern era: JSON text */
};

#endif
