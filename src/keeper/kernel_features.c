/* SPDX-License-Identifier: Apache-2.0 */
/* One function per question. Servers that are not enabled are not checked. */
#include "keeper/kernel_features.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "config/problem.h"
#include "keeper/capabilities.h"
#include "keeper/cgroups.h"
#include "keeper/landlock.h"
#include "keeper/launch.h"
#include "keeper/listed_path.h"
#include "keeper/sandbox.h"
#include "keeper/syscall_filter.h"

static void check_user(const struct config_server *server, struct config_problems *problems)
{
	if (server->user == NULL)
		return;
	if (geteuid() != 0)
		problem_add(problems,
			    "servers.%s.user: only root may start a process as another user; run "
			    "mcpgated as root, or take the key away",
			    server->conf.name);
	else if (!capabilities_reach_users())
		problem_add(
			problems,
			"servers.%s.user: the daemon is root without CAP_SETUID, CAP_SETGID and "
			"CAP_KILL; what its unit needs stands in mcpgated.yaml(5), \"What a server "
			"may do\"",
			server->conf.name);
	else if (getpwnam(server->user) == NULL)
		problem_add(problems, "servers.%s.user: there is no user '%.60s'",
			    server->conf.name, server->user);
}

/* EACCES: the path may exist for the server's own user. */
static bool is_missing(const char *path, mode_t *mode_r)
{
	struct stat st;

	*mode_r = S_IFDIR;
	if (stat(path, &st) < 0)
		return errno != EACCES;
	*mode_r = st.st_mode;
	return false;
}

static void check_cwd(const struct config_server *server, struct config_problems *problems)
{
	mode_t mode;

	if (server->cwd == NULL)
		return;
	if (is_missing(server->cwd, &mode))
		problem_add(problems, "servers.%s.cwd: %.200s: %s", server->conf.name, server->cwd,
			    strerror(errno));
	else if (!S_ISDIR(mode))
		problem_add(problems, "servers.%s.cwd: %.200s is no directory", server->conf.name,
			    server->cwd);
}

static void check_open_files(const struct config_server *server, struct config_problems *problems)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || server->open_files <= limit.rlim_max ||
	    geteuid() == 0)
		return;
	problem_add(problems,
		    "servers.%s.resources.open_files: the daemon itself may open only %" PRIu64
		    " files; raise its limit (LimitNOFILE= of the unit, ulimit -Hn)",
		    server->conf.name, (uint64_t)limit.rlim_max);
}

static void check_paths(const struct config *config, const struct config_server *server,
			const char *key, const struct slices *paths,
			struct config_problems *problems)
{
	struct error err;
	mode_t mode;

	for (size_t i = 0; i < paths->count; i++) {
		if (is_missing(paths->items[i].p, &mode))
			problem_add(problems, "servers.%s.sandbox.%s: %.200s: %s",
				    server->conf.name, key, paths->items[i].p, strerror(errno));
		else if (listed_path_check(config, paths->items[i].p, &err) < 0)
			problem_add(problems, "servers.%s.sandbox.%s: %s", server->conf.name, key,
				    err.text);
	}
}

/* We read them, with our rights. */
static void check_secrets(const struct config *config, const struct config_server *server,
			  struct config_problems *problems)
{
	struct error err;

	for (size_t i = 0; i < server->env_count; i++)
		if (server->env[i].file != NULL &&
		    listed_path_check(config, server->env[i].file, &err) < 0)
			problem_add(problems, "servers.%s.env.%s: %s", server->conf.name,
				    server->env[i].name, err.text);
}

static void check_sandbox(const struct config *config, const struct config_server *server,
			  struct config_problems *problems)
{
	struct error err = { ERROR_NONE, "" };

	if (server->sandbox == CONFIG_SANDBOX_OFF)
		return;
	if (sandbox_check(server, landlock_version(), &err) < 0)
		problem_add(problems, "servers.%s.sandbox: %s", server->conf.name, err.text);
	if (!syscall_filter_is_known())
		problem_add(problems,
			    "servers.%s.sandbox: the running kernel cannot refuse system calls "
			    "(CONFIG_SECCOMP_FILTER); use another kernel, or 'mode: off'",
			    server->conf.name);
	check_paths(config, server, "read", &server->sandbox_read, problems);
	check_paths(config, server, "write", &server->sandbox_write, problems);
}

static void check_cgroups(const struct config *config, struct config_problems *problems)
{
	struct error err = { ERROR_NONE, "" };

	if (cgroups_check(config, &err) < 0)
		problem_add(problems, "%s", err.text);
}

/* Whether it is a program, or may be one that only the server's user can see; else *why_r is an errno. */
static bool may_be_program(int dir_fd, const char *path, int *why_r)
{
	struct stat st;

	if (fstatat(dir_fd, path, &st, 0) < 0) {
		*why_r = errno;
		return errno == EACCES || errno == EBADF;
	}
	if (S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0)
		return true;
	*why_r = EACCES;
	return false;
}

/* As the server's process would look for it: below its cwd, and in the PATH of its environment. */
static bool find_command(const struct launch_spec *spec, int *why_r)
{
	const char *cwd = spec->server->cwd;
	int dir_fd = cwd != NULL ? open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
	bool is_found = false;

	*why_r = ENOENT;
	for (char **path = spec->candidates; *path != NULL && !is_found; path++)
		is_found = may_be_program(dir_fd, *path, why_r);
	if (dir_fd >= 0)
		close(dir_fd);
	return is_found;
}

static void append_directories(struct buf *out, char *const *candidates)
{
	for (; *candidates != NULL; candidates++) {
		CHECK(strchr(*candidates, '/') != NULL);
		if (out->len > 0)
			buf_append_char(out, ':');
		buf_append_slice(out, slice_between(*candidates, strrchr(*candidates, '/')));
	}
}

static void check_command(const struct launch_spec *spec, struct config_problems *problems)
{
	static const struct launch_verdict missing = { LAUNCH_EXEC, ENOENT };
	const struct config_server *server = spec->server;
	const char *hint = launch_hint(&missing, server->command);
	struct buf path = { 0 };
	int why;

	if (find_command(spec, &why))
		return;
	append_directories(&path, spec->candidates);
	if (strchr(server->command, '/') == NULL)
		problem_add(problems,
			    "servers.%s.command: '%.200s' is in no directory of PATH (%.300s)%s",
			    server->conf.name, server->command, buf_terminate(&path), hint);
	else
		problem_add(problems, "servers.%s.command: '%.200s' %s%s", server->conf.name,
			    server->command,
			    why == EACCES ? "is no program that may be executed" : "is not there",
			    why == EACCES ? "" : hint);
	buf_fini(&path);
}

void kernel_features_check_commands(const struct config *config, struct config_problems *problems)
{
	struct launch launch;
	struct error ignored;

	if (launch_init(&launch, config, &ignored) == 0) {
		for (size_t i = 0; i < launch.count; i++) {
			if (config->servers[i].enabled)
				check_command(&launch.specs[i], problems);
		}
	}
	launch_fini(&launch);
}

bool kernel_features_is_root(const struct config_server *server)
{
	return server->user == NULL && geteuid() == 0;
}

bool kernel_features_reaches_gateway(const struct config *config,
				     const struct config_server *server)
{
	bool has_ports = false;

	for (size_t i = 0; i < config->listen_count; i++)
		has_ports = has_ports || strncmp(config->listen[i].address, "unix:", 5) != 0;
	return has_ports && server->sandbox != CONFIG_SANDBOX_OFF &&
	       server->sandbox_connect.is_any && !server->sandbox_gateway;
}

/* What else a newer kernel would refuse. */
static void warn_of_kernel(const struct config_server *server, struct config_problems *warnings)
{
	struct server_confinement confinement;

	sandbox_describe(server, landlock_version(), &confinement);
	if (confinement.lacking[0] != '\0')
		problem_add(warnings, "servers.%s.sandbox: the running kernel lacks %s",
			    server->conf.name, confinement.lacking);
}

void kernel_features_warn(struct config *config)
{
	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		if (server->enabled && kernel_features_is_root(server))
			problem_add(&config->warnings,
				    "servers.%s runs as root, because the daemon does; give it a "
				    "user of its own (user), or run the daemon as one",
				    server->conf.name);
		if (server->enabled)
			warn_of_kernel(server, &config->warnings);
		if (server->enabled && kernel_features_reaches_gateway(config, server))
			problem_add(&config->warnings,
				    "servers.%s.sandbox.connect: 'any' includes the ports of this "
				    "gateway; list ports instead, or say 'gateway: true'",
				    server->conf.name);
	}
}

void kernel_features_check(const struct config *config, struct config_problems *problems)
{
	check_cgroups(config, problems);
	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		if (!server->enabled)
			continue;
		check_user(server, problems);
		check_cwd(server, problems);
		check_open_files(server, problems);
		check_sandbox(config, server, problems);
		check_secrets(config, server, problems);
	}
}
