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
	struct ipc_message sent = { .type = IPC_STARTED, .started = { UINT64_C(1) << 63, -9 } };
	struct ipc_message got;

	assert_int_equal(ipc_recv(pair[1], &got, &err), 0);
	assert_int_equal(ipc_send(pair[0], &sent, &err), 0);
	assert_int_equal(ipc_recv(pair[1], &got, &err), 1);
	assert_int_equal(got.type, IPC_STARTED);
	assert_true(got.started.child == UINT64_C(1) << 63);
	assert_int_equal(got.started.pid, -9);
	assert_int_equal(got.fd_count, 0);
	assert_int_equal(ipc_recv(pair[1], &got, &err), 0);
}

static void texts_arrive_as_sent(void **state)
{
	static char most[IPC_TEXT_BYTES_MAX];
	struct ipc_message sent = { .type = IPC_ANSWER,
				    .answer = { 7, 200, 5, UINT32_MAX },
				    .texts = { SLICE("one"), SLICE(""), SLICE("th\0ree") } };
	struct ipc_message got;

	assert_int_equal(ipc_send(pair[0], &sent, &err), 0);
	assert_int_equal(ipc_recv(pair[1], &got, &err), 1);
	assert_int_equal(got.answer.retry_after_s, UINT32_MAX);
	for (size_t i = 0; i < IPC_TEXTS_MAX; i++)
		assert_true(slice_is_equal(got.texts[i], sent.texts[i]));
	sent = (struct ipc_message){ .type = IPC_PART, .texts = { slice_of(most, sizeof(most)) } };
	assert_int_equal(ipc_send(pair[0], &sent, &err), 0);
	assert_int_equal(ipc_recv(pair[1], &got, &err), 1);
	assert_int_equal(got.texts[0].n, sizeof(most));
}

/* What is behind the fields of the type is none of the other side's business. */
static void nothing_else_is_sent(void **state)
{
	struct ipc_message sent, got;

	memset(&sent, 0xff, sizeof(sent));
	sent = (struct ipc_message){ .type = IPC_JUDGED, .judged = { 1, 1 } };
	sent.answer.retry_after_s = 4711; /* lies behind these */
	assert_int_equal(ipc_send(pair[0], &sent, &err), 0);
	assert_int_equal(ipc_recv(pair[1], &got, &err), 1);
	assert_int_equal(got.judged.question, 1);
	assert_int_equal(got.answer.retry_after_s, 0);
}

/* REL-32: received descriptors are close-on-exec. */
static void descriptors_arrive_close_on_exec(void **state)
{
	struct ipc_message message = { .type = IPC_STARTED, .fd_count = 3 };
	int *fds = message.fds;
	int pipe_fds[2];
	char byte = 0;

	assert_int_equal(pipe(pipe_fds), 0);
	memcpy(fds, (int[]){ pipe_fds[0], pipe_fds[1], pipe_fds[1] }, 3 * sizeof(*fds));
	assert_int_equal(ipc_send(pair[0], &message, &err), 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	assert_int_equal(ipc_recv(pair[1], &message, &err), 1);
	assert_int_equal(message.fd_count, 3);
	assert_int_equal(write(fds[2], "x", 1), 1);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	for (size_t i = 0; i < message.fd_count; i++) {
		assert_int_equal(fcntl(fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
		close(fds[i]);
	}
}

static void full_socket_is_busy_and_recovers(void **state)
{
	struct ipc_message message = { .type = IPC_EXITED };
	uint64_t sent = 0;

	while (ipc_send(pair[0], &message, &err) == 0) {
		message.exited.child = ++sent;
		assert_true(sent < 1000000);
	}
	assert_int_equal(err.kind, ERROR_BUSY);
	for (uint64_t i = 0; i < sent; i++) {
		assert_int_equal(ipc_recv(pair[1], &message, &err), 1);
		assert_int_equal(message.exited.child, i);
	}
	assert_int_equal(ipc_send(pair[0], &message, &err), 0);
}

static void gone_peer_is_an_error_on_both_ways(void **state)
{
	struct ipc_message message = { .type = IPC_READY };

	close(pair[0]);
	pair[0] = -1;
	assert_int_equal(ipc_recv(pair[1], &message, &err), -1);
	assert_int_equal(ipc_send(pair[1], &message, &err), -1);
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
	static const size_t sizes[] = { 1, IPC_HEAD_BYTES - 1, IPC_HEAD_BYTES + 1, sizeof(bytes) };
	static char large[IPC_PACKET_BYTES_MAX + 1];
	struct ipc_message head = { .type = IPC_PART };
	int many[6] = { 0, 0, 0, 0, 0, 0 };
	int before = count_open_fds();
	struct ipc_message message;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		send_raw(bytes, sizes[i], many, 2);
		assert_int_equal(ipc_recv(pair[1], &message, &err), -1);
		assert_int_equal(err.kind, ERROR_INVALID);
		assert_int_equal(message.fd_count, 0);
	}
	head.text_bytes[0] = sizeof(large) - IPC_HEAD_BYTES;
	memcpy(large, &head, IPC_HEAD_BYTES);
	send_raw(large, sizeof(large), many, 2);
	assert_int_equal(ipc_recv(pair[1], &message, &err), -1);
	send_raw(bytes, IPC_HEAD_BYTES, many, 6);
	assert_int_equal(ipc_recv(pair[1], &message, &err), -1);
	assert_int_equal(message.fd_count, 0);
	assert_int_equal(count_open_fds(), before);
}

static bool may_linger(int socket)
{
	struct linger linger = { 0, 0 };
	socklen_t size = sizeof(linger);

	assert_int_equal(getsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, &size), 0);
	return linger.l_onoff != 0;
}

/* What is still queued, behind packets of no bytes as well, must not keep the closing waiting. REL-32 */
static void what_is_queued_is_closed_without_waiting(void **state)
{
	const struct linger long_one = { 1, 3600 };
	const struct ipc_message ready = { .type = IPC_READY };
	int passed[2];
	int before = count_open_fds();

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, passed), 0);
	assert_int_equal(setsockopt(passed[0], SOL_SOCKET, SO_LINGER, &long_one, sizeof(long_one)),
			 0);
	send_raw("", 0, NULL, 0);
	send_raw("", 0, NULL, 0);
	send_raw(&ready, IPC_HEAD_BYTES, passed, 1);
	assert_true(may_linger(passed[0]));
	ipc_close(pair[1]);
	pair[1] = -1;
	assert_false(may_linger(passed[0]));
	close(passed[0]);
	close(passed[1]);
	assert_int_equal(count_open_fds(), before - 1);
}

/* More than a type brings is closed; of too few none is kept, as they are of no use. */
static void descriptors_are_those_of_the_type(void **state)
{
	static const struct {
		enum ipc_type type;
		size_t sent, kept;
	} rows[] = {
		{ IPC_START, 2, 0 },       { IPC_JUDGE, 3, 1 },       { IPC_STARTED, 2, 0 },
		{ IPC_CERTIFICATE, 1, 0 }, { IPC_CERTIFICATE, 3, 3 }, { IPC_LISTENER, 0, 0 },
		{ IPC_TYPES, 3, 0 },
	};
	int before = count_open_fds();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ipc_message message = { .type = rows[i].type, .fd_count = rows[i].sent };

		assert_int_equal(ipc_send(pair[0], &message, &err), 0);
		assert_int_equal(ipc_recv(pair[1], &message, &err), 1);
		assert_int_equal(message.fd_count, rows[i].kept);
		while (message.fd_count > 0)
			close(message.fds[--message.fd_count]);
		assert_int_equal(count_open_fds(), before);
	}
}

/* SEC-61: what a packet says of itself is all of it. */
static void packets_are_whole(void **state)
{
	char bytes[IPC_HEAD_BYTES + 32] = { 0 };
	struct ipc_message head = { .type = IPC_ANSWER, .text_bytes = { 4, 8, 12 } };
	struct slice packet = slice_of(bytes, IPC_HEAD_BYTES + 24);
	struct ipc_message message;

	head.answer.id = 7;
	memcpy(bytes, &head, IPC_HEAD_BYTES);
	assert_true(ipc_unpack(packet, &message));
	assert_int_equal(message.answer.id, 7);
	assert_int_equal(message.texts[0].n, 4);
	assert_ptr_equal(message.texts[2].p, packet.p + IPC_HEAD_BYTES + 12);
	assert_int_equal(message.texts[2].n, 12);
	for (size_t n = 0; n < sizeof(bytes); n++)
		if (n != packet.n)
			assert_false(ipc_unpack(slice_of(packet.p, n), &message));
	head.text_bytes[0] = UINT32_MAX;
	memcpy(bytes, &head, IPC_HEAD_BYTES);
	assert_false(ipc_unpack(packet, &message));
	/* No type has more texts than its own, and one that is not known has none. */
	head.text_bytes[0] = 4;
	for (head.type = 0; head.type <= IPC_TYPES; head.type++) {
		memcpy(bytes, &head, IPC_HEAD_BYTES);
		assert_int_equal(ipc_unpack(packet, &message), head.type == IPC_ANSWER);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(message_arrives_as_sent, setup, teardown),
		cmocka_unit_test_setup_teardown(texts_arrive_as_sent, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_else_is_sent, setup, teardown),
		cmocka_unit_test_setup_teardown(descriptors_arrive_close_on_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(descriptors_are_those_of_the_type, setup, teardown),
		cmocka_unit_test(packets_are_whole),
		cmocka_unit_test_setup_teardown(what_is_queued_is_closed_without_waiting, setup,
						teardown),
		cmocka_unit_test_setup_teardown(full_socket_is_busy_and_recovers, setup, teardown),
		cmocka_unit_test_setup_teardown(gone_peer_is_an_error_on_both_ways, setup,
						teardown),
		cmocka_unit_test_setup_teardown(foreign_packets_are_refused_without_leak, setup,
						teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
