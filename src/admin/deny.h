/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's entries against tokens: the list, setting one, taking one away. AUTH-SES-07. */
#ifndef MCPGATED_ADMIN_DENY_H
#define MCPGATED_ADMIN_DENY_H

#include "admin/admin.h"
#include "base/buf.h"

/* How long an entry holds by default. */
#define DENY_DEFAULT_MS (24 * 3600 * (uint64_t)1000)

void deny_report(const struct admin *admin, struct buf *out);
/* The exchange that takes the order (deny_request.h) and answers. */
struct http_exchange *deny_add(const struct inquiry *inquiry);
/* Takes the entry of this number away, and answers. */
void deny_remove(struct admin *admin, struct http_conn *conn, struct slice number);

#endif
