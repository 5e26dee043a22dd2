/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last lines that a server's processes wrote to their standard error, for the operator; bounded in
 * bytes, the oldest go first. Bytes are kept as they came.
 */
#ifndef MCPGATED_PROCESS_STDERR_RING_H
#define MCPGATED_PROCESS_STDERR_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

#define STDERR_RING_BYTES_MAX (64 * 1024)

struct stderr_ring {
	struct list lines; /* oldest first */
	struct list readers;
	size_t bytes; /* with what each line costs beside its text */
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

/* Is told of new lines; embedded by its owner. */
struct stderr_ring_reader {
	struct list link;
	void (*on_line)(struct stderr_ring_reader *reader);
	void (*on_end)(struct stderr_ring_reader *reader); /* there is no ring any more */
};

void stderr_ring_init(struct stderr_ring *stderr_ring);
/* Frees the lines, and tells the readers that there will be none. */
void stderr_ring_fini(struct stderr_ring *stderr_ring);
/* Adds a copy and tells the readers. */
void stderr_ring_add(struct stderr_ring *stderr_ring, int pid, struct slice text);
/* The oldest line that is kept with a number above `after`; NULL: none. Borrowed until the next is added. */
const struct stderr_line *stderr_ring_next(const struct stderr_ring *stderr_ring, uint64_t after);

void stderr_ring_attach(struct stderr_ring *stderr_ring, struct stderr_ring_reader *reader);
/* Also on one that is not attached, if its link was initialised. */
void stderr_ring_detach(struct stderr_ring_reader *reader);

#endif
