/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain descriptors and TLS. SIGPIPE is ignored in the process, so a broken pipe is an ordinary
 * error. With TLS, one direction may wait for the other, and data may wait where the kernel does
 * not see it; the owner notices neither.
 */
#include "io/wire.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/tls.h"

#define UNSENT_BYTES_MAX (128 << 10)

struct wire_watch {
	struct watch watch;
	struct wire *wire;
	enum watch_kind kind;
};

/* Whether this direction continues when the socket is ready in the other direction. */
static bool wire_is_crossed(const struct wire *wire, enum watch_kind kind)
{
	if (wire->tls == NULL)
		return false;
	return kind == WATCH_READ ? tls_read_wants_write(wire->tls) :
				    tls_write_wants_read(wire->tls);
}

static bool wire_waits_for(const struct wire *wire, enum watch_kind kind)
{
	enum watch_kind other = kind == WATCH_READ ? WATCH_WRITE : WATCH_READ;

	return (wire->is_wanted[kind] && !wire_is_crossed(wire, kind)) ||
	       (wire->is_wanted[other] && wire_is_crossed(wire, other));
}

static void wire_on_event(struct watch *watch);

static void wire_set(struct wire *wire, enum watch_kind kind, bool on)
{
	struct wire_watch *watch = wire->watches[kind];

	if (watch == NULL && !on)
		return;
	if (watch == NULL) {
		watch = wire->watches[kind] = mem_alloc(sizeof(*watch));
		watch->wire = wire;
		watch->kind = kind;
		watch_init(&watch->watch, wire->loop, wire->fd, kind, wire_on_event);
	}
	watch_set(&watch->watch, on);
}

static void wire_settle(struct wire *wire)
{
	if (wire->fd < 0)
		return;
	wire_set(wire, WATCH_READ, wire_waits_for(wire, WATCH_READ));
	wire_set(wire, WATCH_WRITE, wire_waits_for(wire, WATCH_WRITE));
	if (wire->tls != NULL && wire->is_wanted[WATCH_READ] && tls_has_pending(wire->tls))
		task_schedule(wire->loop, &wire->again);
}

static void wire_call(struct wire *wire, enum watch_kind kind)
{
	if (kind == WATCH_READ)
		wire->ops->on_readable(wire);
	else
		wire->ops->on_writable(wire);
}

/*
 * The socket is ready for `kind`. The owner may close the wire, but is not freed before the turn
 * ends.
 */
static void wire_on_ready(struct wire *wire, enum watch_kind kind)
{
	enum watch_kind other = kind == WATCH_READ ? WATCH_WRITE : WATCH_READ;

	if (wire->tls == NULL) {
		wire_call(wire, kind);
		return;
	}
	if (wire->is_wanted[other] && wire_is_crossed(wire, other))
		wire_call(wire, other);
	if (wire->fd >= 0 && wire->is_wanted[kind] && !wire_is_crossed(wire, kind))
		wire_call(wire, kind);
	wire_settle(wire);
}

static void wire_on_event(struct watch *watch)
{
	const struct wire_watch *ready = container_of(watch, struct wire_watch, watch);

	wire_on_ready(ready->wire, ready->kind);
}

static void wire_on_again(struct task *task)
{
	struct wire *wire = container_of(task, struct wire, again);

	if (wire->is_wanted[WATCH_READ])
		wire_call(wire, WATCH_READ);
	wire_settle(wire);
}

void wire_init(struct wire *wire, struct loop *loop, int fd, const struct wire_ops *ops)
{
	CHECK(fd >= 0 && ops != NULL);
	*wire = (struct wire){ .ops = ops, .loop = loop, .fd = fd };
	task_init(&wire->again, wire_on_again);
}

void wire_set_tls(struct wire *wire, struct tls *tls)
{
	CHECK(wire->tls == NULL);
	wire->tls = tls;
}

void wire_close(struct wire *wire)
{
	if (wire->fd < 0)
		return;
	for (int kind = WATCH_READ; kind <= WATCH_WRITE; kind++) {
		wire_set(wire, (enum watch_kind)kind, false);
		loop_defer_free(wire->loop, wire->watches[kind]); /* it may be on the call stack */
		wire->watches[kind] = NULL;
	}
	task_cancel(&wire->again);
	tls_free(&wire->tls);
	file_close(&wire->fd);
}

bool wire_is_open(const struct wire *wire)
{
	return wire->fd >= 0;
}

void wire_watch_reading(struct wire *wire, bool on)
{
	wire->is_wanted[WATCH_READ] = on;
	wire_settle(wire);
}

void wire_try_reading(struct wire *wire)
{
	if (wire->is_wanted[WATCH_READ])
		wire_on_ready(wire, WATCH_READ);
}

bool wire_is_read(const struct wire *wire)
{
	return wire->is_wanted[WATCH_READ];
}

void wire_watch_writing(struct wire *wire, bool on)
{
	wire->is_wanted[WATCH_WRITE] = on;
	wire_settle(wire);
}

ssize_t wire_read(struct wire *wire, void *out, size_t size)
{
	ssize_t n;

	CHECK(wire->fd >= 0 && size > 0); /* reading 0 bytes would look like end of file */
	if (wire->tls != NULL)
		return tls_read(wire->tls, out, size);
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

	CHECK(wire->fd >= 0 && count > 0);
	if (wire->tls != NULL)
		return tls_write(wire->tls, parts, count);
	do {
		n = writev(wire->fd, parts, count);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : WIRE_BROKEN;
}

void wire_limit_unsent(struct wire *wire, uint64_t patience_ms)
{
	const int bytes = UNSENT_BYTES_MAX;
	const unsigned int ms = patience_ms < INT_MAX ? (unsigned int)patience_ms : INT_MAX;

	if (wire->fd < 0 || wire->is_unsent_limited)
		return;
	wire->is_unsent_limited = true;
	setsockopt(wire->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes));
	setsockopt(wire->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

void wire_shutdown(struct wire *wire)
{
	if (wire->fd < 0)
		return;
	if (wire->tls != NULL)
		tls_shutdown(wire->tls);
	shutdown(wire->fd, SHUT_WR);
}
