/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted from start to end of the process; the log gets it at the end. */
#ifndef MCPGATED_OBS_COUNTERS_H
#define MCPGATED_OBS_COUNTERS_H

#include <stdint.h>

enum counter {
#define X(id, name, help) COUNTER_##id,
#include "obs/counters.def"
#undef X
	COUNTER_COUNT
};

void counter_add(enum counter counter);
uint64_t counter_get(enum counter counter);
/* The words of its row: "calls", "requests forwarded to a child". */
const char *counter_name(enum counter counter);
const char *counter_help(enum counter counter);
/* One line with all that are not zero. */
void counters_log(void);

#endif
