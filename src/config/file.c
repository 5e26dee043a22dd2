/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The room is taken once and in full before the first byte is read: a buffer that grew would leave
 * copies of secrets behind. Blocks; used before the loop runs.
 */
#include "config/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_all(int fd, size_t max_bytes, struct buf *content, struct error *err)
{
	char *room = buf_reserve(content, max_bytes + 1);
	ssize_t got;

	do {
		got = read(fd, room + content->len, max_bytes + 1 - content->len);
		if (got > 0)
			content->len += (size_t)got;
	} while ((got > 0 && content->len <= max_bytes) || (got < 0 && errno == EINTR));
	CHECK(content->len <= max_bytes + 1);
	if (got < 0)
		return error_set_errno(err, "cannot be read");
	if (content->len > max_bytes)
		return error_set(err, ERROR_LIMIT, "is larger than %zu KiB", max_bytes / 1024);
	return 0;
}

int file_read(const char *path, size_t max_bytes, struct buf *content_r, mode_t *mode_r,
	      struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat status;
	int result = -1;

	CHECK(content_r->len == 0 && max_bytes > 0);
	/* Names the user, since a service seldom runs as the one who wrote the file. */
	if (fd < 0 && errno == EACCES)
		return error_set(
			err, ERROR_SYSTEM,
			"cannot be opened: Permission denied; user %u, as whom this runs, may "
			"not read it",
			geteuid());
	if (fd < 0)
		return error_set_errno(err, "cannot be opened");
	if (fstat(fd, &status) != 0)
		error_set_errno(err, "cannot be read");
	else
		result = read_all(fd, max_bytes, content_r, err);
	close(fd);
	if (result != 0)
		file_wipe(content_r);
	else if (mode_r != NULL)
		*mode_r = status.st_mode;
	return result;
}

void file_wipe(struct buf *content)
{
	if (content->data != NULL)
		explicit_bzero(content->data, content->cap);
	buf_fini(content);
}
