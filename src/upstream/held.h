/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that wait for a token before they are written, in their order. A request that is given up
 * leaves by its id: what that costs does not depend on how many wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"

struct held {
	struct list messages; /* the oldest first */
	struct map by_id;     /* the requests among them */
	size_t bytes;         /* of all, with their overhead */
};

void held_init(struct held *held);
/* Moves all that waits in `from` to `to`, which is not initialized yet. `from` is then empty. */
void held_move(struct held *to, struct held *from);
/* Drops what waits. */
void held_fini(struct held *held);
bool held_is_empty(const struct held *held);
/* Appends the message, with its line end. `id`: of a request; 0: another message. Takes message's bytes. */
void held_add(struct held *held, uint64_t id, struct buf *message);
/* Drops the request with this id; returns whether it was there. */
bool held_give_up(struct held *held, uint64_t id);
/* Takes the oldest message out; the caller owns its bytes. Returns false if there is none. */
bool held_take(struct held *held, struct buf *message_r);
