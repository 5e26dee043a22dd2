/* SPDX-License-Identifier: Apache-2.0 */
/* Messages out of the lines that a process writes to its stdout. BACK-FRAME-03 ... -05. */
#ifndef MCPGATED_UPSTREAM_LINES_H
#define MCPGATED_UPSTREAM_LINES_H

#include "base/slice.h"

struct upstream;

/* Hands on what is in one line, whatever it is; what is no message is logged. May close the upstream. */
void lines_take(struct upstream *upstream, struct slice line);

#endif
