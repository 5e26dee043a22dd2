/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last lines that a server's processes wrote to stderr, for the operator. Bounded in bytes; the
 * oldest lines are dropped first. Bytes are stored unchanged.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

#define STDERR_RING_BYTES_MAX (64 * 1024)

struct stderr_ring {
	struct list lines; /* oldest first */
	struct list readers;
	size_t bytes; /* including the overhead per line */
	uint64_t last_number;
};

struct stderr_line {
	struct list link;
	uint64_t number; /* 1, 2, 3 … */
	uint64_t at_ms;  /* since 1970 */
	int pid;
	size_t length;
	char text[];
};

/* Notified of new lines; embedded by its owner. */
struct stderr_ring_reader {
	struct list link;
	void (*on_line)(struct stderr_ring_reader *reader);
	void (*on_end)(struct stderr_ring_reader *reader); /* the ring is gone */
};

void stderr_ring_init(struct stderr_ring *stderr_ring);
/* Frees the lines, and calls on_end of the readers. */
void stderr_ring_fini(struct stderr_ring *stderr_ring);
/* Adds a copy and notifies the readers. */
void stderr_ring_add(struct stderr_ring *stderr_ring, int pid, struct slice text);
/*
 * The oldest stored line with a number above `after`; NULL: none. Borrowed until the next line is
 * added.
 */
const struct stderr_line *stderr_ring_next(const struct stderr_ring *stderr_ring, uint64_t after);

void stderr_ring_attach(struct stderr_ring *stderr_ring, struct stderr_ring_reader *reader);
/* Also valid if it is not attached, provided its link was initialized. */
void stderr_ring_detach(struct stderr_ring_reader *reader);
