/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is sent to a server differs between the eras of MCP; this is what upstream.c has to know
 * about it.
 */
#ifndef MCPGATED_UPSTREAM_UPSTREAM_ERA_H
#define MCPGATED_UPSTREAM_UPSTREAM_ERA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

struct envelope;
struct revision;
struct upstream;

struct upstream_era {
	bool is_modern;
	struct slice handshake; /* method of the first request; its answer describes the server */
	struct slice ping;      /* method of a request that every server answers */
	bool may_ask;           /* servers may send requests */
	/* Sends the first request, with this id. Returns -1 if it cannot be built. */
	int (*send_handshake)(struct upstream *upstream, uint64_t id);
	/*
	 * Reads the result. Returns the revision spoken from now on; NULL if we do not know it, or
	 * the result is invalid. If the result is not an InitializeResult, an equivalent one is
	 * appended to `initialize_result`.
	 */
	const struct revision *(*read_result)(const struct upstream *upstream, struct slice result,
					      struct buf *initialize_result);
};

/* Uses initialize: up to 2025-11-25. */
extern const struct upstream_era upstream_era_legacy;
/* Each request is self-contained: from 2026-07-28. */
extern const struct upstream_era upstream_era_modern;

/* Reports to the operator that the server rejected the first request with this error. */
void upstream_era_note_refusal(struct upstream *upstream, const struct envelope *response);

#endif
