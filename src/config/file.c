/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The room is taken once and in full before the first byte is read: a buffer that grew would leave
 * copies of secrets behind. It waits for disks alone: what is no plain file is not read.
 */
#include "config/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "config/listed_path.h"

int file_open(const char *path, const struct listed_writers *writers, struct error *err)
{
	int fd = listed_path_open_file(writers, path);
	struct stat status;

	/* Names the user, since a service seldom runs as the one who wrote the file. */
	if (fd < 0 && errno == EACCES)
		return error_set(
			err, ERROR_SYSTEM,
			"cannot be opened: Permission denied; user %u, as whom this runs, may "
			"not read it",
			geteuid());
	if (fd < 0 && errno == ELOOP)
		return error_set(
			err, ERROR_INVALID,
			"has a link below a directory that a server may write, which could "
			"lead anywhere; or there are too many");
	if (fd < 0)
		return error_set_errno(err, "cannot be opened");
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		return fd;
	close(fd);
	return error_set(err, ERROR_INVALID, "is no plain file");
}

int file_read(const char *path, const struct listed_writers *writers, size_t max_bytes,
	      struct buf *content_r, struct stat *status_r, struct error *err)
{
	int fd = file_open(path, writers, err);
	ssize_t got = -1;
	int result = 0;
	char *room;

	CHECK(content_r->len == 0 && max_bytes > 0);
	if (fd < 0)
		return -1;
	room = buf_reserve(content_r, max_bytes + 1);
	do {
		got = read(fd, room + content_r->len, max_bytes + 1 - content_r->len);
		content_r->len += got > 0 ? (size_t)got : 0;
	} while ((got > 0 && content_r->len <= max_bytes) || (got < 0 && errno == EINTR));
	CHECK(content_r->len <= max_bytes + 1);
	if (got < 0 || (status_r != NULL && fstat(fd, status_r) < 0))
		result = error_set_errno(err, "cannot be read");
	else if (content_r->len > max_bytes)
		result = error_set(err, ERROR_LIMIT, "is larger than %zu KiB", max_bytes / 1024);
	close(fd);
	if (result != 0)
		buf_wipe(content_r);
	return result;
}

bool file_is_changeable(const char *path)
{
	struct statvfs system;
	struct stat status;

	if (stat(path, &status) < 0 || statvfs(path, &system) < 0)
		return true;
	return (geteuid() == 0 || status.st_uid == geteuid()) && (system.f_flag & ST_RDONLY) == 0;
}
