/* SPDX-License-Identifier: Apache-2.0 */
/* Names are compared part by part: `//` and `/./` mean nothing, and `..` is refused by config/rules. */
#include "keeper/listed_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* The topmost of the directories that servers may write, of those above the path; NULL: it is below none. */
static const char *find_root(const struct config *config, const char *path, const char **rest_r)
{
	const char *root = NULL;

	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		if (!server->enabled || server->sandbox == CONFIG_SANDBOX_OFF)
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
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd, why;

	if (root_fd < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, root_fd, rest, &how, sizeof(how));
	why = errno;
	close(root_fd);
	errno = why;
	return fd;
}

int listed_path_open(const struct config *config, const char *path)
{
	const char *rest;
	const char *root = find_root(config, path, &rest);

	return root != NULL ? open_below(root, rest) : open(path, O_PATH | O_CLOEXEC);
}

/* Whether the real path is below the real root, although its name is not. */
static bool is_below_by_link(const char *path, const char *root)
{
	char *real_path = realpath(path, NULL);
	char *real_root = realpath(root, NULL);
	bool is_below = real_path != NULL && real_root != NULL &&
			rest_below(real_path, real_root) != NULL && rest_below(path, root) == NULL;

	free(real_path);
	free(real_root);
	return is_below;
}

static int check_against(const struct config_server *server, const char *path, struct error *err)
{
	for (size_t i = 0; i < server->sandbox_write.count; i++) {
		const char *root = server->sandbox_write.items[i].p;

		if (is_below_by_link(path, root))
			return error_set(err, ERROR_INVALID,
					 "%.120s is below %.120s, which server '%.60s' may write, "
					 "by another name; name it by that one",
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
		return error_set(err, ERROR_INVALID,
				 "%.120s has a link below %.120s, which a server may write and so "
				 "could lead anywhere; list where it leads to instead",
				 path, root);
	return 0;
}
