/* SPDX-License-Identifier: Apache-2.0 */
/* A number per row of counters.def. */
#include "obs/counters.h"

#include "base/check.h"
#include "obs/log.h"

static uint64_t counts[COUNTER_COUNT];

static const struct {
	const char *name;
	const char *help;
} rows[] = {
#define X(id, name, help) [COUNTER_##id] = { name, help },
#include "obs/counters.def"
#undef X
};

void counter_add(enum counter counter)
{
	CHECK(counter < COUNTER_COUNT);
	counts[counter]++;
}

uint64_t counter_get(enum counter counter)
{
	CHECK(counter < COUNTER_COUNT);
	return counts[counter];
}

const char *counter_name(enum counter counter)
{
	CHECK(counter < COUNTER_COUNT);
	return rows[counter].name;
}

const char *counter_help(enum counter counter)
{
	CHECK(counter < COUNTER_COUNT);
	return rows[counter].help;
}

void counters_log(void)
{
	struct log_field fields[COUNTER_COUNT + 1] = { { .key = NULL } };
	size_t n = 0;

	for (size_t i = 0; i < COUNTER_COUNT; i++) {
		if (counts[i] > 0)
			fields[n++] = (struct log_field)LOG_INT(rows[i].name, counts[i]);
	}
	CHECK(n < ARRAY_LEN(fields) && fields[n].key == NULL);
	if (log_is_on(LOG_EVENT_COUNTERS))
		log_write(LOG_EVENT_COUNTERS, fields);
}
