/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroups(7). Below the group in which the daemon was started:
 *
 *	mcpgated-daemon        keeper, gateway and reaper, if limits are wanted: a group whose children
 *	                       are limited may hold no process itself
 *	mcpgated-PID/          nothing
 *	mcpgated-PID/NAME.N    one process of the server NAME, and what it starts
 */
#include "keeper/cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/slice.h"

#define HOME "/mcpgated-daemon"
#define CGROUP2_MAGIC 0x63677270
#define PATH_BYTES 512
#define NAME_BYTES 96
#define CPU_PERIOD_US 100000
#define SWEEP_PAUSE_NS 5000000

struct leaving {
	struct list link;
	char name[NAME_BYTES];
};

/* ---- limits and the controllers that keep them ---- */

enum controller { MEMORY, PIDS, CPU, CONTROLLER_COUNT };

static const struct {
	const char *name;
	const char *option;
} controllers[CONTROLLER_COUNT] = {
	[MEMORY] = { "memory", "resources.memory" },
	[PIDS] = { "pids", "resources.processes" },
	[CPU] = { "cpu", "resources.cpu" },
};

static bool is_wanted_by(const struct config_server *server, enum controller controller)
{
	const uint64_t limits[CONTROLLER_COUNT] = {
		[MEMORY] = server->memory_bytes,
		[PIDS] = server->processes,
		[CPU] = server->cpu_percent,
	};

	CHECK(controller < CONTROLLER_COUNT);
	return limits[controller] > 0;
}

bool cgroups_is_needed(const struct config_server *server)
{
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (is_wanted_by(server, (enum controller)i))
			return true;
	return false;
}

bool cgroups_can_keep(const struct cgroups *cgroups, const struct config_server *server)
{
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (is_wanted_by(server, (enum controller)i) && !(cgroups->kept & 1u << i))
			return false;
	return true;
}

static bool cgroups_is_wanted(const struct config *config, enum controller controller)
{
	for (size_t i = 0; i < config->server_count; i++)
		if (config->servers[i].enabled && is_wanted_by(&config->servers[i], controller))
			return true;
	return false;
}

static bool is_any_wanted(const struct config *config)
{
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (cgroups_is_wanted(config, (enum controller)i))
			return true;
	return false;
}

/* ---- files ---- */

static int write_file(int dir_fd, const char *name, const char *text)
{
	at_end(file_close) int fd = openat(dir_fd, name, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	return n < 0 ? -1 : 0;
}

static int write_number(int dir_fd, const char *name, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return write_file(dir_fd, name, text);
}

/* A file that a kernel without that feature does not have is not needed there. */
static int write_if_there(int dir_fd, const char *name, const char *text)
{
	return write_file(dir_fd, name, text) < 0 && errno != ENOENT ? -1 : 0;
}

static int write_below(const char *path, const char *name, const char *text)
{
	at_end(file_close) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	return write_file(fd, name, text);
}

static bool has_file(const char *path, const char *name, int mode)
{
	char file[PATH_BYTES];

	snprintf(file, sizeof(file), "%s/%s", path, name);
	return access(file, mode) == 0;
}

/* The first bytes of a file of the kernel's, terminated; empty if there are none. */
static void cgroups_read_text(const char *path, char *text_r, size_t size)
{
	CHECK(size > 0);
	at_end(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text_r, size - 1) : 0;

	text_r[n > 0 ? n : 0] = '\0';
}

/* ---- where we are ---- */

static const char *find_mount(void)
{
	static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (statfs(places[i], &fs) == 0 && (long)fs.f_type == CGROUP2_MAGIC)
			return places[i];
	return NULL;
}

/* The group of this process, as a directory; where the daemon has moved to one of its own, the one that it was started in. */
static int find_base(char base_r[PATH_BYTES], struct error *err)
{
	const char *mount = find_mount();
	char text[4096];
	char *start, *end;

	if (mount == NULL)
		return error_set(err, ERROR_SYSTEM, "cgroup version 2 is not mounted");
	cgroups_read_text("/proc/self/cgroup", text, sizeof(text));
	start = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
	end = start != NULL ? strchr(start + 1, '\n') : NULL;
	if (end == NULL || memmem(start, (size_t)(end - start), "/..", 3) != NULL)
		return error_set(err, ERROR_SYSTEM, "the cgroup of this process is not visible");
	start = strchr(start, '/');
	*end = '\0';
	if (strcmp(strrchr(start, '/'), HOME) == 0)
		*strrchr(start, '/') = '\0';
	snprintf(base_r, PATH_BYTES, "%s%s", mount, strcmp(start, "/") == 0 ? "" : start);
	return 0;
}

static bool cgroups_has_word(const char *text, const char *word)
{
	struct slice rest = slice_str(text);

	while (rest.p != NULL) {
		struct slice part = slice_cut(&rest, ' ');

		if (slice_is_equal(part, slice_str(word)))
			return true;
	}
	return false;
}

static int check_controllers(const char *base, const struct config *config, struct error *err)
{
	char path[PATH_BYTES + 32], text[512];

	snprintf(path, sizeof(path), "%s/cgroup.controllers", base);
	cgroups_read_text(path, text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (cgroups_is_wanted(config, (enum controller)i) &&
		    !cgroups_has_word(text, controllers[i].name))
			return error_set(err, ERROR_SYSTEM,
					 "the controller '%s' is not available in %.120s",
					 controllers[i].name, base);
	return 0;
}

static int check_base(const char *base, const struct config *config, struct error *err)
{
	if (access(base, W_OK) < 0)
		return error_set_errno(err, "%.120s is not writable", base);
	if (!is_any_wanted(config))
		return 0;
	if (!has_file(base, "cgroup.subtree_control", W_OK))
		return error_set_errno(err, "%.120s cannot limit its children", base);
	return check_controllers(base, config, err);
}

/* The first limit that cannot be kept, why, and what to do. */
static int cgroups_refuse(const struct config *config, struct error *err)
{
	const struct error why = *err;
	const char *option = "";

	for (int i = CONTROLLER_COUNT; i-- > 0;)
		if (cgroups_is_wanted(config, (enum controller)i))
			option = controllers[i].option;
	return error_set(
		err, ERROR_SYSTEM,
		"%s needs a cgroup (version 2) of the daemon's own, but: %s. Set Delegate=yes in "
		"the unit; if it is set, the kernel does not offer this limit: remove it",
		option, why.text);
}

int cgroups_check(const struct config *config, struct error *err)
{
	char base[PATH_BYTES];

	if (!is_any_wanted(config) ||
	    (find_base(base, err) == 0 && check_base(base, config, err) == 0))
		return 0;
	return cgroups_refuse(config, err);
}

/* ---- making and removing the directories ---- */

static int enable_controllers(const char *path, const struct config *config, struct error *err)
{
	char text[64] = "";

	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		if (!cgroups_is_wanted(config, (enum controller)i))
			continue;
		strcat(text, text[0] == '\0' ? "+" : " +");
		strcat(text, controllers[i].name);
	}
	if (write_below(path, "cgroup.subtree_control", text) == 0)
		return 0;
	if (errno == EBUSY)
		return error_set(err, ERROR_BUSY, "there are other processes in %.120s", path);
	return error_set_errno(err, "%.120s/cgroup.subtree_control", path);
}

/* Moves the daemon to a group of its own, so that `base` can limit its children; the root group needs no move. */
static int move_daemon(struct cgroups *cgroups, const char *base, struct error *err)
{
	CHECK(cgroups->home == NULL);
	if (!has_file(base, "cgroup.type", F_OK))
		return 0;
	cgroups->home = mem_printf("%s" HOME, base);
	if ((mkdir(cgroups->home, 0755) < 0 && errno != EEXIST) ||
	    write_below(cgroups->home, "cgroup.procs", "0") < 0)
		return error_set_errno(err, "%.120s", cgroups->home);
	return 0;
}

static int make_parent(struct cgroups *cgroups, const char *base, struct error *err)
{
	CHECK(cgroups->path == NULL && cgroups->fd < 0);
	cgroups->path = mem_printf("%s/mcpgated-%d", base, (int)getpid());
	if (mkdir(cgroups->path, 0755) < 0 && errno != EEXIST)
		return error_set_errno(err, "%.120s", cgroups->path);
	cgroups->fd = open(cgroups->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cgroups->fd < 0)
		return error_set_errno(err, "%.120s", cgroups->path);
	if (!has_file(cgroups->path, "cgroup.kill", W_OK))
		return error_set(err, ERROR_SYSTEM, "the kernel is older than Linux 5.14");
	return 0;
}

static int open_at(struct cgroups *cgroups, const char *base, const struct config *config,
		   struct error *err)
{
	if (check_base(base, config, err) < 0)
		return -1;
	if (is_any_wanted(config) &&
	    (move_daemon(cgroups, base, err) < 0 || enable_controllers(base, config, err) < 0))
		return -1;
	if (make_parent(cgroups, base, err) < 0)
		return -1;
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (cgroups_is_wanted(config, (enum controller)i))
			cgroups->kept |= 1u << i;
	return is_any_wanted(config) ? enable_controllers(cgroups->path, config, err) : 0;
}

static void cgroups_init(struct cgroups *cgroups)
{
	*cgroups = (struct cgroups){ .fd = -1 };
	list_init(&cgroups->leaving);
}

int cgroups_open_at(struct cgroups *cgroups, const char *base, const struct config *config,
		    struct error *err)
{
	cgroups_init(cgroups);
	if (open_at(cgroups, base, config, err) == 0)
		return 0;
	cgroups_close(cgroups);
	return is_any_wanted(config) ? cgroups_refuse(config, err) : 0;
}

int cgroups_open(struct cgroups *cgroups, const struct config *config, struct error *err)
{
	char base[PATH_BYTES];

	cgroups_init(cgroups);
	if (find_base(base, err) == 0)
		return cgroups_open_at(cgroups, base, config, err);
	return is_any_wanted(config) ? cgroups_refuse(config, err) : 0;
}

int cgroups_take_over(struct cgroups *cgroups, const char *left, const struct config *config,
		      struct error *err)
{
	char text[16], *base, *home;
	const char *end = strrchr(left, '/');
	uint64_t last;
	int reaper, n, result;

	if (end == NULL || sscanf(left, "%" SCNu64 " %d %n", &last, &reaper, &n) != 2)
		return cgroups_open(cgroups, config, err);
	base = mem_dup_slice(slice_between(left + n, end));
	/* Limits that no server had before need it out of the way. */
	if (is_any_wanted(config) && has_file(base, "cgroup.type", F_OK)) {
		home = mem_printf("%s" HOME, base);
		snprintf(text, sizeof(text), "%d", reaper);
		mkdir(home, 0755);
		write_below(home, "cgroup.procs", text);
		free(home);
	}
	cgroups_init(cgroups);
	result = open_at(cgroups, base, config, err);
	cgroups->last = last;
	free(base);
	/* Nothing is removed, for the processes in it go on with the program before. */
	return result == 0 ? 0 : cgroups_refuse(config, err);
}

/* Moves back to where the daemon came from and removes its group. The limits have to be switched off first. */
static void leave_home(struct cgroups *cgroups)
{
	at_end(mem_free) char *base = mem_strdup(cgroups->home);

	CHECK(strrchr(base, '/') != NULL);
	*strrchr(base, '/') = '\0';
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		char text[32];

		snprintf(text, sizeof(text), "-%s", controllers[i].name);
		write_below(base, "cgroup.subtree_control", text);
	}
	write_below(base, "cgroup.procs", "0");
	rmdir(cgroups->home);
}

void cgroups_close(struct cgroups *cgroups)
{
	LIST_DRAIN(struct leaving, leaving, &cgroups->leaving, link) {
		list_remove(&leaving->link);
		free(leaving);
	}
	file_close(&cgroups->fd);
	if (cgroups->path != NULL)
		cgroups_sweep(cgroups->path, 0);
	if (cgroups->home != NULL)
		leave_home(cgroups);
	free(cgroups->path);
	free(cgroups->home);
	cgroups_init(cgroups);
}

/* ---- one group ---- */

static void format_name(char name_r[NAME_BYTES], const struct config_server *server, int64_t number)
{
	CHECK(number > 0);
	snprintf(name_r, NAME_BYTES, "%.64s.%" PRId64, server->conf.name, number);
}

static int set_limits(int dir_fd, const struct config_server *server)
{
	char text[64];

	/* No swap; and all processes are killed together, because a server that lost one of them is of no use. */
	if (server->memory_bytes > 0 &&
	    (write_number(dir_fd, "memory.max", server->memory_bytes) < 0 ||
	     write_if_there(dir_fd, "memory.swap.max", "0") < 0 ||
	     write_if_there(dir_fd, "memory.oom.group", "1") < 0))
		return -1;
	if (server->processes > 0 && write_number(dir_fd, "pids.max", server->processes) < 0)
		return -1;
	if (server->cpu_percent == 0)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64 " %d", server->cpu_percent * CPU_PERIOD_US / 100,
		 CPU_PERIOD_US);
	return write_file(dir_fd, "cpu.max", text);
}

static int open_group(const struct cgroups *cgroups, const char *name,
		      const struct config_server *server)
{
	int dir_fd = openat(cgroups->fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int error;

	CHECK(cgroups->fd >= 0);
	if (dir_fd < 0 || set_limits(dir_fd, server) == 0)
		return dir_fd;
	error = errno;
	close(dir_fd);
	errno = error;
	return -1;
}

/*
 * Returns 0, or an errno. One that is there is of an earlier daemon with our process number, and so is what was done to it:
 * where cgroup.kill was written once, the kernel kills whatever is cloned into it.
 */
static int make_directory(const struct cgroups *cgroups, const char *name)
{
	if (mkdirat(cgroups->fd, name, 0755) == 0)
		return 0;
	if (errno != EEXIST)
		return errno;
	if (unlinkat(cgroups->fd, name, AT_REMOVEDIR) < 0)
		return errno == ENOTEMPTY ? 0 : errno; /* not of a cgroup's file system */
	return mkdirat(cgroups->fd, name, 0755) == 0 ? 0 : errno;
}

int64_t cgroups_make(struct cgroups *cgroups, const struct config_server *server, int *group_fd_r)
{
	int64_t number;
	char name[NAME_BYTES];
	int error;

	*group_fd_r = -1;
	if (cgroups->fd < 0)
		return 0;
	do {
		number = (int64_t)++cgroups->last;
		format_name(name, server, number);
		error = make_directory(cgroups, name);
	} while (error == EBUSY); /* its processes are there: there is an end to them */
	errno = error;
	if (error != 0)
		return cgroups_is_needed(server) ? -1 : 0;
	*group_fd_r = open_group(cgroups, name, server);
	if (*group_fd_r >= 0)
		return number;
	error = errno;
	unlinkat(cgroups->fd, name, AT_REMOVEDIR);
	errno = error;
	return cgroups_is_needed(server) ? -1 : 0;
}

int cgroups_join(int group_fd)
{
	return write_file(group_fd, "cgroup.procs", "0");
}

void cgroups_kill(const struct cgroups *cgroups, const struct config_server *server, int64_t number)
{
	char path[NAME_BYTES + 16];
	char name[NAME_BYTES];

	if (number <= 0)
		return;
	format_name(name, server, number);
	snprintf(path, sizeof(path), "%s/cgroup.kill", name);
	write_file(cgroups->fd, path, "1");
}

/* Whether the number of `key` in a file of `KEY NUMBER` lines is above 0. */
static bool counts(const char *path, const char *key)
{
	char text[512];
	struct slice rest;

	cgroups_read_text(path, text, sizeof(text));
	rest = slice_str(text);
	while (rest.p != NULL) {
		struct slice line = slice_cut(&rest, '\n');
		struct slice name = slice_cut(&line, ' ');

		if (slice_is_equal(name, slice_str(key)))
			return !slice_is_equal(line, slice_str("0"));
	}
	return false;
}

const char *cgroups_limit_reached(const struct cgroups *cgroups, const struct config_server *server,
				  int64_t number)
{
	static const struct {
		enum controller controller;
		const char *file;
		const char *key;
	} events[] = { { MEMORY, "memory.events", "oom_kill" }, { PIDS, "pids.events", "max" } };
	char name[NAME_BYTES];
	char path[PATH_BYTES];

	if (number <= 0)
		return NULL;
	format_name(name, server, number);
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		snprintf(path, sizeof(path), "%s/%s/%s", cgroups->path, name, events[i].file);
		if (is_wanted_by(server, events[i].controller) && counts(path, events[i].key))
			return controllers[events[i].controller].option;
	}
	return NULL;
}

/* Whether the group is gone, or cannot be removed at all. */
static bool try_remove(const struct cgroups *cgroups, const char *name)
{
	return unlinkat(cgroups->fd, name, AT_REMOVEDIR) == 0 || errno != EBUSY;
}

void cgroups_remove(struct cgroups *cgroups, const struct config_server *server, int64_t number)
{
	struct leaving *leaving;

	if (number <= 0)
		return;
	CHECK(cgroups->fd >= 0);
	leaving = mem_zalloc(sizeof(*leaving));
	format_name(leaving->name, server, number);
	list_append(&cgroups->leaving, &leaving->link);
	cgroups_retry(cgroups);
}

bool cgroups_retry(struct cgroups *cgroups)
{
	LIST_EACH_SAFE(struct leaving, leaving, &cgroups->leaving, link) {
		if (!try_remove(cgroups, leaving->name))
			continue;
		list_remove(&leaving->link);
		free(leaving);
	}
	return !list_is_empty(&cgroups->leaving);
}

/* ---- all groups ---- */

static void remove_below(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}

void cgroups_sweep(const char *path, unsigned int ms)
{
	static const struct timespec pause = { .tv_nsec = SWEEP_PAUSE_NS };

	for (unsigned int i = 0; i <= ms / (SWEEP_PAUSE_NS / 1000000); i++) {
		if (i > 0)
			nanosleep(&pause, NULL);
		/* Each time: a process that was being started may have joined meanwhile. */
		write_below(path, "cgroup.kill", "1");
		remove_below(path);
		if (rmdir(path) == 0 || errno != EBUSY)
			return;
	}
}
