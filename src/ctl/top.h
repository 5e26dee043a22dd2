/* SPDX-License-Identifier: Apache-2.0 */
/* A live view of the daemon: a line for each server, made anew every few seconds. */
#ifndef MCPGATED_CTL_TOP_H
#define MCPGATED_CTL_TOP_H

#include "ctl/line.h"

/*
 * Shows views until there were as many as are wanted, or the user ends it; on no terminal one. What is counted is that of the
 * time since the view before; of the first view, since the daemon has begun. Returns the exit status.
 */
int top_run(const struct line *line);

#endif
