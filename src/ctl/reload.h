/* SPDX-License-Identifier: Apache-2.0 */
/* Has the daemon read its configuration again, and says what has come of it. */
#ifndef MCPGATED_CTL_RELOAD_H
#define MCPGATED_CTL_RELOAD_H

#include "ctl/line.h"

/* Returns the exit status: 1 if anything is wrong with the configuration. */
int reload_run(const struct line *line);

#endif
