/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets are what they are in memory: all ends are built together and run on one machine. Messages
 * are not interpreted here. Whatever the other side sends, no descriptor is leaked. The gateway's
 * seccomp filter lets it use sendmsg and recvmsg with the keeper alone, so what needs neither is
 * sent and received without.
 */
#include "io/ipc.h"

#include <errno.h>
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

/* ---- packets ---- */

static const struct {
	size_t field_bytes;
	size_t fds_min, fds_max;
	size_t texts;
} types[IPC_TYPES] = {
#define X(NAME, name, min, max, texts, fields) \
	[IPC_##NAME] = { sizeof(((struct ipc_message *)NULL)->name), min, max, texts },
#include "io/ipc.def"
#undef X
};

#define FIELDS_AT offsetof(struct ipc_message, start)

_Static_assert(IPC_HEAD_BYTES + IPC_TEXT_BYTES_MAX <= IPC_PACKET_BYTES_MAX, "room");

static size_t pack(const struct ipc_message *message, char packet_r[IPC_PACKET_BYTES_MAX])
{
	size_t at = IPC_HEAD_BYTES, type = message->type < IPC_TYPES ? message->type : IPC_NONE;

	memset(packet_r, 0, IPC_HEAD_BYTES);
	memcpy(packet_r, &message->type, sizeof(message->type));
	memcpy(packet_r + FIELDS_AT, (const char *)message + FIELDS_AT, types[type].field_bytes);
	for (size_t i = 0; i < IPC_TEXTS_MAX; i++) {
		struct slice text = message->texts[i];
		uint32_t n = (uint32_t)text.n;

		CHECK(text.n <= IPC_PACKET_BYTES_MAX - at);
		memcpy(packet_r + offsetof(struct ipc_message, text_bytes) + i * sizeof(n), &n,
		       sizeof(n));
		if (n > 0)
			memcpy(packet_r + at, text.p, n);
		at += n;
	}
	return at;
}

bool ipc_unpack(struct slice packet, struct ipc_message *message_r)
{
	size_t at = IPC_HEAD_BYTES, texts;

	if (packet.n < IPC_HEAD_BYTES || packet.n > IPC_PACKET_BYTES_MAX)
		return false;
	*message_r = (struct ipc_message){ .fd_count = 0 };
	memcpy(message_r, packet.p, IPC_HEAD_BYTES);
	texts = message_r->type < IPC_TYPES ? types[message_r->type].texts : 0;
	for (size_t i = 0; i < IPC_TEXTS_MAX; i++) {
		size_t n = message_r->text_bytes[i];

		if (n > packet.n - at || (n > 0 && i >= texts))
			return false;
		message_r->texts[i] = slice_of(packet.p + at, n);
		at += n;
	}
	return at == packet.n;
}

/* ---- sending ---- */

static ssize_t send_with_fds(int fd, struct slice packet, const int *fds, size_t count)
{
	union ipc_control control;
	struct iovec part = { .iov_base = (void *)(uintptr_t)packet.p, .iov_len = packet.n };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };

	memset(&control, 0, sizeof(control));
	header.msg_control = control.bytes;
	header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int) * count);
	memcpy(CMSG_DATA(&control.align), fds, sizeof(int) * count);
	return sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int ipc_send(int fd, const struct ipc_message *message, struct error *err)
{
	char bytes[IPC_PACKET_BYTES_MAX];
	struct slice packet = slice_of(bytes, pack(message, bytes));
	ssize_t n;

	CHECK(fd >= 0 && message->type != IPC_NONE && message->fd_count <= IPC_FDS_MAX);
	do {
		n = message->fd_count > 0 ?
			    send_with_fds(fd, packet, message->fds, message->fd_count) :
			    send(fd, packet.p, packet.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	/* No room at the moment for bytes or for descriptors in flight. */
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ||
		      errno == ENOMEM || errno == ETOOMANYREFS))
		error_set(err, ERROR_BUSY, "the other process does not keep up");
	else if (n < 0)
		error_set_errno(err, "send to the other process");
	explicit_bzero(bytes, packet.n);
	return n < 0 ? -1 : 0; /* packets are sent whole or not at all */
}

/* ---- receiving ---- */

void ipc_drop(int fd)
{
	const struct linger none = { 0, 0 };

	CHECK(fd >= 0);
	/* Fails if it is not a socket. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

/*
 * Moves the descriptors of all control messages into the message, and closes those beyond the
 * limit. Returns how many came.
 */
static size_t collect_fds(struct msghdr *header, struct ipc_message *message, size_t max)
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
		size_t size = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= size; at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			count++;
			if (message->fd_count < max)
				message->fds[message->fd_count++] = fd;
			else
				ipc_drop(fd);
		}
	}
	return count;
}

static void drop_all(struct ipc_message *message)
{
	while (message->fd_count > 0)
		ipc_drop(message->fds[--message->fd_count]);
}

/*
 * What came last, and may be secret: texts are slices of it. What is longer than a packet is
 * noticed.
 */
static char received[IPC_PACKET_BYTES_MAX + 1];
static size_t received_bytes;

/* Returns the size of one packet (0 also at the end), or -1 with errno. */
static ssize_t receive(int fd, struct msghdr *header)
{
	struct iovec part = { .iov_base = received, .iov_len = sizeof(received) };
	ssize_t n;

	explicit_bzero(received, received_bytes);
	do {
		if (header != NULL) {
			header->msg_iov = &part;
			header->msg_iovlen = 1;
			n = recvmsg(fd, header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		} else {
			n = recv(fd, received, sizeof(received), MSG_DONTWAIT);
		}
	} while (n < 0 && errno == EINTR);
	received_bytes = n > 0 ? (size_t)n : 0;
	return n;
}

/* 1, 0 or -1, as ipc_recv. */
static int judge(ssize_t n, struct ipc_message *message_r, struct error *err)
{
	/* No message, or no memory for it at the moment. */
	if (n < 0 &&
	    (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOMEM || errno == ENOBUFS))
		return 0;
	if (n < 0)
		return error_set_errno(err, "receive from the other process");
	if (n == 0)
		return error_set(err, ERROR_SYSTEM, "the other process has closed the connection");
	if (!ipc_unpack(slice_of(received, (size_t)n), message_r))
		return error_set(err, ERROR_INVALID, "%zd bytes that are no message", n);
	return 1;
}

int ipc_recv(int fd, struct ipc_message *message_r, struct error *err)
{
	union ipc_received control;
	struct msghdr header = { .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes) };
	ssize_t n = receive(fd, &header);
	int result = judge(n, message_r, err);
	bool is_known = result > 0 && message_r->type < IPC_TYPES;

	message_r->fd_count = 0;
	if (n >= 0 && collect_fds(&header, message_r,
				  is_known ? types[message_r->type].fds_max : 0) > IPC_FDS_MAX) {
		drop_all(message_r);
		return error_set(err, ERROR_INVALID, "a message with too many descriptors");
	}
	/* Less is not the sender's fault: this process may have no free descriptors. */
	if (is_known && message_r->fd_count < types[message_r->type].fds_min)
		drop_all(message_r);
	return result;
}

int ipc_recv_plain(int fd, struct ipc_message *message_r, struct error *err)
{
	return judge(receive(fd, NULL), message_r, err);
}

void ipc_close(int fd)
{
	CHECK(fd >= 0);
	/* No packet is judged: an empty one is indistinguishable from end of file. */
	for (int i = 0; i < QUEUED_MAX; i++) {
		union ipc_received control;
		struct msghdr header = { .msg_control = control.bytes,
					 .msg_controllen = sizeof(control.bytes) };
		struct ipc_message none = { .fd_count = 0 };

		if (receive(fd, &header) < 0)
			break;
		(void)collect_fds(&header, &none, 0);
	}
	close(fd);
}
