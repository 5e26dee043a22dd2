/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs in the child (the functions named child_side_*) may call nothing but async-signal-safe functions: no
 * allocation, no stdio, no log. Of a plain start it runs in the keeper's own memory: keeper/new_process.h.
 */
#include "keeper/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/text.h"
#include "config/forms.h"
#include "config/listed_path.h"
#include "config/variables.h"
#include "keeper/confine.h"
#include "keeper/cgroups.h"
#include "keeper/handover.h"
#include "keeper/new_process.h"
#include "keeper/programs.h"
#include "keeper/sandbox.h"
#include "keeper/sandbox_report.h"
#include "keeper/syscall_filter.h"
#include "obs/log.h"

/* ---- claims ---- */

/* Names and values must be exactly those that are declared. */

#define CLAIMS_BYTES_MAX (16 * 1024)

/* The value of this name; p NULL: it is not there. */
static struct slice text_find(struct slice text, struct slice name)
{
	struct slice rest = text;

	while (rest.n > 0) {
		struct slice at = slice_cut(&rest, '\0');
		struct slice value = slice_cut(&rest, '\0');

		if (slice_is_equal(at, name))
			return value;
	}
	return (struct slice){ NULL, 0 };
}

static size_t text_count(struct slice text)
{
	size_t count = 0;

	for (size_t i = 0; i < text.n; i++)
		count += text.p[i] == '\0';
	return count;
}

/* All declared claims are there, and not more than are declared. */
static const char *text_check(struct slice text, const struct server_conf *conf)
{
	if (text_count(text) != conf->claims.count * 2)
		return "the claims are not those that the server declares";
	for (size_t i = 0; i < conf->claims.count; i++) {
		struct slice value = text_find(text, conf->claims.items[i]);

		if (value.p == NULL)
			return "a claim that the server declares is missing";
		if (!text_is_claim(value))
			return "the value of a claim is empty, too long or not plain text";
	}
	return NULL;
}

/* ---- the environment ---- */

/* What the environment of one process is made from. */
struct claims_source {
	const struct config *config;
	const struct config_server *server;
	struct slice text;
};

/* An empty file may be about to be written. */
static int read_again(const struct config *config, const char *path, char **value_r,
		      struct error *err)
{
	const struct listed_writers writers = { .running = config };

	if (secret_resolve("file", path, &writers, value_r, err) < 0)
		return -1;
	if ((*value_r)[0] == '\0')
		return error_set(err, ERROR_INVALID, "the file %.100s is empty", path);
	return 0;
}

/* The template with the claims in it; the caller wipes it. */
static char *claims_expand(const char *template, struct slice text)
{
	struct slice rest = slice_str(template);
	size_t claims_max = rest.n / (sizeof("${claim:x}") - 1);
	size_t room = rest.n + claims_max * TEXT_CLAIM_MAX + 1;
	struct slice before, name;
	struct buf value = { 0 };
	int result;

	/* All at once: a buffer that grows leaves copies behind. */
	buf_reserve(&value, room);
	do {
		result = claim_cut(&rest, &before, &name);
		buf_append_slice(&value, before);
		if (result > 0)
			buf_append_slice(&value, text_find(text, name));
	} while (result > 0);
	CHECK(value.len < room);
	buf_terminate(&value);
	return value.data;
}

/* Whoever may choose a claim must not choose another directory with it. */
static int claims_check_names(const char *template, struct slice text, struct error *err)
{
	struct slice rest = slice_str(template), before, name;

	while (claim_cut(&rest, &before, &name) > 0) {
		struct slice value = text_find(text, name);

		if (value.n == 0 || value.p[0] == '.' || memchr(value.p, '/', value.n) != NULL ||
		    memmem(value.p, value.n, "..", 2) != NULL)
			return error_set(
				err, ERROR_BUSY,
				"the claim %.*s cannot be a part of a file's name: it has a "
				"slash or '..', or begins with a dot",
				SLICE_ARG(name));
	}
	return 0;
}

/* What the file of this caller holds; the caller wipes it. NULL: there is none for him. */
static char *claims_read_file(const struct claims_source *from, const char *template,
			      struct error *err)
{
	char *path, *value = NULL;

	if (claims_check_names(template, from->text, err) < 0)
		return NULL;
	path = claims_expand(template, from->text);
	if (read_again(from->config, path, &value, err) < 0 ||
	    (from->server->url != NULL && form_header_value(slice_str(value), err) < 0)) {
		err->kind = ERROR_BUSY;
		secret_free(&value);
	}
	free(path);
	return value;
}

/* NULL: err says why not; ERROR_BUSY: there is no file for this caller, or not yet. */
static char *claims_make_entry(const struct claims_source *from, const struct config_pair *pair,
			       struct error *err)
{
	at_end(secret_free) char *value = pair->names_file ?
						  claims_read_file(from, pair->value, err) :
						  claims_expand(pair->value, from->text);
	struct buf entry = { 0 };

	if (value == NULL)
		return NULL;
	/* All at once: a buffer that grows leaves copies behind. */
	buf_reserve(&entry, strlen(pair->name) + strlen(value) + 2);
	buf_append_str(&entry, pair->name);
	buf_append_char(&entry, '=');
	buf_append_str(&entry, value);
	buf_terminate(&entry);
	return entry.data;
}

static const struct config_pair *claims_find_pair(const struct config_server *server,
						  const char *entry)
{
	size_t length = strcspn(entry, "=");

	for (size_t i = 0; i < server->env_count; i++)
		if (server->env[i].has_claims && strlen(server->env[i].name) == length &&
		    memcmp(server->env[i].name, entry, length) == 0)
			return &server->env[i];
	return NULL;
}

static int claims_put(const struct claims_source *from, char **envp, char ***made_r,
		      struct error *err)
{
	size_t count = 0;
	char **made;

	while (envp[count] != NULL)
		count++;
	*made_r = made = mem_zalloc((count + 1) * sizeof(*made));
	for (size_t i = 0; i < count; i++) {
		const struct config_pair *pair = claims_find_pair(from->server, envp[i]);

		made[i] = pair != NULL ? claims_make_entry(from, pair, err) : envp[i];
		if (made[i] == NULL)
			return -1;
	}
	return 0;
}

int claims_make_env(const struct config *config, const struct config_server *server, char **envp,
		    struct slice text, char ***envp_r, struct error *err)
{
	const struct claims_source from = { config, server, text };
	const char *why;

	CHECK(envp != NULL);
	*envp_r = envp;
	if (server->conf.claims.count == 0)
		return text.n == 0 ? 0 :
				     error_set(err, ERROR_INVALID, "the server declares no claims");
	if (text.n == 0 || text.n > CLAIMS_BYTES_MAX || text.p[text.n - 1] != '\0')
		return error_set(err, ERROR_INVALID, "the claims are missing or incomplete");
	why = text_check(text, &server->conf);
	if (why != NULL)
		return error_set(err, ERROR_INVALID, "%s", why);
	if (claims_put(&from, envp, envp_r, err) == 0)
		return 0;
	claims_free_env(envp, *envp_r);
	*envp_r = envp;
	return -1;
}

void claims_free_env(char **envp, char **made)
{
	if (made == envp)
		return;
	for (size_t i = 0; made[i] != NULL; i++) {
		if (made[i] != envp[i])
			secret_free(&made[i]);
	}
	free(made);
}

/* ---- starting ---- */

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"
#define PIPE_BYTES (256 * 1024)
#define VERDICT_FD 3
#define REMOTE_PROGRAM "mcpgated-remote"
#define REMOTE_ARGUMENTS 16

/* Variables of the service manager, which are for the daemon alone: SEC-60. */
static const struct slice not_inherited[] = {
	SLICE("LISTEN_"),
	SLICE("NOTIFY_SOCKET"),
	SLICE("WATCHDOG_"),
	SLICE("CREDENTIALS_DIRECTORY"),
};

static bool is_inheritable(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(not_inherited); i++) {
		if (slice_has_prefix(slice_str(name), not_inherited[i]))
			return false;
	}
	return true;
}

/* The index of the entry of this name; if there is none, that of the end. */
static size_t env_place(char *const *envp, const char *name)
{
	size_t length = strlen(name);
	size_t i = 0;

	while (envp[i] != NULL && (strncmp(envp[i], name, length) != 0 || envp[i][length] != '='))
		i++;
	return i;
}

static const char *env_find(char *const *envp, const char *name)
{
	const char *entry = envp[env_place(envp, name)];

	return entry != NULL ? entry + strlen(name) + 1 : NULL;
}

/* Appends to a list that has room, unless the name is there already. */
static size_t env_add(char **envp, size_t count, const char *name, const char *value)
{
	if (value != NULL && env_find(envp, name) == NULL)
		envp[count++] = mem_printf("%s=%s", name, value);
	return count;
}

/* What is configured, then the user's HOME, then what is inherited by name; nothing else. */
static char **make_env(const struct config_server *server, const char *home)
{
	size_t room = server->env_count + server->inherit_env.count + 2;
	char **envp = mem_zalloc(room * sizeof(*envp));
	size_t count = 0;

	for (size_t i = 0; i < server->env_count; i++)
		count = env_add(envp, count, server->env[i].name, server->env[i].value);
	count = env_add(envp, count, "HOME", home);
	for (size_t i = 0; i < server->inherit_env.count; i++) {
		const char *name = server->inherit_env.items[i].p;

		if (is_inheritable(name))
			count = env_add(envp, count, name, getenv(name));
	}
	CHECK(count < room);
	return envp;
}

/* The whole environment of mcpgated-remote is header fields. */
static char **make_fields(const struct config_server *server)
{
	char **envp = mem_zalloc((server->env_count + 1) * sizeof(*envp));

	for (size_t i = 0; i < server->env_count; i++)
		envp[i] = mem_printf("%s=%s", server->env[i].name, server->env[i].value);
	return envp;
}

static const char **make_remote_argv(const struct launch_spec *spec)
{
	const struct config_server *server = spec->server;
	const struct {
		const char *name, *value;
	} more[] = {
		{ "--ca", server->ca_file },
		{ "--certificate", server->certificate_file },
		{ "--key", server->key_file },
		{ "--proxy", server->proxy },
	};
	const char **argv = mem_zalloc(REMOTE_ARGUMENTS * sizeof(*argv));
	size_t count = 0;

	argv[count++] = REMOTE_PROGRAM;
	argv[count++] = "--message-bytes";
	argv[count++] = spec->message_bytes;
	if (server->allow_private)
		argv[count++] = "--allow-private";
	if (server->credential.grant != CREDENTIAL_NONE)
		argv[count++] = "--credential";
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		if (more[i].value != NULL) {
			argv[count++] = more[i].name;
			argv[count++] = more[i].value;
		}
	}
	argv[count++] = server->url;
	CHECK(count < REMOTE_ARGUMENTS);
	return argv;
}

static const char **make_argv(const struct config_server *server)
{
	const char **argv = mem_zalloc((server->args.count + 2) * sizeof(*argv));

	argv[0] = server->command;
	for (size_t i = 0; i < server->args.count; i++)
		argv[i + 1] = server->args.items[i].p;
	return argv;
}

static size_t count_parts(const char *path)
{
	size_t count = 1;

	for (; *path != '\0'; path++)
		count += *path == ':';
	return count;
}

/* Where a command without a slash may be: the child's PATH, the daemon's, or the usual one. */
static char **make_candidates(const char *command, char *const *envp)
{
	const char *path = env_find(envp, "PATH");
	struct slice rest;
	char **candidates;
	size_t count = 0;

	if (path == NULL)
		path = getenv("PATH");
	if (path == NULL || path[0] == '\0')
		path = PATH_DEFAULT;
	candidates = mem_zalloc((count_parts(path) + 1) * sizeof(*candidates));
	if (strchr(command, '/') != NULL) {
		candidates[0] = mem_strdup(command);
		return candidates;
	}
	rest = slice_str(path);
	while (rest.p != NULL) {
		struct slice part = slice_cut(&rest, ':');

		/* An empty part means the current directory, in which no command is looked for. */
		if (part.n > 0)
			candidates[count++] = mem_printf("%.*s/%s", SLICE_ARG(part), command);
	}
	CHECK(count <= count_parts(path));
	return candidates;
}

static void find_groups(struct launch_spec *spec)
{
	const char *name = spec->server->user;

	CHECK(spec->has_user && name != NULL);
	/* The first call says how many there are. */
	getgrouplist(name, spec->gid, NULL, &spec->group_count);
	spec->groups = mem_zalloc(((size_t)spec->group_count + 1) * sizeof(*spec->groups));
	if (getgrouplist(name, spec->gid, spec->groups, &spec->group_count) < 0)
		spec->group_count =
			0; /* the groups have just changed: rather none than wrong ones */
}

/* Returns the user's home, borrowed until the next user is looked up; NULL: runs as the daemon's. */
static int find_user(struct launch_spec *spec, const char **home_r, struct error *err)
{
	const char *name = spec->server->user;
	const struct passwd *user;

	*home_r = NULL;
	if (name == NULL || !spec->server->enabled)
		return 0;
	user = getpwnam(name);
	if (user == NULL)
		return error_set(err, ERROR_INVALID, "servers.%.60s.user: there is no user '%.60s'",
				 spec->server->conf.name, name);
	spec->has_user = true;
	spec->uid = user->pw_uid;
	spec->gid = user->pw_gid;
	*home_r = user->pw_dir;
	return 0;
}

static int prepare(struct launch *launch, struct launch_spec *spec, struct error *err)
{
	const struct config_server *server = spec->server;
	const char *home;
	int result = find_user(spec, &home, err);

	if (server->is_endpoint)
		return result; /* it has no processes */
	CHECK(spec->envp == NULL && launch_program(server) != NULL);
	if (server->url != NULL) {
		spec->envp = make_fields(server);
		snprintf(spec->message_bytes, sizeof(spec->message_bytes), "%zu",
			 server->conf.line_max);
		spec->argv = make_remote_argv(spec);
		spec->candidates = programs_find(REMOTE_PROGRAM);
	} else {
		spec->envp = make_env(server, home);
		spec->argv = make_argv(server);
		spec->candidates = make_candidates(server->command, spec->envp);
	}
	spec->open_files = launch->open_files;
	if (server->open_files > 0)
		spec->open_files = (struct rlimit){ server->open_files, server->open_files };
	if (spec->has_user)
		find_groups(spec);
	return result;
}

const char *launch_program(const struct config_server *server)
{
	return server->url != NULL ? REMOTE_PROGRAM : server->command;
}

int launch_init(struct launch *launch, const struct config *config, size_t room, struct error *err)
{
	int result = 0;

	*launch = (struct launch){ .config = config, .keeper_pid = getpid() };
	launch->not_default = UINT64_MAX;
	CHECK(config->server_count <= room && room <= SERVERS_MAX);
	launch->specs = mem_zalloc(room * sizeof(*launch->specs));
	if (getrlimit(RLIMIT_NOFILE, &launch->open_files) < 0)
		launch->open_files = (struct rlimit){ 1024, 1024 };
	for (size_t i = 0; i < config->server_count; i++) {
		launch->specs[i].server = &config->servers[i];
		if (launch_program(&config->servers[i]) != NULL &&
		    prepare(launch, &launch->specs[i], err) < 0)
			result = -1;
	}
	read_only_probe(config);
	return result;
}

static void free_texts(char **texts)
{
	for (char **p = texts; p != NULL && *p != NULL; p++)
		free(*p);
	free(texts);
}

static void launch_forget(struct launch_spec *spec)
{
	free_texts(spec->candidates);
	for (char **p = spec->envp; p != NULL && *p != NULL; p++)
		explicit_bzero(*p, strlen(*p));
	free_texts(spec->envp);
	free(spec->argv);
	free(spec->groups);
	*spec = (struct launch_spec){ .server = spec->server };
}

void launch_fini(struct launch *launch)
{
	for (size_t i = 0; i < launch->config->server_count; i++)
		launch_forget(&launch->specs[i]);
	free(launch->specs);
}

int launch_renew(struct launch *launch, size_t server, struct error *err)
{
	struct launch_spec *spec = &launch->specs[server];

	CHECK(server < launch->config->server_count);
	launch_forget(spec);
	spec->server = &launch->config->servers[server];
	return launch_program(spec->server) != NULL ? prepare(launch, spec, err) : 0;
}

static void launch_use_original(struct launch *launch, const struct handover *from)
{
	size_t at = 0;
	const char *line = handover_next(from, "open_files", &at);
	unsigned long long soft;

	if (line == NULL || sscanf(line, "%llu", &soft) != 1)
		return;
	launch->open_files.rlim_cur = soft;
	for (size_t i = 0; i < launch->config->server_count; i++)
		if (launch->config->servers[i].open_files == 0)
			launch->specs[i].open_files = launch->open_files;
}

void launch_hand_over(const struct launch *launch, struct handover *to)
{
	handover_write(to, "open_files %llu", (unsigned long long)launch->open_files.rlim_cur);
}

void launch_raise_limits(struct launch *launch, const struct handover *from)
{
	struct rlimit all = { launch->open_files.rlim_max, launch->open_files.rlim_max };

	launch_use_original(launch, from);

	/* If this fails, the daemon serves fewer clients; io/listen pauses when descriptors run out. */
	setrlimit(RLIMIT_NOFILE, &all);
}

/* What the kernel takes: the C library's sigaction refuses to touch 32 and 33, and its sigfillset leaves them out. */
struct action {
	unsigned long handler, more[3];
};

void launch_note_signals(struct launch *launch)
{
	struct action now = { 0 };

	for (int i = 1; i < NSIG; i++)
		if (syscall(SYS_rt_sigaction, i, NULL, &now, NSIG / 8) == 0 &&
		    now.handler != (unsigned long)SIG_IGN)
			launch->not_default &= ~(UINT64_C(1) << (i - 1));
}

void launch_renew_secrets(struct launch *launch, size_t server)
{
	const struct launch_spec *spec = &launch->specs[server];

	CHECK(server < launch->config->server_count);
	for (size_t i = 0; i < spec->server->env_count; i++) {
		const struct config_pair *pair = &spec->server->env[i];
		char **entry = &spec->envp[env_place(spec->envp, pair->name)];
		at_end(secret_free) char *value = NULL;
		struct error err;

		if (pair->file == NULL || *entry == NULL)
			continue;
		if (read_again(launch->config, pair->file, &value, &err) == 0 &&
		    (spec->server->url == NULL || form_header_value(slice_str(value), &err) == 0)) {
			secret_free(entry);
			*entry = mem_printf("%s=%s", pair->name, value);
		} else {
			LOG(SECRET_STAYS, LOG_STR("server", spec->server->conf.name),
			    LOG_STR("variable", pair->name), LOG_STR("error", err.text));
		}
	}
}

static void child_side_fail(int verdict_fd, int step)
{
	struct launch_verdict verdict = { step, errno };

	/* Below PIPE_BUF, and the first bytes in this pipe: the write is neither cut nor waits. */
	if (write(verdict_fd, &verdict, sizeof(verdict)) < 0)
		_exit(126);
	_exit(127);
}

/* Signals as a program has them after login: the keeper ignores SIGPIPE, for example. */
static void child_side_reset_signals(const struct launch *launch, bool has_no_handlers)
{
	static const struct action by_default;
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		if (!has_no_handlers || (launch->not_default >> (i - 1) & 1) != 0)
			syscall(SYS_rt_sigaction, i, &by_default, NULL,
				NSIG / 8); /* fails for KILL, STOP */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Leaves its standard streams and the verdict; all other descriptors are closed. */
static void child_side_set_descriptors(const int ends[3], int verdict_fd)
{
	for (int i = 0; i < 3; i++) {
		if (dup2(ends[i], i) < 0)
			child_side_fail(verdict_fd, LAUNCH_SETUP);
	}
	if (verdict_fd != VERDICT_FD && dup3(verdict_fd, VERDICT_FD, O_CLOEXEC) < 0)
		child_side_fail(verdict_fd, LAUNCH_SETUP);
	descriptors_close_from(VERDICT_FD + 1);
}

static void child_side_set_limits(const struct launch_spec *spec)
{
	struct rlimit no_core = { 0, 0 };

	if (setrlimit(RLIMIT_NOFILE, &spec->open_files) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0)
		child_side_fail(VERDICT_FD, LAUNCH_SETUP);
}

static void child_side_die_with_keeper(const struct launch *launch)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launch->keeper_pid)
		_exit(127); /* the keeper died before the line above */
}

static void child_side_set_user(const struct launch *launch, const struct launch_spec *spec)
{
	if (!spec->has_user)
		return;
	/* For child_side_set_mounts, which takes them away again. */
	if (read_only_is_possible(spec->server))
		prctl(PR_SET_KEEPCAPS, 1);
	if (setgroups((size_t)spec->group_count, spec->groups) < 0 ||
	    setresgid(spec->gid, spec->gid, spec->gid) < 0 ||
	    setresuid(spec->uid, spec->uid, spec->uid) < 0)
		child_side_fail(VERDICT_FD, LAUNCH_USER);
	child_side_die_with_keeper(launch); /* a change of the user has cleared it */
}

/* Its own user looks for the paths; what may mount is used for nothing else. */
static void child_side_set_mounts(const struct launch *launch, const struct launch_spec *spec)
{
	if (!read_only_is_possible(spec->server))
		return;
	if ((spec->has_user && capabilities_use_admin() < 0) ||
	    read_only_enter(launch->config, spec->server) < 0 ||
	    (spec->has_user && capabilities_drop_all() < 0))
		child_side_fail(VERDICT_FD, LAUNCH_SANDBOX);
}

/* As its own user, so that chdir fails where that user may not go. */
static void child_side_set_place(const struct launch_spec *spec)
{
	const struct config_server *server = spec->server;

	if (server->umask != NULL)
		umask((mode_t)strtoul(server->umask, NULL, 8));
	if (server->cwd != NULL && chdir(server->cwd) < 0)
		child_side_fail(VERDICT_FD, LAUNCH_CWD);
}

/* After this, exec gains no privilege; only sandboxed paths are reachable. */
static void child_side_give_up_rights(const struct launch *launch, const struct launch_spec *spec)
{
	static const int steps[] = {
		[SANDBOX_READ] = LAUNCH_SANDBOX_READ,
		[SANDBOX_WRITE] = LAUNCH_SANDBOX_WRITE,
		[SANDBOX_KERNEL] = LAUNCH_SANDBOX,
	};
	enum sandbox_result result;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		child_side_fail(VERDICT_FD, LAUNCH_SETUP);
	/* Capabilities that the unit granted to the daemon (a low port). Fails only where there are none. */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	syscall_filter_enter_always();
	if (spec->server->sandbox == CONFIG_SANDBOX_OFF)
		return;
	if (spec->server->sandbox == CONFIG_SANDBOX_REPORT) {
		if (sandbox_report_enter(spec->server, spec->candidates) < 0)
			child_side_fail(VERDICT_FD, LAUNCH_SANDBOX);
		return;
	}
	result = sandbox_enter(launch->config, spec->server, spec->candidates);
	if (result != SANDBOX_DONE)
		child_side_fail(VERDICT_FD, steps[result]);
}

/* The errors of execve after which the next directory of PATH is tried. */
static bool child_side_is_elsewhere(int number)
{
	return number == ENOENT || number == ENOTDIR || number == EACCES || number == ENODEV ||
	       number == ESTALE || number == ETIMEDOUT;
}

/*
 * EACCES of execve can also mean that a directory of PATH may not be searched, which says nothing about
 * the command. A command that was given as a path can only be there.
 */
static bool child_side_is_forbidden(const struct launch_spec *spec, const char *path)
{
	return errno == EACCES && (spec->candidates[1] == NULL || access(path, F_OK) == 0);
}

static void child_side_exec(const struct launch_spec *spec)
{
	int last = ENOENT;

	for (char **path = spec->candidates; *path != NULL; path++) {
		execve(*path, (char *const *)(uintptr_t)spec->argv, spec->envp);
		if (!child_side_is_elsewhere(errno))
			child_side_fail(VERDICT_FD, LAUNCH_EXEC);
		if (child_side_is_forbidden(spec, *path))
			last = EACCES; /* says more than ENOENT of another directory */
	}
	errno = last;
	child_side_fail(VERDICT_FD, LAUNCH_EXEC);
}

struct start {
	struct new_process process;
	const struct launch *launch;
	const struct launch_spec *spec;
	const struct reaper *reaper;
	int ends[3]; /* its standard streams */
	int verdict_fd;
};

/* Before anything else, so that all memory that the process uses is counted in its group. */
static void child_side_join(const struct start *start)
{
	const struct new_process *process = &start->process;

	if (process->cgroup_fd >= 0 && !process->is_in_group &&
	    cgroups_join(process->cgroup_fd) < 0 && cgroups_is_needed(start->spec->server))
		child_side_fail(start->verdict_fd, LAUNCH_CGROUP);
}

static void child_side(const struct new_process *process)
{
	const struct start *start = container_of(process, const struct start, process);
	const struct launch *launch = start->launch;
	const struct launch_spec *spec = start->spec;

	child_side_die_with_keeper(launch);
	child_side_join(start);
	setsid();
	reaper_add(start->reaper, getpid());
	child_side_set_descriptors(start->ends, start->verdict_fd);
	child_side_reset_signals(launch, process->has_no_handlers);
	child_side_set_limits(spec);
	child_side_set_user(launch, spec);
	child_side_set_mounts(launch, spec);
	child_side_set_place(spec);
	child_side_give_up_rights(launch, spec);
	child_side_exec(spec);
}

/*
 * Whether the child side keeps to what keeper/new_process.h asks of a process that shares the keeper's memory. A sandbox
 * and `cwd` open paths that others may have put on a file system of theirs, which answers when it likes.
 */
static bool may_share_memory(const struct launch_spec *spec)
{
	const struct config_server *server = spec->server;

	return !spec->has_user && server->sandbox == CONFIG_SANDBOX_OFF && server->cwd == NULL &&
	       !cgroups_is_needed(server);
}

/* The pipes of one start; [0] is the end to read from, as with pipe(2). */
enum { PIPE_IN, PIPE_OUT, PIPE_ERR, PIPE_VERDICT, PIPE_COUNT };

/* Which end of each pipe stays here. */
static const int own_end[PIPE_COUNT] = {
	[PIPE_IN] = 1,
	[PIPE_OUT] = 0,
	[PIPE_ERR] = 0,
	[PIPE_VERDICT] = 0,
};

static void close_ends(int pipes[PIPE_COUNT][2], bool own, bool other)
{
	for (int i = 0; i < PIPE_COUNT; i++) {
		for (int end = 0; end < 2; end++) {
			if (pipes[i][end] >= 0 && (end == own_end[i] ? own : other))
				close(pipes[i][end]);
		}
	}
}

static int open_pipes(int pipes[PIPE_COUNT][2])
{
	for (int i = 0; i < PIPE_COUNT; i++) {
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			return -1;
		/* Our end only: programs do not expect non-blocking standard streams. */
		if (fcntl(pipes[i][own_end[i]], F_SETFL, O_NONBLOCK) < 0)
			return -1;
		if (i == PIPE_IN || i == PIPE_OUT)
			fcntl(pipes[i][0], F_SETPIPE_SZ, PIPE_BYTES); /* best effort */
	}
	return 0;
}

int launch_start(const struct launch *launch, const struct launch_spec *spec,
		 const struct reaper *reaper, int cgroup_fd, struct launched *launched_r,
		 int *error_r)
{
	int pipes[PIPE_COUNT][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	struct start start = {
		.process = { .run = child_side,
			     .shares_memory = may_share_memory(spec),
			     .cgroup_fd = cgroup_fd },
		.launch = launch,
		.spec = spec,
		.reaper = reaper,
	};
	pid_t pid = -1;

	CHECK(spec->argv[0] != NULL && spec->envp != NULL);
	if (open_pipes(pipes) == 0) {
		start.ends[0] = pipes[PIPE_IN][0];
		start.ends[1] = pipes[PIPE_OUT][1];
		start.ends[2] = pipes[PIPE_ERR][1];
		start.verdict_fd = pipes[PIPE_VERDICT][1];
		pid = new_process_make(&start.process);
	}
	if (pid < 0) {
		*error_r = errno;
		close_ends(pipes, true, true);
		return -1;
	}
	CHECK(pid > 0); /* child_side does not return */
	close_ends(pipes, false, true);
	launched_r->pid = pid;
	for (int i = 0; i < 3; i++)
		launched_r->fds[i] = pipes[i][own_end[i]];
	launched_r->verdict_fd = pipes[PIPE_VERDICT][own_end[PIPE_VERDICT]];
	return 0;
}

const char *launch_step_text(int step)
{
	static const char *const texts[] = {
		[LAUNCH_SETUP] = "cannot prepare the process",
		[LAUNCH_CGROUP] = "cannot create the cgroup for its limits (resources)",
		[LAUNCH_USER] = "cannot become the user (user)",
		[LAUNCH_CWD] = "cannot change to the directory (cwd)",
		[LAUNCH_SANDBOX] = "cannot set up the sandbox",
		[LAUNCH_SANDBOX_READ] = "cannot open a path of sandbox.read",
		[LAUNCH_SANDBOX_WRITE] = "cannot open a path of sandbox.write",
		[LAUNCH_EXEC] = "cannot execute the command",
	};

	return step >= 0 && (size_t)step < ARRAY_LEN(texts) ? texts[step] : "cannot start";
}

const char *launch_hint(const struct launch_verdict *verdict, const struct config *config,
			const char *command)
{
	if (verdict->step == LAUNCH_EXEC && verdict->error == ENOENT &&
	    strchr(command, ' ') != NULL)
		return config->is_command ?
			       "; the command is a single program: leave out the quotes around it "
			       "and its arguments" :
			       "; the command is a single program: put its arguments under args";
	if ((verdict->step == LAUNCH_SANDBOX_READ || verdict->step == LAUNCH_SANDBOX_WRITE) &&
	    verdict->error == ELOOP)
		return "; it goes through a symbolic link below a directory that a server may "
		       "write to";
	return "";
}
