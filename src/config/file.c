/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The room is what the file holds when it is opened. Where that is too little, what has been read moves, and is wiped
 * where it was: it may be secret. It waits for disks alone: what is no plain file is not read.
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
			"cannot be opened: Permission denied; this runs as user %u, who may not "
			"read it",
			geteuid());
	if (fd < 0 && errno == ELOOP)
		return error_set(
			err, ERROR_INVALID,
			"goes through a symbolic link below a directory that a server may write "
			"to, and so could lead anywhere; or through too many links");
	if (fd < 0)
		return error_set_errno(err, "cannot be opened");
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		return fd;
	close(fd);
	return error_set(err, ERROR_INVALID, "is not a regular file");
}

static void grow(struct buf *content, size_t size)
{
	struct buf larger = { 0 };

	buf_reserve(&larger, size);
	buf_append_slice(&larger, buf_slice(content));
	buf_wipe(content);
	*content = larger;
}

/* Returns 0, or -1 with errno. What is larger than max_bytes is read to the byte that shows it. */
static int read_all(int fd, size_t max_bytes, struct buf *content)
{
	ssize_t got;

	do {
		size_t left = max_bytes + 1 - content->len;

		if (content->len == content->cap)
			grow(content, content->cap + 1);
		if (left > content->cap - content->len)
			left = content->cap - content->len;
		got = read(fd, content->data + content->len, left);
		content->len += got > 0 ? (size_t)got : 0;
	} while (got > 0 || (got < 0 && errno == EINTR));
	CHECK(content->len <= max_bytes + 1);
	return got < 0 ? -1 : 0;
}

int file_read(const char *path, const struct listed_writers *writers, size_t max_bytes,
	      struct buf *content_r, struct stat *status_r, struct error *err)
{
	int fd = file_open(path, writers, err);
	struct stat status = { .st_size = 0 };
	int result = 0;

	CHECK(content_r->len == 0 && max_bytes > 0);
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0)
		grow(content_r, (size_t)status.st_size < max_bytes ? (size_t)status.st_size + 1 :
								     max_bytes + 1);
	if (content_r->cap == 0 || read_all(fd, max_bytes, content_r) < 0)
		result = error_set_errno(err, "cannot be read");
	else if (content_r->len > max_bytes)
		result = error_set(err, ERROR_LIMIT, "is larger than %zu KiB", max_bytes / 1024);
	if (status_r != NULL)
		*status_r = status;
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
