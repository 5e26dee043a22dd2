/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening what a configuration names: the paths of a sandbox, and the files that the keeper reads with its own rights. Links in
 * them mean what they mean at that time, but for one kind: below a directory that a server in a sandbox may write, that server may
 * have made them, to lead to what it shall not have.
 */
#ifndef MCPGATED_CONFIG_LISTED_PATH_H
#define MCPGATED_CONFIG_LISTED_PATH_H

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

/* Whose servers may have made links: NULL, those of no configuration. */
struct listed_writers {
	const struct config *running;
	const struct config *next;
};

/*
 * Opens it with O_PATH; -1 with errno: ELOOP if it has a link below a directory that any server may write.
 * Async-signal-safe.
 */
int listed_path_open(const struct config *config, const char *path) must_check;
/* The same to read a file, without ever waiting: a FIFO, whose other end nobody has, is open as well. */
int listed_path_open_file(const struct listed_writers *writers, const char *path) must_check;

/*
 * Whether listed_path_open sees all of these directories that the path leads through. It compares names, so a path
 * that comes to one by a link, or by another name of it, is an error here.
 */
int listed_path_check(const struct config *config, const char *path, struct error *err) must_check;
/*
 * Whether a file that is made here, with our rights, is in a directory that none of these servers may write, wherever links
 * lead: a server could put another in its place. The file need not be there. The text of err says why without the path.
 */
int listed_path_check_output(const struct listed_writers *writers, const char *path,
			     struct error *err) must_check;

#endif
