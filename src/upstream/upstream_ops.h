/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a server an upstream: each way to reach a server is an implementation of these operations, and reports what
 * happens to upstream.c. What differs between the eras is upstream_era.h.
 */
#ifndef MCPGATED_UPSTREAM_UPSTREAM_OPS_H
#define MCPGATED_UPSTREAM_UPSTREAM_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "jsonrpc/scan.h"
#include "obs/reason.h"

struct server;
struct upstream;
struct upstream_shared;

/* How it is reached. */
struct upstream_ops {
	/* Takes claims_fd: what the server is told of the caller (claims.h), or -1. upstream_on_started follows. */
	void (*start)(struct upstream *upstream, int claims_fd);
	/* Whether it may be sent a message of `size` bytes now. */
	bool (*has_room)(const struct upstream *upstream, size_t size);
	/* Sends one message; its bytes may be taken. */
	void (*write)(struct upstream *upstream, struct buf *message);
	/* Why it failed, for the operator. */
	void (*note_failure)(struct upstream *upstream, const char *error);
	/* Stops it, gracefully or at once; upstream_on_gone follows. */
	void (*stop)(struct upstream *upstream, enum reason reason, bool is_at_once);
};

/* For implementations: fills in a zeroed one, which starts as DELAYED without an owner. */
void upstream_init(struct upstream *upstream, const struct upstream_ops *ops,
		   struct upstream_shared *shared, struct server *server);
/* What implementations report. */
void upstream_on_started(struct upstream *upstream);
/* A valid message. May close the upstream. */
void upstream_on_message(struct upstream *upstream, const struct envelope *env);
/* Something that is no valid message, but bears this id (or JSON_ABSENT). */
void upstream_on_malformed(struct upstream *upstream, struct json id);
/* Anything came: it lives. */
void upstream_on_sign_of_life(struct upstream *upstream);
void upstream_on_lost(struct upstream *upstream, enum reason reason);
/* It is over. The implementation frees it after the return. */
void upstream_on_gone(struct upstream *upstream);

#endif
