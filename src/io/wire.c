/* SPDX-License-Identifier: Apache-2.0 */
/* Plain descriptors. SIGPIPE is ignored in the process, so a broken pipe is an error like any other. */
#include "io/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static void wire_on_readable(struct watch *watch)
{
	struct wire *wire = container_of(watch, struct wire, reading);

	wire->ops->on_readable(wire);
}

static void wire_on_writable(struct watch *watch)
{
	struct wire *wire = container_of(watch, struct wire, writing);

	wire->ops->on_writable(wire);
}

void wire_init(struct wire *wire, struct loop *loop, int fd, const struct wire_ops *ops)
{
	wire->ops = ops;
	wire->loop = loop;
	wire->fd = fd;
	watch_init(&wire->reading, loop, fd, WATCH_READ, wire_on_readable);
	watch_init(&wire->writing, loop, fd, WATCH_WRITE, wire_on_writable);
}

void wire_close(struct wire *wire)
{
	if (wire->fd < 0)
		return;
	watch_set(&wire->reading, false);
	watch_set(&wire->writing, false);
	close(wire->fd);
	wire->fd = -1;
}

bool wire_is_open(const struct wire *wire)
{
	return wire->fd >= 0;
}

void wire_watch_reading(struct wire *wire, bool on)
{
	if (wire->fd >= 0)
		watch_set(&wire->reading, on);
}

void wire_watch_writing(struct wire *wire, bool on)
{
	if (wire->fd >= 0)
		watch_set(&wire->writing, on);
}

ssize_t wire_read(struct wire *wire, void *out, size_t size)
{
	ssize_t n;

	do {
		n = read(wire->fd, out, size);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EWOULDBLOCK ? WIRE_AGAIN : WIRE_BROKEN;
}

ssize_t wire_write(struct wire *wire, const struct iovec *parts, int count)
{
	ssize_t n;

	do {
		n = writev(wire->fd, parts, count);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : WIRE_BROKEN;
}

void wire_shutdown(struct wire *wire)
{
	if (wire->fd >= 0)
		shutdown(wire->fd, SHUT_WR);
}
