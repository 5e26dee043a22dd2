/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last lines that a server's processes wrote to their standard error, for the operator; bounded in
 * bytes, the oldest go first. Bytes are kept as they came.
 */
#ifndef MCPGATED_BACKEND_BACKLOG_H
#define MCPGATED_BACKEND_BACKLOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

#define BACKLOG_BYTES_MAX (64 * 1024)

struct backlog {
	struct list lines; /* oldest first */
	struct list readers;
	size_t bytes; /* with what each line costs beside its text */
	uint64_t last_number;
};

struct backlog_line {
	struct list link;
	uint64_t number; /* 1, 2, 3 … */
	uint64_t at_ms;  /* since 1970 */
	int pid;
	size_t length;
	char text[];
};

/* Somebody who wants to hear of new lines; embedded. */
struct backlog_reader {
	struct list link;
	void (*on_line)(struct backlog_reader *reader);
};

void backlog_init(struct backlog *backlog);
/* Frees the lines; readers stay linked among themselves. */
void backlog_fini(struct backlog *backlog);
/* Adds a copy and tells the readers. */
void backlog_add(struct backlog *backlog, int pid, struct slice text);
/* The oldest line that is kept behind the one numbered `after`; NULL: none. Borrowed until the next is added. */
const struct backlog_line *backlog_next(const struct backlog *backlog, uint64_t after);

void backlog_attach(struct backlog *backlog, struct backlog_reader *reader);
/* Also on one that is not attached, if its link was initialised. */
void backlog_detach(struct backlog_reader *reader);

#endif
