/* SPDX-License-Identifier: Apache-2.0 */
/* One function per question. Servers that are not enabled ask for nothing. */
#include "keeper/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "config/problem.h"
#include "keeper/cgroups.h"
#include "keeper/landlock.h"
#include "keeper/launch.h"
#include "keeper/sandbox.h"

static void check_user(const struct config_server *server, struct config_problems *problems)
{
	if (server->user == NULL)
		return;
	if (geteuid() != 0)
		problem_add(problems,
			    "servers.%s.user: only root may start a process as another user; run "
			    "mcpgated as root, or take the key away",
			    server->name);
	else if (getpwnam(server->user) == NULL)
		problem_add(problems, "servers.%s.user: there is no user '%.60s'", server->name,
			    server->user);
}

/* What may not be looked at may be there for the server's own user. */
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
		problem_add(problems, "servers.%s.cwd: %.200s: %s", server->name, server->cwd,
			    strerror(errno));
	else if (!S_ISDIR(mode))
		problem_add(problems, "servers.%s.cwd: %.200s is no directory", server->name,
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
		    server->name, (uint64_t)limit.rlim_max);
}

static void check_paths(const struct config_server *server, const char *key,
			const struct config_texts *paths, struct config_problems *problems)
{
	mode_t mode;

	for (size_t i = 0; i < paths->count; i++) {
		if (is_missing(paths->items[i], &mode))
			problem_add(problems, "servers.%s.sandbox.%s: %.200s: %s", server->name,
				    key, paths->items[i], strerror(errno));
	}
}

static void check_sandbox(const struct config_server *server, struct config_problems *problems)
{
	struct error err = { ERROR_NONE, "" };

	if (server->sandbox == CONFIG_SANDBOX_OFF)
		return;
	if (sandbox_check(server, landlock_version(), &err) < 0)
		problem_add(problems, "servers.%s.sandbox: %s", server->name, err.text);
	check_paths(server, "read", &server->sandbox_read, problems);
	check_paths(server, "write", &server->sandbox_write, problems);
}

static void check_cgroups(const struct config *config, struct config_problems *problems)
{
	struct error err = { ERROR_NONE, "" };

	if (cgroups_check(config, &err) < 0)
		problem_add(problems, "%s", err.text);
}

/* Looked for as the start of a process looks for it. With a cwd, a relative path begins where nobody is now. */
static void check_command(const struct launch_spec *spec, struct config_problems *warnings)
{
	static const struct launch_verdict missing = { LAUNCH_EXEC, ENOENT };
	const struct config_server *server = spec->server;
	bool is_path = strchr(server->command, '/') != NULL;
	mode_t mode;

	if (is_path && server->command[0] != '/' && server->cwd != NULL)
		return;
	for (char **path = spec->candidates; *path != NULL; path++) {
		if (!is_missing(*path, &mode))
			return;
	}
	problem_add(warnings, "servers.%s.command: '%.200s' %s%s", server->name, server->command,
		    is_path ? "is not there" : "is in no directory of PATH",
		    launch_hint(&missing, server->command));
}

void machine_warn(const struct config *config, struct config_problems *warnings)
{
	struct launch launch;
	struct error ignored;

	if (launch_init(&launch, config, &ignored) == 0) {
		for (size_t i = 0; i < launch.count; i++) {
			if (config->servers[i].enabled)
				check_command(&launch.specs[i], warnings);
		}
	}
	launch_fini(&launch);
}

void machine_check(const struct config *config, struct config_problems *problems)
{
	check_cgroups(config, problems);
	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		if (!server->enabled)
			continue;
		check_user(server, problems);
		check_cwd(server, problems);
		check_open_files(server, problems);
		check_sandbox(server, problems);
	}
}
