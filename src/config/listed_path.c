/* SPDX-License-Identifier: Apache-2.0 */
/* Names are compared part by part: `//` and `/./` mean nothing, and `..` is refused by config/forms. */
#include "config/listed_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel */

/* Cuts the first part off; empty: there is none. */
static struct slice take_part(const char **path)
{
	struct slice part;

	for (;;) {
		*path += strspn(*path, "/");
		part = slice_of(*path, strcspn(*path, "/"));
		*path += part.n;
		if (!slice_is_equal(part, SLICE_LIT(".")))
			return part;
	}
}

/* What is left of `path` below `root`: not empty; NULL: it is not below. */
static const char *rest_below(const char *path, const char *root)
{
	const char *rest;

	for (;;) {
		struct slice part = take_part(&root);

		if (part.n == 0)
			break;
		if (!slice_is_equal(take_part(&path), part))
			return NULL;
	}
	rest = path + strspn(path, "/");
	return take_part(&path).n > 0 ? rest : NULL;
}

/* Only these keep to what they may write. */
static bool has_sandbox(const struct config_server *server)
{
	return server->sandbox != CONFIG_SANDBOX_OFF;
}

/* The topmost of the directories that servers may write, of those above the path; NULL: it is below none. */
static const char *find_root(const struct config *config, const char *path, const char **rest_r)
{
	const char *root = NULL;

	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		if (!server->enabled || !has_sandbox(server))
			continue;
		for (size_t j = 0; j < server->sandbox_write.count; j++) {
			const char *candidate = server->sandbox_write.items[j].p;
			const char *rest = rest_below(path, candidate);

			if (rest == NULL || (root != NULL && rest_below(root, candidate) == NULL))
				continue;
			root = candidate;
			*rest_r = rest;
		}
	}
	return root;
}

static int open_below(const char *root, const char *rest)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	at_end(file_close) int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root_fd < 0)
		return -1;
	return (int)syscall(SYS_openat2, root_fd, rest, &how, sizeof(how));
}

int listed_path_open(const struct config *config, const char *path)
{
	const char *rest;
	const char *root = find_root(config, path, &rest);

	return root != NULL ? open_below(root, rest) : open(path, O_PATH | O_CLOEXEC);
}

/* ---- files that are read here ---- */

/*
 * The first server that may make links in the directory, whose path has none; NULL for the directory: in any. One that starts no
 * more processes may have some that run (is_running).
 */
static const struct config_server *find_writer(const struct config *config, bool is_running,
					       const char *directory)
{
	for (size_t i = 0; config != NULL && i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		if (!is_running && !server->enabled)
			continue;
		for (size_t j = 0; has_sandbox(server) && j < server->sandbox_write.count; j++) {
			at_end(mem_free) char *root =
				realpath(server->sandbox_write.items[j].p, NULL);
			bool is_writer = root != NULL &&
					 (directory == NULL || strcmp(directory, root) == 0 ||
					  rest_below(directory, root) != NULL);

			if (is_writer)
				return server;
		}
	}
	return NULL;
}

static bool is_writable(const struct listed_writers *writers, const char *directory)
{
	return find_writer(writers->running, true, directory) != NULL ||
	       find_writer(writers->next, false, directory) != NULL;
}

static int fail(int error)
{
	errno = error;
	return -1;
}

/*
 * Where the path leads now, without links: in real_r, of PATH_MAX bytes. Goes from part to part as the kernel does, since what
 * counts of a link is which directory it is in, by whatever way that was come to.
 */
static int walk(const struct listed_writers *writers, const char *path, char *real_r)
{
	char rest[PATH_MAX], target[PATH_MAX], both[PATH_MAX];
	const char *at = rest;
	unsigned int links = 0;
	struct slice part;

	real_r[0] = '\0';
	if (strlen(path) >= sizeof(rest))
		return fail(ENAMETOOLONG);
	strcpy(rest, path);
	if (path[0] != '/' && getcwd(real_r, PATH_MAX) == NULL)
		return -1;
	while ((part = take_part(&at)).n > 0) {
		size_t length = strlen(real_r);
		ssize_t n;

		if (slice_is_equal(part, SLICE_LIT(".."))) {
			while (length > 0 && real_r[--length] != '/')
				;
			real_r[length] = '\0';
			continue;
		}
		if (length + part.n + 2 > PATH_MAX)
			return fail(ENAMETOOLONG);
		snprintf(real_r + length, PATH_MAX - length, "/%.*s", SLICE_ARG(part));
		n = readlink(real_r, target, sizeof(target) - 1);
		if (n < 0)
			continue; /* none, or nothing: whoever opens it learns that */
		real_r[length] = '\0';
		if (++links > LINKS_MAX || is_writable(writers, length > 0 ? real_r : "/"))
			return fail(ELOOP);
		target[n] = '\0';
		if (target[0] == '/')
			real_r[0] = '\0';
		if ((size_t)snprintf(both, sizeof(both), "%s/%s", target, at) >= sizeof(both))
			return fail(ENAMETOOLONG);
		memcpy(rest, both, sizeof(rest));
		at = rest;
	}
	return 0;
}

int listed_path_open_file(const struct listed_writers *writers, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
				.resolve = RESOLVE_NO_SYMLINKS };
	char real[PATH_MAX];

	if (!is_writable(writers, NULL))
		return open(path, (int)how.flags);
	if (walk(writers, path, real) < 0)
		return -1;
	return (int)syscall(SYS_openat2, AT_FDCWD, real, &how, sizeof(how));
}

/* Whether the real path is below the real root, although its name is not. */
static bool is_below_by_link(const char *path, const char *root)
{
	at_end(mem_free) char *real_path = realpath(path, NULL), *real_root = realpath(root, NULL);

	return real_path != NULL && real_root != NULL && rest_below(real_path, real_root) != NULL &&
	       rest_below(path, root) == NULL;
}

static int check_against(const struct config_server *server, const char *path, struct error *err)
{
	for (size_t i = 0; i < server->sandbox_write.count; i++) {
		const char *root = server->sandbox_write.items[i].p;

		if (is_below_by_link(path, root))
			return error_set(
				err, ERROR_INVALID,
				"%.120s is another name for a path below %.120s, which server "
				"'%.60s' may write to; write it as a path below that",
				path, root, server->conf.name);
	}
	return 0;
}

int listed_path_check(const struct config *config, const char *path, struct error *err)
{
	const char *rest;
	const char *root = find_root(config, path, &rest);
	int fd;

	if (root == NULL) {
		for (size_t i = 0; i < config->server_count; i++) {
			const struct config_server *server = &config->servers[i];

			if (server->enabled && server->sandbox != CONFIG_SANDBOX_OFF &&
			    check_against(server, path, err) < 0)
				return -1;
		}
		return 0;
	}
	fd = open_below(root, rest);
	if (fd >= 0)
		close(fd);
	else if (errno == ELOOP)
		return error_set(
			err, ERROR_INVALID,
			"%.120s goes through a symbolic link below %.120s, which a server may "
			"write to, and so could lead anywhere; list the path that it leads to "
			"instead",
			path, root);
	return 0;
}

int listed_path_check_output(const struct listed_writers *writers, const char *path,
			     struct error *err)
{
	const struct config_server *server;
	const char *directory;
	const char *how = "";
	char real[PATH_MAX];
	char *end;

	if (walk(writers, path, real) < 0)
		return error_set(
			err, ERROR_INVALID,
			errno == ELOOP ?
				"the path goes through a symbolic link below a directory that a "
				"server may write to, and so could lead anywhere; or through too "
				"many links" :
				"the path is too long");
	end = strrchr(real, '/');
	if (end != NULL)
		*end = '\0';
	directory = real[0] != '\0' ? real : "/";
	server = find_writer(writers->next, false, directory);
	if (server == NULL) {
		server = find_writer(writers->running, true, directory);
		how = ", as it has run until now,";
	}
	if (server == NULL)
		return 0;
	return error_set(
		err, ERROR_INVALID,
		"server '%.60s'%s may write to the directory, and so could replace the file; "
		"choose a path elsewhere",
		server->conf.name, how);
}

/*
 * ---- reading files ----
 *
 * The room is what the file holds when it is opened. Where that is too little, what has been
 * read moves, and is wiped where it was: it may be secret. It waits for disks alone: what is no
 * plain file is not read.
 */

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

int file_read_all(int fd, size_t max_bytes, struct buf *content, struct error *err)
{
	struct stat status;
	ssize_t got;

	CHECK(content->len == 0 && max_bytes > 0);
	if (fstat(fd, &status) < 0)
		return error_set_errno(err, "cannot be read");
	grow(content,
	     (size_t)status.st_size < max_bytes ? (size_t)status.st_size + 1 : max_bytes + 1);
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
	if (got < 0)
		return error_set_errno(err, "cannot be read");
	if (content->len > max_bytes)
		return error_set(err, ERROR_LIMIT, "is larger than %zu KiB", max_bytes / 1024);
	return 0;
}

int file_write_all(int fd, struct slice text)
{
	while (text.n > 0) {
		ssize_t n = write(fd, text.p, text.n);

		if (n == 0 || (n < 0 && errno != EINTR))
			return -1;
		if (n > 0)
			text = slice_of(text.p + n, text.n - (size_t)n);
	}
	return 0;
}

int file_read(const char *path, const struct listed_writers *writers, size_t max_bytes,
	      struct buf *content_r, struct stat *status_r, struct error *err)
{
	at_end(file_close) int fd = file_open(path, writers, err);
	int result;

	if (fd < 0)
		return -1;
	if (status_r != NULL && fstat(fd, status_r) < 0)
		result = error_set_errno(err, "cannot be read");
	else
		result = file_read_all(fd, max_bytes, content_r, err);
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
