/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that wait to be written to a wire. Small pieces are copied together, large ones are kept as
 * they are. All zeros is not a queue: use outq_init. Holds no memory while empty.
 */
#ifndef MCPGATED_IO_OUTQ_H
#define MCPGATED_IO_OUTQ_H

#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/wire.h"

struct outq {
	struct list segments;
	size_t bytes; /* waiting */
};

void outq_init(struct outq *queue);
/* Copies. */
void outq_append(struct outq *queue, struct slice bytes);
/* Takes the bytes of buf from offset on; buf is empty afterwards. */
void outq_take(struct outq *queue, struct buf *buf, size_t offset);
/*
 * Writes what the wire takes, at most OUTQ_TURN_BYTES. Returns the bytes written, or WIRE_BROKEN. The
 * caller watches for writing while ->bytes > 0.
 */
#define OUTQ_TURN_BYTES (256 * 1024)
ssize_t outq_flush(struct outq *queue, struct wire *wire) must_check;
void outq_fini(struct outq *queue);

#endif
