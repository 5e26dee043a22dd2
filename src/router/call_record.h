/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bookkeeping of client calls: counts how they end (process/call_stats) and, with an audit
 * configured, records the end, and the beginning before forwarding if that is required. SEC-63.
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
 * Starts counting and recording a call, before anything is done for it. principal: of a session
 * that has not begun yet. False: the call must not be forwarded; end it with REASON_UNRECORDED.
 */
bool call_record(struct call *call, const struct client *client, const struct principal *principal,
		 const struct envelope *env, const struct audit_origin *origin) must_check;
/*
 * The call has ended, with an answer in these parts or with none. reason: for CALL_FAILED and
 * CALL_CANCELLED.
 */
void call_record_end(struct call *call, enum call_status status, enum reason reason,
		     const struct slice *parts, size_t count);
/* Records a notification that its server may take for a call. False: it must not be forwarded. */
bool call_record_notification(const struct client *client, const struct envelope *env,
			      const struct audit_origin *origin) must_check;

#endif
