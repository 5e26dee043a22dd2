/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is refused where the kernel cannot keep it, and what a process inside can do. Whatever enters
 * a sandbox is a child of the test. SEC-62.
 */
#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit_test.h"
#include "config/listed_path.h"
#include "keeper/confine.h"

static int check(const struct config_server *server, int version, struct error *err)
{
	*err = (struct error){ ERROR_NONE, "" };
	return sandbox_check(server, version, err);
}

static void no_promise_is_weakened(void **state)
{
	struct config_server server = { .sandbox = CONFIG_SANDBOX_LANDLOCK };
	struct error err;

	assert_int_equal(check(&server, -1, &err), -1);
	assert_non_null(strstr(err.text, "no Landlock"));
	assert_int_equal(check(&server, 2, &err), -1);
	assert_non_null(strstr(err.text, "Linux 6.2"));
	assert_int_equal(check(&server, 3, &err), -1);
	assert_non_null(strstr(err.text, "Linux 6.7"));
	assert_non_null(strstr(err.text, "'connect: any'"));
	assert_int_equal(check(&server, 4, &err), 0);
	assert_int_equal(check(&server, 99, &err), 0);
	server.sandbox_connect.is_any = true;
	assert_int_equal(check(&server, 3, &err), -1);
	server.sandbox_bind.is_any = true;
	assert_int_equal(check(&server, 3, &err), 0);
	assert_int_equal(check(&server, 2, &err), -1);
	server.sandbox = CONFIG_SANDBOX_OFF;
	assert_int_equal(check(&server, -1, &err), 0);
}

static void what_is_in_force_is_said(void **state)
{
	struct config_server server = { .sandbox = CONFIG_SANDBOX_LANDLOCK };
	struct server_confinement confinement;

	(void)state;
	sandbox_describe(&server, 99, &confinement);
	assert_string_equal(confinement.in_force,
			    "files, TCP ports, ioctl of devices, signals, rights of files, "
			    "system calls, capabilities");
	assert_string_equal(confinement.lacking, "");
	server.sandbox_connect.is_any = server.sandbox_bind.is_any = true;
	sandbox_describe(&server, 3, &confinement);
	assert_string_equal(confinement.in_force,
			    "files, rights of files, system calls, capabilities");
	assert_string_equal(confinement.lacking,
			    "ioctl of devices (Linux 6.10), signals (Linux 6.12)");
	server.sandbox_unix = true;
	sandbox_describe(&server, 5, &confinement);
	assert_string_equal(confinement.lacking,
			    "signals (Linux 6.12), abstract unix sockets (Linux 6.12)");
	server.sandbox = CONFIG_SANDBOX_OFF;
	sandbox_describe(&server, 99, &confinement);
	assert_string_equal(confinement.in_force, "");
}

static int error_of_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int error_of_run(const char *path)
{
	char *const argv[] = { (char *)(uintptr_t)path, NULL };
	char *const envp[] = { NULL };
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		if (freopen("/dev/null", "w", stdout) != NULL)
			execve(path, argv, envp);
		_exit(errno);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static enum sandbox_result enter(struct config_server *server, char *const *programs)
{
	const struct config config = { .servers = server, .server_count = 1 };

	return sandbox_enter(&config, server, programs);
}

/* None of what a process may have, or get by executing something. */
static bool has_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, own) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if ((own[i].effective | own[i].permitted | own[i].inheritable) != 0)
			return true;
	return false;
}

/* Enters and returns a number for each thing that is not as it should be, in a child. */
static int look_from_inside(struct config_server *server, const char *const *directories)
{
	char *programs[] = { (char *)(uintptr_t) "/no/such/program", NULL };
	char path[128];

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || enter(server, programs) != SANDBOX_DONE)
		return 1;
	snprintf(path, sizeof(path), "%s/file", directories[0]);
	if (error_of_open(path, O_RDONLY) != 0 || error_of_open(path, O_WRONLY) != EACCES)
		return 2;
	snprintf(path, sizeof(path), "%s/file", directories[1]);
	if (error_of_open(path, O_RDWR) != 0 || truncate(path, 1) < 0 || unlink(path) < 0)
		return 3;
	snprintf(path, sizeof(path), "%s/file", directories[2]);
	if (error_of_open(path, O_RDONLY) != EACCES || truncate(path, 1) == 0 || unlink(path) == 0)
		return 4;
	if (error_of_open("/dev/null", O_RDWR) != 0 || error_of_open("/", O_RDONLY) != EACCES)
		return 5;
	if (error_of_run("/bin/true") != 0)
		return 6;
	if (has_capabilities())
		return 7;
	if (listen(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), 1) < 0)
		return 8;
	if (kill(getppid(), 0) == 0 && landlock_version() >= LANDLOCK_VERSION_SCOPED)
		return 9;
	return kill(getpid(), 0) == 0 ? 0 : 10;
}

static void make_directories(char names[3][64], const char *directories_r[3])
{
	const char *tmp = getenv("TMPDIR");
	char path[96];

	for (int i = 0; i < 3; i++) {
		snprintf(names[i], 64, "%.40s/sandbox.XXXXXX", tmp != NULL ? tmp : "/tmp");
		assert_non_null(mkdtemp(names[i]));
		snprintf(path, sizeof(path), "%s/file", names[i]);
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		directories_r[i] = names[i];
	}
}

static void remove_directories(char names[3][64])
{
	char path[96];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%.63s/file", names[i]);
		unlink(path);
		assert_int_equal(rmdir(names[i]), 0);
	}
}

static int exit_of(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void inside_only_what_is_listed_is_reached(void **state)
{
	char names[3][64];
	const char *directories[3];
	struct slice read, write;
	struct config_server server = { .sandbox = CONFIG_SANDBOX_LANDLOCK };
	pid_t pid;

	if (landlock_version() < LANDLOCK_VERSION_TRUNCATE)
		skip();
	make_directories(names, directories);
	read = slice_str(names[0]);
	write = slice_str(names[1]);
	server.sandbox_read = (struct slices){ &read, 1 };
	server.sandbox_write = (struct slices){ &write, 1 };
	server.sandbox_connect.is_any = server.sandbox_bind.is_any = true;
	pid = fork();
	if (pid == 0)
		_exit(look_from_inside(&server, directories));
	assert_int_equal(exit_of(pid), 0);
	remove_directories(names);
}

static void what_is_missing_is_named(void **state)
{
	static const struct slice missing = SLICE("/no/such/path");
	char *none[1] = { NULL };
	struct config_server server = { .sandbox = CONFIG_SANDBOX_LANDLOCK };
	pid_t pid;

	if (landlock_version() < 1)
		skip();
	server.sandbox_connect.is_any = server.sandbox_bind.is_any = true;
	server.sandbox_write = (struct slices){ &missing, 1 };
	pid = fork();
	if (pid == 0)
		_exit(enter(&server, none) == SANDBOX_WRITE && errno == ENOENT ? 0 : 1);
	assert_int_equal(exit_of(pid), 0);
	server.sandbox_read = server.sandbox_write;
	pid = fork();
	if (pid == 0)
		_exit(enter(&server, none) == SANDBOX_READ && errno == ENOENT ? 0 : 1);
	assert_int_equal(exit_of(pid), 0);
}

/* Opens it in a configuration whose server may write both places; returns 0 or an errno. */
static int error_of_listed_by(const char *one, const char *other, const char *path)
{
	struct slice write[] = { slice_str(one), slice_str(other) };
	struct config_server server = { .enabled = true,
					.sandbox = CONFIG_SANDBOX_LANDLOCK,
					.sandbox_write = { write, ARRAY_LEN(write) } };
	const struct config config = { .servers = &server, .server_count = 1 };
	int fd = listed_path_open(&config, path);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int error_of_listed(const char *writable, const char *path)
{
	return error_of_listed_by(writable, writable, path);
}

static void links_below_what_is_written_are_not_followed(void **state)
{
	char names[3][64];
	const char *directories[3];
	char link_path[128], path[160], below[170];

	(void)state;
	make_directories(names, directories);
	snprintf(link_path, sizeof(link_path), "%.63s/link", names[0]);
	assert_int_equal(symlink("/", link_path), 0);
	assert_int_equal(error_of_listed(names[1], link_path), 0);
	assert_int_equal(error_of_listed(link_path, link_path), 0);
	assert_int_equal(error_of_listed(names[0], names[0]), 0);
	assert_int_equal(error_of_listed(names[0], link_path), ELOOP);
	assert_int_equal(error_of_listed("/", link_path), ELOOP);
	/* Names are compared by their parts, however they are written. */
	snprintf(path, sizeof(path), "/.%.63s/./", names[0]);
	assert_int_equal(error_of_listed(path, link_path), ELOOP);
	snprintf(path, sizeof(path), "/%.63s//link/./etc", names[0]);
	assert_int_equal(error_of_listed(names[0], path), ELOOP);
	snprintf(path, sizeof(path), "%.63s/lin", names[0]);
	assert_int_equal(error_of_listed(path, link_path), 0);
	/* Of two that may be written, one in the other, it is the outer one below which there may be no link. */
	snprintf(path, sizeof(path), "%.63s/link/usr", names[0]);
	snprintf(below, sizeof(below), "%s/bin", path);
	assert_int_equal(error_of_listed(path, below), 0);
	assert_int_equal(error_of_listed_by(names[0], path, below), ELOOP);
	assert_int_equal(error_of_listed_by(path, names[0], below), ELOOP);
	assert_int_equal(unlink(link_path), 0);
	remove_directories(names);
}

/* What nobody writes needs no care, and may be reached by links: servers that are disabled, or have no sandbox. */
static void only_what_servers_write_counts(void **state)
{
	char names[3][64];
	const char *directories[3];
	char link_path[128];
	struct slice write;
	struct config_server server = { .enabled = true,
					.sandbox = CONFIG_SANDBOX_LANDLOCK,
					.sandbox_write = { &write, 1 } };
	const struct config config = { .servers = &server, .server_count = 1 };
	int fds[3];

	make_directories(names, directories);
	write = slice_str(names[0]);
	snprintf(link_path, sizeof(link_path), "%.63s/link", names[0]);
	assert_int_equal(symlink("/", link_path), 0);
	fds[0] = listed_path_open(&config, link_path);
	server.enabled = false;
	fds[1] = listed_path_open(&config, link_path);
	server.enabled = true;
	server.sandbox = CONFIG_SANDBOX_OFF;
	fds[2] = listed_path_open(&config, link_path);
	assert_int_equal(fds[0], -1);
	assert_true(fds[1] >= 0 && fds[2] >= 0);
	close(fds[1]);
	close(fds[2]);
	assert_int_equal(unlink(link_path), 0);
	remove_directories(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_promise_is_weakened),
		cmocka_unit_test(what_is_in_force_is_said),
		cmocka_unit_test(inside_only_what_is_listed_is_reached),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(links_below_what_is_written_are_not_followed),
		cmocka_unit_test(only_what_servers_write_counts),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
