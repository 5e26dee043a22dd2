/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and notifications from servers: who gets them, and in which form. bridging.md §1.6,
 * §1.7.
 */
#pragma once

#include "jsonrpc/scan.h"

struct upstream;

/* Answers the request here, or asks its client. */
void server_messages_take_request(struct upstream *upstream, const struct envelope *env);
/* Delivers the notification to those it concerns, or drops and counts it. */
void server_messages_take_notification(struct upstream *upstream, const struct envelope *env);
