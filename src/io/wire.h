/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One byte channel: a socket, one end of a pipe, or a socket with TLS on it. Whoever embeds a wire is
 * called when it can be read or written, and decides how much of that to do.
 */
#ifndef MCPGATED_IO_WIRE_H
#define MCPGATED_IO_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "io/loop.h"

struct tls;
struct wire;

struct wire_ops {
	void (*on_readable)(struct wire *wire); /* bytes, the end, or an error: wire_read tells */
	void (*on_writable)(struct wire *wire);
};

struct wire_watch;

struct wire {
	const struct wire_ops *ops;
	struct loop *loop;
	struct wire_watch
		*watches[2]; /* by enum watch_kind; made when first needed: most wires use one */
	int fd;              /* -1: closed */
	bool is_wanted[2];   /* by enum watch_kind: what the owner watches for */
	bool is_unsent_limited;
	struct tls *tls;   /* NULL: none */
	struct task again; /* with TLS: more can be read although the socket is silent */
};

/* Takes fd, which must be non-blocking. Neither direction is watched yet. */
void wire_init(struct wire *wire, struct loop *loop, int fd, const struct wire_ops *ops);
/* Takes tls, whose handshake on the wire's fd is done: what is read and written goes through it. */
void wire_set_tls(struct wire *wire, struct tls *tls);
/* Also on a closed wire. */
void wire_close(struct wire *wire);
bool wire_is_open(const struct wire *wire);

void wire_watch_reading(struct wire *wire, bool on);
void wire_watch_writing(struct wire *wire, bool on);
/* Calls on_readable now, if the owner watches for it: something may have come since the last look. */
void wire_try_reading(struct wire *wire);
/* Whether its owner watches for reading. */
bool wire_is_read(const struct wire *wire);

#define WIRE_AGAIN (-1)  /* nothing now */
#define WIRE_BROKEN (-2) /* the other side has gone with an error; close */

/* Returns the bytes read, 0 at the end, WIRE_AGAIN or WIRE_BROKEN. */
ssize_t wire_read(struct wire *wire, void *out, size_t size) must_check;
/*
 * Returns the bytes written (maybe fewer than given, maybe 0), or WIRE_BROKEN. The next call begins with the
 * bytes that this one did not take: TLS may have begun to send them.
 */
ssize_t wire_write(struct wire *wire, const struct iovec *parts, int count) must_check;
/*
 * From now on the kernel takes little more than the peer's window has room for (TCP; no effect elsewhere): what
 * a peer does not read waits in our queue, where it is counted and can be dropped, not in megabytes of socket
 * buffer. If the peer takes nothing of what the kernel holds for patience_ms, the wire breaks; TCP by itself may
 * go on trying for a quarter of an hour. SEC-26, REL-06.
 */
void wire_limit_unsent(struct wire *wire, uint64_t patience_ms);
/* Sends the end of our bytes (sockets). */
void wire_shutdown(struct wire *wire);

#endif
