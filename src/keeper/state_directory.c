/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the environment names may be a link: it is the operator's word, and systemd makes one for DynamicUser. Below that
 * none is followed, and each directory on the way is this user's alone to write: nobody can put another in its place.
 */
#include "keeper/state_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_own(int at, const char *path, int flags, struct error *err)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	struct stat status;

	if (fd < 0)
		return error_set_errno(err, "the directory %.120s cannot be opened", path);
	if (fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
	    (status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return fd;
	close(fd);
	return error_set(
		err, ERROR_INVALID,
		"the directory %.120s must belong to this user, and only this user may write to it",
		path);
}

/* Takes fd, which may be -1. */
static int go_down(int fd, const char *name, bool makes_it, struct error *err)
{
	int below;

	if (fd < 0)
		return -1;
	if (makes_it && mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
		below = error_set_errno(err, "the directory %.120s cannot be created", name);
	else
		below = open_own(fd, name, O_NOFOLLOW, err);
	close(fd);
	return below;
}

static const char *absolute(const char *variable)
{
	const char *path = getenv(variable);

	return path != NULL && path[0] == '/' ? path : NULL;
}

/* There may be several of them, with colons. */
static int open_of_service(const char *paths, struct error *err)
{
	size_t length = strcspn(paths, ":");
	char first[PATH_MAX];

	if (length >= sizeof(first))
		return error_set(err, ERROR_INVALID, "STATE_DIRECTORY is too long");
	memcpy(first, paths, length);
	first[length] = '\0';
	return open_own(AT_FDCWD, first, 0, err);
}

int state_directory_open(bool makes_it, struct error *err)
{
	const char *path = absolute("STATE_DIRECTORY");
	int fd;

	if (path != NULL)
		return open_of_service(path, err);
	path = absolute("XDG_STATE_HOME");
	if (path != NULL)
		return go_down(open_own(AT_FDCWD, path, 0, err), "mcpgated", makes_it, err);
	path = absolute("HOME");
	if (path == NULL)
		return error_set(err, ERROR_INVALID, "neither STATE_DIRECTORY nor HOME is set");
	fd = open_own(AT_FDCWD, path, 0, err);
	fd = go_down(fd, ".local", makes_it, err);
	fd = go_down(fd, "state", makes_it, err);
	return go_down(fd, "mcpgated", makes_it, err);
}
