/* SPDX-License-Identifier: Apache-2.0 */
/* Whether somebody may use something, and by which rule: explained by what decides it at the door. SEC-56. */
#ifndef MCPGATED_ADMIN_CAN_H
#define MCPGATED_ADMIN_CAN_H

#include "admin/admin.h"

/* The exchange that takes the question (can_request.h) and answers. */
struct http_exchange *can_ask(const struct inquiry *inquiry);

#endif
