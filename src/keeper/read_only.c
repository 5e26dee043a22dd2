/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of each directory for writing, with all that is mounted below it, is set aside; then everything becomes
 * read-only; then the copies are put in their places. So what was read-only before stays so.
 */
#include "keeper/read_only.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/listed_path.h"

#ifndef MOVE_MOUNT_T_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 0x4
#define MOVE_MOUNT_T_EMPTY_PATH 0x40
#define OPEN_TREE_CLONE 1
#endif
#define ATTRIBUTE_RDONLY 1
#define RECURSIVE 0x8000 /* AT_RECURSIVE */

/* struct mount_attr, which some headers of the C library and of the kernel both have. */
struct attributes {
	uint64_t set;
	uint64_t clear;
	uint64_t propagation;
	uint64_t user_namespace;
};

static bool is_known; /* whether it is possible: that does not change */
static bool is_possible;

/* What is mounted and unmounted outside later comes in, but nothing goes out. */
static int leave_namespace(void)
{
	return unshare(CLONE_NEWNS) == 0 ? mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) : -1;
}

static int make_read_only(void)
{
	struct attributes attributes = { .set = ATTRIBUTE_RDONLY };

	return (int)syscall(SYS_mount_setattr, AT_FDCWD, "/", RECURSIVE, &attributes,
			    sizeof(attributes));
}

static bool is_wanted(const struct config *config)
{
	for (size_t i = 0; i < config->server_count; i++) {
		if (config->servers[i].sandbox != CONFIG_SANDBOX_OFF &&
		    config->servers[i].sandbox_write.count > 0)
			return true;
	}
	return false;
}

void read_only_probe(const struct config *config)
{
	int status = -1;
	pid_t pid;

	if (is_known || !is_wanted(config))
		return;
	pid = fork();
	if (pid == 0)
		_exit(leave_namespace() == 0 && make_read_only() == 0 ? 0 : 1);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	is_known = pid > 0;
	is_possible = is_known && status == 0;
}

bool read_only_is_possible(const struct config_server *server)
{
	const struct slices *paths = &server->sandbox_write;

	/* Who may write everywhere is kept from nothing. */
	for (size_t i = 0; i < paths->count; i++) {
		if (paths->items[i].p[strspn(paths->items[i].p, "/.")] == '\0')
			return false;
	}
	return is_possible && server->sandbox != CONFIG_SANDBOX_OFF && paths->count > 0;
}

/* Likewise by a link; over the root nothing can be put. */
static bool has_root(const struct config *config, const struct slices *paths)
{
	struct stat root, st;

	if (stat("/", &root) < 0)
		return true;
	for (size_t i = 0; i < paths->count; i++) {
		int fd = listed_path_open(config, paths->items[i].p);
		bool is_root = fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == root.st_dev &&
			       st.st_ino == root.st_ino;

		if (fd >= 0)
			close(fd);
		if (is_root)
			return true;
	}
	return false;
}

/* *tree_r: a copy that is nowhere yet; -1: there is no such path, which the sandbox reports. */
static int set_aside(const struct config *config, const char *path, int *tree_r)
{
	int fd = listed_path_open(config, path);

	*tree_r = -1;
	if (fd < 0)
		return errno == EMFILE ? -1 : 0;
	*tree_r = (int)syscall(SYS_open_tree, fd, "",
			       AT_EMPTY_PATH | RECURSIVE | OPEN_TREE_CLONE | O_CLOEXEC);
	close(fd);
	return *tree_r >= 0 ? 0 : -1;
}

static int put_in_place(const struct config *config, const char *path, int tree)
{
	int fd = listed_path_open(config, path);
	int result;

	if (fd < 0)
		return -1;
	result = (int)syscall(SYS_move_mount, tree, "", fd, "",
			      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	close(fd);
	return result;
}

/* Sets aside the paths from number i on, and so on; the copies are on the stack, as there is no memory to ask for. */
static int replace_all(const struct config *config, const struct slices *paths, size_t i)
{
	int tree, result;

	if (i == paths->count)
		return make_read_only();
	if (set_aside(config, paths->items[i].p, &tree) < 0)
		return -1;
	result = replace_all(config, paths, i + 1);
	if (tree < 0)
		return result;
	if (result == 0)
		result = put_in_place(config, paths->items[i].p, tree);
	close(tree);
	return result;
}

int read_only_enter(const struct config *config, const struct config_server *server)
{
	char directory[PATH_MAX];
	bool has_directory = getcwd(directory, sizeof(directory)) != NULL;

	if (has_root(config, &server->sandbox_write))
		return 0;
	if (leave_namespace() < 0 || replace_all(config, &server->sandbox_write, 0) < 0)
		return -1;
	/* It may be in a directory over which a copy was put. */
	if (has_directory && chdir(directory) < 0)
		return errno == EACCES ? 0 : -1;
	return 0;
}
