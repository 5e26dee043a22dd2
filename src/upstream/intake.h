/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door in for what servers write: each message is changed as its server's rules say (sanitize, redact) before anything of
 * it is read, kept or passed on. So what is judged is what clients get, and what is kept for many is looked at once. SEC-52,
 * SEC-53
 */
#ifndef MCPGATED_UPSTREAM_INTAKE_H
#define MCPGATED_UPSTREAM_INTAKE_H

#include <stdbool.h>

#include "base/buf.h"
#include "jsonrpc/scan.h"

struct server;

/* All zeros at first. */
struct intake {
	struct buf text; /* of the changed message */
	struct envelope env;
};

/*
 * The message as it goes on: `env` itself if nothing is to be changed, else one that is borrowed from `intake`. Its id stays
 * as it was written. Everything is sanitized; redacted are results, errors and notifications, whatever stands beside them
 * included, but not what makes them a message (jsonrpc, id, method).
 *
 * redacts   false: it belongs to the handshake, whose words must stay
 *
 * NULL: without what was taken out it is no message any more (names of members became one, say).
 */
const struct envelope *intake_take(struct intake *intake, struct server *server,
				   const struct scan_limits *limits, bool redacts,
				   const struct envelope *env);
void intake_fini(struct intake *intake);

#endif
