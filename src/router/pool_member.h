/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user of a pool and its callbacks: a session, or the client of a modern request for its one
 * call.
 */
#ifndef MCPGATED_ROUTER_POOL_MEMBER_H
#define MCPGATED_ROUTER_POOL_MEMBER_H

#include <stdint.h>

#include "base/list.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "obs/reason.h"

struct client;
struct pool_member;

/* Callbacks to a member. Each of them may end it. */
struct pool_member_ops {
	/*
	 * An upstream is ready: the server's response to initialize, as members of this pool get
	 * it.
	 */
	void (*on_ready)(struct pool_member *member, const struct envelope *response);
	/* The server answered initialize with an error. */
	void (*on_refused)(struct pool_member *member, const struct envelope *response);
	/* No upstream will be ready. */
	void (*on_failed)(struct pool_member *member, enum reason reason);
	/* Not for shared pools: its process is lost; a new one is being started for it. */
	void (*on_lost)(struct pool_member *member, enum reason reason);
	void (*on_respawn)(struct pool_member *member);
	/* A server notification that concerns the member. `key` as in stream_push. */
	void (*on_notification)(struct pool_member *member, uint64_t key, struct msg *msg);
};

/* Embedded. */
struct pool_member {
	const struct pool_member_ops *ops;
	struct client *client;
	struct list link; /* of pool->joining until on_ready; then of pool->members */
};

#endif
