/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/state_directory.h"

#define NAME_BYTES 32
#define STEP_BYTES ((size_t)64 * 1024)

static int read_text(int fd, size_t most, struct buf *text, struct error *err)
{
	struct stat status;
	ssize_t n = 1;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
	    (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return error_set(err, ERROR_INVALID,
				 "it is not a regular file that only this user may write to");
	while (n > 0 && text->len <= most) {
		size_t left = most + 1 - text->len;
		size_t step = left < STEP_BYTES ? left : STEP_BYTES;

		n = read(fd, buf_reserve(text, step), step);
		if (n > 0)
			text->len += (size_t)n;
	}
	return n < 0 ? error_set_errno(err, "it cannot be read") : 0;
}

int state_file_read(const char *name, size_t most, struct buf *text, struct error *err)
{
	struct error none;
	int directory = state_directory_open(false, &none);
	int fd = directory >= 0 ?
			 openat(directory, name,
				O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) :
			 -1;
	int result = 0;

	if (fd >= 0)
		result = read_text(fd, most, text, err);
	else if (directory >= 0 && errno != ENOENT)
		result = error_set_errno(err, "it cannot be opened");
	if (fd >= 0)
		close(fd);
	if (directory >= 0)
		close(directory);
	return result;
}

static int write_all(int fd, struct slice text)
{
	while (text.n > 0) {
		ssize_t n = write(fd, text.p, text.n);

		if (n <= 0)
			return -1;
		text = slice_of(text.p + n, text.n - (size_t)n);
	}
	return 0;
}

int state_file_write(int directory, const char *name, struct slice text, struct error *err)
{
	char other[NAME_BYTES];
	int result = -1;
	int fd;

	CHECK((size_t)snprintf(other, sizeof(other), "%s.new", name) < sizeof(other));
	unlinkat(directory, other, 0); /* of a daemon that was killed meanwhile */
	fd = openat(directory, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0) {
		result = write_all(fd, text);
		close(fd);
	}
	if (result == 0 && renameat(directory, other, directory, name) == 0)
		return 0;
	error_set_errno(err, "the file %s cannot be written", name);
	if (fd >= 0)
		unlinkat(directory, other, 0);
	return -1;
}
