/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With `pin: enforce`, before a call of a tool or a prompt goes on, the list of the process that gets it is known: since it
 * began, and since it last told of a change. Else the gateway asks for it first, for a bounded time; without it the call is
 * refused. SEC-66
 */
#ifndef MCPGATED_ROUTER_PIN_CHECK_H
#define MCPGATED_ROUTER_PIN_CHECK_H

#include <stdbool.h>

#include "router/call.h"

/* The call goes on, with this request. */
typedef void pin_check_passed_fn(struct call *call, const struct envelope *env);

/* A linked call that waits for nothing goes on or ends: now, or when the list is there. */
void pin_check_begin(pin_check_passed_fn *on_passed, struct call *call, const struct envelope *env);

#endif
