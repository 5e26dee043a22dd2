/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing that it opens is followed, waited for, or taken from another user. */
#include "config/state_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/listed_path.h"

/* ---- the directory ---- */

/*
 * What the environment names may be a link: it is the operator's word, and systemd makes one for DynamicUser. Below that
 * none is followed, and each directory on the way is this user's alone to write: nobody can put another in its place.
 */

static int state_directory_open_own(int at, const char *path, int flags, struct error *err)
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
static int state_directory_go_down(int fd, const char *name, bool makes_it, struct error *err)
{
	int below;

	if (fd < 0)
		return -1;
	if (makes_it && mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
		below = error_set_errno(err, "the directory %.120s cannot be created", name);
	else
		below = state_directory_open_own(fd, name, O_NOFOLLOW, err);
	close(fd);
	return below;
}

static const char *absolute_path_of(const char *variable)
{
	const char *path = getenv(variable);

	return path != NULL && path[0] == '/' ? path : NULL;
}

int state_directory_open(bool makes_it, struct error *err)
{
	const char *path = absolute_path_of("STATE_DIRECTORY");
	int fd;

	if (path != NULL) {
		at_end(mem_free) char *first = state_directory_path(); /* of several, with colons */

		return state_directory_open_own(AT_FDCWD, first, 0, err);
	}
	path = absolute_path_of("XDG_STATE_HOME");
	if (path != NULL)
		return state_directory_go_down(state_directory_open_own(AT_FDCWD, path, 0, err),
					       "mcpgated", makes_it, err);
	path = absolute_path_of("HOME");
	if (path == NULL)
		return error_set(err, ERROR_INVALID, "neither STATE_DIRECTORY nor HOME is set");
	fd = state_directory_open_own(AT_FDCWD, path, 0, err);
	fd = state_directory_go_down(fd, ".local", makes_it, err);
	fd = state_directory_go_down(fd, "state", makes_it, err);
	return state_directory_go_down(fd, "mcpgated", makes_it, err);
}

char *state_directory_path(void)
{
	const char *service = absolute_path_of("STATE_DIRECTORY");
	const char *user = absolute_path_of("XDG_STATE_HOME");
	const char *home = absolute_path_of("HOME");

	if (service != NULL)
		return mem_dup_slice(slice_of(service, strcspn(service, ":")));
	if (user != NULL)
		return mem_printf("%s/mcpgated", user);
	return home != NULL ? mem_printf("%s/.local/state/mcpgated", home) : NULL;
}

/* ---- files in it ---- */

static int state_file_read_open(int fd, size_t most, struct buf *text, struct error *err)
{
	struct stat status;
	struct error why;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
	    (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return error_set(err, ERROR_INVALID,
				 "it is not a regular file that only this user may write to");
	if (file_read_all(fd, most, text, &why) < 0)
		return error_set(err, why.kind, "it %s", why.text);
	return 0;
}

int state_file_get(int directory, const char *name, size_t most, struct buf *text,
		   struct error *err)
{
	at_end(file_close) int fd =
		openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int result;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return error_set_errno(err, "it cannot be opened");
	result = state_file_read_open(fd, most, text, err);
	return result == 0 ? 1 : -1;
}

int state_file_put(int directory, const char *name, const struct slice *parts, size_t count,
		   struct error *err)
{
	at_end(mem_free) char *other = mem_printf("%s.new", name);
	int result = -1;
	int fd;

	unlinkat(directory, other, 0); /* of a daemon that was killed meanwhile */
	fd = openat(directory, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0) {
		result = 0;
		for (size_t i = 0; i < count && result == 0; i++)
			result = file_write_all(fd, parts[i]);
		if (result == 0)
			result = fsync(fd);
		close(fd);
	}
	if (result == 0)
		result = renameat(directory, other, directory, name);
	if (result == 0)
		(void)!fsync(directory); /* until then, the file before has the name */
	else
		error_set_errno(err, "the file %.200s cannot be written", name);
	if (result < 0 && fd >= 0)
		unlinkat(directory, other, 0);
	return result;
}
