/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A modern client's call to a legacy server that may ask something while it works. The server sees
 * a legacy client created for this one call: that client has the process to itself, answers what it
 * is asked, and lives as long as the call, while the modern client's requests come and go
 * (parked_call.h). bridging.md §2.3.3, MOD-MRTR-*.
 */
#pragma once

#include <stdbool.h>

#include "jsonrpc/scan.h"
#include "obs/reason.h"

struct call;
struct parked_calls;
struct router;
struct server;

/* Sets how many calls may wait for their clients, and for how long. */
void bridged_calls_init(struct parked_calls *table);

/*
 * Takes a linked call of a modern client whose pool knows its servers, if the server may ask during
 * it or if it brings a requestState: it has been answered, or will be. False: the caller must
 * forward it.
 */
bool bridged_call_take(struct call *call, const struct envelope *env);
/* The gateway stops: gives up the calls that wait for their clients. */
void bridged_calls_abandon(struct router *router, enum reason reason);
/* Those at a server that no request reaches any more; with NULL, those of anonymous clients. */
void bridged_calls_abandon_some(struct router *router, const struct server *server,
				enum reason reason);
