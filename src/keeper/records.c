/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/slice.h"

int records_pipe_open(struct records_pipe *pipe, struct error *err)
{
	int fds[2];

	*pipe = (struct records_pipe){ -1, -1 };
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set_errno(err, "pipe");
	*pipe = (struct records_pipe){ fds[0], fds[1] };
	records_pipe_restore(pipe);
	return 0;
}

void records_pipe_restore(const struct records_pipe *pipe)
{
	fcntl(pipe->out, F_SETFL, O_NONBLOCK);
	fcntl(pipe->out, F_SETPIPE_SZ, RECORDS_PIPE_BYTES); /* as much as it may: best effort */
}

void records_pipe_close(struct records_pipe *pipe)
{
	if (pipe->in >= 0) {
		close(pipe->in);
		close(pipe->out);
	}
	*pipe = (struct records_pipe){ -1, -1 };
}

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

int records_file_try(const char *path, int flags, struct error *err)
{
	int fd = open(path, flags);

	CHECK(path[0] == '/' && (flags & O_CREAT) == 0);
	if (fd < 0)
		return errno == ENOENT ? try_directory(path, err) :
					 error_set_errno(err, "it cannot be opened");
	close(fd);
	return 0;
}
