/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a whole small file whose content may be secret. */
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
 * Opens it to be read, without waiting for anything: a plain file, to which no link leads that a server may have made
 * (listed_path.h). A descriptor, or -1; the text of err says why without the path.
 */
int file_open(const char *path, const struct listed_writers *writers, struct error *err) must_check;
/*
 * Reads such a file into content_r (empty before; end it with buf_wipe). More than max_bytes is an error. status_r, if not NULL,
 * gets what it is.
 */
int file_read(const char *path, const struct listed_writers *writers, size_t max_bytes,
	      struct buf *content_r, struct stat *status_r, struct error *err) must_check;
/*
 * Whether who runs this could give the file another mode: it is his (all are root's), and no file system that is mounted
 * read-only, as containers have their secrets.
 */
bool file_is_changeable(const char *path);

#endif
