/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/slice.h"

/* Whether a file could be made there. */
static int try_directory(const char *path, struct error *err)
{
	char *directory = mem_dup_slice(slice_of(path, (size_t)(strrchr(path, '/') - path) + 1));
	int result = 0;

	if (access(directory, F_OK) < 0 && errno == ENOENT)
		result = error_set(err, ERROR_SYSTEM, "its directory does not exist");
	else if (access(directory, W_OK | X_OK) < 0)
		result = error_set_errno(err, "cannot create a file in its directory");
	free(directory);
	return result;
}

int record_file_try(const char *path, int flags, struct error *err)
{
	int fd = open(path, flags);

	CHECK(path[0] == '/' && (flags & O_CREAT) == 0);
	if (fd < 0)
		return errno == ENOENT ? try_directory(path, err) :
					 error_set_errno(err, "it cannot be opened");
	close(fd);
	return 0;
}
