/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted from start to end of the process; the log gets it at the end. */
#ifndef MCPGATED_OBS_COUNTERS_H
#define MCPGATED_OBS_COUNTERS_H

#include <stdint.h>

enum counter {
#define COUNTER(id, name, help) COUNTER_##id,
#define METRIC(id, name, type, labels, help)
#include "obs/metrics.def"
#undef COUNTER
#undef METRIC
	COUNTER_COUNT
};

void counter_add(enum counter counter);
void counter_add_many(enum counter counter, uint64_t count);
uint64_t counter_get(enum counter counter);
/* As in metrics.def. */
const char *counter_name(enum counter counter);
/* One line with all that are not zero. */
void counters_log(void);

#endif
