/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message is one packet: exactly a struct ipc_message with 0 to 3 descriptors. This file does
 * not interpret messages. Whatever the other side sends, no descriptor is leaked.
 */
#include "io/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union ipc_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)];
};

/*
 * The kernel's SCM_MAX_FD. With less room, the kernel itself closes the remaining descriptors,
 * which may block.
 */
#define FDS_SENT_MAX 253

#define QUEUED_MAX 4096 /* more packets than a socket buffers */

union ipc_received {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * FDS_SENT_MAX)];
};

int ipc_pair(int fds_r[2], struct error *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds_r) < 0)
		return error_set_errno(err, "socketpair");
	return 0;
}

int ipc_send(int fd, const struct ipc_message *message, const int *fds, size_t count,
	     struct error *err)
{
	union ipc_control control;
	struct iovec part = { .iov_base = (void *)(uintptr_t)message, .iov_len = sizeof(*message) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	CHECK(fd >= 0 && message->type != 0 && count <= IPC_FDS_MAX);
	if (count > 0) {
		memset(&control, 0, sizeof(control));
		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(&control.align), fds, sizeof(int) * count);
	}
	do {
		n = sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	/* No room at the moment for bytes or for descriptors in flight. */
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ||
		      errno == ENOMEM || errno == ETOOMANYREFS))
		return error_set(err, ERROR_BUSY, "the other process does not keep up");
	if (n < 0)
		return error_set_errno(err, "sendmsg to the other process");
	return 0; /* packets are sent whole or not at all */
}

void ipc_drop(int fd)
{
	const struct linger none = { 0, 0 };

	CHECK(fd >= 0);
	/* Fails if it is not a socket. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

/*
 * Moves the descriptors of all control messages to fds_r and closes those beyond the limit. Returns
 * how many came.
 */
static size_t collect_fds(struct msghdr *header, int fds_r[IPC_FDS_MAX])
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
		size_t size = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= size; at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (count < IPC_FDS_MAX)
				fds_r[count] = fd;
			else
				ipc_drop(fd);
			count++;
		}
	}
	return count;
}

/*
 * Receives one packet. Returns its size (0 also at end of file), or -1 with errno; *is_whole_r is
 * false if it was truncated.
 */
static ssize_t receive(int fd, struct ipc_message *message_r, int fds_r[IPC_FDS_MAX],
		       size_t *count_r, bool *is_whole_r)
{
	union ipc_received control;
	struct iovec part = { .iov_base = message_r, .iov_len = sizeof(*message_r) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	header.msg_control = control.bytes;
	header.msg_controllen = sizeof(control.bytes);
	*count_r = 0;
	do {
		n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	*count_r = collect_fds(&header, fds_r);
	/* MSG_CTRUNC is not the sender's fault: this process may have no free descriptors. */
	*is_whole_r = *count_r <= IPC_FDS_MAX && (header.msg_flags & MSG_TRUNC) == 0;
	if (*count_r > IPC_FDS_MAX)
		*count_r = IPC_FDS_MAX;
	return n;
}

static void drop_all(const int *fds, size_t *count)
{
	while (*count > 0)
		ipc_drop(fds[--*count]);
}

int ipc_recv(int fd, struct ipc_message *message_r, int fds_r[IPC_FDS_MAX], size_t *count_r,
	     struct error *err)
{
	bool is_whole;
	ssize_t n = receive(fd, message_r, fds_r, count_r, &is_whole);

	/* No message, or no memory for it at the moment. */
	if (n < 0 &&
	    (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOMEM || errno == ENOBUFS))
		return 0;
	if (n < 0)
		return error_set_errno(err, "recvmsg from the other process");
	if (n == (ssize_t)sizeof(*message_r) && is_whole)
		return 1;
	drop_all(fds_r, count_r);
	if (n == 0)
		return error_set(err, ERROR_SYSTEM, "the other process has closed the connection");
	return error_set(err, ERROR_INVALID, "a message of %zd bytes where %zu were expected", n,
			 sizeof(*message_r));
}

/* The text is written before the pipe has a reader, so nobody blocks. */
int ipc_open_text(struct slice text)
{
	int fds[2];
	ssize_t n;

	if (text.n == 0 || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	n = write(fds[1], text.p, text.n);
	close(fds[1]);
	if (n == (ssize_t)text.n)
		return fds[0];
	close(fds[0]);
	return -1;
}

/* tee copies what is there, if it is a pipe. */
size_t ipc_read_text(int fd, char *bytes_r, size_t max)
{
	size_t size = 0;
	int own[2];
	ssize_t n;

	CHECK(fd >= 0 && max > 0);
	if (pipe2(own, O_CLOEXEC | O_NONBLOCK) < 0)
		return 0;
	n = tee(fd, own[1], max, SPLICE_F_NONBLOCK);
	while (n > 0 && size < max) {
		n = read(own[0], bytes_r + size, max - size);
		size += n > 0 ? (size_t)n : 0;
	}
	close(own[0]);
	close(own[1]);
	return size;
}

void ipc_close(int fd)
{
	struct ipc_message message;
	int fds[IPC_FDS_MAX];
	size_t count;
	bool is_whole;

	CHECK(fd >= 0);
	/* An empty packet is indistinguishable from end of file. */
	for (int i = 0; i < QUEUED_MAX && receive(fd, &message, fds, &count, &is_whole) >= 0; i++)
		drop_all(fds, &count);
	close(fd);
}
