/* SPDX-License-Identifier: Apache-2.0 */
/* From the child to the client: who gets a message, and in which form. bridging.md §1.6, §1.7. */
#ifndef MCPGATED_ROUTER_DELIVER_H
#define MCPGATED_ROUTER_DELIVER_H

#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "router/lane.h"

/* Handles one line of the child's stdout, whatever it is. BACK-FRAME-03 … -05. */
void deliver_line(struct lane *lane, struct slice line);

struct ask;
struct call;
struct msg;

/* Gives the server's response to the client of `call`, which ends with it. */
void deliver_response(struct call *call, const struct envelope *env);
/* Tells the client that its answer to this request of the server is no longer wanted. */
void deliver_ask_cancelled(struct ask *ask);
/* After a restart: the server's lists may be others than before, where it would tell. bridging.md §4 */
void deliver_changes(struct lane *lane);
/* Gives a server's request to whoever can carry it; if nobody can, the server is told and the ask closed. */
void deliver_ask(struct ask *ask, struct msg *msg);

#endif
