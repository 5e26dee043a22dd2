/* SPDX-License-Identifier: Apache-2.0 */
/* What a server is sent and asked differs between the eras of MCP: here is what upstream.c has to know of that. */
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
	struct slice handshake; /* the first request: what a server says of itself is the answer */
	struct slice ping;      /* a request that every server answers */
	bool may_ask;           /* servers send requests */
	/* Sends the first request, under this id. -1: it cannot be put together. */
	int (*send_handshake)(struct upstream *upstream, uint64_t id);
	/*
	 * Reads the result. Returns the revision that is spoken from now on; NULL: it is none that we know, or it is no
	 * such result. Where that is no InitializeResult, one that says the same is appended to `initialize_result`.
	 */
	const struct revision *(*read_result)(const struct upstream *upstream, struct slice result,
					      struct buf *initialize_result);
};

/* With initialize: up to 2025-11-25. */
extern const struct upstream_era upstream_era_legacy;
/* Each request says all: from 2026-07-28. */
extern const struct upstream_era upstream_era_modern;

/* The server answered the first request with this error: for the operator. */
void upstream_era_note_refusal(struct upstream *upstream, const struct envelope *response);

#endif
