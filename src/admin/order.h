/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange of a command whose parameters are in the request body. */
#ifndef MCPGATED_ADMIN_ORDER_H
#define MCPGATED_ADMIN_ORDER_H

#include "admin/admin.h"

/* Answers on the connection. The body is borrowed. */
typedef void order_take_fn(struct admin *admin, struct http_conn *conn, struct slice body);

struct http_exchange *order_new(const struct inquiry *inquiry, order_take_fn *take);

#endif
