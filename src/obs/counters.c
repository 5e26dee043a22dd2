/* SPDX-License-Identifier: Apache-2.0 */
/* One number per COUNTER of metrics.def. */
#include "obs/counters.h"

#include "base/check.h"
#include "obs/log.h"

static uint64_t counts[COUNTER_COUNT];

static const char *const names[] = {
#define COUNTER(id, name, help) [COUNTER_##id] = name,
#include "obs/metrics.def"
};

void counter_add(enum counter counter)
{
	counter_add_many(counter, 1);
}

void counter_add_many(enum counter counter, uint64_t count)
{
	CHECK(counter < COUNTER_COUNT);
	counts[counter] += count;
}

uint64_t counter_get(enum counter counter)
{
	CHECK(counter < COUNTER_COUNT);
	return counts[counter];
}

const char *counter_name(enum counter counter)
{
	CHECK(counter < COUNTER_COUNT);
	return names[counter];
}

void counters_log(void)
{
	struct log_field fields[COUNTER_COUNT + 1] = { { .key = NULL } };
	size_t n = 0;

	for (size_t i = 0; i < COUNTER_COUNT; i++) {
		if (counts[i] > 0)
			fields[n++] = (struct log_field)LOG_INT(names[i], counts[i]);
	}
	CHECK(n < ARRAY_LEN(fields) && fields[n].key == NULL);
	if (log_is_on(LOG_EVENT_COUNTERS))
		log_write(LOG_EVENT_COUNTERS, fields);
}
