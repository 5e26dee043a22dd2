/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator asks about the rights of somebody: reading it, and nothing else. */
#ifndef MCPGATED_ADMIN_CAN_REQUEST_H
#define MCPGATED_ADMIN_CAN_REQUEST_H

#include "base/error.h"
#include "base/slice.h"
#include "policy/permissions.h"
#include "policy/roles.h"

struct grant;

enum can_who {
	CAN_PRINCIPAL, /* the caller of a session, by his subject */
	CAN_TOKEN,     /* a static token, by its name */
	CAN_CLAIMS,    /* whoever has a token with these */
};

struct can_request {
	void *document; /* what the texts lie in */
	struct slice server;
	enum permission_kind kind;
	struct slice name;
	enum can_who who;
	struct slice who_name; /* but of CAN_CLAIMS */
};

/*
 * {"server": TEXT, "tool" or "prompt" or "resource": TEXT, "principal" or "token": TEXT or "claims": OBJECT}, and nothing
 * else. 0: end it with can_request_fini; -1: err may be shown to the operator.
 */
int can_request_read(struct slice body, struct can_request *request_r, struct error *err)
	must_check;
void can_request_fini(struct can_request *request);
/*
 * Of CAN_CLAIMS, what a token with these would give: when it is good, and to whom it is bound, is not asked. NULL: err says
 * why they can be of no token. The caller has the reference.
 */
struct grant *can_request_grant(const struct can_request *request, const struct roles *roles,
				struct error *err);

#endif
