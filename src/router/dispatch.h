/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a call to the server that works on it: chooses the upstream, waits for one, and writes the
 * request as the server gets it. bridging.md §1.1, §1.4.
 */
#pragma once

#include <stdbool.h>

#include "jsonrpc/scan.h"

struct call;
struct upstream;
struct upstream_request;

/* Sends a linked call to a server, now or when one has room; or fails it. */
void dispatch_call(struct call *call, const struct envelope *env);
/*
 * Queues a call, which has its body, after it waited for something else; even if the queue is full.
 */
void dispatch_again(struct call *call);
/* The turn of a call that waited for an upstream; for struct pool_ops. */
void dispatch_on_turn(struct upstream *upstream, struct call *call);
/* Whether a request in flight belongs to a call. */
bool dispatch_is_of_call(const struct upstream_request *request);
/*
 * Sets the log level of the server's client. MCP cannot reset a level: a client that never set one
 * gets the server's default output, or everything once another level has been set on that server.
 */
void dispatch_tell_level(struct upstream *upstream, int level);
