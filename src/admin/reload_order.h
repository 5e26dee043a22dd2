/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command to reread the configuration. It is answered when the new one is in use, or when its
 * errors are known.
 */
#ifndef MCPGATED_ADMIN_RELOAD_ORDER_H
#define MCPGATED_ADMIN_RELOAD_ORDER_H

#include "admin/admin.h"

struct http_exchange *reload_order_new(const struct inquiry *inquiry);
/* Like admin_reloaded. */
void reload_order_tell(struct admin *admin, uint64_t order, bool is_used, struct slice report);
/* Like admin_leave, for the pending orders. */
void reload_order_refuse_all(struct admin *admin);

#endif
