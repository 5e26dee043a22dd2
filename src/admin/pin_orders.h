/* SPDX-License-Identifier: Apache-2.0 */
/* The definitions that servers' lists have shown, for the operator, and his word on those that wait for it. SEC-65. */
#ifndef MCPGATED_ADMIN_PIN_ORDERS_H
#define MCPGATED_ADMIN_PIN_ORDERS_H

#include "admin/admin.h"

/* Answers with those of this server, or of all (NULL); of such as wait with both definitions, as far as they are kept. */
void pin_orders_report(const struct admin *admin, struct http_conn *conn,
		       const struct server *server);
/* The one of this number, if it still waits with this digest: what the operator has not seen is not decided. */
void pin_orders_decide(struct server *server, struct http_conn *conn, bool is_approved,
		       struct slice number, struct slice digest);

#endif
