/* SPDX-License-Identifier: Apache-2.0 */
/* accept4 in bounded bursts. */
#include "io/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/at_end.h"
#include "obs/log.h"

#define ACCEPTS_PER_TURN 64
#define LAST_TURNS 64 /* more than any backlog holds */
#define RETRY_MS 250

/* A duplicate of an open descriptor: a confined process cannot open anything. */
static int listener_open_reserve(void)
{
	return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
}

static void listener_on_retry(struct timer *timer)
{
	struct listener *listener = container_of(timer, struct listener, retry);

	CHECK(!listener->watch.is_on);
	if (listener->reserve_fd < 0)
		listener->reserve_fd = listener_open_reserve();
	watch_set(&listener->watch, true);
}

static void listener_pause_if_short(struct listener *listener, int error)
{
	if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
		return;
	LOG(ACCEPT_PAUSED, LOG_STR("error", strerror(error)));
	/* Turn one waiting peer away, so that it need not wait for its own timeout. */
	if (listener->reserve_fd >= 0) {
		int fd;

		close(listener->reserve_fd);
		fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		file_close(&fd);
		listener->reserve_fd = listener_open_reserve();
	}
	watch_set(&listener->watch, false);
	timer_start(listener->loop, &listener->retry, RETRY_MS);
}

/* Returns whether more connections may be waiting. */
static bool listener_accept_some(struct listener *listener)
{
	/* on_accept may end the listener. */
	for (int i = 0; i < ACCEPTS_PER_TURN && listener->watch.is_on; i++) {
		struct sockaddr_storage address = { .ss_family = 0 };
		socklen_t size = sizeof(address);
		int fd = accept4(listener->fd, (struct sockaddr *)&address, &size,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct peer peer = peer_of_sockaddr(&address);
		int on = 1;

		if (fd < 0) {
			listener_pause_if_short(listener, errno);
			return false; /* the backlog is empty */
		}
		/* Fails harmlessly on a unix socket. */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		listener->on_accept(listener, fd, &peer);
	}
	return listener->watch.is_on;
}

static void listener_on_ready(struct watch *watch)
{
	listener_accept_some(container_of(watch, struct listener, watch));
}

void listener_init(struct listener *listener, struct loop *loop, int fd, listener_fn *on_accept)
{
	CHECK(fd >= 0 && on_accept != NULL);
	listener->loop = loop;
	listener->fd = fd;
	listener->reserve_fd = listener_open_reserve();
	listener->on_accept = on_accept;
	timer_init(&listener->retry, listener_on_retry);
	watch_init(&listener->watch, loop, fd, WATCH_READ, listener_on_ready);
	watch_set(&listener->watch, true);
}

void listener_accept_waiting(struct listener *listener)
{
	for (int i = 0; i < LAST_TURNS && listener_accept_some(listener); i++)
		;
}

void listener_fini(struct listener *listener)
{
	watch_set(&listener->watch, false);
	timer_stop(&listener->retry);
	file_close(&listener->reserve_fd);
}
