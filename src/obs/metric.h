/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of metrics.def, and their export for monitoring: Prometheus text format 0.0.4 and
 * OpenMetrics 1.0.0, which differs in the metadata lines and in the last line. The callers supply
 * the values.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct latency_histogram;

enum metric {
#define COUNTER(id, name, help) METRIC_COUNTED_##id,
#define METRIC(id, name, type, labels, help) METRIC_##id,
#include "obs/metrics.def"
	METRIC_COUNT
};

struct metric_row {
	const char *name;   /* as exported: with _total for a counter, _info for an info */
	const char *type;   /* gauge, counter, histogram or info */
	const char *labels; /* separated by commas; empty: none */
	const char *help;
};
struct metric_row metric_get(enum metric metric);

#define METRIC_LABELS_MAX 6

/* The owner sets out and is_open; the rest is zero. */
struct metric_writer {
	struct buf *out;
	bool is_open; /* OpenMetrics format */
	enum metric metric;
};

/* Writes # HELP and # TYPE of a metric; its samples follow. */
void metric_begin(struct metric_writer *writer, enum metric metric);
/*
 * Writes a sample of the current metric. `values` are the values of its labels in the order of the
 * row; NULL if it has none. A label with an empty value is left out, which means the same. The
 * values are foreign text: invisible characters in them are written as \u{NUMBER}.
 */
void metric_put(struct metric_writer *writer, const struct slice *values, uint64_t value);
/* Like metric_put, for milliseconds, written in seconds. */
void metric_put_ms(struct metric_writer *writer, const struct slice *values, uint64_t ms);
/* Writes all samples of a histogram. */
void metric_put_histogram(struct metric_writer *writer, const struct slice *values,
			  const struct latency_histogram *histogram);
/* Ends the output, after the last sample. */
void metric_end(struct metric_writer *writer);
