/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles the messages from the client: lifecycle, the method table, answers to the server's own
 * requests.
 */
#ifndef MCPGATED_DEMO_DISPATCH_H
#define MCPGATED_DEMO_DISPATCH_H

#include "base/slice.h"
#include "demo/server.h"

/* Handles one line from the client, without its line feed. */
void dispatch_line(struct server *server, struct slice line);

#endif
