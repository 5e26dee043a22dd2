/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The revisions of MCP and what differs between them. Code asks a row; nobody compares the names.
 */
#ifndef MCPGATED_MCP_REVISION_H
#define MCPGATED_MCP_REVISION_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"

struct revision {
	struct slice name;
	bool has_batches; /* JSON-RPC arrays: 2025-03-26 only */
	bool has_modes;   /* elicitation modes and tool use in sampling: from 2025-11-25 */
	bool has_priming; /* event streams begin with an event without data: from 2025-11-25 */
};

/* NULL if `name` is no revision with a handshake that we know. */
const struct revision *revision_find(struct slice name);
/* What is offered to clients that ask for something unknown. FRONT-INIT-01. */
const struct revision *revision_newest(void);
/* Appends {"supported":[…],"requested":requested}; requested is JSON text. FRONT-VER-02. */
void revision_append_supported(struct buf *out, struct slice requested);

#endif
