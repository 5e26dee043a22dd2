/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where messages from servers enter: each is changed as its server's rules require (sanitize,
 * redact) before any of it is read, kept or passed on. So what is checked is what clients get, and
 * what is kept for many clients is scanned only once. SEC-52, SEC-53
 */
#ifndef MCPGATED_UPSTREAM_INTAKE_H
#define MCPGATED_UPSTREAM_INTAKE_H

#include <stdbool.h>

#include "base/buf.h"
#include "jsonrpc/scan.h"

struct msg;
struct server;

/* All zeros initially. */
struct intake {
	struct buf text; /* the changed message */
	struct envelope env;
};

/*
 * Returns the message to pass on: `env` itself if nothing changes, else one borrowed from `intake`.
 * Its id stays as written. All messages are sanitized. Results, errors and notifications are also
 * redacted, including any other members beside them, but not the members that make it a message
 * (jsonrpc, id, method).
 *
 * redacts   false: it belongs to the handshake, whose text must not be redacted
 *
 * Returns NULL if the redacted text is no longer a message (for example, because member names
 * became equal).
 */
const struct envelope *intake_take(struct intake *intake, struct server *server,
				   const struct scan_limits *limits, bool redacts,
				   const struct envelope *env);
/*
 * A message that is not redacted and was kept as the server wrote it, under the rules in use now.
 * NULL likewise.
 */
struct msg *intake_again(struct server *server, const struct scan_limits *limits,
			 struct slice text);
void intake_fini(struct intake *intake);

#endif
