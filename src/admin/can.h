/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains whether somebody may use something, and by which rule, using the code that decides it
 * for requests. SEC-56.
 */
#ifndef MCPGATED_ADMIN_CAN_H
#define MCPGATED_ADMIN_CAN_H

#include "admin/admin.h"

/* Returns the exchange that reads the question (can_request.h) and answers it. */
struct http_exchange *can_ask(const struct inquiry *inquiry);

#endif
