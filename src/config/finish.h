/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the options, computed once, so that the modules take the structs as they are. */
#ifndef MCPGATED_CONFIG_FINISH_H
#define MCPGATED_CONFIG_FINISH_H

#include "config/config.h"

/* Once, when all options have been read. */
void finish_config(struct config *config);
/* Frees what the former made. */
void finish_free(struct config *config);

#endif
