/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages and descriptors across a pair; messages that do not fit or are foreign; a peer that is
 * gone.
 */
#include "io/ipc.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unit_test.h"

static int pair[2];
static struct error err;

static int setup(void **state)
{
	err = (struct error){ ERROR_NONE, "" };
	return ipc_pair(pair, &err);
}

static int teardown(void **state)
{
	for (int i = 0; i < 2; i++) {
		if (pair[i] >= 0)
			close(pair[i]);
	}
	return 0;
}

static int count_open_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void message_arrives_as_sent(void **state)
{
	struct ipc_message sent = { IPC_EXITED, 7, UINT64_C(1) << 63, 4711, -9 };
	struct ipc_message got;
	int fds[IPC_FDS_MAX];
	size_t count = 99;

	assert_int_equal(ipc_recv(pair[1], &got, fds, &count, &err), 0);
	assert_int_equal(ipc_send(pair[0], &sent, NULL, 0, &err), 0);
	assert_int_equal(ipc_recv(pair[1], &got, fds, &count, &err), 1);
	assert_memory_equal(&sent, &got, sizeof(sent));
	assert_int_equal(count, 0);
	assert_int_equal(ipc_recv(pair[1], &got, fds, &count, &err), 0);
}

/* REL-32: received descriptors are close-on-exec. */
static void descriptors_arrive_close_on_exec(void **state)
{
	struct ipc_message message = { .type = IPC_STARTED };
	int pipe_fds[2];
	int fds[IPC_FDS_MAX];
	size_t count = 0;
	char byte = 0;

	assert_int_equal(pipe(pipe_fds), 0);
	int three[] = { pipe_fds[0], pipe_fds[1], pipe_fds[1] };
	assert_int_equal(ipc_send(pair[0], &message, three, 3, &err), 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	assert_int_equal(ipc_recv(pair[1], &message, fds, &count, &err), 1);
	assert_int_equal(count, 3);
	assert_int_equal(write(fds[2], "x", 1), 1);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(fcntl(fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
		close(fds[i]);
	}
}

static void full_socket_is_busy_and_recovers(void **state)
{
	struct ipc_message message = { .type = IPC_EXITED };
	int fds[IPC_FDS_MAX];
	size_t count;
	uint64_t sent = 0;

	while (ipc_send(pair[0], &message, NULL, 0, &err) == 0) {
		message.child = ++sent;
		assert_true(sent < 1000000);
	}
	assert_int_equal(err.kind, ERROR_BUSY);
	for (uint64_t i = 0; i < sent; i++) {
		assert_int_equal(ipc_recv(pair[1], &message, fds, &count, &err), 1);
		assert_int_equal(message.child, i);
	}
	assert_int_equal(ipc_send(pair[0], &message, NULL, 0, &err), 0);
}

static void gone_peer_is_an_error_on_both_ways(void **state)
{
	struct ipc_message message = { .type = IPC_READY };
	int fds[IPC_FDS_MAX];
	size_t count;

	close(pair[0]);
	pair[0] = -1;
	assert_int_equal(ipc_recv(pair[1], &message, fds, &count, &err), -1);
	assert_int_equal(ipc_send(pair[1], &message, NULL, 0, &err), -1);
	assert_int_not_equal(err.kind, ERROR_BUSY);
}

static void send_raw(const void *bytes, size_t size, const int *fds, size_t count)
{
	char control[CMSG_SPACE(sizeof(int) * 8)] = { 0 };
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = size };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };

	if (count > 0) {
		struct cmsghdr *c;

		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		c = CMSG_FIRSTHDR(&header);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
	}
	assert_int_equal(sendmsg(pair[0], &header, 0), (ssize_t)size);
}

/* The other side may be controlled by an attacker. REL-32: no descriptor is leaked. */
static void foreign_packets_are_refused_without_leak(void **state)
{
	static const char bytes[64];
	static const size_t sizes[] = { 1, sizeof(struct ipc_message) - 1,
					sizeof(struct ipc_message) + 1, sizeof(bytes) };
	int many[6] = { 0, 0, 0, 0, 0, 0 };
	int before = count_open_fds();
	struct ipc_message message;
	int fds[IPC_FDS_MAX];
	size_t count;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		send_raw(bytes, sizes[i], many, 2);
		assert_int_equal(ipc_recv(pair[1], &message, fds, &count, &err), -1);
		assert_int_equal(err.kind, ERROR_INVALID);
		assert_int_equal(count, 0);
	}
	send_raw(bytes, sizeof(message), many, 6);
	assert_int_equal(ipc_recv(pair[1], &message, fds, &count, &err), -1);
	assert_int_equal(count, 0);
	assert_int_equal(count_open_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(message_arrives_as_sent, setup, teardown),
		cmocka_unit_test_setup_teardown(descriptors_arrive_close_on_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(full_socket_is_busy_and_recovers, setup, teardown),
		cmocka_unit_test_setup_teardown(gone_peer_is_an_error_on_both_ways, setup,
						teardown),
		cmocka_unit_test_setup_teardown(foreign_packets_are_refused_without_leak, setup,
						teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
