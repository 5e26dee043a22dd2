/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The destination of the log: the file of log.target, or the descriptor the daemon was started
 * with.
 */
#ifndef MCPGATED_KEEPER_LOG_FILE_H
#define MCPGATED_KEEPER_LOG_FILE_H

#include "config/config.h"

/* Returns the descriptor; or -1, and err names the place in the configuration. */
int log_file_open(const struct config *config, struct error *err) must_check;
/*
 * Checks that the log can be written there; does not create a file. -1: err says what is in the
 * way.
 */
int log_file_try(const struct config *config, struct error *err) must_check;
/* Reopens the file, after it was renamed; on failure the log continues in the open one. */
void log_file_reopen(const struct config *config, int *fd);
/*
 * Continues the log in `fresh`, from log_file_open for this configuration, and closes the old one.
 */
void log_file_use(const struct config *config, int fresh, int *fd);
/*
 * Closes a log_file_open descriptor, but not the one that the daemon was started with. No-op for
 * -1.
 */
void log_file_close(int *fd);

#endif
