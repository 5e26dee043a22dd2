/* SPDX-License-Identifier: Apache-2.0 */
#include "obs/process_usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TEXT_BYTES 4096

static uint64_t clock_of(clockid_t clock)
{
	struct timespec now = { 0, 0 };

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int open_of(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void process_view_open(struct process_view *view, pid_t pid)
{
	view->stat_fd = open_of(pid, "stat");
	view->status_fd = open_of(pid, "status");
	view->booted_at_ms = clock_of(CLOCK_REALTIME) - clock_of(CLOCK_BOOTTIME);
}

/* The kernel regenerates the text for each read from offset 0. */
static bool read_text(int fd, char text_r[TEXT_BYTES])
{
	ssize_t n = fd >= 0 ? pread(fd, text_r, TEXT_BYTES - 1, 0) : -1;

	text_r[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The process name may contain anything; it ends at the last parenthesis. */
bool process_usage_parse(const char *text, struct process_usage *usage_r)
{
	const char *fields = strrchr(text, ')');
	unsigned long long user, system, start, size, pages;
	long ticks = sysconf(_SC_CLK_TCK);

	if (fields == NULL || ticks <= 0 ||
	    sscanf(fields + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d "
		   "%llu %llu %llu",
		   &user, &system, &start, &size, &pages) != 5)
		return false;
	*usage_r = (struct process_usage){
		.cpu_ms = (user + system) * 1000 / (unsigned long)ticks,
		.virtual_bytes = size,
		.resident_bytes = pages * (unsigned long)sysconf(_SC_PAGESIZE),
		.began_at_ms = start * 1000 / (unsigned long)ticks,
	};
	return true;
}

bool process_view_read(const struct process_view *view, struct process_usage *usage_r)
{
	char text[TEXT_BYTES];

	if (!read_text(view->stat_fd, text) || !process_usage_parse(text, usage_r))
		return false;
	usage_r->began_at_ms += view->booted_at_ms;
	return true;
}

/* FDSize is the size of the descriptor table: no higher descriptor is open. */
uint64_t process_view_count_descriptors(const struct process_view *view)
{
	char text[TEXT_BYTES];
	const char *size;
	uint64_t count = 0;

	if (!read_text(view->status_fd, text) || (size = strstr(text, "\nFDSize:")) == NULL)
		return 0;
	for (int fd = atoi(size + strlen("\nFDSize:")) - 1; fd >= 0; fd--)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}
