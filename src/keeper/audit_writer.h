/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the audit records (obs/audit.h): gateways write lines into a pipe, and the keeper writes
 * them to a file, the journal or a socket. So a compromised gateway can write false records, but
 * can neither change nor remove earlier ones, nor fill the disk faster than a fixed rate. What
 * cannot be written waits here and in the pipe, and is retried; when both are full, the gateway
 * drops and counts records, or refuses calls. There is no fsync: what the kernel has not written
 * yet is lost in a power failure. SEC-63.
 */
#ifndef MCPGATED_KEEPER_AUDIT_WRITER_H
#define MCPGATED_KEEPER_AUDIT_WRITER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "keeper/records.h"

#define AUDIT_WRITER_BYTES 65536
#define AUDIT_WRITER_POLLS 2

struct audit_writer {
	const char *to;      /* as in struct audit_conf; NULL: no audit, and the pipe is not read */
	const char *journal; /* its socket; tests use their own */
	struct records_pipe pipe; /* from the gateway */
	int fd;                   /* the output; -1: it cannot be opened at the moment */
	int next_fd;              /* from audit_writer_open_next; or -1 */
	uint64_t gather_ms;       /* how long input stays in the pipe, to be read in one go */
	uint64_t gather_until_ms;
	uint64_t second_began_ms;
	size_t second_bytes; /* read in that second */
	uint64_t retry_at_ms;
	uint64_t look_at_ms; /* when to check that the file is still there */
	bool is_failing;
	int error;        /* errno of the current or the latest failure */
	bool is_told;     /* the gateway knows that it fails, or that it does not */
	bool is_blocked;  /* the reader of a socket or FIFO has no room */
	bool is_skipping; /* the rest of an overlong line */
	size_t written;   /* of `whole` */
	size_t whole;     /* of `length`: complete lines that are records */
	size_t length;
	char bytes[AUDIT_WRITER_BYTES];
};

/*
 * Returns -1 if a file cannot be opened. A socket that does not exist yet is waited for. `to` is
 * borrowed until another one is used.
 */
int audit_writer_open(struct audit_writer *writer, const char *to, struct error *err) must_check;
/* Opens the target for a reload, likewise; NULL: none. Closes one opened earlier this way. */
int audit_writer_open_next(struct audit_writer *writer, const char *to, struct error *err)
	must_check;
/*
 * Switches to `to`, which was opened if it is a different one; records that could not be written so
 * far go there too.
 */
void audit_writer_use_next(struct audit_writer *writer, const char *to);
/* Checks that `to` can be opened; does not create a file. -1: err says what is in the way. */
int audit_writer_try(const char *to, struct error *err) must_check;
/* Reopens the file, after it was renamed; on failure the open one stays in use. */
void audit_writer_reopen(struct audit_writer *writer);
/* There will be another gateway: undoes what the last one may have changed on the pipe. */
void audit_writer_set_gateway(struct audit_writer *writer);
/* What to poll; -1 where nothing is. */
void audit_writer_poll_fill(const struct audit_writer *writer,
			    struct pollfd polls_r[AUDIT_WRITER_POLLS]);
/* Reads and writes a bounded amount. Returns the latest time for the next call. */
uint64_t audit_writer_run(struct audit_writer *writer);
/* The gateway has exited: writes what it left in the pipe. */
void audit_writer_flush(struct audit_writer *writer);
/*
 * Tells the gateway whether records can be written, unless it knows; the socket may have no room.
 */
void audit_writer_tell(struct audit_writer *writer, int gateway_fd);
bool audit_writer_has_untold(const struct audit_writer *writer);
/* Logs how many records are lost. No-op if nothing was opened. */
void audit_writer_close(struct audit_writer *writer);

#endif
