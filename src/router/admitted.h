/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of one request body that admission has let through. The router's entry points
 * (forward_request, forward_notification, forward_answer, client_session_open) accept nothing else,
 * so no way in can skip the checks.
 */
#ifndef MCPGATED_ROUTER_ADMITTED_H
#define MCPGATED_ROUTER_ADMITTED_H

#include <stddef.h>

#include "jsonrpc/scan.h"
#include "policy/rights.h"

struct admitted;
struct audit_origin;
struct client;

/*
 * For endpoint/admission.c alone, after every check that may refuse the messages
 * (tests/check-doors). `client` and `rights` are what they were admitted for; client NULL: the body
 * is one initialize request, or one message without a session. The messages and the origin are
 * borrowed until admitted_free.
 */
struct admitted *admitted_new(const struct client *client, const struct rights *rights,
			      const struct audit_origin *origin, const struct envelope *messages,
			      size_t count);
/* Accepts NULL; sets the caller's pointer to NULL. */
void admitted_free(struct admitted **admitted);

/* The number of messages. */
size_t admitted_count(const struct admitted *admitted);
/* How they arrived. */
const struct audit_origin *admitted_origin(const struct admitted *admitted);
/*
 * Advances to the next message; the first call yields the first. NULL: no more. Valid as long as
 * `admitted`.
 */
const struct envelope *admitted_next(struct admitted *admitted);
/*
 * For the router's entry points: takes the current message of admitted_next, to handle it for this
 * client. Each message can be taken at most once.
 */
const struct envelope *admitted_take(struct admitted *admitted, const struct client *client);
/* The rights of the sender. */
const struct rights *admitted_rights(const struct admitted *admitted);

#endif
