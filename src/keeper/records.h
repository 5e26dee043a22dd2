/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the log (log_writer.h) and the audit (audit_writer.h) share: pipes through which other
 * processes write lines, and files that the daemon appends to.
 */
#ifndef MCPGATED_KEEPER_RECORDS_H
#define MCPGATED_KEEPER_RECORDS_H

#include "base/check.h"
#include "base/error.h"

#define RECORDS_PIPE_BYTES (1 << 20)
#define RECORDS_JOURNAL "/run/systemd/journal/socket"

struct records_pipe {
	int in;  /* to be read by the keeper; -1: closed */
	int out; /* the other process's end */
};

int records_pipe_open(struct records_pipe *pipe, struct error *err) must_check;
/* Undoes what the other process may have changed on its end: the next one uses the same. */
void records_pipe_restore(const struct records_pipe *pipe);
/* No-op if it is closed. */
void records_pipe_close(struct records_pipe *pipe);

/*
 * Whether a start could open this absolute path with these flags (without O_CREAT). Does not create
 * a missing file, but checks its directory. -1: err says what is in the way.
 */
int records_file_try(const char *path, int flags, struct error *err) must_check;

#endif
