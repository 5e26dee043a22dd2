/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the operator's question about somebody's rights. */
#ifndef MCPGATED_ADMIN_CAN_REQUEST_H
#define MCPGATED_ADMIN_CAN_REQUEST_H

#include "base/error.h"
#include "base/slice.h"
#include "policy/permissions.h"
#include "policy/roles.h"

struct grant;

enum can_who {
	CAN_PRINCIPAL, /* the caller of a session, by subject */
	CAN_TOKEN,     /* a static token, by name */
	CAN_CLAIMS,    /* anyone whose token has these claims */
};

struct can_request {
	void *document; /* owns the texts */
	struct slice server;
	enum permission_kind kind;
	struct slice name;
	enum can_who who;
	struct slice who_name; /* not for CAN_CLAIMS */
};

/*
 * Reads {"server": TEXT, "tool" or "prompt" or "resource": TEXT, "principal" or "token": TEXT or
 * "claims": OBJECT}; other members are errors. 0: end it with can_request_fini; -1: err may be
 * shown to the operator.
 */
int can_request_read(struct slice body, struct can_request *request_r, struct error *err)
	must_check;
void can_request_fini(struct can_request *request);
/*
 * For CAN_CLAIMS: the grant of a token with these claims, disregarding its validity and to whom it
 * is bound. The caller owns a reference. NULL: no token can have these claims; err says why.
 */
struct grant *can_request_grant(const struct can_request *request, const struct roles *roles,
				struct error *err);

#endif
