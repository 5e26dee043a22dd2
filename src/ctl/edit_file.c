/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The new file is written beside the old one and exchanged with it. Only then is the old one looked at for the last time, where nobody
 * else finds it any more: if somebody has put another one there in between, the two are exchanged once more.
 */
#include "ctl/edit_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/listed_path.h"

#define LOCK_STEP_MS 20
#define WRITERS_WAIT_MS 1000
#define BESIDE ".mcpgated-" /* and six characters: EDIT_LEFT_LENGTH */

static bool is_group_of_ours(gid_t group)
{
	int count = getgroups(0, NULL);
	at_end(mem_free) gid_t *groups =
		mem_zalloc(((size_t)(count > 0 ? count : 0) + 1) * sizeof(*groups));
	bool is_it = geteuid() == 0 || group == getegid();

	count = getgroups(count > 0 ? count : 0, groups);
	for (int i = 0; i < count; i++)
		is_it |= groups[i] == group;
	return is_it;
}

/* A new file would not have what cannot be seen in the mode, and not a group that gives rights to others. */
static int check_kind(int fd, const struct stat *status, struct error *err)
{
	if (!S_ISREG(status->st_mode))
		return error_set(err, ERROR_INVALID, "is not a plain file");
	if (status->st_uid != geteuid())
		return error_set(err, ERROR_INVALID, "belongs to another user");
	if (status->st_nlink > 1)
		return error_set(err, ERROR_INVALID, "has a second name (a hard link)");
	if ((status->st_mode & S_IRWXG) != 0 && !is_group_of_ours(status->st_gid))
		return error_set(err, ERROR_INVALID,
				 "is also for a group that you are not in (number %u): chgrp it",
				 status->st_gid);
	if (fgetxattr(fd, "system.posix_acl_access", NULL, 0) > 0)
		return error_set(err, ERROR_INVALID, "has an access control list");
	return 0;
}

int edit_file_read(const char *path, struct edit_file *file_r, struct error *err)
{
	int result, fd;

	CHECK(file_r->path == NULL && file_r->text.len == 0);
	file_r->path = realpath(path, NULL);
	if (file_r->path == NULL)
		return errno == ENOENT ? 1 : error_set_errno(err, "cannot be opened");
	fd = open(file_r->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return error_set_errno(err, "cannot be opened");
	if (fstat(fd, &file_r->status) < 0)
		result = error_set_errno(err, "cannot be looked at");
	else
		result = check_kind(fd, &file_r->status, err);
	/* Also of one that is left alone. */
	if (S_ISREG(file_r->status.st_mode) &&
	    file_read_all(fd, EDIT_BYTES_MAX, &file_r->text, result == 0 ? err : NULL) < 0)
		result = -1;
	close(fd);
	return result;
}

void edit_file_fini(struct edit_file *file)
{
	free(file->path);
	buf_wipe(&file->text);
	*file = (struct edit_file){ .path = NULL };
}

/* Beside the file. Returns its name, which the caller frees; NULL: it failed, and nothing is left. */
static char *write_beside(const char *path, struct slice text, const struct stat *like,
			  struct error *err)
{
	char *beside = mem_printf("%s" BESIDE "XXXXXX", path);
	int fd = mkostemp(beside, O_CLOEXEC);
	struct stat status;
	bool is_good = fd >= 0 && fstat(fd, &status) == 0;

	/* A directory may give it another group than ours. One that gives no rights need not stay. */
	if (is_good && like != NULL)
		is_good = (like->st_gid == status.st_gid ||
			   fchown(fd, (uid_t)-1, like->st_gid) == 0 ||
			   (errno == EPERM && (like->st_mode & S_IRWXG) == 0)) &&
			  fchmod(fd, like->st_mode & 07777) == 0;
	is_good = is_good && file_write_all(fd, text) == 0 && fsync(fd) == 0;
	if (!is_good) {
		error_set_errno(err, "cannot write a file beside it");
		if (fd >= 0)
			unlink(beside);
		free(beside);
		beside = NULL;
	}
	file_close(&fd);
	return beside;
}

static void sync_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	at_end(mem_free) char *directory =
		slash != NULL ? mem_dup_slice(slice_between(path, slash + 1)) : mem_strdup(".");
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

/* Whether the file at `path` is what was read, to the byte. */
static bool is_same(const char *path, const struct edit_file *file)
{
	at_end(edit_file_fini) struct edit_file now = { .path = NULL };

	return edit_file_read(path, &now, NULL) == 0 && now.status.st_ino == file->status.st_ino &&
	       slice_is_equal(buf_slice(&now.text), buf_slice(&file->text));
}

/*
 * Who has opened a file before it was taken away may write into it yet. A lease is given on what nobody else has open; a file system
 * without leases, or a reader that stays, is waited for no longer.
 */
static void wait_for_writers(const char *path)
{
	const struct timespec step = { .tv_nsec = LOCK_STEP_MS * 1000000L };
	at_end(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	signal(SIGIO, SIG_IGN); /* that somebody opens it: it is closed here at once anyway */
	for (int left_ms = WRITERS_WAIT_MS; fd >= 0 && left_ms > 0; left_ms -= LOCK_STEP_MS) {
		if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0 || errno != EAGAIN)
			return;
		nanosleep(&step, NULL);
	}
}

/*
 * Somebody has written there just before ours. If he has written there just after it, too, either may have what the other lacks: what is
 * not ours stays beside it.
 */
static int take_back(const char *beside, const struct edit_file *file, const struct edit_file *own,
		     struct error *err)
{
	if (renameat2(AT_FDCWD, beside, AT_FDCWD, file->path, RENAME_EXCHANGE) == 0 &&
	    is_same(beside, own)) {
		unlink(beside);
		return 1;
	}
	return error_set(
		err, ERROR_SYSTEM,
		"was changed by another program meanwhile; a part of what that wrote is in %s",
		beside);
}

/* Some file systems cannot exchange. */
static int put_in_place(const char *beside, const struct edit_file *file, struct error *err)
{
	at_end(edit_file_fini) struct edit_file own = { .path = NULL };
	int result = edit_file_read(beside, &own, err);

	if (result == 0 && !is_same(file->path, file))
		result = 1;
	if (result != 0) {
		unlink(beside);
		return result;
	}
	if (renameat2(AT_FDCWD, beside, AT_FDCWD, file->path, RENAME_EXCHANGE) < 0) {
		if ((errno == EINVAL || errno == ENOSYS) && rename(beside, file->path) == 0)
			return 0;
		error_set_errno(err, "cannot be replaced");
		unlink(beside);
		return -1;
	}
	wait_for_writers(beside);
	if (is_same(beside, file)) {
		unlink(beside);
		return 0;
	}
	return take_back(beside, file, &own, err);
}

int edit_file_replace(const struct edit_file *file, struct slice text, struct error *err)
{
	at_end(mem_free) char *beside = NULL;
	int result;

	CHECK(file->path != NULL);
	if (text.n > EDIT_BYTES_MAX)
		return error_set(err, ERROR_LIMIT, "would be larger than %zu MiB",
				 EDIT_BYTES_MAX >> 20);
	beside = write_beside(file->path, text, &file->status, err);
	if (beside == NULL)
		return -1;
	result = put_in_place(beside, file, err);
	sync_directory(file->path);
	return result;
}

static bool is_there(const char *path)
{
	int why = errno;
	bool is_it = access(path, F_OK) == 0;

	errno = why;
	return is_it;
}

static int make_directories(const char *path, struct error *err)
{
	at_end(mem_free) char *copy = mem_strdup(path);

	CHECK(path[0] == '/');
	for (char *at = strchr(copy + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
		*at = '\0';
		/* Some file systems do not look whether it is there. */
		if (mkdir(copy, 0700) < 0 && errno != EEXIST && !is_there(copy))
			return error_set_errno(err, "%s cannot be made", copy);
		*at = '/';
	}
	return 0;
}

/* A lock of POSIX, since the kernel knows who has it. It ends with the program, or when that closes the file: it does not. */
int edit_file_lock(const char *path, int wait_ms, struct error *err)
{
	const struct timespec step = { .tv_nsec = LOCK_STEP_MS * 1000000L };
	int fd;

	CHECK(wait_ms >= 0);
	if (make_directories(path, err) < 0)
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_set_errno(err, "%s cannot be opened", path);
	for (;; wait_ms -= LOCK_STEP_MS) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

		if (fcntl(fd, F_SETLK, &lock) == 0)
			return 0;
		if (errno != EAGAIN && errno != EACCES) {
			error_set_errno(err, "%s cannot be locked", path);
			break;
		}
		if (wait_ms <= 0) {
			(void)!fcntl(fd, F_GETLK, &lock);
			error_set(err, ERROR_BUSY,
				  "another program is at it, process %ld: wait until it has ended",
				  (long)lock.l_pid);
			break;
		}
		nanosleep(&step, NULL);
	}
	close(fd);
	return -1;
}

int edit_file_rename(const char *path, const char *to, struct error *err)
{
	int result;

	CHECK(path[0] == '/' && to[0] == '/');
	result = renameat2(AT_FDCWD, path, AT_FDCWD, to, RENAME_NOREPLACE);
	if (result < 0 && (errno == EINVAL || errno == ENOSYS))
		result = link(path, to) == 0 ? unlink(path) : -1;
	if (result < 0)
		return error_set_errno(err, "%s cannot be made", to);
	sync_directory(to);
	return 0;
}

int edit_file_create(const char *path, struct slice text, struct error *err)
{
	at_end(mem_free) char *beside = NULL;
	struct error why;
	int result;

	if (make_directories(path, err) < 0)
		return -1;
	beside = write_beside(path, text, NULL, &why);
	if (beside == NULL)
		return error_set(err, why.kind, "%s: %s", path, why.text);
	result = edit_file_rename(beside, path, err);
	if (result < 0)
		unlink(beside);
	return result;
}

/* Whether the name is that of a file beside the one of this name; "": beside any. */
static bool is_beside(const char *name, const char *begin)
{
	size_t length = strlen(name), end = EDIT_LEFT_LENGTH, from = strlen(begin);

	return length > end && strncmp(name, begin, from) == 0 &&
	       (from == 0 || length == from + end) &&
	       strncmp(name + length - end, BESIDE, strlen(BESIDE)) == 0;
}

char *edit_file_find_left(const char *path)
{
	at_end(mem_free) char *real = realpath(path, NULL), *name = NULL;
	bool is_folder = path[0] != '\0' && path[strlen(path) - 1] == '/';
	char *slash = real != NULL && !is_folder ? strrchr(real, '/') : NULL;
	const struct dirent *entry;
	char *left = NULL;
	DIR *directory;

	name = mem_strdup(slash != NULL ? slash + 1 : "");
	if (slash != NULL)
		slash[1] = '\0';
	directory = real != NULL ? opendir(real) : NULL;
	while (directory != NULL && left == NULL && (entry = readdir(directory)) != NULL)
		if (is_beside(entry->d_name, name))
			left = mem_printf("%s%s%s", real, is_folder ? "/" : "", entry->d_name);
	if (directory != NULL)
		closedir(directory);
	return left;
}
