/* SPDX-License-Identifier: Apache-2.0 */
/* Process-wide counters. They start at 0 and are logged when the process ends. */
#pragma once

#include <stdint.h>

enum counter {
#define COUNTER(id, name, help) COUNTER_##id,
#include "obs/metrics.def"
	COUNTER_COUNT
};

void counter_add(enum counter counter);
void counter_add_many(enum counter counter, uint64_t count);
uint64_t counter_get(enum counter counter);
/* The name in metrics.def. */
const char *counter_name(enum counter counter);
/* Logs one line with all nonzero counters. */
void counters_log(void);
