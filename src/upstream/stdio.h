/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An upstream that is a child process: one message per line on its stdin and stdout. BACK-FRAME-01
 * ... -05.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct child;
struct server;
struct upstream;
struct upstream_owner_ops;
struct upstream_shared;

/*
 * Returns an upstream for upstream_begin; the server must have agreed (server_admit). It frees
 * itself once its process is gone.
 */
struct upstream *stdio_new(struct upstream_shared *shared, struct server *server);
/*
 * The same of a process of the gateway before, as child_inherit has it: it is warm, and goes on when
 * it is adopted (upstream_adopt).
 */
struct upstream *stdio_inherit(struct upstream_shared *shared, struct server *server,
			       const struct upstream_owner_ops *owner, uint64_t number, int pid,
			       const int fds[3]);
/* The upstream that a child belongs to; every child of a server belongs to one. */
struct upstream *stdio_of_child(struct child *child);

/* ---- lines ---- */

/* Parses messages from the lines that a process writes to its stdout. BACK-FRAME-03 ... -05. */

/* ---- long line ---- */

/*
 * Reads a line that is too long to be kept, part by part in bounded memory, to find out which
 * requests it answers. Looks only for the ids of responses; what it reads may be anything.
 * BACK-FRAME-06
 */

#define LONG_LINE_TEXT_BYTES 64 /* of a name or an id; ours are short numbers */

/* All zeros at the beginning of a line. */
struct long_line {
	size_t depth;   /* of nested containers */
	size_t members; /* the depth of the members of messages: 2 in a batch; 0: not known yet */
	bool is_string, is_escaped;
	bool is_name;                    /* a name of a member is expected, or being read */
	bool is_id;                      /* the value being read is the id */
	bool has_id;                     /* a member of this name */
	bool has_method;                 /* so it is no response */
	size_t length;                   /* of the name; more than fits: none of those looked for */
	char text[LONG_LINE_TEXT_BYTES]; /* the name */
	size_t id_length;
	char id[LONG_LINE_TEXT_BYTES];
};

/* Called with the id of each response, as it was written. */
typedef void long_line_fn(struct slice id, void *arg);

/* Takes the next part. is_end: the line ends behind it. */
void long_line_take(struct long_line *line, struct slice part, bool is_end, long_line_fn *on_id,
		    void *arg);
