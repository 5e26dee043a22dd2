/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of calls of clients: how they end is counted (process/call_stats), and recorded where there is an audit, when
 * they end, and before they are passed on if that must be. SEC-63.
 */
#ifndef MCPGATED_ROUTER_CALL_RECORD_H
#define MCPGATED_ROUTER_CALL_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/slice.h"
#include "obs/reason.h"
#include "process/call_stats.h"

struct audit_origin;
struct call;
struct client;
struct envelope;
struct principal;

/*
 * Begins the count and the record of a call, before anything is done for it; of a session that has not begun yet, the principal. False: it
 * must not be passed on, end it with REASON_UNRECORDED.
 */
bool call_record(struct call *call, const struct client *client, const struct principal *principal,
		 const struct envelope *env, const struct audit_origin *origin) must_check;
/* The call has ended, with an answer in these parts, or none. reason: of CALL_FAILED and CALL_CANCELLED. */
void call_record_end(struct call *call, enum call_status status, enum reason reason,
		     const struct slice *parts, size_t count);
/* The record of a notification, if its server may take it for a call. False: it must not be passed on. */
bool call_record_notification(const struct client *client, const struct envelope *env,
			      const struct audit_origin *origin) must_check;

#endif
