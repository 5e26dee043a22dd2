/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the audit says of requests: of a call when it ends (and before it begins, where its record is required), of a
 * refusal at once. Nothing of arguments or answers but a digest and lengths, unless the configuration wants the arguments;
 * of a token what its principal is called. SEC-63.
 */
#ifndef MCPGATED_ROUTER_AUDIT_CALL_H
#define MCPGATED_ROUTER_AUDIT_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct audit;
struct canonical_memo;
struct envelope;
struct peer;
struct principal;
struct revision;
struct rule;
struct rule_places;
struct session;

/* By what way messages came; of struct admitted. */
struct audit_origin {
	const char *front; /* as the record names it */
	const struct peer *peer;
};

/* All borrowed for the call of a function. NULL: there is none, or it is not known. */
struct audit_request {
	struct audit_origin origin;
	const char *server;
	const struct rule_places *places; /* of rules in the configuration */
	const struct principal *principal;
	const struct session *session;
	const struct revision *revision;
	const struct envelope *env;
	size_t bytes; /* of the message */
	size_t batch; /* so many messages came with it; 0: it came alone */
	struct canonical_memo *canonical;
};

struct audit_end {
	const char *verdict;
	const char *reason; /* NULL: none */
	const struct rule
		*rule; /* that has refused it; NULL: none, and the next two are not read */
	const char *server;
	const struct rule_places *places;
	size_t bytes; /* of the answer */
	const struct session *session;
	const struct revision *revision;
};

/* What is kept of a call for the record of its end. */
struct audit_call;

/* The trace that a message names in its _meta (mcp/trace_context); empty: none. */
struct slice audit_call_trace(const struct envelope *env);
/* A call is about to be passed on. Writes that, where it is required. */
struct audit_call *audit_call_new(struct audit *audit, const struct audit_request *request);
/* Whether it may be passed on: not if its record is required and could not be written. */
bool audit_call_may_begin(const struct audit_call *call);
/* Writes its record; sets the caller's pointer to NULL. */
void audit_call_end(struct audit_call **call, const struct audit_end *end);
/* rule: that says so, or none. */
void audit_refusal(struct audit *audit, const struct audit_request *request, const char *reason,
		   const struct rule *rule);

#endif
