/* SPDX-License-Identifier: Apache-2.0 */
/* A live view of the daemon: one line per server, updated every few seconds. */
#ifndef MCPGATED_CTL_TOP_H
#define MCPGATED_CTL_TOP_H

#include "ctl/line.h"

/*
 * Shows as many views as requested; by default one, or, on a terminal, until the user ends it.
 * Counts are since the previous view; in the first view, since the daemon started. Returns the exit
 * status.
 */
int top_run(const struct line *line);

#endif
