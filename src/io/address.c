/* SPDX-License-Identifier: Apache-2.0 */
/* socket, bind, listen, and the descriptors that systemd passes. */
#include "io/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/at_end.h"
#include "base/slice.h"
#include "base/text.h"
#include "io/peer.h"

#define BACKLOG 4096 /* the kernel limits it to net.core.somaxconn */
#define SYSTEMD_FDS_MAX 1024

union any_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
	struct sockaddr_storage storage;
};

/* A socket file that refuses connections was left behind by a process that is gone. */
static bool is_stale_socket(const struct sockaddr_un *address, socklen_t size)
{
	struct stat st;
	bool is_refused;
	at_end(file_close) int fd = -1;

	if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	is_refused =
		connect(fd, (const struct sockaddr *)address, size) < 0 && errno == ECONNREFUSED;
	return is_refused;
}

/* The mode is set by the umask: with a later chmod, others could connect in between. */
static int bind_unix(int fd, const struct sockaddr_un *address, socklen_t size, mode_t taken_away)
{
	mode_t mask = umask(taken_away);
	int result = bind(fd, (const struct sockaddr *)address, size);

	if (result < 0 && errno == EADDRINUSE) {
		if (is_stale_socket(address, size) && unlink(address->sun_path) == 0)
			result = bind(fd, (const struct sockaddr *)address, size);
		else
			errno = EADDRINUSE;
	}
	umask(mask);
	return result;
}

pid_t address_owner(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof(peer);
	at_end(file_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return 0;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		peer.pid = 0;
	return peer.pid;
}

void address_remove_stale(const struct sockaddr *address, socklen_t size)
{
	const struct sockaddr_un *path = (const struct sockaddr_un *)(const void *)address;

	if (address->sa_family == AF_UNIX && is_stale_socket(path, size))
		unlink(path->sun_path);
}

/* What an operator can do about it, which the errno alone does not say. */
static const char *bind_hint(int error, sa_family_t family)
{
	bool is_unix = family == AF_UNIX;

	switch (error) {
	case EADDRINUSE:
		return is_unix ?
			       "; another program listens there, or it is no socket" :
			       "; another program listens on this port: end it, or choose another one";
	case EACCES:
		return is_unix ?
			       "; the daemon's user may not make a file in that directory" :
			       "; ports below 1024 take root or a capability, see \"Other machines\" in "
			       "mcpgated.yaml(5)";
	case EADDRNOTAVAIL:
		return "; this machine has no such address, or not yet";
	case ENOENT:
		return "; that directory has to be there before";
	default:
		return "";
	}
}

static int open_listener(const struct sockaddr *address, socklen_t size, mode_t taken_away,
			 struct error *err)
{
	const struct sockaddr_un *path = (const struct sockaddr_un *)(const void *)address;
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;
	int result, error;

	CHECK(size > sizeof(address->sa_family) && size <= sizeof(struct sockaddr_storage));
	if (fd < 0)
		return error_set_errno(err, "socket");
	if (address->sa_family == AF_UNIX)
		result = bind_unix(fd, path, size, taken_away);
	else if ((result = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on))) == 0)
		result = bind(fd, address, size);
	if (result == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	error = errno;
	close(fd);
	return error_set(err, ERROR_SYSTEM, "%s%s", strerror(error),
			 bind_hint(error, address->sa_family));
}

int address_listen(const struct sockaddr *address, socklen_t size, struct error *err)
{
	return open_listener(address, size, 0117, err);
}

int address_listen_private(const struct sockaddr *address, socklen_t size, struct error *err)
{
	return open_listener(address, size, 0177, err);
}

uint64_t address_count_systemd(void)
{
	const char *pid = getenv("LISTEN_PID");
	const char *fds = getenv("LISTEN_FDS");
	uint64_t number;
	uint64_t count;

	if (pid == NULL || fds == NULL || text_parse_u64(slice_str(pid), &number) != 0 ||
	    number != (uint64_t)getpid() || text_parse_u64(slice_str(fds), &count) != 0 ||
	    count > SYSTEMD_FDS_MAX)
		return 0;
	return count;
}

static int find_systemd_fd(struct slice name, size_t nth)
{
	const char *text = getenv("LISTEN_FDNAMES");
	struct slice names = slice_str(text != NULL ? text : "");
	uint64_t count = address_count_systemd();

	for (uint64_t i = 0; i < count; i++) {
		if (slice_is_equal(slice_cut(&names, ':'), name) && nth-- == 0)
			return ADDRESS_SYSTEMD_BEGIN + (int)i;
	}
	return -1;
}

static bool is_listening_stream(int fd)
{
	int type = 0;
	int is_listening = 0;
	socklen_t size = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 && is_listening;
}

int address_take_systemd(const char *name, size_t nth, struct error *err)
{
	int fd = find_systemd_fd(slice_str(name), nth);

	if (fd < 0)
		return error_set(err, ERROR_INVALID,
				 "systemd passed no socket of this name (FileDescriptorName= in "
				 "the socket unit)");
	if (!is_listening_stream(fd))
		return error_set(err, ERROR_INVALID,
				 "what systemd passed is no listening stream socket "
				 "(ListenStream= with Accept=no)");
	if (fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return error_set_errno(err, "fcntl");
	return fd;
}

static bool read_address(int fd, union any_address *address_r)
{
	socklen_t size = sizeof(*address_r);

	memset(address_r, 0, sizeof(*address_r));
	return getsockname(fd, &address_r->any, &size) == 0;
}

void address_format(int fd, char text_r[ADDRESS_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN] = "?";
	union any_address address;

	if (!read_address(fd, &address)) {
		snprintf(text_r, ADDRESS_TEXT_BYTES, "unknown");
	} else if (address.any.sa_family == AF_UNIX) {
		snprintf(text_r, ADDRESS_TEXT_BYTES, "unix:%.*s", (int)sizeof(address.un.sun_path),
			 address.un.sun_path);
	} else if (address.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &address.in6.sin6_addr, host, sizeof(host));
		snprintf(text_r, ADDRESS_TEXT_BYTES, "[%s]:%u", host, ntohs(address.in6.sin6_port));
	} else {
		inet_ntop(AF_INET, &address.in.sin_addr, host, sizeof(host));
		snprintf(text_r, ADDRESS_TEXT_BYTES, "%s:%u", host, ntohs(address.in.sin_port));
	}
}

bool address_is_loopback(int fd)
{
	union any_address address;

	return read_address(fd, &address) && (address.any.sa_family == AF_UNIX ||
					      peer_is_loopback(peer_of_sockaddr(&address.storage)));
}
