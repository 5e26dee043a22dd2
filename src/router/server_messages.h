/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and notifications of servers: who gets them, and in which form. bridging.md §1.6, §1.7. */
#ifndef MCPGATED_ROUTER_SERVER_MESSAGES_H
#define MCPGATED_ROUTER_SERVER_MESSAGES_H

#include "jsonrpc/scan.h"

struct upstream;

/* It is answered here, or its client is asked. */
void server_messages_take_request(struct upstream *upstream, const struct envelope *env);
/* Goes to whom it concerns, or is dropped and counted. */
void server_messages_take_notification(struct upstream *upstream, const struct envelope *env);
/* It is about to be closed: what its tasks have asked is of no use any more. */
void server_messages_lose(struct upstream *upstream);

#endif
