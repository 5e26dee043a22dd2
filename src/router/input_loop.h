/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Legacy clients' requests at modern servers. Such a server does not ask; it answers that it needs
 * more input, and the request is repeated with that input. The gateway asks the client as a legacy
 * server would, until there is a result. bridging.md §2.2; BACK-MSG-04.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "jsonrpc/scan.h"

struct call;
struct upstream;

/* Whether the server may need more input, so that the request has to be kept. */
bool input_loop_may_begin(const struct call *call, const struct upstream *upstream);
/*
 * Sends a call's request to a modern server under this id, whatever the era of the client;
 * `cursor`, unless empty, replaces the client's.
 */
void input_loop_send(struct upstream *upstream, struct call *call, const struct envelope *env,
		     uint64_t id, struct slice cursor);
/*
 * The server's response to such a request. Returns false if it is for the client; otherwise it has
 * been handled, and the call continues or has ended.
 */
bool input_loop_take(struct call *call, const struct envelope *env);
