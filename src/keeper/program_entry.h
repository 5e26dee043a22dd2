/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common start of all programs that the keeper runs, and how they drop what they do not need.
 */
#pragma once

#include <sys/types.h>

#include "config/config.h"
#include "keeper/confine.h"

struct program_entry {
	pid_t keeper;
	struct config *config; /* freed with config_free */
};

/*
 * Reads the configuration from the memory file config_fd and closes it, sets up log and signals,
 * and makes the process end with the keeper. Exits if it was not started by a keeper or the
 * configuration is invalid.
 *
 * program   its name, for people
 * comm      its name in ps: at most 15 bytes
 * process   its name in the log
 */
void program_entry_begin(struct program_entry *entry_r, const char *program, const char *comm,
			 const char *process, int log_fd, int config_fd);
/* Calls confine_apply; afterwards the process still ends with the keeper. */
void program_entry_confine(const struct program_entry *entry, const struct confinement *what);
