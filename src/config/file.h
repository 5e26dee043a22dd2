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

/*
 * Reads `path` into content_r (empty before; end it with buf_wipe). More than max_bytes is an
 * error. The text of err says why without the path. mode_r, if not NULL, gets the file's mode.
 */
int file_read(const char *path, size_t max_bytes, struct buf *content_r, mode_t *mode_r,
	      struct error *err) must_check;
/*
 * Whether who runs this could give the file another mode: it is his (all are root's), and no file system that is mounted
 * read-only, as containers have their secrets.
 */
bool file_is_changeable(const char *path);

#endif
