/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the definitions of tools, prompts, resources and templates: approved ones and those that
 * wait.
 */
#ifndef MCPGATED_CTL_PINS_H
#define MCPGATED_CTL_PINS_H

#include <jansson.h>
#include <stdbool.h>

/*
 * Shows the daemon's answer at /pins: numbers, and a table of the definitions that wait or are
 * gone, with their differences.
 */
void pins_show(const json_t *report);
/* Whether it waits for the operator and has this name; NULL: any name. */
bool pins_is_wanted(const json_t *pin, const char *name);
/* Shows what would be approved, as removed and added lines. */
void pins_show_difference(const json_t *pin);

#endif
