/* SPDX-License-Identifier: Apache-2.0 */
/* Where the log goes: the file of log.target, or what the daemon was started with. */
#ifndef MCPGATED_KEEPER_LOG_FILE_H
#define MCPGATED_KEEPER_LOG_FILE_H

#include "config/config.h"

/* The descriptor; or -1, and err names the place in the configuration. */
int log_file_open(const struct config *config, struct error *err) must_check;
/* Whether it goes there; a file that is not there yet is not made. -1: err says what is in the way. */
int log_file_try(const struct config *config, struct error *err) must_check;
/* Opens a file anew, for whoever has renamed it; the log goes on in what was open if that fails. */
void log_file_reopen(const struct config *config, int *fd);
/* The log goes on in `fresh`, which log_file_open has opened for this configuration; what was open is closed. */
void log_file_use(const struct config *config, int fresh, int *fd);
/* Closes what log_file_open has opened, which may be what the daemon was started with: that stays open. -1: nothing. */
void log_file_close(int *fd);

#endif
