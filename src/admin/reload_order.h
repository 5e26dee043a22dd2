/* SPDX-License-Identifier: Apache-2.0 */
/* The command that has the configuration read again: answered when it is in use, or when it is known what is wrong with it. */
#ifndef MCPGATED_ADMIN_RELOAD_ORDER_H
#define MCPGATED_ADMIN_RELOAD_ORDER_H

#include "admin/admin.h"

struct http_exchange *reload_order_new(const struct inquiry *inquiry);
/* As admin_reloaded. */
void reload_order_tell(struct admin *admin, uint64_t order, bool is_used, struct slice report);
/* As admin_leave, for those that wait. */
void reload_order_refuse_all(struct admin *admin);

#endif
