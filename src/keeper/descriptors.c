/* SPDX-License-Identifier: Apache-2.0 */
/* close_range(2), and a plain loop for where it is forbidden. REL-32. */
#include "keeper/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define LAST_WITHOUT_RANGE \
	4095 /* the loop ends here: where it is needed, fewer descriptors are open */

static void close_between(unsigned int first, unsigned int last)
{
	if (first > last || close_range(first, last, 0) == 0)
		return;
	for (unsigned int fd = first; fd <= last && fd <= LAST_WITHOUT_RANGE; fd++)
		close((int)fd);
}

void descriptors_close_from(unsigned int first)
{
	close_between(first, UINT_MAX);
}

void descriptors_fill_standard(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void descriptors_set_cloexec(void)
{
	if (close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC) == 0)
		return;
	for (int fd = 3; fd <= LAST_WITHOUT_RANGE; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int descriptors_arrange(int *fds, size_t count)
{
	/* First out of the way of the numbers that others are to get. */
	for (size_t i = 0; i < count; i++) {
		if (fds[i] < 0)
			continue;
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, (int)count);
		if (fds[i] < 0)
			return -1;
	}
	for (size_t i = 0; i < count; i++) {
		if (fds[i] < 0)
			close((int)i);
		else if (dup2(fds[i], (int)i) < 0)
			return -1;
	}
	descriptors_close_from((unsigned int)count);
	return 0;
}
