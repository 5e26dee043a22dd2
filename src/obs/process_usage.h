/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource usage of the daemon's processes, read from /proc. The files are opened before the
 * gateway is confined and read through their descriptors afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/check.h"

struct process_usage {
	uint64_t cpu_ms; /* user and system time */
	uint64_t virtual_bytes;
	uint64_t resident_bytes;
	uint64_t began_at_ms; /* since the Unix epoch */
};

/* The open files of a process; -1: none. */
struct process_view {
	int stat_fd;
	int status_fd;
	uint64_t booted_at_ms; /* since the Unix epoch */
};

/* Those of the daemon's processes. */
struct process_views {
	struct process_view gateway;
	struct process_view keeper;
};

/*
 * Opens /proc/PID/stat and /proc/PID/status. If that fails, process_view_read returns false later.
 */
void process_view_open(struct process_view *view, pid_t pid);
/* Returns false if the process is gone or its files could not be opened. */
bool process_view_read(const struct process_view *view, struct process_usage *usage_r) must_check;
/* The number of open descriptors, if the view is of the calling process; 0: unknown. */
uint64_t process_view_count_descriptors(const struct process_view *view);

/*
 * Parses the text of /proc/PID/stat. Here began_at_ms counts from the boot of the machine. proc(5)
 */
bool process_usage_parse(const char *text, struct process_usage *usage_r) must_check;
