/* SPDX-License-Identifier: Apache-2.0 */
/* Of struct call_ops, for calls that the gateway makes for itself: nobody reads what belongs to them but their answer. */
#ifndef MCPGATED_ROUTER_OWN_CALL_H
#define MCPGATED_ROUTER_OWN_CALL_H

#include "router/call.h"

bool own_call_drop_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg);
bool own_call_has_no_reader(const struct call *call);

#endif
