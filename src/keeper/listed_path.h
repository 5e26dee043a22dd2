/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the paths of a sandbox. Links in them mean what they mean at that time, but for one kind: below a directory
 * that a server in a sandbox may write, that server may have made them, to lead to what it shall not have.
 */
#ifndef MCPGATED_KEEPER_LISTED_PATH_H
#define MCPGATED_KEEPER_LISTED_PATH_H

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

/*
 * Opens it with O_PATH; -1 with errno: ELOOP if it has a link below a directory that any server may write.
 * Async-signal-safe.
 */
int listed_path_open(const struct config *config, const char *path) must_check;

/*
 * Whether listed_path_open sees all of these directories that the path leads through. It compares names, so a path
 * that comes to one by a link, or by another name of it, is an error here.
 */
int listed_path_check(const struct config *config, const char *path, struct error *err) must_check;

#endif
