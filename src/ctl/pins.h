/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of tools, prompts, resources and templates, for people: what was approved, and what waits. */
#ifndef MCPGATED_CTL_PINS_H
#define MCPGATED_CTL_PINS_H

#include <jansson.h>
#include <stdbool.h>

/* The daemon's answer at /pins: numbers, and a table of those that wait or have gone, each with what is other in it. */
void pins_show(const json_t *report);
/* Whether it waits for the operator, and has this name; NULL: any. */
bool pins_is_wanted(const json_t *pin, const char *name);
/* What would be approved: the lines that go and those that come. */
void pins_show_difference(const json_t *pin);

#endif
