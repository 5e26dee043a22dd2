/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit records of requests: one for a call when it ends (and one before it begins, where
 * recording is required), one for a refusal at once. Of arguments and answers they hold only a
 * digest and lengths, unless the configuration asks for the arguments; of a token they hold the
 * name of its principal. SEC-63.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct audit;
struct client;
struct envelope;
struct peer;
struct principal;
struct revision;
struct rule;
struct rule_places;
struct session;

/* How messages arrived; part of struct admitted. */
struct audit_origin {
	const char *front; /* its name in the record */
	const struct peer *peer;
};

/* Everything is borrowed for the duration of the function call. NULL: absent or not known. */
struct audit_request {
	struct audit_origin origin;
	const char *server;
	const struct rule_places *places; /* where the configuration defines its rules */
	const struct principal *principal;
	const struct session *session;
	const struct revision *revision;
	const struct envelope *env;
	size_t bytes; /* of the message */
	size_t batch; /* messages that arrived together; 0: it came alone */
};

/* What is kept of a call for its end record. */
struct audit_call;

/* The trace that a message names in its _meta (mcp/trace_context); empty: none. */
struct slice audit_call_trace(const struct envelope *env);
/*
 * Begins the record of a call that is about to be forwarded, and writes the begin record where one
 * is required. Ended with audit_call_end.
 */
struct audit_call *audit_call_new(struct audit *audit, const struct audit_request *request);
/* Whether the call may be forwarded: not if its record is required and could not be written. */
bool audit_call_may_begin(const struct audit_call *call);
/*
 * Writes the end record and frees it; sets the caller's pointer to NULL. reason: NULL: none; rule: the
 * one that refused it; NULL: none; bytes: of the answer.
 */
void audit_call_end(struct audit_call **call, const struct client *client, const char *verdict,
		    const char *reason, const struct rule *rule, size_t bytes);
/* Records a refusal. rule: the one that caused it; NULL: none. */
void audit_refusal(struct audit *audit, const struct audit_request *request, const char *reason,
		   const struct rule *rule);
