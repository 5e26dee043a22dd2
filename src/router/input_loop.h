/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of older clients at servers of the modern era. Such a server does not ask: it answers that it needs to be told
 * more, and the request is made again with that. Here the client is asked, as a legacy server would, until there is a
 * result. bridging.md §2.2; BACK-MSG-04.
 */
#ifndef MCPGATED_ROUTER_INPUT_LOOP_H
#define MCPGATED_ROUTER_INPUT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "jsonrpc/scan.h"

struct call;
struct upstream;

/* Whether the server may want to be told more, so that the request has to be kept. */
bool input_loop_may_begin(const struct call *call, const struct upstream *upstream);
/*
 * Sends the request of a call to a server of the modern era, under this id; `cursor`, unless it is empty, takes the place
 * of the client's. Whatever the era of the client.
 */
void input_loop_send(struct upstream *upstream, struct call *call, const struct envelope *env,
		     uint64_t id, struct slice cursor);
/*
 * The server's response to such a request. Returns false if it is for the client; otherwise it has been dealt with, and the
 * call goes on or has ended.
 */
bool input_loop_take(struct call *call, const struct envelope *env);

#endif
