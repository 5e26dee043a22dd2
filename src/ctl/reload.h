/* SPDX-License-Identifier: Apache-2.0 */
/* Orders the daemon to reload its configuration, and prints the result. */
#ifndef MCPGATED_CTL_RELOAD_H
#define MCPGATED_CTL_RELOAD_H

#include "ctl/line.h"

/* Returns the exit status: 1 if the configuration has an error. */
int reload_run(const struct line *line);

#endif
