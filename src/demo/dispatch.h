/* SPDX-License-Identifier: Apache-2.0 */
/* The messages from the client: lifecycle, the table of methods, answers to the server's own requests. */
#ifndef MCPGATED_DEMO_DISPATCH_H
#define MCPGATED_DEMO_DISPATCH_H

#include "base/slice.h"
#include "demo/server.h"

/* One line from the client, without its line feed. */
void dispatch_line(struct server *server, struct slice line);

#endif
