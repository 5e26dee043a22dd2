/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte channel: a socket, one end of a pipe, or a socket with TLS. The owner embeds the wire; it
 * is called when the wire is readable or writable and decides how much to read or write.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "io/loop.h"

struct tls;
struct wire;

struct wire_ops {
	/* data, end of file or an error; wire_read tells which */
	void (*on_readable)(struct wire *wire);
	void (*on_writable)(struct wire *wire);
};

struct wire_watch;

struct wire {
	const struct wire_ops *ops;
	struct loop *loop;
	/* by enum watch_kind; allocated on first use, since most wires need only one */
	struct wire_watch *watches[2];
	int fd;            /* -1: closed */
	bool is_wanted[2]; /* by enum watch_kind: what the owner watches */
	bool is_unsent_limited;
	struct tls *tls;   /* NULL: none */
	struct task again; /* with TLS: decrypted data is left although the socket has none */
};

/* Takes ownership of fd, which must be non-blocking. Neither direction is watched yet. */
void wire_init(struct wire *wire, struct loop *loop, int fd, const struct wire_ops *ops);
/*
 * Takes ownership of tls, whose handshake on this fd is complete. All data goes through it from now
 * on.
 */
void wire_set_tls(struct wire *wire, struct tls *tls);
/* Closes the descriptor; also valid on a closed wire. */
void wire_close(struct wire *wire);
bool wire_is_open(const struct wire *wire);

void wire_watch_reading(struct wire *wire, bool on);
void wire_watch_writing(struct wire *wire, bool on);
/*
 * Calls on_readable now if the owner watches for reading: data may have arrived since the last
 * read.
 */
void wire_try_reading(struct wire *wire);
/* Whether the owner watches for reading. */
bool wire_is_read(const struct wire *wire);

#define WIRE_AGAIN (-1)  /* no data at the moment */
#define WIRE_BROKEN (-2) /* the connection failed; close the wire */

/* Returns the number of bytes read, 0 at end of file, WIRE_AGAIN or WIRE_BROKEN. size > 0. */
ssize_t wire_read(struct wire *wire, void *out, size_t size) must_check;
/*
 * Returns the number of bytes written, possibly fewer than given or 0, or WIRE_BROKEN. The next
 * call must begin with the bytes left over: TLS may have begun to send them.
 */
ssize_t wire_write(struct wire *wire, const struct iovec *parts, int count) must_check;
/*
 * Limits (on TCP) what the kernel buffers to little more than the peer's receive window, so that
 * data the peer does not read waits in our queue, where it is counted and can be dropped, rather
 * than in megabytes of socket buffer. If the peer accepts none of the buffered data for
 * patience_ms, the wire breaks; TCP itself might keep trying for a quarter of an hour. SEC-26,
 * REL-06.
 */
void wire_limit_unsent(struct wire *wire, uint64_t patience_ms);
/* Shuts down the sending direction (sockets only). */
void wire_shutdown(struct wire *wire);
