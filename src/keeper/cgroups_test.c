/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a tree of plain files that looks like the kernel's: which limits are written where, and what is
 * said where they cannot be. On the kernel's own, as far as this process may: joining, killing what
 * has escaped, removing. REL-30, SEC-62.
 */
#include "keeper/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit_test.h"
#include "keeper/new_process.h"

#define WAIT_MS 20000

static char base[64];

/* ---- the tree of plain files ---- */

/* The directory of all groups, and that of one. */
#define GROUPS "@"
#define GROUP "@/notes.1"

/* '@' stands for the name that has the number of this process. */
static void in_base(char path_r[256], const char *below, const char *name)
{
	if (below[0] == '@')
		snprintf(path_r, 256, "%s/mcpgated-%d%s%s", base, (int)getpid(), below + 1, name);
	else
		snprintf(path_r, 256, "%s/%s%s", base, below, name);
}

static void put(const char *below, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	in_base(path, below, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void assert_file(const char *below, const char *name, const char *expected)
{
	char path[256], text[256] = "";
	FILE *file;

	in_base(path, below, name);
	file = fopen(path, "re");
	assert_non_null(file);
	if (fgets(text, sizeof(text), file) == NULL)
		text[0] = '\0';
	fclose(file);
	assert_string_equal(text, expected);
}

static void make(const char *below)
{
	char path[256];

	in_base(path, below, "");
	assert_int_equal(mkdir(path, 0700), 0);
}

static void make_groups_again(void)
{
	char path[256];

	in_base(path, GROUPS, "");
	if (access(path, F_OK) < 0)
		make(GROUPS);
	put(GROUPS, "/cgroup.subtree_control", "");
	put(GROUPS, "/cgroup.kill", "");
}

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(base, sizeof(base), "%.40s/cgroups.XXXXXX", tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(base) == NULL)
		return -1;
	put("cgroup.controllers", "", "cpuset cpu memory pids\n");
	put("cgroup.subtree_control", "", "");
	put("cgroup.type", "", "domain\n");
	put("cgroup.procs", "", "");
	make("mcpgated-daemon");
	put("mcpgated-daemon", "/cgroup.procs", "");
	make_groups_again();
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	return system(command) == 0 ? 0 : -1;
}

static void put_group(void)
{
	static const char *const files[] = { "cgroup.procs", "cgroup.kill", "memory.max",
					     "pids.max",     "cpu.max",     "memory.swap.max" };
	char name[32];

	make(GROUP);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		snprintf(name, sizeof(name), "/%s", files[i]);
		put(GROUP, name, "");
	}
}

static struct config_server notes(void)
{
	static char name[] = "notes";

	return (struct config_server){ .conf.name = name, .enabled = true };
}

static void limits_are_written(void **state)
{
	struct config_server server = notes();
	struct config config = { .servers = &server, .server_count = 1 };
	struct cgroups cgroups;
	struct error err = { ERROR_NONE, "" };
	int fd;

	server.memory_bytes = 512 << 20;
	server.processes = 64;
	server.cpu_percent = 150;
	assert_int_equal(cgroups_open_at(&cgroups, base, &config, &err), 0);
	assert_non_null(cgroups.path);
	assert_file("mcpgated-daemon", "/cgroup.procs", "0");
	assert_file("cgroup.subtree_control", "", "+memory +pids +cpu");
	assert_file(GROUPS, "/cgroup.subtree_control", "+memory +pids +cpu");
	put_group();
	assert_int_equal(cgroups_make(&cgroups, &server, &fd), 1);
	assert_file(GROUP, "/memory.max", "536870912");
	assert_file(GROUP, "/memory.swap.max", "0");
	assert_file(GROUP, "/pids.max", "64");
	assert_file(GROUP, "/cpu.max", "150000 100000");
	assert_int_equal(cgroups_join(fd), 0);
	close(fd);
	assert_file(GROUP, "/cgroup.procs", "0");
	cgroups_kill(&cgroups, &server, 1);
	assert_file(GROUP, "/cgroup.kill", "1");
	cgroups_close(&cgroups);
	assert_file("cgroup.subtree_control", "", "-cpu");
	assert_file("cgroup.procs", "", "0");
}

static void the_limit_that_ended_it_is_named(void **state)
{
	struct config_server server = notes();
	struct config config = { .servers = &server, .server_count = 1 };
	struct cgroups cgroups;
	struct error err = { ERROR_NONE, "" };
	int fd;

	server.memory_bytes = 1 << 20;
	server.processes = 2;
	assert_int_equal(cgroups_open_at(&cgroups, base, &config, &err), 0);
	put_group();
	assert_int_equal(cgroups_make(&cgroups, &server, &fd), 1);
	close(fd);
	assert_null(cgroups_limit_reached(&cgroups, &server, 1));
	assert_null(cgroups_limit_reached(&cgroups, &server, 0));
	put(GROUP, "/memory.events", "low 0\nmax 7\noom 0\noom_kill 0\n");
	put(GROUP, "/pids.events", "max 0\n");
	assert_null(cgroups_limit_reached(&cgroups, &server, 1));
	put(GROUP, "/pids.events", "max 12\n");
	assert_string_equal(cgroups_limit_reached(&cgroups, &server, 1), "resources.processes");
	put(GROUP, "/memory.events", "low 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 1\n");
	assert_string_equal(cgroups_limit_reached(&cgroups, &server, 1), "resources.memory");
	cgroups_close(&cgroups);
}

/* A limit, of whatever kind, that the kernel does not take means no process. */
static void a_limit_that_cannot_be_set_is_an_error(void **state)
{
	struct config_server servers[] = { notes(), notes(), notes() };
	struct config config = { .servers = servers, .server_count = ARRAY_LEN(servers) };
	struct cgroups cgroups;
	struct error err = { ERROR_NONE, "" };
	char path[256], name[16];
	int fd;

	servers[0].processes = 64;
	servers[1].memory_bytes = 1 << 20;
	servers[2].cpu_percent = 50;
	assert_int_equal(cgroups_open_at(&cgroups, base, &config, &err), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(cgroups_make(&cgroups, &servers[i], &fd), -1);
		assert_int_equal(errno, ENOENT);
		assert_int_equal(fd, -1);
		snprintf(name, sizeof(name), "/notes.%d", i + 1);
		in_base(path, GROUPS, name);
		assert_int_equal(access(path, F_OK), -1);
	}
	cgroups_close(&cgroups);
}

static void what_is_not_there_is_refused_if_it_is_needed(void **state)
{
	struct config_server server = notes();
	struct config config = { .servers = &server, .server_count = 1 };
	struct cgroups cgroups;
	struct error err = { ERROR_NONE, "" };
	int fd;

	put("cgroup.controllers", "", "cpuset pids\n");
	server.memory_bytes = 1 << 20;
	assert_int_equal(cgroups_open_at(&cgroups, base, &config, &err), -1);
	assert_non_null(strstr(err.text, "resources.memory needs a cgroup"));
	assert_non_null(strstr(err.text, "the controller 'memory' is not available in"));
	assert_non_null(strstr(err.text, "Delegate=yes"));
	/* A server that is not enabled asks for nothing. */
	server.enabled = false;
	assert_int_equal(cgroups_open_at(&cgroups, base, &config, &err), 0);
	cgroups_close(&cgroups);
	/* Without limits there are groups if there can be, and none if not. */
	server = notes();
	assert_int_equal(cgroups_open_at(&cgroups, "/no/such/group", &config, &err), 0);
	assert_null(cgroups.path);
	assert_non_null(strstr(err.text, "No such file"));
	assert_int_equal(cgroups_make(&cgroups, &server, &fd), 0);
	assert_int_equal(fd, -1);
	cgroups_kill(&cgroups, &server, 0);
	cgroups_remove(&cgroups, &server, 0);
	assert_false(cgroups_retry(&cgroups));
	cgroups_close(&cgroups);
}

/* Without limits: no group is left of a kernel that cannot kill one. */
static void a_group_that_cannot_be_used_is_removed(void **state)
{
	struct config_server server = notes();
	struct config config = { .servers = &server, .server_count = 1 };
	struct error err = { ERROR_NONE, "" };
	struct cgroups cgroups;
	char path[256];

	in_base(path, GROUPS, "/cgroup.kill");
	assert_int_equal(unlink(path), 0);
	in_base(path, GROUPS, "/cgroup.subtree_control");
	assert_int_equal(unlink(path), 0);
	in_base(path, GROUPS, "");
	assert_int_equal(cgroups_open_at(&cgroups, base, &config, &err), 0);
	assert_null(cgroups.path);
	assert_int_equal(cgroups.fd, -1);
	assert_string_equal(err.text, "the kernel is older than Linux 5.14");
	assert_int_equal(access(path, F_OK), -1);
	cgroups_close(&cgroups);
}

/* Each that lacks something, and what is said of it. */
static void what_limits_need_is_named(void **state)
{
	static const struct {
		const char *below, *name, *why;
	} rows[] = {
		{ "cgroup.subtree_control", "", "cannot limit its children" },
		{ "mcpgated-daemon", "/cgroup.procs", "mcpgated-daemon: No such file" },
		{ GROUPS, "/cgroup.kill", "the kernel is older than Linux 5.14" },
		{ GROUPS, "/cgroup.subtree_control", "/cgroup.subtree_control: No such file" },
		{ "cgroup.controllers", "", "the controller 'cpu' is not available" },
	};
	struct config_server server = notes();
	struct config config = { .servers = &server, .server_count = 1 };

	server.cpu_percent = 50;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct error err = { ERROR_NONE, "" };
		struct cgroups cgroups;
		char path[256];

		in_base(path, rows[i].below, rows[i].name);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(cgroups_open_at(&cgroups, base, &config, &err), -1);
		if (strstr(err.text, rows[i].why) == NULL ||
		    strstr(err.text, "resources.cpu needs a cgroup") == NULL)
			fail_msg("%s", err.text);
		assert_int_equal(cgroups.kept, 0);
		/* It is left again, and removed if nothing is in it. */
		in_base(path, "mcpgated-daemon", "");
		assert_int_equal(mkdir(path, 0700), i == 1 ? 0 : -1);
		put("mcpgated-daemon", "/cgroup.procs", "");
		make_groups_again();
		put(rows[i].below, rows[i].name, "");
	}
}

/* The group of all groups has no type: there the daemon need not move. */
static void in_the_root_group_the_daemon_stays(void **state)
{
	struct config_server server = notes(), other = notes();
	struct config config = { .servers = &server, .server_count = 1 };
	struct error err = { ERROR_NONE, "" };
	struct cgroups cgroups;
	char path[256];

	in_base(path, "cgroup.type", "");
	assert_int_equal(unlink(path), 0);
	server.processes = other.memory_bytes = 1;
	assert_int_equal(cgroups_open_at(&cgroups, base, &config, &err), 0);
	assert_file("mcpgated-daemon", "/cgroup.procs", "");
	assert_file("cgroup.subtree_control", "", "+pids");
	assert_true(cgroups_can_keep(&cgroups, &server));
	assert_false(cgroups_can_keep(&cgroups, &other));
	cgroups_close(&cgroups);
	assert_file("cgroup.procs", "", "");
}

/* Numbers go on, for groups of the program before may be there still; with limits the reaper moves, too. */
static void groups_are_taken_over(void **state)
{
	struct config_server server = notes();
	struct config config = { .servers = &server, .server_count = 1 };
	struct error err = { ERROR_NONE, "" };
	char left[256], home[256], moved[16] = "", *line;
	struct cgroups cgroups;
	int fd, procs;

	in_base(left, "mcpgated-1", "");
	assert_true(asprintf(&line, "41 123 %s", left) > 0);
	in_base(home, "mcpgated-daemon", "/cgroup.procs");
	assert_int_equal(unlink(home), 0);
	assert_int_equal(mkfifo(home, 0600), 0);
	procs = open(home, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		server.processes = i == 1 ? 7 : 0;
		assert_int_equal(cgroups_take_over(&cgroups, line, &config, &err), 0);
		assert_int_equal(cgroups.last, 41);
		assert_int_equal(cgroups_make(&cgroups, &server, &fd), i == 0 ? 42 : -1);
		if (fd >= 0)
			close(fd);
		assert_int_equal(read(procs, moved, sizeof(moved)), i == 0 ? -1 : 4);
		cgroups_remove(&cgroups, &server, 42);
		free(cgroups.home); /* it stays where it is */
		cgroups.home = NULL;
		cgroups_close(&cgroups);
		make_groups_again();
	}
	assert_string_equal(moved, "1230"); /* the reaper, and itself */
	free(line);
	assert_int_equal(cgroups_take_over(&cgroups, "41 123 /no/such/group", &config, &err), -1);
	assert_non_null(strstr(err.text, "resources.processes needs a cgroup"));
	cgroups_close(&cgroups);
	close(procs);
}

/* ---- the kernel's own ---- */

/* As where only version 1 is: in a namespace of mounts that only this test sees. */
static void another_file_system_is_no_cgroup(void **state)
{
	struct config_server server = notes();
	struct config config = { .servers = &server, .server_count = 1 };
	struct error err = { ERROR_NONE, "" };
	pid_t pid = fork();
	int status;

	server.processes = 7;
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) < 0)
			_exit(2);
		_exit(cgroups_check(&config, &err) == -1 &&
				      strstr(err.text, "cgroup version 2 is not mounted") != NULL ?
			      0 :
			      1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip(); /* root may */
	assert_int_equal(status, 0);
}

static void wait_until_gone(pid_t pid)
{
	for (int i = 0; i < WAIT_MS / 5 && kill(pid, 0) == 0; i++) {
		waitpid(-1, NULL, WNOHANG);
		poll(NULL, 0, 5);
	}
	assert_int_equal(kill(pid, 0), -1);
}

/* Joins, starts a process that leaves the group of processes, and says its number. */
static void child(int group_fd, int out)
{
	pid_t pid;

	if (cgroups_join(group_fd) < 0)
		_exit(1);
	pid = fork();
	if (pid == 0) {
		setsid();
		alarm(WAIT_MS / 1000);
		pause();
	}
	if (write(out, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		_exit(2);
	_exit(0);
}

static bool is_in(pid_t pid, const char *name)
{
	char path[64], text[1024] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	return strstr(text, name) != NULL;
}

static void assert_is_in(pid_t pid, const char *name)
{
	assert_true(is_in(pid, name));
}

static void what_has_escaped_is_killed(struct cgroups *cgroups)
{
	struct config_server server = notes();
	pid_t pid, escaped = 0;
	int pipe_fds[2], fd, status;
	int64_t number = cgroups_make(cgroups, &server, &fd);

	assert_int_equal(number, 1);
	assert_true(fd >= 0);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		child(fd, pipe_fds[1]);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(pipe_fds[0], &escaped, sizeof(escaped)), sizeof(escaped));
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	assert_is_in(escaped, "/notes.1\n");
	/* What is alive keeps its group. */
	cgroups_remove(cgroups, &server, number);
	assert_true(cgroups_retry(cgroups));
	cgroups_kill(cgroups, &server, number);
	wait_until_gone(escaped);
	assert_false(cgroups_retry(cgroups));
}

static int began_fd;

static void begins(const struct new_process *process)
{
	_exit(write(began_fd, "x", 1) == 1 ? 0 : 1);
}

/* One that begins in the next group, in its first instruction. */
static void begins_in(struct cgroups *cgroups, int64_t number)
{
	struct config_server server = notes();
	struct new_process process = { .run = begins };
	int fd, fds[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(cgroups_make(cgroups, &server, &fd), number);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	began_fd = fds[1];
	process.cgroup_fd = fd;
	pid = new_process_make(&process);
	assert_true(pid > 0);
	close(fd);
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	cgroups_remove(cgroups, &server, number);
}

/* A daemon of the same number was killed with all that would have swept: who began in a group that was killed once would be killed. */
static void groups_of_an_earlier_daemon_are_not_used(void **state)
{
	struct config_server server = notes();
	struct config config = { .servers = &server, .server_count = 1 };
	struct cgroups cgroups;
	struct error err = { ERROR_NONE, "" };
	int fds[3];
	pid_t pid;

	assert_int_equal(cgroups_open(&cgroups, &config, &err), 0);
	if (cgroups.path == NULL) {
		assert_true(strlen(err.text) > 0);
		skip();
	}
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		assert_int_equal(cgroups_make(&cgroups, &server, &fds[i]), i + 1);
		cgroups_kill(&cgroups, &server, (int64_t)i + 1);
	}
	pid = fork();
	if (pid == 0) {
		alarm(WAIT_MS / 1000);
		if (cgroups_join(fds[1]) == 0)
			pause();
		_exit(1);
	}
	for (int i = 0; i < WAIT_MS / 5 && !is_in(pid, "/notes.2\n"); i++)
		poll(NULL, 0, 5);
	assert_is_in(pid, "/notes.2\n");
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	cgroups.last = 0; /* another daemon */
	begins_in(&cgroups, 1);
	begins_in(&cgroups, 3); /* the second has a process */
	cgroups_sweep(cgroups.path, WAIT_MS);
	wait_until_gone(pid);
	cgroups_close(&cgroups);
}

static void kernel_groups_end_everything(void **state)
{
	struct config_server server = notes();
	struct config config = { .servers = &server, .server_count = 1 };
	struct cgroups cgroups;
	struct error err = { ERROR_NONE, "" };
	char path[256];

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	assert_int_equal(cgroups_open(&cgroups, &config, &err), 0);
	if (cgroups.path == NULL) {
		print_message("# no groups here: %s\n", err.text);
		assert_true(strlen(err.text) > 0);
		skip();
	}
	snprintf(path, sizeof(path), "%s", cgroups.path);
	what_has_escaped_is_killed(&cgroups);
	cgroups_close(&cgroups);
	assert_int_equal(access(path, F_OK), -1);
}

static void move_to(const char *group)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs("0", file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* What the program that takes over checks, and finds, is what the daemon was started in. */
static void a_daemon_that_has_moved_finds_its_place(void **state)
{
	struct config config = { .server_count = 0 };
	struct error err = { ERROR_NONE, "" };
	char where[256], home[300];
	struct cgroups cgroups;

	assert_int_equal(cgroups_open(&cgroups, &config, &err), 0);
	if (cgroups.path == NULL)
		skip();
	snprintf(where, sizeof(where), "%s", cgroups.path);
	cgroups_close(&cgroups);
	*strrchr(where, '/') = '\0';
	snprintf(home, sizeof(home), "%s/mcpgated-daemon", where);
	if (mkdir(home, 0755) < 0)
		skip(); /* another daemon is there, or it is not allowed */
	move_to(home);
	assert_int_equal(cgroups_open(&cgroups, &config, &err), 0);
	move_to(where);
	assert_int_equal(rmdir(home), 0);
	assert_memory_equal(cgroups.path, where, strlen(where));
	assert_memory_equal(cgroups.path + strlen(where), "/mcpgated-", strlen("/mcpgated-"));
	assert_null(strstr(cgroups.path, "mcpgated-daemon"));
	cgroups_close(&cgroups);
}

/* As the guard does it when the keeper has been killed. */
static void kernel_groups_are_swept(void **state)
{
	struct config_server server = notes();
	struct config config = { .servers = &server, .server_count = 1 };
	struct cgroups cgroups;
	struct error err = { ERROR_NONE, "" };
	char path[256];
	pid_t pid;
	int fd;

	assert_int_equal(cgroups_open(&cgroups, &config, &err), 0);
	if (cgroups.path == NULL) {
		assert_true(strlen(err.text) > 0);
		skip();
	}
	snprintf(path, sizeof(path), "%s", cgroups.path);
	assert_int_equal(cgroups_make(&cgroups, &server, &fd), 1);
	pid = fork();
	if (pid == 0) {
		alarm(WAIT_MS / 1000);
		if (cgroups_join(fd) == 0)
			pause();
		_exit(1);
	}
	close(fd);
	cgroups_sweep(path, WAIT_MS);
	assert_int_equal(access(path, F_OK), -1);
	wait_until_gone(pid);
	cgroups_close(&cgroups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(limits_are_written, setup, teardown),
		cmocka_unit_test_setup_teardown(the_limit_that_ended_it_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(a_limit_that_cannot_be_set_is_an_error, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_not_there_is_refused_if_it_is_needed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_group_that_cannot_be_used_is_removed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_limits_need_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(in_the_root_group_the_daemon_stays, setup,
						teardown),
		cmocka_unit_test_setup_teardown(groups_are_taken_over, setup, teardown),
		cmocka_unit_test(another_file_system_is_no_cgroup),
		cmocka_unit_test(kernel_groups_end_everything),
		cmocka_unit_test(groups_of_an_earlier_daemon_are_not_used),
		cmocka_unit_test(kernel_groups_are_swept),
		cmocka_unit_test(a_daemon_that_has_moved_finds_its_place),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
