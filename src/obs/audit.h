/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of what was decided about requests and what became of them: one JSON object a line, its members the rows of
 * audit.def, into a pipe to the keeper, which writes them out (keeper/audit_writer). What a record says is router/audit_call's.
 * Writing never blocks: a line that the pipe does not take is lost and counted, and the next one that it takes says so. SEC-63.
 */
#ifndef MCPGATED_OBS_AUDIT_H
#define MCPGATED_OBS_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

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

/* All zeros but for conf and fd. */
struct audit {
	struct audit_conf conf;
	int fd;           /* of the pipe; does not block */
	bool is_failing;  /* the keeper cannot write */
	int last_error;   /* errno: why it could not last; 0: it always could */
	uint64_t written; /* lines that the keeper has got */
	uint64_t lost;    /* lines, since one was written */
	uint64_t said_at_ms;
};

/* Begins a record. It is ended by audit_write. */
void audit_line_begin(struct text_line *line, const char *event);
/* Nothing, where the text is empty. Else it is of a peer, and shown as far as its row says. False: it was cut. */
bool audit_put_text(struct text_line *line, enum audit_field field, struct slice text);
/* true */
void audit_put_true(struct text_line *line, enum audit_field field);
void audit_put_number(struct text_line *line, enum audit_field field, uint64_t number);
/* Ends the line and writes it. False: it is lost. */
bool audit_write(struct audit *audit, struct text_line *line);

/* The words of a row. */
const char *audit_field_name(enum audit_field field);
const char *audit_field_help(enum audit_field field);

#endif
