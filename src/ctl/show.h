/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the daemon's reports as tables, once, or again and again (top). */
#ifndef MCPGATED_CTL_SHOW_H
#define MCPGATED_CTL_SHOW_H

#include <jansson.h>

#include "ctl/line.h"

/*
 * ---- show ----
 *
 * Prints the daemon's reports as tables.
 */

/* Each prints one report: the daemon's answer at /status, /servers and so on. */
void show_status(const json_t *report);
void show_servers(const json_t *report);
void show_processes(const json_t *report);
void show_sessions(const json_t *report);
void show_streams(const json_t *report);
void show_deny_list(const json_t *report);
/* A line of a server's stderr. */
void show_log_line(const json_t *line);
/* Print names and descriptions. */
void show_tools(const json_t *tools);
void show_prompts(const json_t *prompts);
void show_resources(const json_t *resources, const json_t *templates);

/*
 * ---- top ----
 *
 * A live view of the daemon: one line per server, updated every few seconds.
 */

/*
 * Shows as many views as requested; by default one, or, on a terminal, until the user ends it.
 * Counts are since the previous view; in the first view, since the daemon started. Returns the exit
 * status.
 */
int top_run(const struct line *line);

#endif
