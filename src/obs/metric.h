/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of metrics.def, and the texts in which monitoring reads them: the text format of Prometheus (0.0.4), and
 * OpenMetrics 1.0.0, which differs in heads and in its last line. Values are put in by who knows them.
 */
#ifndef MCPGATED_OBS_METRIC_H
#define MCPGATED_OBS_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct latency_histogram;

enum metric {
#define COUNTER(id, name, help) METRIC_COUNTED_##id,
#define METRIC(id, name, type, labels, help) METRIC_##id,
#include "obs/metrics.def"
#undef COUNTER
#undef METRIC
	METRIC_COUNT
};

struct metric_row {
	const char *name; /* as in the text format: a counter's with _total, an info's with _info */
	const char *type; /* gauge, counter, histogram or info */
	const char *labels; /* with commas; empty: none */
	const char *help;
};
struct metric_row metric_get(enum metric metric);

#define METRIC_LABELS_MAX 6

/* All zeros but for out and is_open. */
struct metric_writer {
	struct buf *out;
	bool is_open; /* OpenMetrics */
	enum metric metric;
};

/* Its # HELP and # TYPE; samples of it follow. */
void metric_begin(struct metric_writer *writer, enum metric metric);
/*
 * A sample of the metric that was begun. values: of its labels, in the order of the row; NULL where there are none. One that
 * is empty is left out, which means the same. They are foreign texts: what is not seen in them is written as \u{NUMBER}.
 */
void metric_put(struct metric_writer *writer, const struct slice *values, uint64_t value);
/* The same of milliseconds, in seconds. */
void metric_put_ms(struct metric_writer *writer, const struct slice *values, uint64_t ms);
/* All samples of one histogram. */
void metric_put_histogram(struct metric_writer *writer, const struct slice *values,
			  const struct latency_histogram *histogram);
/* After the last sample of all. */
void metric_end(struct metric_writer *writer);

#endif
