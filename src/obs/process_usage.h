/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes of the daemon use of the machine, from /proc. The files are opened before the gateway is confined, and
 * read through their descriptors afterwards.
 */
#ifndef MCPGATED_OBS_PROCESS_USAGE_H
#define MCPGATED_OBS_PROCESS_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/check.h"

struct process_usage {
	uint64_t cpu_ms; /* user and system */
	uint64_t virtual_bytes;
	uint64_t resident_bytes;
	uint64_t began_at_ms; /* since 1970 */
};

/* Where a process is looked at; -1: nowhere. */
struct process_view {
	int stat_fd;
	int status_fd;
	uint64_t booted_at_ms; /* since 1970 */
};

/* Those of the daemon. */
struct process_views {
	struct process_view gateway;
	struct process_view keeper;
};

/* /proc/PID/stat and /proc/PID/status. Where they cannot be opened there is nothing to read later. */
void process_view_open(struct process_view *view, pid_t pid);
/* False: the process has gone, or could not be looked at from the beginning. */
bool process_view_read(const struct process_view *view, struct process_usage *usage_r) must_check;
/* How many descriptors this process has open, if the view is of it; 0: it cannot be told. */
uint64_t process_view_count_descriptors(const struct process_view *view);

/* Reads the text of /proc/PID/stat, but for began_at_ms, which is given since the machine has booted. proc(5) */
bool process_usage_parse(const char *text, struct process_usage *usage_r) must_check;

#endif
