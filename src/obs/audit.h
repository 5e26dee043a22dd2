/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of what was decided about requests and what became of them: one JSON object a line, its members the rows of
 * audit.def, into a pipe to the keeper, which writes them out (keeper/audit_writer). What a record says is router/audit_call's.
 * Writing never blocks: a line that the pipe does not take waits here in bounded memory; beyond that it is
 * lost and counted, and the next one that is written says so. Refusals at the door, which strangers can make many of, have a part
 * of the pipe and of the memory; the rest is for calls. SEC-63.
 *
 * The records of calls of a turn of the loop are gathered and written together, where `on_gathering` is set: its owner then calls
 * audit_flush before any answer leaves, and when the turn ends. So whoever has an answer for a call has left a record.
 */
#ifndef MCPGATED_OBS_AUDIT_H
#define MCPGATED_OBS_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "obs/audit_backlog.h"
#include "obs/line.h"

enum audit_field {
#define X(field, name, bytes_max, help) AUDIT_##field,
#include "obs/audit.def"
#undef X
	AUDIT_FIELD_COUNT
};

struct audit_conf {
	char *to; /* a file by its absolute path, "journal", or unix:PATH; NULL: no records */
	bool is_required;     /* a call that cannot be recorded is refused */
	bool is_refused_only; /* of what is allowed there are no records */
	bool shows_arguments;
};

/* As much as a pipe takes as a whole or not at all. */
#define AUDIT_GATHERED_BYTES TEXT_LINE_BYTES

/* All zeros but for conf, fd, pipe_bytes, on_gathering and on_waiting. */
struct audit {
	struct audit_conf conf;
	int fd;            /* of the pipe; does not block */
	size_t pipe_bytes; /* how much it holds; 0: not known */
	/* The first record waits for audit_flush. NULL: none ever does. */
	void (*on_gathering)(struct audit *audit);
	void (*on_waiting)(
		struct audit
			*audit); /* audit_drain is to be called soon. NULL: nothing ever waits */
	struct audit_backlog backlog;
	bool is_failing;  /* the keeper cannot write */
	int last_error;   /* errno: why it could not last; 0: it always could */
	uint64_t written; /* lines that the keeper has got */
	uint64_t lost;    /* lines, since one was written */
	uint64_t said_at_ms;
	size_t gathered_lines;
	size_t gathered_length;
	char gathered[AUDIT_GATHERED_BYTES];
};

/* Begins a record. It is ended by audit_write. */
void audit_line_begin(struct text_line *line, const char *event);
/* Nothing, where the text is empty. Else it is of a peer, and shown as far as its row says. False: it was cut. */
bool audit_put_text(struct text_line *line, enum audit_field field, struct slice text);
/* The same of a text of our own, in which nothing has to be escaped. */
void audit_put_own(struct text_line *line, enum audit_field field, struct slice text);
/* true */
void audit_put_true(struct text_line *line, enum audit_field field);
void audit_put_number(struct text_line *line, enum audit_field field, uint64_t number);
/* Ends the line and writes it, gathers it, or has it wait. False: it is lost. */
bool audit_write(struct audit *audit, enum audit_share share, struct text_line *line);
/* Writes what was gathered, or has it wait. False: it is lost. */
bool audit_flush(struct audit *audit);
/* The same for one of a call that neither is gathered nor waits: true means that the keeper has got it. */
bool audit_write_now(struct audit *audit, struct text_line *line) must_check;
/* Writes what waits, as far as the pipe takes it, a part of each share in turns. False: something waits still. */
bool audit_drain(struct audit *audit) must_check;
/* Nothing more comes: waits up to half a second for what waits to be taken, and counts the rest as lost. */
void audit_finish(struct audit *audit);

/* The words of a row. */
const char *audit_field_name(enum audit_field field);
const char *audit_field_help(enum audit_field field);

#endif
