/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With `pin: enforce`, a call of a tool or prompt is forwarded only once the list of the process
 * that gets it is known, as of its start and of its last reported change. Otherwise the gateway
 * requests the list first, for a bounded time; without it the call is refused. SEC-66
 */
#ifndef MCPGATED_ROUTER_PIN_CHECK_H
#define MCPGATED_ROUTER_PIN_CHECK_H

#include <stdbool.h>

#include "router/call.h"

/* Called when the call may continue, with this request. */
typedef void pin_check_passed_fn(struct call *call, const struct envelope *env);

/*
 * Checks a linked call that waits for nothing: it continues or ends, now or when the list has
 * arrived.
 */
void pin_check_begin(pin_check_passed_fn *on_passed, struct call *call, const struct envelope *env);

#endif
