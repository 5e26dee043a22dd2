/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes waiting to be written to a wire. Small pieces are copied together, large ones are kept as
 * they are. An all-zero struct is not valid; use outq_init. An empty queue holds no memory.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/wire.h"

struct outq {
	struct list segments;
	size_t bytes; /* number of bytes waiting */
};

void outq_init(struct outq *queue);
/* Appends a copy. */
void outq_append(struct outq *queue, struct slice bytes);
/* Takes over the bytes of buf from offset on; buf is empty afterwards. */
void outq_take(struct outq *queue, struct buf *buf, size_t offset);
/*
 * Writes as much as the wire accepts, at most OUTQ_TURN_BYTES. Returns the number of bytes written,
 * or WIRE_BROKEN. While ->bytes > 0, the caller watches for writability.
 */
#define OUTQ_TURN_BYTES (256 * 1024)
ssize_t outq_flush(struct outq *queue, struct wire *wire) must_check;
void outq_fini(struct outq *queue);
