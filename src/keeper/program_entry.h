/* SPDX-License-Identifier: Apache-2.0 */
/* How a program that the keeper starts begins, whichever it is, and how it gives up what it does not need. */
#ifndef MCPGATED_KEEPER_PROGRAM_ENTRY_H
#define MCPGATED_KEEPER_PROGRAM_ENTRY_H

#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"

struct program_entry {
	pid_t keeper;
	struct config *config; /* free with config_free */
};

/*
 * Reads the configuration from the memory file config_fd and closes it, sets up log and signals; the process ends with
 * the keeper. Exits if it was not started by a keeper, or if the configuration is none.
 *
 * program   its name, for people
 * comm      what ps shows: at most 15 bytes
 * process   its name in the log
 */
void program_entry_begin(struct program_entry *entry_r, const char *program, const char *comm,
			 const char *process, int log_fd, int config_fd);
/* confine_apply, after which it ends with the keeper still. */
void program_entry_confine(const struct program_entry *entry, bool fetches);

#endif
