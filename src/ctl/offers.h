/* SPDX-License-Identifier: Apache-2.0 */
/* What a server offers, through the same path as for any client: its tools, prompts and resources; and calling a tool. */
#ifndef MCPGATED_CTL_OFFERS_H
#define MCPGATED_CTL_OFFERS_H

#include "ctl/line.h"

/* Commands whose first argument is the server. Each returns the exit status. */
int offers_run_tools(const struct line *line);
int offers_run_prompts(const struct line *line);
int offers_run_resources(const struct line *line);
int offers_run_call(const struct line *line);

#endif
