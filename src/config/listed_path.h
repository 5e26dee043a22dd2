/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens paths that a configuration names: those of a sandbox, and files that the keeper reads with
 * its own rights. Links in them are followed, except below a directory that a sandboxed server may
 * write to: that server may have created the link to reach what it must not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

/* The configurations whose servers may have created links; each may be NULL. */
struct listed_writers {
	const struct config *running;
	const struct config *next;
};

/*
 * Opens it with O_PATH. Returns -1 with errno; ELOOP: it has a link below a directory that any
 * server may write to. Async-signal-safe.
 */
int listed_path_open(const struct config *config, const char *path) must_check;
/* The same for reading a file. Never blocks, even on a FIFO without a writer. */
int listed_path_open_file(const struct listed_writers *writers, const char *path) must_check;

/*
 * Whether listed_path_open recognizes every such directory on the path. It compares names, so a
 * path that reaches one through a link or another name is an error here.
 */
int listed_path_check(const struct config *config, const char *path, struct error *err) must_check;
/*
 * Whether a file created here, with our rights, is in a directory that none of these servers may
 * write to, after following links; otherwise a server could replace it. The file need not exist.
 * The text of err gives the cause without the path.
 */
int listed_path_check_output(const struct listed_writers *writers, const char *path,
			     struct error *err) must_check;

/* ---- whole small files, whose content may be secret ---- */

/*
 * Opens a plain file for reading without blocking. Links on the way that a server may have created
 * are refused. Returns a descriptor, or -1; the text of err gives the cause without
 * the path.
 */
int file_open(const char *path, const struct listed_writers *writers, struct error *err) must_check;
/*
 * Reads an open file of at most max_bytes into `content` (empty before; end it with buf_wipe, also after
 * an error), of which no copies are left anywhere else.
 */
int file_read_all(int fd, size_t max_bytes, struct buf *content, struct error *err) must_check;
/* Writes all of it. Returns 0, or -1 with errno. */
int file_write_all(int fd, struct slice text) must_check;
/*
 * Reads such a file into content_r (empty before; end it with buf_wipe). A file of more than
 * max_bytes is an error. status_r may be NULL.
 */
int file_read(const char *path, const struct listed_writers *writers, size_t max_bytes,
	      struct buf *content_r, struct stat *status_r, struct error *err) must_check;
/*
 * Whether this process could change the file's mode: its user owns the file (or is root), and the
 * file system is not mounted read-only, as it is for secrets of containers.
 */
bool file_is_changeable(const char *path);
