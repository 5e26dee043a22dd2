/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to the daemon that have a form of their own, and the question what somebody may use. */
#ifndef MCPGATED_CTL_ORDERS_H
#define MCPGATED_CTL_ORDERS_H

#include "ctl/line.h"

/* The commands. Each returns the exit status. */

/* Whether a caller may use something, and by which rule; 0: yes, 1: no, 2: it cannot be told. */
int orders_can(const struct line *line);
/* Adds, lists and removes what tokens are denied by. */
int orders_deny(const struct line *line);
/* Shows the definitions of tools, prompts, resources and templates, and decides on those that wait. */
int orders_pins(const struct line *line);
/* 1 if the configuration has an error. */
int orders_reload(const struct line *line);

#endif
