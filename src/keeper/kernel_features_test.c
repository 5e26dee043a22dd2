/* SPDX-License-Identifier: Apache-2.0 */
/* What -t says of a configuration on this machine: one text each, or none. */
#include "keeper/kernel_features.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit_test.h"
#include "config/load.h"
#include "keeper/confine.h"

#define LANDLOCK_WHOLE 6 /* with it a sandbox lacks nothing */

static char directory[64], file[96];

/* The text with '@' replaced by the directory, which has `file`, `program`, and `link` to itself. */
static char *in_directory(const char *text)
{
	struct buf out = { 0 };
	struct slice rest = slice_str(text);
	char *copy;

	while (rest.n > 0) {
		buf_append_slice(&out, slice_cut(&rest, '@'));
		if (rest.n > 0)
			buf_append_str(&out, directory);
	}
	copy = mem_dup_slice(buf_slice(&out));
	buf_fini(&out);
	return copy;
}

static void put(const char *name, const char *text, mode_t mode)
{
	char *path = mem_printf("%s/%s", directory, name);
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(path, mode), 0);
	free(path);
}

static int set_up(void **state)
{
	char *path;

	strcpy(directory, "/tmp/features.XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(file, sizeof(file), "%s/conf.yaml", directory);
	put("file", "x", 0600);
	put("program", "#!/bin/sh\n", 0700);
	path = mem_printf("%s/link", directory);
	assert_int_equal(symlink(directory, path), 0);
	free(path);
	return 0;
}

static int tear_down(void **state)
{
	char *command = mem_printf("rm -r %s", directory);
	int result = system(command);

	free(command);
	return result;
}

static void check(const struct config_request *request, const struct config *config,
		  const struct tree *root, struct config_problems *problems,
		  struct config_problems *warnings)
{
	kernel_features_check(config, NULL, root, problems);
	kernel_features_check_directories(config, root, problems);
	kernel_features_check_commands(config, root, warnings);
	kernel_features_warn(config, root, warnings);
}

/* All of them but `ignored`, each with a line end. */
static void list(const struct config_problems *from, const char *ignored, struct buf *out)
{
	for (size_t i = 0; i < from->count; i++)
		if (ignored == NULL || strstr(from->items[i], ignored) == NULL)
			buf_printf(out, "%s\n", from->items[i]);
}

/* What is found, problems before warnings. That a server runs as root is left out unless is_root. */
static char *found(const char *yaml, bool is_root)
{
	struct config_problems problems = { 0 }, warnings = { 0 };
	struct config_request request = { .file = file, .check = check };
	char *text = in_directory(yaml), *all;
	struct buf out = { 0 };
	struct config *config;

	put("conf.yaml", text, 0600);
	free(text);
	config = config_load(&request, &problems, &warnings);
	assert_int_equal(config == NULL, problems.count > 0);
	list(&problems, NULL, &out);
	list(&warnings, is_root ? NULL : "runs as root", &out);
	all = mem_dup_slice(buf_slice(&out));
	config_free(&config);
	config_problems_fini(&problems);
	config_problems_fini(&warnings);
	buf_fini(&out);
	return all;
}

#define SERVER(more) "servers: {a: {command: /bin/cat" more "}}\n"
#define SANDBOX(more) SERVER(", sandbox: {mode: landlock" more "}")
#define CLAIMED(path)                                                                 \
	SANDBOX(", write: ['@']}, isolation: principal, env: {T: {file: '" path "'}") \
	"auth: {mode: token, tokens: [{name: x, sha256: " ZEROS "}]}\n"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static const struct {
	const char *yaml;
	const char *expected; /* a part of the only line; NULL: there is none */
} rows[] = {
	{ SERVER(""), NULL },
	{ SERVER(", cwd: '@'"), NULL },
	{ SERVER(", cwd: '@/none'"),
	  "conf.yaml:1:39: servers.a.cwd: @/none: No such file or directory" },
	{ SERVER(", cwd: '@/file'"), "servers.a.cwd: @/file is not a directory" },
	{ SERVER("}, b: {command: '@/none', cwd: '@/none', enabled: false"), NULL },
	{ "servers: {a: {command: no-such-program, env: {PATH: '/no/1:/no/2'}}}\n",
	  "servers.a.command: 'no-such-program' was not found in PATH (/no/1:/no/2)" },
	{ "servers: {a: {command: '@/none'}}\n", "servers.a.command: '@/none' does not exist" },
	{ "servers: {a: {command: '@/file'}}\n",
	  "servers.a.command: '@/file' is not an executable program" },
	{ "servers: {a: {command: '@'}}\n", "servers.a.command: '@' is not an executable program" },
	{ "servers: {a: {command: '@/program'}}\n", NULL },
	{ "servers: {a: {command: ./program, cwd: '@'}}\n", NULL },
	{ "servers: {a: {command: ./none, cwd: '@'}}\n",
	  "servers.a.command: './none' does not exist" },
	{ SERVER(", args: ['~/x']"), "servers.a.args: '~/x' is passed on as it is" },
	{ SERVER(", args: [x, '$HOME/y']"), "servers.a.args: '$HOME/y' is passed on" },
	{ SERVER(", args: ['x~/', 'x$HOME/', '~', '']"), NULL },
	{ "servers: {a: {command: /bin/sh, args: ['-c', '~/x']}}\n", NULL },
	{ "servers: {a: {command: sh, args: ['-c', '~/x']}}\n", NULL },
	{ "servers: {a: {command: w, env: {PATH: /usr/bin}, args: ['~/x']}}\n",
	  "servers.a.args: '~/x' is passed on as it is" },
	{ SANDBOX("}, tools: {arguments: {paths: {members: [k], roots: ['@', '@/', '/']}}"), NULL },
	{ SANDBOX("}, tools: {arguments: {paths: {members: [k], roots: ['@/none']}}"),
	  "servers.a.tools.arguments.paths.roots: @/none: No such file" },
	{ SANDBOX("}, tools: {arguments: {paths: {members: [k], roots: ['@/link']}}"),
	  "roots: @/link leads through a link to @; list that as well" },
	{ SANDBOX(""), NULL },
	{ SANDBOX(", read: ['@/none']"), "servers.a.sandbox.read: @/none: No such file" },
	{ SANDBOX(", write: ['@/none']"), "servers.a.sandbox.write: @/none: No such file" },
	{ SANDBOX(", read: ['@']"), NULL },
	{ SERVER(", sandbox: {mode: report}"), "servers.a.sandbox.mode: 'report' refuses" },
	{ SANDBOX(", connect: any"), "servers.a.sandbox.connect: 'any' includes the ports" },
	{ SANDBOX(", connect: any, gateway: true"), NULL },
	{ SANDBOX(", connect: any") "listen: [{address: 'unix:@/sock'}]\n", NULL },
	{ SANDBOX(", write: ['@']") "log: {target: '@/log'}\n", "conf.yaml:2:15: log.target" },
	{ SANDBOX(", write: ['@']") "audit: {to: '@/log'}\nadmin: {address: off}\n",
	  "conf.yaml:2:13: audit.to" },
	{ SANDBOX(", write: ['@']") "listen: [{address: 'unix:@/sock'}]\n",
	  "conf.yaml:2:20: listen[0].address" },
	{ SANDBOX(", write: ['@']") "admin: {address: 'unix:@/sock'}\n",
	  "conf.yaml:2:18: admin.address" },
	{ SANDBOX(", write: ['@']") "admin: {metrics: 'unix:@/sock'}\n",
	  "conf.yaml:2:18: admin.metrics" },
	{ SANDBOX(", read: ['@']") "log: {target: '@/log'}\n", NULL },
	{ CLAIMED("@/link/x${claim:sub}"),
	  "servers.a.env.T: @/link/ goes through a symbolic link below @, which a server may" },
	{ CLAIMED("@/${claim:sub}/x"), NULL },
};

/* SEC-62, SEC-63 */
static void each_is_told_once(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool is_confined = strstr(rows[i].yaml, "landlock") != NULL;
		char *all, *expected;
		const char *line_end;

		if (is_confined && landlock_version() < LANDLOCK_WHOLE)
			continue;
		all = found(rows[i].yaml, false);
		expected = in_directory(rows[i].expected != NULL ? rows[i].expected : "");
		line_end = strchr(all, '\n');

		if (rows[i].expected == NULL ? all[0] != '\0' :
					       strstr(all, expected) == NULL || line_end == NULL ||
						       line_end[1] != '\0')
			fail_msg("%s: %s", rows[i].yaml, all);
		free(expected);
		free(all);
	}
}

static void users_are_looked_up(void **state)
{
	char *all = found(SERVER(", user: no-such-user"), true);
	bool is_root = geteuid() == 0;

	assert_non_null(strstr(all, is_root ? "servers.a.user: there is no user 'no-such-user'" :
					      "servers.a.user: only root may start a process"));
	assert_null(strstr(all, "runs as root"));
	free(all);
}

/* Nor does this process have a PATH. */
static void there_may_be_no_path(void **state)
{
	const char *path = getenv("PATH");
	char *copy = path != NULL ? mem_strdup(path) : NULL, *all;

	unsetenv("PATH");
	all = found("servers: {a: {command: no-such-program}}\n", false);
	assert_non_null(strstr(all, "was not found in PATH (/usr/"));
	free(all);
	if (copy != NULL)
		setenv("PATH", copy, 1);
	free(copy);
}

static void root_is_told_once(void **state)
{
	char *all = found("servers: {a: {command: cat}, off: {command: cat, enabled: false},\n"
			  "  b: {command: cat}, u: {command: cat, user: nobody},\n"
			  "  c: {command: cat}, r: {url: 'http://127.0.0.1:9/mcp'}}\n",
			  true);

	if (geteuid() != 0)
		assert_null(strstr(all, "runs as root"));
	else
		assert_non_null(strstr(all, "servers.a runs as root, because the daemon does, and "
					    "so do b, c; use a user"));
	free(all);
}

/* From here on this process sees no cgroups. */
static void who_needs_a_cgroup_is_named(void **state)
{
	char *all;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) < 0)
		skip();
	all = found("servers: {off: {command: cat, enabled: false, resources: {processes: 9}},\n"
		    "  plain: {command: cat}, a: {command: cat, resources: {memory: 64MiB}},\n"
		    "  b: {command: cat, resources: {memory: 64MiB}}}\n",
		    false);
	assert_non_null(strstr(all, "servers.a.resources: resources.memory needs a cgroup"));
	assert_ptr_equal(strchr(all, '\n'), all + strlen(all) - 1);
	free(all);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(each_is_told_once),           cmocka_unit_test(users_are_looked_up),
	cmocka_unit_test(root_is_told_once),           cmocka_unit_test(there_may_be_no_path),
	cmocka_unit_test(who_needs_a_cgroup_is_named),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
