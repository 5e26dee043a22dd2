/* SPDX-License-Identifier: Apache-2.0 */
/* One function per question. Servers that are not enabled are not checked. */
#include "keeper/kernel_features.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "config/listed_path.h"
#include "config/tree.h"
#include "config/variables.h"
#include "keeper/cgroups.h"
#include "keeper/confine.h"
#include "keeper/launch.h"
#include "keeper/sandbox.h"
#include "keeper/syscall_filter.h"

#define PATH_SHOWN 100

/* A server, the tree that it was read from, and the list for what is found. */
struct check {
	const struct config *config;
	const struct config_server *server;
	const struct tree *root;
	struct config_problems *list;
};

static const struct tree *kernel_features_find_place(const struct check *check, const char *way)
{
	const struct tree *servers = tree_below(check->root, "servers");

	return problem_place(tree_below(servers, check->server->conf.name), way);
}

/* Adds `FILE:LINE:COLUMN: servers.NAME.WAY: ` and the text. */
static void printf_like(3, 4)
	tell(const struct check *check, const char *way, const char *format, ...)
{
	at_end(mem_free) char *text = NULL;
	va_list args;

	va_start(args, format);
	CHECK(vasprintf(&text, format, args) >= 0);
	va_end(args);
	problem_add_in(check->list, kernel_features_find_place(check, way), "servers.%s%s%s: %s",
		       check->server->conf.name, way[0] != '\0' ? "." : "", way, text);
}

static void check_user(const struct check *check)
{
	const struct config_server *server = check->server;

	if (server->user == NULL)
		return;
	if (geteuid() != 0)
		tell(check, "user",
		     "only root may start a process as another user; run mcpgated as root, or "
		     "remove the key");
	else if (!capabilities_reach_users())
		tell(check, "user",
		     "the daemon runs as root without CAP_SETUID, CAP_SETGID and CAP_KILL; for "
		     "what its unit needs, see mcpgated.yaml(5), \"What a server may do\"");
	else if (getpwnam(server->user) == NULL)
		tell(check, "user", "there is no user '%.60s'", server->user);
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

/* The shell would have put the home in its place; here nobody does. */
static const char *tilde_hint(const char *path)
{
	return path[0] == '~' ? "; ~ is not expanded here, write the path in full" : "";
}

static void check_cwd(const struct check *check)
{
	const char *cwd = check->server->cwd;
	mode_t mode;

	if (cwd == NULL)
		return;
	if (is_missing(cwd, &mode))
		tell(check, "cwd", "%.200s: %s%s", cwd, strerror(errno), tilde_hint(cwd));
	else if (!S_ISDIR(mode))
		tell(check, "cwd", "%.200s is not a directory", cwd);
}

static void check_open_files(const struct check *check)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || check->server->open_files <= limit.rlim_max ||
	    geteuid() == 0)
		return;
	tell(check, "resources.open_files",
	     "the daemon itself may open only %" PRIu64
	     " files; raise its limit (LimitNOFILE= of the unit, ulimit -Hn)",
	     (uint64_t)limit.rlim_max);
}

static void check_paths(const struct check *check, const char *way, const struct slices *paths)
{
	struct error err;
	mode_t mode;

	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->items[i].p;

		if (path[0] != '/')
			continue; /* the rules have refused it */
		if (is_missing(path, &mode))
			tell(check, way, "%.200s: %s", path, strerror(errno));
		else if (listed_path_check(check->config, path, &err) < 0)
			tell(check, way, "%s", err.text);
	}
}

/* The file, or the directory that has the files of all callers; NULL: the value comes from none. The caller frees it. */
static char *path_of_secret(const struct config_pair *pair)
{
	struct slice rest = slice_str(pair->value), before, name;

	if (pair->names_file && claim_cut(&rest, &before, &name) > 0) {
		while (before.n > 1 && before.p[before.n - 1] != '/')
			before.n--;
		return mem_dup_slice(before);
	}
	return pair->file != NULL ? mem_strdup(pair->file) : NULL;
}

/* We read them, with our rights. */
static void check_secrets(const struct check *check)
{
	const struct config_server *server = check->server;
	struct error err;

	for (size_t i = 0; i < server->env_count; i++) {
		at_end(mem_free) char *path = path_of_secret(&server->env[i]);

		if (path != NULL && listed_path_check(check->config, path, &err) < 0)
			problem_add_in(check->list, kernel_features_find_place(check, "env"),
				       "servers.%s.env.%s: %s", server->conf.name,
				       server->env[i].name, err.text);
	}
}

static void check_sandbox(const struct check *check)
{
	const struct config_server *server = check->server;
	struct error err = { ERROR_NONE, "" };

	if (server->sandbox == CONFIG_SANDBOX_OFF)
		return;
	if (sandbox_check(server, landlock_version(), &err) < 0)
		tell(check, "sandbox", "%s", err.text);
	if (!syscall_filter_is_known())
		tell(check, "sandbox",
		     "the running kernel cannot refuse system calls (CONFIG_SECCOMP_FILTER); use "
		     "another kernel, or 'mode: off'");
	check_paths(check, "sandbox.read", &server->sandbox_read);
	check_paths(check, "sandbox.write", &server->sandbox_write);
}

/* All servers lack it, or none; it is told of the first that needs it. */
static void check_cgroups(const struct config *config, const struct tree *root,
			  struct config_problems *problems)
{
	struct error err = { ERROR_NONE, "" };

	if (cgroups_check(config, &err) == 0)
		return;
	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		if (server->enabled && cgroups_is_needed(server)) {
			tell(&(struct check){ config, server, root, problems }, "resources", "%s",
			     err.text);
			return;
		}
	}
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
static bool kernel_features_find_command(const struct launch_spec *spec, int *why_r)
{
	const char *cwd = spec->server->cwd;
	at_end(file_close) int dir_fd =
		cwd != NULL ? open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
	bool is_found = false;

	*why_r = ENOENT;
	for (char **path = spec->candidates; *path != NULL && !is_found; path++)
		is_found = may_be_program(dir_fd, *path, why_r);
	return is_found;
}

/* The directories of a PATH, as many as are read at a glance. */
static void append_directories(struct buf *out, char *const *candidates)
{
	for (; *candidates != NULL && out->len < PATH_SHOWN; candidates++) {
		CHECK(strchr(*candidates, '/') != NULL);
		if (out->len > 0)
			buf_append_char(out, ':');
		buf_append_slice(out, slice_between(*candidates, strrchr(*candidates, '/')));
	}
	if (*candidates != NULL)
		buf_append_str(out, ":…");
}

static void check_command(const struct check *check, const struct launch_spec *spec)
{
	static const struct launch_verdict missing = { LAUNCH_EXEC, ENOENT };
	const char *command = check->server->command;
	const char *hint = command[0] == '~' ? tilde_hint(command) :
					       launch_hint(&missing, check->config, command);
	at_end(buf_fini) struct buf path = { 0 };
	int why;

	if (kernel_features_find_command(spec, &why))
		return;
	append_directories(&path, spec->candidates);
	if (strchr(command, '/') == NULL)
		tell(check, "command", "'%.200s' was not found in PATH (%s)%s", command,
		     buf_terminate(&path), hint);
	else
		tell(check, "command", "'%.200s' %s%s", command,
		     why == EACCES ? "is not an executable program" : "does not exist",
		     why == EACCES ? "" : hint);
}

void kernel_features_check_commands(const struct config *config, const struct tree *root,
				    struct config_problems *list)
{
	struct launch launch;
	struct error err = { ERROR_NONE, "" };
	int result;

	for (size_t i = 0; i < config->server_count; i++)
		if (!config->servers[i].is_endpoint && launch_program(&config->servers[i]) == NULL)
			return; /* that has been told, and nothing could be started */
	/* It fails for a user who is not there; the rest has been prepared. */
	result = launch_init(&launch, config, config->server_count, &err);
	CHECK(result == 0 || err.kind != ERROR_NONE);
	for (size_t i = 0; i < config->server_count; i++) {
		const struct check check = { config, &config->servers[i], root, list };

		if (check.server->enabled && check.server->command != NULL)
			check_command(&check, &launch.specs[i]);
	}
	launch_fini(&launch);
}

bool kernel_features_is_root(const struct config_server *server)
{
	return server->user == NULL && server->command != NULL && geteuid() == 0;
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
static void warn_of_kernel(const struct check *check)
{
	struct server_confinement confinement;

	sandbox_describe(check->server, landlock_version(), &confinement);
	if (confinement.only_reports)
		tell(check, "sandbox.mode",
		     "'report' refuses nothing: it is for finding out what to list, and then for "
		     "'landlock'");
	else if (confinement.lacking[0] != '\0')
		tell(check, "sandbox", "the running kernel lacks %s", confinement.lacking);
}

/* Clients may name what a link leads to, as servers that follow it tell them. */
static void warn_of_roots(const struct check *check)
{
	static const char way[] = "tools.arguments.paths.roots";
	const struct slices *roots = &check->server->endpoint.arguments.paths.roots;

	for (size_t i = 0; i < roots->count; i++) {
		at_end(mem_free) char *real = realpath(roots->items[i].p, NULL);
		size_t length = roots->items[i].n;

		while (length > 1 && roots->items[i].p[length - 1] == '/')
			length--;
		if (real == NULL)
			tell(check, way, "%.200s: %s", roots->items[i].p, strerror(errno));
		else if (!slice_is_equal(slice_str(real), slice_of(roots->items[i].p, length)))
			tell(check, way,
			     "%.200s leads through a link to %.200s; list that as well if clients "
			     "may name it",
			     roots->items[i].p, real);
	}
}

/* What only a shell would understand. */
static void warn_of_args(const struct check *check)
{
	static const struct slice beginnings[] = { SLICE("~/"), SLICE("$HOME/") };
	const struct config_server *server = check->server;
	size_t length = server->command != NULL ? strlen(server->command) : 0;

	if (length >= 2 && strcmp(server->command + length - 2, "sh") == 0)
		return;
	for (size_t i = 0; i < server->args.count; i++) {
		for (size_t j = 0; j < ARRAY_LEN(beginnings); j++)
			if (slice_has_prefix(server->args.items[i], beginnings[j]))
				tell(check, "args",
				     "'%.200s' is passed on as it is: no shell expands it; write the "
				     "path in full",
				     server->args.items[i].p);
	}
}

/* Once for all: where the daemon is root's, it is usually so of every server. */
static void warn_of_root(const struct config *config, const struct tree *root,
			 struct config_problems *warnings)
{
	const struct config_server *first = NULL;
	at_end(buf_fini) struct buf others = { 0 };

	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		if (!server->enabled || !kernel_features_is_root(server))
			continue;
		if (first != NULL)
			buf_printf(&others, "%s%s", others.len > 0 ? ", " : ", and so do ",
				   server->conf.name);
		else
			first = server;
	}
	if (first != NULL) {
		const struct check check = { config, first, root, warnings };

		problem_add_in(
			warnings, kernel_features_find_place(&check, ""),
			"servers.%s runs as root, because the daemon does%.1000s; use a user "
			"of its own (user), or do not run the daemon as root",
			first->conf.name, buf_terminate(&others));
	}
}

void kernel_features_warn(const struct config *config, const struct tree *root,
			  struct config_problems *warnings)
{
	warn_of_root(config, root, warnings);
	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];
		const struct check check = { config, server, root, warnings };

		if (!server->enabled)
			continue;
		warn_of_kernel(&check);
		warn_of_args(&check);
		warn_of_roots(&check);
		if (kernel_features_reaches_gateway(config, server))
			tell(&check, "sandbox.connect",
			     "'any' includes the ports of this gateway; list ports instead, or set "
			     "'gateway: true'");
	}
}

/* We make them, with our rights: PATH, or unix:PATH; other words name no file. */
static void kernel_features_check_output(const struct listed_writers *writers,
					 const struct tree *place, const char *path,
					 struct config_problems *problems)
{
	const char *file = path;
	struct error err;

	if (file != NULL && strncmp(file, "unix:", 5) == 0)
		file += 5;
	if (file != NULL && file[0] == '/' && listed_path_check_output(writers, file, &err) < 0)
		problem_add_at(problems, place, "%s: %s", file, err.text);
}

/* A server could have records go elsewhere, and clients show it their tokens. */
static void check_outputs(const struct config *config, const struct config *running,
			  const struct tree *root, struct config_problems *problems)
{
	const struct listed_writers writers = { .running = running, .next = config };
	const struct tree *admin = tree_below(root, "admin");

	kernel_features_check_output(&writers, tree_find(tree_below(root, "log"), "target"),
				     config->log_target, problems);
	kernel_features_check_output(&writers, tree_find(tree_below(root, "audit"), "to"),
				     config->audit.to, problems);
	for (size_t i = 0; i < config->listen_count; i++)
		kernel_features_check_output(&writers,
					     tree_below(tree_item(tree_below(root, "listen"), i),
							"address"),
					     config->listen[i].address, problems);
	kernel_features_check_output(&writers, tree_find(admin, "address"), config->admin_address,
				     problems);
	kernel_features_check_output(&writers, tree_find(admin, "metrics"), config->admin_metrics,
				     problems);
}

void kernel_features_check_directories(const struct config *config, const struct tree *root,
				       struct config_problems *list)
{
	for (size_t i = 0; i < config->server_count; i++) {
		const struct check check = { config, &config->servers[i], root, list };

		if (check.server->enabled)
			check_cwd(&check);
	}
}

void kernel_features_check(const struct config *config, const struct config *running,
			   const struct tree *root, struct config_problems *problems)
{
	check_outputs(config, running, root, problems);
	check_cgroups(config, root, problems);
	for (size_t i = 0; i < config->server_count; i++) {
		const struct check check = { config, &config->servers[i], root, problems };

		if (!check.server->enabled)
			continue;
		check_user(&check);
		check_open_files(&check);
		check_sandbox(&check);
		check_secrets(&check);
	}
}
