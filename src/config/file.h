/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole small files whose content may be secret. */
#ifndef MCPGATED_CONFIG_FILE_H
#define MCPGATED_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"

struct listed_writers;

/*
 * Opens a plain file for reading without blocking. Links on the way that a server may have created
 * are refused (listed_path.h). Returns a descriptor, or -1; the text of err gives the cause without
 * the path.
 */
int file_open(const char *path, const struct listed_writers *writers, struct error *err) must_check;
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

#endif
