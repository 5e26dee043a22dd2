/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the records of the audit go (obs/audit.h): a pipe that gateways write lines to, and that the keeper writes out, to a
 * file, the journal or a socket. So a gateway that was taken over can write records that are not true, but neither change
 * nor remove one that was written before, nor fill the disk faster than so many bytes a second. What cannot be written
 * waits here and in the pipe, and is tried again; when both are full, the gateway loses records and counts them, or
 * refuses calls. Nothing is forced to the disk (fsync): what the kernel has not written is lost with the power. SEC-63.
 */
#ifndef MCPGATED_KEEPER_AUDIT_WRITER_H
#define MCPGATED_KEEPER_AUDIT_WRITER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define AUDIT_WRITER_BYTES 65536
#define AUDIT_WRITER_POLLS 2

struct audit_writer {
	const char *to; /* as of struct audit_conf; NULL: there is none, and the pipe is not read */
	const char *journal; /* its socket; tests have one of their own */
	int in;              /* the pipe */
	int out;             /* the gateway's end */
	int fd;              /* what is written to; -1: it cannot be opened now */
	int next_fd;         /* of audit_writer_open_next; or -1 */
	uint64_t gather_ms;  /* so long what comes is left in the pipe, to be read at once */
	uint64_t gather_until_ms;
	uint64_t second_began_ms;
	size_t second_bytes; /* read in it */
	uint64_t retry_at_ms;
	uint64_t look_at_ms; /* whether the file is still there */
	bool is_failing;
	int error;        /* errno: why, or why it failed last */
	bool is_told;     /* the gateway knows */
	bool is_blocked;  /* the reader of a socket or FIFO has no room */
	bool is_skipping; /* the rest of a line that was too long */
	size_t written;   /* of `whole` */
	size_t whole;     /* of `length`: lines that are records */
	size_t length;
	char bytes[AUDIT_WRITER_BYTES];
};

/* -1: a file cannot be opened. A socket that is not there yet is waited for. `to` is borrowed, until another is used. */
int audit_writer_open(struct audit_writer *writer, const char *to, struct error *err) must_check;
/* Opens what a reload may use next, likewise; NULL: nothing. What was opened so before is closed. */
int audit_writer_open_next(struct audit_writer *writer, const char *to, struct error *err)
	must_check;
/* The records go there from now on, those that could not be written so far included; `to` was opened, if it is another. */
void audit_writer_use_next(struct audit_writer *writer, const char *to);
/* Whether `to` can be opened now; a file that is not there yet is not made. -1: err says what is in the way. */
int audit_writer_try(const char *to, struct error *err) must_check;
/* Opens it anew, for whoever has renamed the file; what was open stays in use if that fails. */
void audit_writer_reopen(struct audit_writer *writer);
/* There will be another gateway: takes back what the last one can have changed of the pipe. */
void audit_writer_set_gateway(struct audit_writer *writer);
/* What to wait for; -1 where nothing is. */
void audit_writer_poll_fill(const struct audit_writer *writer,
			    struct pollfd polls_r[AUDIT_WRITER_POLLS]);
/* Reads and writes what can be, a bounded part of it. Returns when there will be something to do at the latest. */
uint64_t audit_writer_run(struct audit_writer *writer);
/* The gateway has ended: writes what it has left. */
void audit_writer_flush(struct audit_writer *writer);
/* Sends the gateway whether records can be written, if it does not know; there may be no room for that. */
void audit_writer_tell(struct audit_writer *writer, int gateway_fd);
bool audit_writer_has_untold(const struct audit_writer *writer);
/* Logs how many records are lost with it. Nothing, where none was opened. */
void audit_writer_close(struct audit_writer *writer);

#endif
