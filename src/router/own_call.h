/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For struct call_ops of calls that the gateway makes itself: everything but their answer is
 * dropped.
 */
#ifndef MCPGATED_ROUTER_OWN_CALL_H
#define MCPGATED_ROUTER_OWN_CALL_H

#include "router/call.h"

bool own_call_drop_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg);
bool own_call_has_no_reader(const struct call *call);

#endif
