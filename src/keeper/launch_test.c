/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes: what each of them finds, and what is said of those that cannot be. BACK-PROC-03, SEC-60. */
#include "keeper/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/unit_test.h"
#include "config/load.h"
#include "keeper/confine.h"
#include "keeper/handover.h"
#include "keeper/program_entry.h"
#include "keeper/programs.h"
#include "obs/log.h"

static char directory[64], file[96];
static struct config *config;
static struct launch launch;
static int log_fd;

/* ---- words ---- */

/* The text with '@' replaced by the directory; the caller frees it. */
static char *filled(const char *text)
{
	struct buf out = { 0 };
	char *copy;

	for (; *text != '\0'; text++)
		if (*text == '@')
			buf_append_str(&out, directory);
		else
			buf_append_char(&out, *text);
	copy = mem_dup_slice(buf_slice(&out));
	buf_fini(&out);
	return copy;
}

static void put(const char *name, const char *text, mode_t mode)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	out = fopen(path, "we");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static size_t count_logged(const char *text)
{
	static char log[1 << 14];
	ssize_t n = pread(log_fd, log, sizeof(log) - 1, 0);
	size_t count = 0;

	log[n > 0 ? n : 0] = '\0';
	for (const char *p = log; (p = strstr(p, text)) != NULL; p++)
		count++;
	return count;
}

/* One server, named a. */
static void begin_with(const char *server)
{
	const struct config_request request = { .file = file };
	struct config_problems problems = { 0 }, warnings = { 0 };
	char *text = filled(server), *yaml = mem_printf("servers: {a: {%s}}\n", text);
	struct error err;

	put("file", yaml, 0600);
	config = config_load(&request, &problems, &warnings);
	if (config == NULL)
		fail_msg("refused: %s", problems.items[0]);
	config_problems_fini(&warnings);
	assert_int_equal(launch_init(&launch, config, 1, &err), 0);
	free(yaml);
	free(text);
}

static void end(void)
{
	launch_fini(&launch);
	config_free(&config);
}

static int setup(void **state)
{
	strcpy(directory, "/tmp/launch.XXXXXX");
	if (mkdtemp(directory) == NULL || chmod(directory, 0711) < 0)
		return -1;
	snprintf(file, sizeof(file), "%s/file", directory);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	log_set(log_fd, LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	return 0;
}

static int teardown(void **state)
{
	char *command = mem_printf("rm -r '%s'", directory);
	int result = system(command);

	free(command);
	log_set_fd(STDERR_FILENO);
	close(log_fd);
	return result;
}

/* ---- processes ---- */

/* What it says until it ends, and what is said of its start; error 0: it was executed. */
static struct launch_verdict run(char *text_r, size_t size)
{
	const struct reaper reaper = { .fd = -1 };
	struct launch_verdict verdict = { 0, 0 };
	struct launched launched;
	size_t length = 0;
	int error;

	assert_int_equal(launch_start(&launch, &launch.specs[0], &reaper, -1, &launched, &error),
			 0);
	/* What is said of it is little; messages are not. */
	assert_int_equal(fcntl(launched.fds[0], F_GETPIPE_SZ), 256 * 1024);
	assert_int_equal(fcntl(launched.fds[1], F_GETPIPE_SZ), 256 * 1024);
	assert_in_range(fcntl(launched.fds[2], F_GETPIPE_SZ), 1, 64 * 1024);
	close(launched.fds[0]);
	for (;;) {
		struct pollfd out = { .fd = launched.fds[1], .events = POLLIN };
		ssize_t n;

		assert_int_equal(poll(&out, 1, 20000), 1);
		n = read(launched.fds[1], text_r + length, size - 1 - length);
		if (n <= 0)
			break;
		length += (size_t)n;
	}
	text_r[length] = '\0';
	assert_int_equal(waitpid(launched.pid, NULL, 0), launched.pid);
	assert_in_range(read(launched.verdict_fd, &verdict, sizeof(verdict)), 0, sizeof(verdict));
	close(launched.fds[1]);
	close(launched.fds[2]);
	close(launched.verdict_fd);
	return verdict;
}

static void each_finds_what_is_configured(void **state)
{
	static const struct {
		const char *server, *says;
		bool by_root;
	} rows[] = {
		{ "command: sh, args: [-c, ulimit -Sc; ulimit -Hc]", "0\n0\n", false },
		{ "command: sh, args: [-c, ulimit -Sn; ulimit -Hn], resources: {open_files: 77}",
		  "77\n77\n", false },
		{ "command: sh, args: [-c, umask], umask: '0027'", "0027\n", false },
		{ "command: pwd, cwd: '@'", "@\n", false },
		{ "command: pwd, env: {PATH: '::/none:/usr/bin:/bin:'}, cwd: /", "/\n", false },
		{ "command: sh, args: [-c, 'echo $A $HOME $B'], env: {A: x, HOME: y, PATH: /bin}, "
		  "inherit_env: [A, B]",
		  "x y b\n", false },
		{ "command: echo, args: [x], sandbox: {mode: report}", "x\n", false },
		{ "command: sh, args: [-c, 'id -u; id -g; id -G; echo $HOME'], user: nobody",
		  "65534\n65534\n65534\n/nonexistent\n", true },
	};

	setenv("A", "a", 1);
	setenv("B", "b", 1);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *expected = filled(rows[i].says), text[256];
		struct launch_verdict verdict;

		if (rows[i].by_root && geteuid() != 0) {
			free(expected);
			continue;
		}
		begin_with(rows[i].server);
		verdict = run(text, sizeof(text));
		assert_int_equal(verdict.error, 0);
		assert_string_equal(text, expected);
		free(expected);
		end();
	}
}

static bool may_mount(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(unshare(CLONE_NEWNS) == 0 ? 0 : 1);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Its own user's, of which Landlock does not see that their rights change. SEC-62 */
static void files_it_may_not_write_keep_their_rights(void **state)
{
	static const char *const users[] = { "", ", user: nobody" };
	struct launch_verdict verdict;
	char path[96], text[64];

	if (!may_mount() || landlock_version() < LANDLOCK_VERSION_NET)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		char *server = mem_printf(
			"command: sh, args: [-c, 'chmod 600 @/kept || echo kept; chmod 700 @/own && "
			"echo > @/own/new && rm @/own/new && echo changed'], sandbox: {mode: landlock, read: "
			"['@'], write: ['@/own']}%s",
			users[i]);
		uid_t user = i == 0 ? 0 : 65534;

		snprintf(path, sizeof(path), "%s/own", directory);
		assert_true(mkdir(path, 0755) == 0 || i > 0);
		assert_int_equal(chown(path, user, user), 0);
		put("kept", "", 0644);
		snprintf(path, sizeof(path), "%s/kept", directory);
		assert_int_equal(chown(path, user, user), 0);
		begin_with(server);
		assert_int_equal(run(text, sizeof(text)).error, 0);
		assert_string_equal(text, "kept\nchanged\n");
		end();
		free(server);
	}
	/* A pipe, which cannot be mounted: it is not started without that. */
	begin_with("command: cat, sandbox: {mode: landlock, write: [/dev/stdin]}");
	verdict = run(text, sizeof(text));
	assert_int_equal(verdict.step, LAUNCH_SANDBOX);
	assert_int_equal(verdict.error, EINVAL);
	end();
}

static void each_failure_tells_its_step(void **state)
{
	static const struct {
		const char *server;
		int step, error;
		bool by_root;
	} rows[] = {
		{ "command: cat, cwd: '@/none'", LAUNCH_CWD, ENOENT, false },
		{ "command: /none/cat", LAUNCH_EXEC, ENOENT, false },
		{ "command: '@/plain'", LAUNCH_EXEC, EACCES, false },
		/* The first that exists, but what cannot be executed says more than what is not there. */
		{ "command: plain, env: {PATH: '@:/none'}", LAUNCH_EXEC, EACCES, false },
		{ "command: none-of-this, env: {PATH: '/none:@/plain'}", LAUNCH_EXEC, ENOENT,
		  false },
		{ "command: cat, env: {PATH: '@/odd:/bin'}", LAUNCH_EXEC, ENOEXEC, false },
		/* A directory that this user may not search says nothing of the command. */
		{ "command: none-of-this, user: nobody, env: {PATH: '@/closed:/none'}", LAUNCH_EXEC,
		  ENOENT, true },
		{ "command: '@/closed/cat', user: nobody", LAUNCH_EXEC, EACCES, true },
		{ "command: cat, user: nobody, cwd: '@/closed'", LAUNCH_CWD, EACCES, true },
	};
	char path[96], text[64];

	put("plain", "x", 0644);
	snprintf(path, sizeof(path), "%s/odd", directory);
	assert_int_equal(mkdir(path, 0755), 0);
	put("odd/cat", "\001", 0755);
	snprintf(path, sizeof(path), "%s/closed", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct launch_verdict verdict;

		if (rows[i].by_root && geteuid() != 0)
			continue;
		begin_with(rows[i].server);
		verdict = run(text, sizeof(text));
		if (verdict.step != rows[i].step || verdict.error != rows[i].error)
			fail_msg("%s: %d %s", rows[i].server, verdict.step,
				 strerror(verdict.error));
		end();
	}
}

/* A change of the user clears what the kernel was told; also where nobody is there to tell it. SEC-60 */
static void none_outlives_the_keeper(void **state)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < (geteuid() == 0 ? 2 : 1); i++) {
		const struct reaper reaper = { .fd = -1 };
		struct launched launched = { .pid = 0 };
		int status, error, ends[2];
		pid_t keeper;

		begin_with(i == 0 ? "command: sleep, args: ['1000']" :
				    "command: sleep, args: ['1000'], user: nobody");
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		keeper = fork();
		if (keeper == 0) {
			char byte;

			launch.keeper_pid = getpid();
			if (launch_start(&launch, &launch.specs[0], &reaper, -1, &launched,
					 &error) < 0)
				_exit(1);
			/* Until it is executed. */
			fcntl(launched.verdict_fd, F_SETFL, 0);
			_exit(read(launched.verdict_fd, &byte, 1) == 0 &&
					      write(ends[1], &launched.pid, sizeof(launched.pid)) >
						      0 ?
				      0 :
				      2);
		}
		assert_int_equal(waitpid(keeper, &status, 0), keeper);
		assert_int_equal(status, 0);
		assert_int_equal(read(ends[0], &launched.pid, sizeof(launched.pid)),
				 sizeof(launched.pid));
		assert_int_equal(waitpid(launched.pid, &status, 0), launched.pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		close(ends[0]);
		close(ends[1]);
		end();
	}
}

/* From the start on, before they are confined. SEC-60 */
static void helpers_end_with_the_keeper(void **state)
{
	struct program_entry entry;
	int status, number = 0, fd = memfd_create("configuration", MFD_CLOEXEC);
	pid_t pid;

	assert_int_equal(write(fd, "servers: {}\n", 12), 12);
	pid = fork();
	if (pid == 0) {
		program_entry_begin(&entry, "test", "test", "test", log_fd, fd);
		prctl(PR_GET_PDEATHSIG, &number);
		_exit(number);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), SIGKILL);
	close(fd);
}

/* ---- what is prepared ---- */

static void a_remote_gets_its_arguments(void **state)
{
	static const struct {
		const char *server;
		const char *const argv[16];
	} rows[] = {
		{ "url: 'https://x.example/mcp'",
		  { "mcpgated-remote", "--message-bytes", "#", "https://x.example/mcp" } },
		{ "url: 'https://x.example/mcp', allow_private: true, proxy: 'http://p.example:1', "
		  "headers: {X-One: one, X-Two: two}",
		  { "mcpgated-remote", "--message-bytes", "#", "--allow-private", "--proxy",
		    "http://p.example:1", "https://x.example/mcp" } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct launch_spec *spec = &launch.specs[0];
		size_t count = 0;

		begin_with(rows[i].server);
		spec = &launch.specs[0];
		for (; rows[i].argv[count] != NULL; count++)
			if (strcmp(rows[i].argv[count], "#") == 0)
				assert_int_equal(strtoull(spec->argv[count], NULL, 10),
						 config->servers[0].conf.line_max);
			else
				assert_string_equal(spec->argv[count], rows[i].argv[count]);
		assert_null(spec->argv[count]);
		assert_non_null(strstr(spec->candidates[0], "/mcpgated-remote"));
		if (i == 0) {
			assert_null(spec->envp[0]);
		} else {
			assert_string_equal(spec->envp[0], "X-One=one");
			assert_string_equal(spec->envp[1], "X-Two=two");
			assert_null(spec->envp[2]);
		}
		end();
	}
}

/* AUTH-DWN-05: what is in the file now; an empty one may be about to be written. */
static void secrets_are_those_of_the_file(void **state)
{
	put("secret", "one\n", 0600);
	for (int i = 0; i < 2; i++) {
		const struct launch_spec *spec;
		char path[96];

		put("secret", "one\n", 0600);
		begin_with(
			i == 0 ?
				"command: cat, env: {A: a, T: {file: '@/secret'}}, inherit_env: []" :
				"url: 'https://x.example/mcp', headers: {A: a, T: {file: "
				"'@/secret'}}");
		spec = &launch.specs[0];
		put("secret", "two\n", 0600);
		assert_string_equal(spec->envp[1], "T=one");
		launch_renew_secrets(&launch, 0);
		assert_string_equal(spec->envp[0], "A=a");
		assert_string_equal(spec->envp[1], "T=two");
		assert_null(spec->envp[2]);
		put("secret", "", 0600);
		launch_renew_secrets(&launch, 0);
		put("secret", "with\001control", 0600);
		if (i == 1) /* what no header may have */
			launch_renew_secrets(&launch, 0);
		snprintf(path, sizeof(path), "%s/secret", directory);
		assert_int_equal(unlink(path), 0);
		launch_renew_secrets(&launch, 0);
		assert_string_equal(spec->envp[1], "T=two");
		assert_int_equal(count_logged("secret_stays server=a variable=T error="),
				 i == 0 ? 2 : 5);
		end();
	}
}

/* The daemon takes what it may have; its servers get what it was started with, whoever was the first to raise it. */
static void limits_are_those_of_the_first_start(void **state)
{
	static const char *const left[] = { NULL, "nonsense", "123" };
	struct rlimit before, now, low;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = (struct rlimit){ 200, before.rlim_max };
	for (size_t i = 0; i < 2 * ARRAY_LEN(left); i++) {
		struct handover from = { .fds = NULL }, to = { .fds = NULL };
		rlim_t expected = i / 2 == 2 ? 123 : 200;
		size_t at = 0;
		char text[32];

		begin_with(i % 2 == 0 ? "command: cat" :
					"command: cat, resources: {open_files: 77}");
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
		launch.open_files = launch.specs[0].open_files = low;
		if (i % 2 == 1)
			launch.specs[0].open_files.rlim_cur = 77;
		if (left[i / 2] != NULL)
			handover_write(&from, "open_files %s", left[i / 2]);
		launch_raise_limits(&launch, &from);
		assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
		assert_int_equal(now.rlim_cur, before.rlim_max);
		assert_int_equal(launch.specs[0].open_files.rlim_cur, i % 2 == 1 ? 77 : expected);
		launch_hand_over(&launch, &to);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)expected);
		assert_string_equal(handover_next(&to, "open_files", &at), text);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		handover_fini(&from);
		handover_fini(&to);
		end();
	}
}

/* Only those need to be reset that are not as a program expects them. */
static void ignored_signals_are_noted(void **state)
{
	begin_with("command: cat");
	for (int i = 0; i < 2; i++) {
		assert_true(signal(SIGUSR1, i == 0 ? SIG_IGN : SIG_DFL) != SIG_ERR);
		assert_true(signal(SIGHUP, SIG_DFL) != SIG_ERR);
		launch.not_default = UINT64_MAX;
		launch_note_signals(&launch);
		assert_int_equal(launch.not_default >> (SIGUSR1 - 1) & 1, i == 0);
		assert_int_equal(launch.not_default >> (SIGHUP - 1) & 1, 0);
		assert_int_equal(launch.not_default >> (SIGRTMAX - 1) & 1, 0);
	}
	end();
}

static void each_failure_has_its_words(void **state)
{
	static const struct {
		struct launch_verdict verdict;
		const char *command, *hint;
	} rows[] = {
		{ { LAUNCH_EXEC, ENOENT }, "npx server", "; the command is a single program: put" },
		{ { LAUNCH_EXEC, ENOENT }, "npx", "" },
		{ { LAUNCH_EXEC, EACCES }, "npx server", "" },
		{ { LAUNCH_CWD, ENOENT }, "npx server", "" },
		{ { LAUNCH_SANDBOX_READ, ELOOP }, "npx", "; it goes through a symbolic link" },
		{ { LAUNCH_SANDBOX_WRITE, ELOOP }, "npx", "; it goes through a symbolic link" },
		{ { LAUNCH_SANDBOX_WRITE, ENOENT }, "npx", "" },
		{ { LAUNCH_SANDBOX, ELOOP }, "npx", "" },
	};
	struct config one = { .is_command = false };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *hint = launch_hint(&rows[i].verdict, &one, rows[i].command);

		if (strncmp(hint, rows[i].hint, strlen(rows[i].hint)) != 0 ||
		    (hint[0] == '\0') != (rows[i].hint[0] == '\0'))
			fail_msg("%zu: %s", i, hint);
	}
	one.is_command = true;
	assert_non_null(strstr(launch_hint(&rows[0].verdict, &one, "npx server"), "quotes"));
	assert_string_equal(launch_step_text(LAUNCH_SETUP), "cannot prepare the process");
	assert_string_equal(launch_step_text(LAUNCH_EXEC), "cannot execute the command");
	assert_string_equal(launch_step_text(LAUNCH_EXEC + 1), "cannot start");
	assert_string_equal(launch_step_text(-1), "cannot start");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_finds_what_is_configured), TEST(files_it_may_not_write_keep_their_rights),
		TEST(each_failure_tells_its_step),   TEST(helpers_end_with_the_keeper),
		TEST(none_outlives_the_keeper),      TEST(a_remote_gets_its_arguments),
		TEST(secrets_are_those_of_the_file), TEST(limits_are_those_of_the_first_start),
		TEST(ignored_signals_are_noted),     TEST(each_failure_has_its_words),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
