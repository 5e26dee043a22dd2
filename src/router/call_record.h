/* SPDX-License-Identifier: Apache-2.0 */
/* What the audit gets of calls, where there is one: a record of each when it ends, and before it is passed on if it must. SEC-63. */
#ifndef MCPGATED_ROUTER_CALL_RECORD_H
#define MCPGATED_ROUTER_CALL_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/slice.h"

struct audit_origin;
struct call;
struct client;
struct envelope;
struct principal;

/*
 * Begins the record of a call, before anything is done for it; of a session that has not begun yet, the principal. False: it
 * must not be passed on, end it with REASON_UNRECORDED.
 */
bool call_record(struct call *call, const struct client *client, const struct principal *principal,
		 const struct envelope *env, const struct audit_origin *origin) must_check;
/* The call has ended, with an answer in these parts, or none. */
void call_record_end(struct call *call, const char *verdict, const char *reason,
		     const struct slice *parts, size_t count);
/* The record of a notification, if its server may take it for a call. False: it must not be passed on. */
bool call_record_notification(const struct client *client, const struct envelope *env,
			      const struct audit_origin *origin) must_check;

#endif
