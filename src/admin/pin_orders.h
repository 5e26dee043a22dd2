/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the operator the definitions from servers' lists, and carries out decisions on those that
 * wait. SEC-65.
 */
#ifndef MCPGATED_ADMIN_PIN_ORDERS_H
#define MCPGATED_ADMIN_PIN_ORDERS_H

#include "admin/admin.h"

/*
 * Answers with the definitions of this server, or of all (NULL); those that wait have both texts,
 * as far as they are kept.
 */
void pin_orders_report(const struct admin *admin, struct http_conn *conn,
		       const struct server *server);
/*
 * Decides on the definition with this number, if it still waits with this digest: nothing is
 * decided that the operator has not seen.
 */
void pin_orders_decide(struct server *server, struct http_conn *conn, bool is_approved,
		       struct slice number, struct slice digest);

#endif
