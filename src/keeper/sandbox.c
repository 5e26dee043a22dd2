/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of paths, and the functions that turn it and the configuration into rules. Paths are opened by the
 * sandboxed process itself, as its own user, after the fork: a link is followed to what it means then.
 *
 * Landlock sees files, TCP ports, and processes outside; syscall_filter refuses other ways to the same ends. What
 * neither can refuse stands in mcpgated.yaml(5).
 */
#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/at_end.h"
#include "config/listed_path.h"
#include "keeper/confine.h"
#include "keeper/syscall_filter.h"

/* ---- read-only mounts ---- */

/*
 * A copy of each directory for writing, with all that is mounted below it, is set aside; then everything becomes
 * read-only; then the copies are put in their places. So what was read-only before stays so.
 */

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

static bool wants_mounts(const struct config *config)
{
	for (size_t i = 0; i < config->server_count; i++) {
		if (config->servers[i].sandbox == CONFIG_SANDBOX_LANDLOCK &&
		    config->servers[i].sandbox_write.count > 0)
			return true;
	}
	return false;
}

void read_only_probe(const struct config *config)
{
	int status = -1;
	pid_t pid;

	if (is_known || !wants_mounts(config))
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
	return is_possible && server->sandbox == CONFIG_SANDBOX_LANDLOCK && paths->count > 0;
}

/* Likewise by a link; over the root nothing can be put. */
static bool has_root(const struct config *config, const struct slices *paths)
{
	struct stat root, st;

	if (stat("/", &root) < 0)
		return true;
	for (size_t i = 0; i < paths->count; i++) {
		at_end(file_close) int fd = listed_path_open(config, paths->items[i].p);
		bool is_root = fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == root.st_dev &&
			       st.st_ino == root.st_ino;

		if (is_root)
			return true;
	}
	return false;
}

/* *tree_r: a copy that is nowhere yet; -1: there is no such path, which the sandbox reports. */
static int set_aside(const struct config *config, const char *path, int *tree_r)
{
	at_end(file_close) int fd = listed_path_open(config, path);

	*tree_r = -1;
	if (fd < 0)
		return errno == EMFILE ? -1 : 0;
	*tree_r = (int)syscall(SYS_open_tree, fd, "",
			       AT_EMPTY_PATH | RECURSIVE | OPEN_TREE_CLONE | O_CLOEXEC);
	return *tree_r >= 0 ? 0 : -1;
}

static int put_in_place(const struct config *config, const char *path, int tree)
{
	at_end(file_close) int fd = listed_path_open(config, path); /* -1: EBADF below */

	return (int)syscall(SYS_move_mount, tree, "", fd, "",
			    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* Sets aside the paths from number i on, and so on; the copies are on the stack, as there is no memory to ask for. */
static int sandbox_replace_all(const struct config *config, const struct slices *paths, size_t i)
{
	int tree, result;

	if (i == paths->count)
		return make_read_only();
	if (set_aside(config, paths->items[i].p, &tree) < 0)
		return -1;
	result = sandbox_replace_all(config, paths, i + 1);
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
	if (leave_namespace() < 0 || sandbox_replace_all(config, &server->sandbox_write, 0) < 0)
		return -1;
	/* It may be in a directory over which a copy was put. */
	if (has_directory && chdir(directory) < 0)
		return errno == EACCES ? 0 : -1;
	return 0;
}

/* ---- the sandbox ---- */

#define MAY_READ ((uint64_t)(LANDLOCK_FS_READ_FILE | LANDLOCK_FS_READ_DIR))
#define MAY_RUN (MAY_READ | LANDLOCK_FS_EXECUTE)
#define MAY_USE_DEVICE (MAY_READ | LANDLOCK_FS_WRITE_FILE | LANDLOCK_FS_TRUNCATE)
/* Everything but executing, which `read` grants, and devices. */
#define MAY_WRITE                                                                    \
	(LANDLOCK_FS_ALL & ~(uint64_t)(LANDLOCK_FS_EXECUTE | LANDLOCK_FS_MAKE_CHAR | \
				       LANDLOCK_FS_MAKE_BLOCK | LANDLOCK_FS_IOCTL_DEV))

/* Without these no ordinary program starts, finds a host name, or trusts a certificate. */
static const struct {
	const char *path;
	uint64_t fs;
} common[] = {
	/* programs and libraries */
	{ "/usr", MAY_RUN },
	{ "/bin", MAY_RUN },
	{ "/sbin", MAY_RUN },
	{ "/lib", MAY_RUN },
	{ "/lib32", MAY_RUN },
	{ "/lib64", MAY_RUN },
	{ "/nix/store", MAY_RUN },
	{ "/gnu/store", MAY_RUN },
	{ "/etc/alternatives", MAY_RUN },
	{ "/etc/ld.so.cache", MAY_READ },
	{ "/etc/ld.so.preload", MAY_READ },
	{ "/etc/ld.so.conf", MAY_READ },
	{ "/etc/ld.so.conf.d", MAY_READ },
	/* names, times, languages */
	{ "/etc/nsswitch.conf", MAY_READ },
	{ "/etc/passwd", MAY_READ },
	{ "/etc/group", MAY_READ },
	{ "/etc/localtime", MAY_READ },
	{ "/etc/timezone", MAY_READ },
	{ "/etc/locale.alias", MAY_READ },
	{ "/etc/os-release", MAY_READ },
	{ "/etc/mime.types", MAY_READ },
	/* the network */
	{ "/etc/hosts", MAY_READ },
	{ "/etc/host.conf", MAY_READ },
	{ "/etc/gai.conf", MAY_READ },
	{ "/etc/services", MAY_READ },
	{ "/etc/protocols", MAY_READ },
	{ "/etc/resolv.conf", MAY_READ },
	{ "/run/systemd/resolve", MAY_READ },
	{ "/run/NetworkManager/resolv.conf", MAY_READ },
	{ "/etc/ssl/certs", MAY_READ },
	{ "/etc/ssl/cert.pem", MAY_READ },
	{ "/etc/ssl/openssl.cnf", MAY_READ },
	{ "/etc/ca-certificates", MAY_READ },
	{ "/etc/pki/ca-trust", MAY_READ },
	{ "/etc/pki/tls/certs", MAY_READ },
	{ "/etc/pki/tls/openssl.cnf", MAY_READ },
	{ "/etc/crypto-policies", MAY_READ },
	/* what a program asks about itself and the machine; not about other processes */
	{ "/proc/self", MAY_READ },
	{ "/proc/cpuinfo", MAY_READ },
	{ "/proc/filesystems", MAY_READ },
	{ "/proc/loadavg", MAY_READ },
	{ "/proc/meminfo", MAY_READ },
	{ "/proc/stat", MAY_READ },
	{ "/proc/sys", MAY_READ },
	{ "/proc/uptime", MAY_READ },
	{ "/proc/version", MAY_READ },
	{ "/sys/devices/system/cpu", MAY_READ },
	{ "/sys/fs/cgroup", MAY_READ },
	{ "/sys/kernel/mm/transparent_hugepage", MAY_READ },
	/* devices that hold nothing */
	{ "/dev/null", MAY_USE_DEVICE },
	{ "/dev/zero", MAY_USE_DEVICE },
	{ "/dev/full", MAY_USE_DEVICE },
	{ "/dev/random", MAY_READ },
	{ "/dev/urandom", MAY_READ },
};

static bool sandbox_is_wanted(not_used const struct config_server *server)
{
	return true;
}

static bool limits_tcp(const struct config_server *server)
{
	return !server->sandbox_connect.is_any || !server->sandbox_bind.is_any;
}

static bool has_unix_sockets(const struct config_server *server)
{
	return server->sandbox_unix;
}

/* Where something may be written, the filter lets chmod through. */
static bool keeps_rights(const struct config_server *server)
{
	return server->sandbox_write.count == 0 || read_only_is_possible(server);
}

/* What a server is kept to or from. `since`: from which Linux on. mcpgated.yaml(5) has the whole table. */
static const struct {
	const char *name;
	bool (*is_wanted)(const struct config_server *server);
	int version; /* of Landlock; 0: without it */
	const char *since;
} measures[] = {
	{ "files", sandbox_is_wanted, 1, "5.13" },
	{ "TCP ports", limits_tcp, LANDLOCK_VERSION_NET, "6.7" },
	{ "ioctl of devices", sandbox_is_wanted, 5, "6.10" },
	{ "signals", sandbox_is_wanted, LANDLOCK_VERSION_SCOPED, "6.12" },
	{ "abstract unix sockets", has_unix_sockets, LANDLOCK_VERSION_SCOPED, "6.12" },
	{ "rights of files", keeps_rights, 0, "" },
	{ "system calls", sandbox_is_wanted, 0, "" },
	{ "capabilities", sandbox_is_wanted, 0, "" },
};

/* Whether the resolved path is what a rule names, or below it. */
static bool is_ruled(const char *path, const char *rule)
{
	char real[PATH_MAX];
	size_t length;

	if (realpath(rule, real) == NULL)
		return false;
	length = strlen(real);
	return strncmp(path, real, length) == 0 &&
	       (length == 1 || path[length] == '/' || path[length] == '\0');
}

static uint64_t find_rights(const struct slices *paths, uint64_t fs, const char *path)
{
	for (size_t i = 0; i < paths->count; i++)
		if (is_ruled(path, paths->items[i].p))
			return fs;
	return 0;
}

uint64_t sandbox_rights(const struct config_server *server, const char *path)
{
	uint64_t rights = find_rights(&server->sandbox_read, MAY_RUN, path) |
			  find_rights(&server->sandbox_write, MAY_WRITE, path);

	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		if ((common[i].fs & ~rights) != 0 && is_ruled(path, common[i].path))
			rights |= common[i].fs;
	return rights;
}

struct sandbox {
	const struct config *config;
	int ruleset;
};

static void add_words(char *text, size_t size, const char *words)
{
	size_t length = strlen(text);

	snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "", words);
}

void sandbox_describe(const struct config_server *server, int version,
		      struct server_confinement *confinement_r)
{
	char words[64];

	*confinement_r = (struct server_confinement){ .only_reports = server->sandbox ==
								      CONFIG_SANDBOX_REPORT };
	if (confinement_r->only_reports)
		add_words(confinement_r->lacking, sizeof(confinement_r->lacking),
			  "everything: sandbox.mode is report");
	if (server->sandbox != CONFIG_SANDBOX_LANDLOCK)
		return;
	for (size_t i = 0; i < ARRAY_LEN(measures); i++) {
		if (!measures[i].is_wanted(server))
			continue;
		if (measures[i].version <= version) {
			add_words(confinement_r->in_force, sizeof(confinement_r->in_force),
				  measures[i].name);
			continue;
		}
		snprintf(words, sizeof(words), "%s (Linux %s)", measures[i].name,
			 measures[i].since);
		add_words(confinement_r->lacking, sizeof(confinement_r->lacking), words);
	}
}

void sandbox_describe_all(struct config *config, int version)
{
	read_only_probe(config);
	for (size_t i = 0; i < config->server_count; i++)
		sandbox_describe(&config->servers[i], version,
				 &config->servers[i].conf.confinement);
}

int sandbox_check(const struct config_server *server, int version, struct error *err)
{
	if (server->sandbox != CONFIG_SANDBOX_LANDLOCK)
		return 0;
	if (version < 1)
		return error_set(
			err, ERROR_INVALID,
			"the running kernel has no Landlock, or it is switched off (kernel "
			"parameter lsm=); use another kernel, or 'mode: off'");
	if (version < LANDLOCK_VERSION_TRUNCATE)
		return error_set(
			err, ERROR_INVALID,
			"the running kernel cannot keep files from being truncated; use Linux 6.2 "
			"or newer, or 'mode: off'");
	if (version < LANDLOCK_VERSION_NET && limits_tcp(server))
		return error_set(
			err, ERROR_INVALID,
			"the running kernel cannot refuse TCP connections; use Linux 6.7 or newer, "
			"or allow all of them: 'connect: any' and 'bind: any'");
	return 0;
}

/* Returns 0, or -1 with errno. */
static int allow(const struct sandbox *sandbox, const char *path, uint64_t fs)
{
	at_end(file_close) int fd = listed_path_open(sandbox->config, path);

	if (fd < 0)
		return -1;
	return landlock_allow_open(sandbox->ruleset, fd, fs);
}

/* Not every machine has all of them, and not every user may see all of them. */
static void allow_common(const struct sandbox *sandbox)
{
	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		allow(sandbox, common[i].path, common[i].fs);
}

/* Of a directory, whatever put it there, all would be granted. */
static void allow_programs(const struct sandbox *sandbox, char *const *programs)
{
	for (; *programs != NULL; programs++) {
		struct stat st;
		at_end(file_close) int fd = listed_path_open(sandbox->config, *programs);

		if (fd < 0)
			continue;
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
			landlock_allow_open(sandbox->ruleset, fd, MAY_RUN);
	}
}

static int allow_paths(const struct sandbox *sandbox, const struct slices *paths, uint64_t fs)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (allow(sandbox, paths->items[i].p, fs) < 0)
			return -1;
	}
	return 0;
}

static int allow_ports(int ruleset, const struct config_ports *ports, uint64_t net)
{
	for (size_t i = 0; i < ports->count; i++) {
		if (landlock_allow_port(ruleset, ports->items[i], net) < 0)
			return -1;
	}
	return 0;
}

static enum sandbox_result add_rules(const struct sandbox *sandbox,
				     const struct config_server *server, char *const *programs)
{
	int ruleset = sandbox->ruleset;

	allow_common(sandbox);
	allow_programs(sandbox, programs);
	if (allow_paths(sandbox, &server->sandbox_read, MAY_RUN) < 0)
		return SANDBOX_READ;
	if (allow_paths(sandbox, &server->sandbox_write, MAY_WRITE) < 0)
		return SANDBOX_WRITE;
	if (allow_ports(ruleset, &server->sandbox_connect, LANDLOCK_NET_CONNECT_TCP) < 0 ||
	    allow_ports(ruleset, &server->sandbox_bind, LANDLOCK_NET_BIND_TCP) < 0)
		return SANDBOX_KERNEL;
	return SANDBOX_DONE;
}

static bool sandbox_is_listed(const struct config_ports *ports)
{
	return ports->is_any || ports->count > 0;
}

static struct syscall_grants find_grants(const struct config_server *server)
{
	bool connects = sandbox_is_listed(&server->sandbox_connect);
	bool binds = sandbox_is_listed(&server->sandbox_bind);

	return (struct syscall_grants){
		.tcp = connects || binds,
		.udp = server->sandbox_udp == CONFIG_UDP_ANY ||
		       (server->sandbox_udp == CONFIG_UDP_NAMES && connects),
		.listen = binds || server->sandbox_unix,
		.unix_sockets = server->sandbox_unix,
		.attributes = server->sandbox_write.count > 0,
	};
}

enum sandbox_result sandbox_enter(const struct config *config, const struct config_server *server,
				  char *const *programs)
{
	struct landlock_rights refused = { LANDLOCK_FS_ALL, 0, LANDLOCK_SCOPE_ALL };
	struct syscall_grants grants = find_grants(server);
	struct sandbox sandbox = { .config = config };
	enum sandbox_result result;

	if (!server->sandbox_connect.is_any)
		refused.net |= LANDLOCK_NET_CONNECT_TCP;
	if (!server->sandbox_bind.is_any)
		refused.net |= LANDLOCK_NET_BIND_TCP;
	/* Root without capabilities is a user like any other; with them it could load kernel modules. */
	if (capabilities_drop_all() < 0)
		return SANDBOX_KERNEL;
	sandbox.ruleset = landlock_open(&refused);
	if (sandbox.ruleset < 0)
		return SANDBOX_KERNEL;
	result = add_rules(&sandbox, server, programs);
	if (result == SANDBOX_DONE && landlock_enforce(sandbox.ruleset) < 0)
		result = SANDBOX_KERNEL;
	if (result == SANDBOX_DONE && syscall_filter_enter(&grants) < 0)
		result = SANDBOX_KERNEL;
	return result;
}
