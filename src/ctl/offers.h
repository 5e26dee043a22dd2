/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists a server's tools, prompts and resources, and calls a tool, over the same path as any
 * client.
 */
#ifndef MCPGATED_CTL_OFFERS_H
#define MCPGATED_CTL_OFFERS_H

#include "ctl/line.h"

/* The commands, whose first argument is the server. Each returns the exit status. */
int offers_run_tools(const struct line *line);
int offers_run_prompts(const struct line *line);
int offers_run_resources(const struct line *line);
int offers_run_call(const struct line *line);

#endif
