/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client has sent and may send: the messages of one body. The entries of the router (forward_request,
 * forward_notification, forward_answer, client_session_open) take nothing else, so that no way in can forget to ask.
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
 * For endpoint/admission.c alone, which has asked everything that may refuse them (tests/check-doors). They were let
 * in for this client, with these rights; NULL: it is one initialize request, or one
 * message without a session. The messages and the origin are borrowed until admitted_free.
 */
struct admitted *admitted_new(const struct client *client, const struct rights *rights,
			      const struct audit_origin *origin, const struct envelope *messages,
			      size_t count);
/* Accepts NULL; sets the caller's pointer to NULL. */
void admitted_free(struct admitted **admitted);

/* How many they are. */
size_t admitted_count(const struct admitted *admitted);
/* By what way they came. */
const struct audit_origin *admitted_origin(const struct admitted *admitted);
/* Goes on to the next message, at first to the first. NULL: there is no other. Valid as long as `admitted` is. */
const struct envelope *admitted_next(struct admitted *admitted);
/*
 * For the entries of the router: the message that admitted_next has gone to, to be handed on for this client. Each is
 * taken once at most.
 */
const struct envelope *admitted_take(struct admitted *admitted, const struct client *client);
/* Of who has sent them. */
const struct rights *admitted_rights(const struct admitted *admitted);

#endif
