/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of a modern client at a legacy server that may ask while it works. To the server its caller is a client of the
 * legacy era, made for this call: it has the server for itself, answers what it is asked, and is there as long as the call
 * takes, while requests of the modern client come and go (parked_call.h). bridging.md §2.3.3, MOD-MRTR-*.
 */
#ifndef MCPGATED_ROUTER_BRIDGED_CALL_H
#define MCPGATED_ROUTER_BRIDGED_CALL_H

#include <stdbool.h>

#include "jsonrpc/scan.h"
#include "obs/reason.h"

struct call;
struct parked_calls;
struct router;

/* How many may wait for their clients, and for how long. */
void bridged_calls_init(struct parked_calls *table);

/*
 * Takes a linked call of a modern client whose pool knows its servers, if it is one that a server may ask during, or that
 * brings a requestState: it is answered, or will be. False: it is to be forwarded.
 */
bool bridged_call_take(struct call *call, const struct envelope *env);
/* The gateway stops: those that wait for their clients are given up. */
void bridged_calls_abandon(struct router *router, enum reason reason);

#endif
