/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of what a process does, that nothing is refused, and that the end of the process is passed on. */
#include "keeper/sandbox_report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "process/child.h"

static char place[64];
static struct config_server server = { .sandbox = CONFIG_SANDBOX_REPORT };
static char *programs[] = { NULL, NULL };
static int status;       /* of the process that was looked at */
static bool is_ordinary; /* it is an ordinary user's, who can write to nothing here */

static void must(bool is_done)
{
	if (!is_done)
		_exit(99);
}

/* What is told while `act` runs; in `told`, %s is the place. */
static void expect(void (*act)(void), const char *told)
{
	char *wanted = mem_alloc(64 * 1024);
	struct buf said = { 0 };
	int ends[2];
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		must(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO && chdir(place) == 0);
		close(ends[1]);
		if (is_ordinary)
			must(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
		must(prctl(PR_SET_DUMPABLE, 1) == 0); /* as the daemon's children begin */
		must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		must(sandbox_report_enter(&server, programs) == 0);
		act();
		_exit(7);
	}
	close(ends[1]);
	while ((n = read(ends[0], buf_reserve(&said, 4096), 4096)) > 0)
		said.len += (size_t)n;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(wanted, 64 * 1024, told, place, place, place);
#pragma GCC diagnostic pop
	assert_string_equal(buf_terminate(&said), wanted);
	buf_fini(&said);
	free(wanted);
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	must(fd >= 0);
	close(fd);
}

static void read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	must(fd >= 0);
	close(fd);
}

static void read_files(void)
{
	read_file("file");
	read_file("./sub/../file");
	read_file("/usr/bin/env");
	read_file("/proc/self/status");
	must(open("gone", O_RDONLY | O_CLOEXEC) < 0);
	must(open("sub", O_PATH | O_CLOEXEC) >= 0);
}

static void reading_is_told_once(void **state)
{
	struct slice allowed[1] = { slice_str(place) };

	expect(read_files, CHILD_REPORT_MARK "servers.s.sandbox.read: [\"%s/file\"]\n");
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	server.sandbox_read = (struct slices){ allowed, 1 };
	expect(read_files, "");
	server.sandbox_read = (struct slices){ NULL, 0 };
}

static void read_from_directory(void)
{
	int directory = open("sub", O_PATH | O_CLOEXEC);

	must(openat(directory, "../file", O_RDONLY | O_CLOEXEC) >= 0);
}

static void paths_begin_where_they_are_given_from(void **state)
{
	expect(read_from_directory, CHILD_REPORT_MARK "servers.s.sandbox.read: [\"%s/file\"]\n");
}

static void change_and_read(void)
{
	make_file("file");
	read_file("file");
}

static void what_may_be_written_may_be_read(void **state)
{
	expect(change_and_read, CHILD_REPORT_MARK "servers.s.sandbox.write: [\"%s/file\"]\n");
}

static void change_files(void)
{
	make_file("file");
	must(mkdir("new", 0700) == 0);
	make_file("new/file");
	must(rename("new/file", "new/other") == 0 && unlink("new/other") == 0 && rmdir("new") == 0);
	must(mkdir("sub", 0700) < 0 && unlink("gone") < 0);
}

static void changing_is_told(void **state)
{
	expect(change_files,
	       CHILD_REPORT_MARK "servers.s.sandbox.write: [\"%s/file\"]\n" CHILD_REPORT_MARK
				 "servers.s.sandbox.write: [\"%s\"]\n");
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void change_by_slash(void)
{
	must(mkdir("new/", 0700) == 0 && rmdir("new/") == 0);
}

static void change_nothing(void)
{
	must(mkdir("new", 0700) < 0 && unlink("file") < 0);
	must(open("file", O_WRONLY | O_CLOEXEC) < 0);
}

/* Of a directory by whatever name; not what is refused anyway. */
static void what_could_be_changed_is_told(void **state)
{
	expect(change_by_slash, CHILD_REPORT_MARK "servers.s.sandbox.write: [\"%s\"]\n");
	if (geteuid() != 0)
		return;
	is_ordinary = true;
	expect(change_nothing, "");
	is_ordinary = false;
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void read_very_many(void)
{
	char name[201];

	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "%0200d", i);
		read_file(name);
	}
}

static void what_is_told_has_a_bound(void **state)
{
	const size_t most = (size_t)16 * 1024;
	struct buf told = { 0 };
	size_t size = 0;

	for (int i = 0; i < 200; i++) {
		char *path = mem_printf("%s/%0200d", place, i);
		char *line = mem_printf("servers.s.sandbox.read: [\"%s\"]", path);

		make_file(path);
		if (size <= most) {
			bool is_last = size + strlen(line) > most;

			buf_printf(&told, CHILD_REPORT_MARK "%s\n",
				   is_last ? "more is listed than is told here" : line);
			size += is_last ? most : strlen(line) + 1;
		}
		free(line);
		free(path);
	}
	expect(read_very_many, buf_terminate(&told));
	buf_fini(&told);
}

static void read_many(void)
{
	char path[32];

	for (int i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "sub/deep/%d", i);
		read_file(path);
	}
	read_file("sub/deep/deeper/file");
}

static void many_files_are_a_directory(void **state)
{
	char path[128];
	struct buf told = { 0 };

	snprintf(path, sizeof(path), "%s/sub/deep", place);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/sub/deep/deeper", place);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/sub/deep/deeper/file", place);
	make_file(path);
	for (int i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "%s/sub/deep/%d", place, i);
		make_file(path);
		if (i < 8)
			buf_printf(&told, CHILD_REPORT_MARK "servers.s.sandbox.read: [\"%s\"]\n",
				   path);
	}
	buf_printf(&told, CHILD_REPORT_MARK "servers.s.sandbox.read: [\"%s/sub/deep\"]\n", place);
	expect(read_many, buf_terminate(&told));
	buf_fini(&told);
}

static void run_file(void)
{
	if (fork() == 0) {
		execl("program", "program", NULL);
		_exit(0);
	}
	wait(NULL);
}

/* Children are looked at as well; what the server is started with is allowed in any case. */
static void programs_are_told(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/program", place);
	make_file(path);
	expect(run_file, CHILD_REPORT_MARK "servers.s.sandbox.read: [\"%s/program\"]\n");
}

static void run_and_read_program(void)
{
	if (fork() == 0) {
		execl(programs[0], "program", NULL);
		_exit(0);
	}
	wait(NULL);
	read_file(programs[0]);
}

static void write_program(void)
{
	int fd = open(programs[0], O_WRONLY | O_CLOEXEC);

	must(fd >= 0);
	close(fd);
}

static void run_what_is_none(void)
{
	must(execl("plain", "plain", NULL) < 0);
}

/* To be run and read, that is. What cannot be run is refused anyway. */
static void its_own_program_is_allowed(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/program", place);
	programs[0] = path;
	expect(run_and_read_program, "");
	expect(write_program, CHILD_REPORT_MARK "servers.s.sandbox.write: [\"%s/program\"]\n");
	programs[0] = NULL;
	snprintf(path, sizeof(path), "%s/plain", place);
	make_file(path);
	assert_int_equal(chmod(path, 0600), 0);
	expect(run_what_is_none, "");
	assert_int_equal(unlink(path), 0);
}

static void make_one(void)
{
	make_file("made");
	must(unlink("made") == 0);
}

static void what_is_made_is_told_of_its_directory(void **state)
{
	expect(make_one, CHILD_REPORT_MARK "servers.s.sandbox.write: [\"%s\"]\n");
}

static void connect_to(int type, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	/* Whether anybody listens there does not matter. */
	must(fd >= 0);
	(void)connect(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
}

static void connect_twice(void)
{
	connect_to(SOCK_DGRAM, 53);
	connect_to(SOCK_STREAM, 9);
	connect_to(SOCK_STREAM, 9);
}

static void connections_are_told(void **state)
{
	expect(connect_twice, CHILD_REPORT_MARK "servers.s.sandbox.connect: [9]\n");
	server.sandbox_connect.is_any = true;
	expect(connect_twice, "");
	server.sandbox_connect.is_any = false;
}

static void *act_in_thread(void *arg)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)getpid());
	read_file(path);
	connect_to(SOCK_STREAM, 9);
	return arg;
}

static void start_thread(void)
{
	pthread_t thread;

	must(pthread_create(&thread, NULL, act_in_thread, NULL) == 0);
	must(pthread_join(thread, NULL) == 0);
}

/* It has the number of its process, and its descriptors. */
static void threads_are_looked_at(void **state)
{
	expect(start_thread, CHILD_REPORT_MARK "servers.s.sandbox.connect: [9]\n");
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void be_odd(void)
{
	static char address[64 * 1024] = { AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (size_t size = 0; size <= sizeof(address); size = size * 2 + 1)
		(void)connect(fd, (struct sockaddr *)address, (socklen_t)size);
	(void)connect(fd, (struct sockaddr *)address, UINT32_MAX);
	(void)connect(fd, (struct sockaddr *)16, sizeof(address));
	address[0] = AF_NETLINK;
	(void)connect(fd, (struct sockaddr *)address, 16);
	address[0] = AF_UNIX;
	memset(address + 2, 'x', sizeof(address) - 2);
	(void)connect(fd, (struct sockaddr *)address, sizeof(address));
	must(open((char *)16, O_RDONLY) < 0 && errno == EFAULT);
	must(mkdir("//", 0700) < 0);
	must(open(address + 2, O_RDONLY) < 0);
}

/* Whatever a server gives to the kernel, who looks at it goes on. */
static void odd_calls_are_harmless(void **state)
{
	expect(be_odd, "");
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void use_sockets(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
	struct sockaddr_in port = { .sin_family = AF_INET,
				    .sin_port = htons(9),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", place);
	(void)connect(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)bind(fd, (struct sockaddr *)&port, sizeof(port));
	close(fd);
}

static void sockets_are_told(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", place);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	expect(use_sockets,
	       CHILD_REPORT_MARK "servers.s.sandbox.unix_sockets: true\n" CHILD_REPORT_MARK
				 "servers.s.sandbox.bind: [9]\n");
	close(fd);
}

static void look_round(void)
{
	sigset_t blocked;
	char path[64];

	must(sigprocmask(SIG_BLOCK, NULL, &blocked) == 0 && sigisemptyset(&blocked));
	/* What would not be seen is not there. */
	must(syscall(SYS_openat2, AT_FDCWD, "file", NULL, 0) < 0 && errno == ENOSYS);
	must(syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno == ENOSYS);
	/* Nor is the daemon's memory to be read in who looks. */
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)getppid());
	must(open(path, O_RDONLY | O_CLOEXEC) < 0);
}

static void it_is_as_it_was_started(void **state)
{
	is_ordinary = true;
	expect(look_round, "");
	is_ordinary = false;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void outlive(void)
{
	kill(getppid(), SIGKILL);
	poll(NULL, 0, 3000);
	dprintf(STDERR_FILENO, "alive");
}

static void it_ends_with_who_looks(void **state)
{
	expect(outlive, "");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void die(void)
{
	raise(SIGKILL);
}

static void be_terminated(void)
{
	raise(SIGTERM);
}

/* Also one that who looks has blocked meanwhile. */
static void a_signal_is_passed_on(void **state)
{
	expect(die, "");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	expect(be_terminated, "");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static int make_place(void **state)
{
	char path[128];

	strcpy(place, "/tmp/report-XXXXXX");
	server.conf.name = "s";
	assert_non_null(mkdtemp(place));
	assert_int_equal(chmod(place, 0755), 0);
	snprintf(path, sizeof(path), "%s/file", place);
	make_file(path);
	snprintf(path, sizeof(path), "%s/sub", place);
	return mkdir(path, 0700);
}

static int remove_place(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", place);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_is_told_once),
		cmocka_unit_test(paths_begin_where_they_are_given_from),
		cmocka_unit_test(what_may_be_written_may_be_read),
		cmocka_unit_test(changing_is_told),
		cmocka_unit_test(what_could_be_changed_is_told),
		cmocka_unit_test(what_is_told_has_a_bound),
		cmocka_unit_test(many_files_are_a_directory),
		cmocka_unit_test(programs_are_told),
		cmocka_unit_test(its_own_program_is_allowed),
		cmocka_unit_test(what_is_made_is_told_of_its_directory),
		cmocka_unit_test(threads_are_looked_at),
		cmocka_unit_test(connections_are_told),
		cmocka_unit_test(odd_calls_are_harmless),
		cmocka_unit_test(sockets_are_told),
		cmocka_unit_test(it_is_as_it_was_started),
		cmocka_unit_test(it_ends_with_who_looks),
		cmocka_unit_test(a_signal_is_passed_on),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_place, remove_place);
}
