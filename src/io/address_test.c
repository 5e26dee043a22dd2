/* SPDX-License-Identifier: Apache-2.0 */
/* Opening sockets, leftovers in their place, and sockets passed by systemd. */
#include "io/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit_test.h"

static struct error err;
static char directory[64];
static struct sockaddr_un at;

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	err = (struct error){ ERROR_NONE, "" };
	snprintf(directory, sizeof(directory), "%.40s/address.XXXXXX", tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(directory) == NULL)
		return -1;
	at.sun_family = AF_UNIX;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", directory);
	return 0;
}

static int teardown(void **state)
{
	unlink(at.sun_path);
	return rmdir(directory);
}

static int listen_unix(void)
{
	return address_listen((const struct sockaddr *)&at, sizeof(at), &err);
}

static int listen_v4(const char *host, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
	return address_listen((const struct sockaddr *)&in, sizeof(in), &err);
}

static void port_zero_becomes_a_real_one(void **state)
{
	char text[ADDRESS_TEXT_BYTES];
	int fd = listen_v4("127.0.0.1", 0);
	unsigned int port = 0;

	assert_true(fd >= 0);
	address_format(fd, text);
	assert_int_equal(sscanf(text, "127.0.0.1:%u", &port), 1);
	assert_int_not_equal(port, 0);
	assert_true(address_is_loopback(fd));
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(listen_v4("127.0.0.1", (uint16_t)port), -1);
	assert_string_equal(err.text,
			    "Address already in use; another program listens on this port: "
			    "end it, or choose another one");
	close(fd);
}

/* 192.0.2.0/24 is reserved for documentation (RFC 5737). */
static void what_cannot_be_had_is_explained(void **state)
{
	assert_int_equal(listen_v4("192.0.2.1", 0), -1);
	assert_string_equal(err.text, "Cannot assign requested address; this machine has no such "
				      "address, or not yet");
}

static void v6_is_in_brackets(void **state)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	char text[ADDRESS_TEXT_BYTES];
	int fd = address_listen((const struct sockaddr *)&in6, sizeof(in6), &err);

	if (fd < 0)
		skip(); /* no IPv6 here */
	address_format(fd, text);
	assert_memory_equal(text, "[::1]:", 6);
	assert_true(address_is_loopback(fd));
	close(fd);
}

static void wildcard_is_not_loopback(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* unbound: 0.0.0.0 */

	assert_true(fd >= 0);
	assert_false(address_is_loopback(fd));
	close(fd);
	assert_false(address_is_loopback(fd));
}

static void unix_socket_is_for_owner_and_group(void **state)
{
	char expected[ADDRESS_TEXT_BYTES];
	char text[ADDRESS_TEXT_BYTES];
	struct stat st;
	int fd = listen_unix();

	assert_true(fd >= 0);
	assert_int_equal(stat(at.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	snprintf(expected, sizeof(expected), "unix:%s", at.sun_path);
	address_format(fd, text);
	assert_string_equal(text, expected);
	assert_true(address_is_loopback(fd));
	close(fd);
}

static void unix_socket_in_use_is_left_alone(void **state)
{
	int first = listen_unix();
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(first >= 0);
	assert_int_equal(listen_unix(), -1);
	assert_string_equal(err.text,
			    "Address already in use; another program listens there, or it is "
			    "no socket");
	assert_int_equal(connect(client, (const struct sockaddr *)&at, sizeof(at)), 0);
	close(client);
	close(first);
}

static void stale_unix_socket_is_replaced(void **state)
{
	int first = listen_unix();
	int second;

	assert_true(first >= 0);
	close(first);
	second = listen_unix();
	assert_true(second >= 0);
	close(second);
}

/* SEC-17 */
static void private_socket_is_for_the_owner(void **state)
{
	struct stat st;
	int fd = address_listen_private((const struct sockaddr *)&at, sizeof(at), &err);

	assert_true(fd >= 0);
	assert_int_equal(stat(at.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(fd);
}

static void file_in_the_way_is_never_removed(void **state)
{
	struct stat st;
	int file = open(at.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(file >= 0);
	close(file);
	assert_int_equal(listen_unix(), -1);
	assert_int_equal(stat(at.sun_path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

/* Simulates systemd: sockets at 3 and 4, a plain file at 5, and the three variables. */
static void pretend_systemd(void)
{
	char pid[24];
	int a = listen_unix();
	int b = listen_v4("127.0.0.1", 0);
	int file = open("/dev/null", O_RDWR);

	if (a < 0 || b < 0 || file < 0)
		_exit(10);
	/* Move both away from the target numbers first. */
	a = fcntl(a, F_DUPFD, 20);
	b = fcntl(b, F_DUPFD, 20);
	file = fcntl(file, F_DUPFD, 20);
	dup2(a, 3);
	dup2(b, 4);
	dup2(file, 5);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "3", 1);
	setenv("LISTEN_FDNAMES", "http:http:file", 1);
}

static int systemd_actor(void)
{
	int result = 0;

	pretend_systemd();
	result |= address_take_systemd("http", 0, &err) == 3 ? 0 : 1;
	result |= address_take_systemd("http", 1, &err) == 4 ? 0 : 2;
	result |= address_take_systemd("http", 2, &err) == -1 ? 0 : 4;
	result |= address_take_systemd("file", 0, &err) == -1 ? 0 : 8;
	result |= (fcntl(4, F_GETFD) & FD_CLOEXEC) && (fcntl(4, F_GETFL) & O_NONBLOCK) ? 0 : 16;
	setenv("LISTEN_PID", "1", 1);
	result |= address_take_systemd("http", 0, &err) == -1 ? 0 : 32;
	return result;
}

static void systemd_sockets_are_found_by_name(void **state)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(systemd_actor());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(port_zero_becomes_a_real_one),
		cmocka_unit_test(what_cannot_be_had_is_explained),
		cmocka_unit_test(v6_is_in_brackets),
		cmocka_unit_test(wildcard_is_not_loopback),
		cmocka_unit_test_setup_teardown(unix_socket_is_for_owner_and_group, setup,
						teardown),
		cmocka_unit_test_setup_teardown(unix_socket_in_use_is_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(stale_unix_socket_is_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(private_socket_is_for_the_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(file_in_the_way_is_never_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(systemd_sockets_are_found_by_name, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
