/* SPDX-License-Identifier: Apache-2.0 */
/* Parses messages from the lines that a process writes to its stdout. BACK-FRAME-03 ... -05. */
#ifndef MCPGATED_UPSTREAM_LINES_H
#define MCPGATED_UPSTREAM_LINES_H

#include "base/slice.h"

struct upstream;

/*
 * Passes on the messages in one line, of whatever kind; anything that is not a message is logged.
 * May close the upstream.
 */
void lines_take(struct upstream *upstream, struct slice line);

#endif
