/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end of an upstream: each way to reach a server implements these operations, and reports
 * events to upstream.c. Differences between the eras are in upstream.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "jsonrpc/scan.h"
#include "obs/reason.h"

struct server;
struct upstream;
struct upstream_owner_ops;
struct upstream_shared;

/* How a server is reached. */
struct upstream_ops {
	/*
	 * Starts it, with the claims of the caller that the server gets (claims_append), which are
	 * borrowed. upstream_on_started follows.
	 */
	void (*start)(struct upstream *upstream, struct slice claims);
	/* Whether it may be sent a message of `size` bytes now. */
	bool (*has_room)(const struct upstream *upstream, size_t size);
	/* Sends one message; may take over the buffer's bytes. */
	void (*write)(struct upstream *upstream, struct buf *message);
	/* Notes why it failed, for the operator. */
	void (*note_failure)(struct upstream *upstream, const char *error);
	/* Stops it, gracefully or at once; upstream_on_gone follows. */
	void (*stop)(struct upstream *upstream, enum reason reason, bool is_at_once);
	/* A reload has changed rules, perhaps of other servers. NULL: it keeps nothing that follows from them. */
	void (*use_rules)(struct upstream *upstream);
};

/* For implementations: initializes it as DELAYED, without an owner. The memory must be zeroed. */
void upstream_init(struct upstream *upstream, const struct upstream_ops *ops,
		   struct upstream_shared *shared, struct server *server);
/* Called by implementations. */
/*
 * Begins with a process of the gateway before, whose requests had ids up to last_id: it is warm.
 * Once adopted, with upstream_era_inherited or upstream_era_modern, it must answer soon; if not,
 * on_refused is called.
 */
void upstream_begin_inherited(struct upstream *upstream, const struct upstream_owner_ops *owner,
			      uint64_t last_id);
void upstream_on_started(struct upstream *upstream);
/* A valid message came. May close the upstream. */
void upstream_on_message(struct upstream *upstream, const struct envelope *env);
/* Something came that is not a valid message, but bears this id (or JSON_ABSENT). See on_malformed. */
void upstream_on_malformed(struct upstream *upstream, struct json id, enum reason reason);
/* A request came that is not a valid one, but bears this id: the server is told why. */
void upstream_refuse_request(struct upstream *upstream, struct json id, const char *why);
/* Any output came: it is alive. */
void upstream_on_sign_of_life(struct upstream *upstream);
void upstream_on_lost(struct upstream *upstream, enum reason reason);
/* It is gone. The implementation frees it after this returns. */
void upstream_on_gone(struct upstream *upstream);
