/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's entries against tokens: lists, adds and removes them. AUTH-SES-07. */
#ifndef MCPGATED_ADMIN_DENY_H
#define MCPGATED_ADMIN_DENY_H

#include "admin/admin.h"
#include "base/buf.h"

/* How long an entry lasts by default. */
#define DENY_DEFAULT_MS (24 * 3600 * (uint64_t)1000)

void deny_report(const struct admin *admin, struct buf *out);
/* Returns the exchange that reads the order (deny_request.h) and answers it. */
struct http_exchange *deny_add(const struct inquiry *inquiry);
/* Removes the entry with this number, and answers. */
void deny_remove(struct admin *admin, struct http_conn *conn, struct slice number);

#endif
