/* SPDX-License-Identifier: Apache-2.0 */
#include "obs/metric.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/unicode.h"
#include "obs/latency_histogram.h"

#define TYPE_GAUGE "gauge"
#define TYPE_COUNTER "counter"
#define TYPE_HISTOGRAM "histogram"
#define TYPE_INFO "info"

static const struct metric_row rows[] = {
#define COUNTER(id, text, help) \
	[METRIC_COUNTED_##id] = { "mcpgated_" text "_total", TYPE_COUNTER, "", help },
#define METRIC(id, name, type, labels, help) [METRIC_##id] = { name, TYPE_##type, labels, help },
#include "obs/metrics.def"
};

struct metric_row metric_get(enum metric metric)
{
	CHECK(metric < METRIC_COUNT);
	return rows[metric];
}

/* ---- metadata lines ---- */

/* The name of the metric family: OpenMetrics omits the suffix of the samples. */
static struct slice family_of(const struct metric_writer *writer, const struct metric_row *row)
{
	static const struct slice total = SLICE("_total"), info = SLICE("_info");
	struct slice name = slice_str(row->name);
	struct slice end = strcmp(row->type, TYPE_COUNTER) == 0 ? total : info;

	if (!writer->is_open ||
	    (strcmp(row->type, TYPE_COUNTER) != 0 && strcmp(row->type, TYPE_INFO) != 0))
		return name;
	CHECK(name.n > end.n && memcmp(name.p + name.n - end.n, end.p, end.n) == 0);
	return slice_of(name.p, name.n - end.n);
}

void metric_begin(struct metric_writer *writer, enum metric metric)
{
	const struct metric_row *row = &rows[metric];
	struct slice family = family_of(writer, row);
	bool is_gauge = !writer->is_open && strcmp(row->type, TYPE_INFO) == 0;

	CHECK(metric < METRIC_COUNT);
	writer->metric = metric;
	buf_printf(writer->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", SLICE_ARG(family), row->help,
		   SLICE_ARG(family), is_gauge ? TYPE_GAUGE : row->type);
}

void metric_end(struct metric_writer *writer)
{
	if (writer->is_open)
		buf_append_str(writer->out, "# EOF\n");
}

/* ---- samples ---- */

/* Length of the prefix that needs no escaping, usually the whole text. */
static size_t plain_length(struct slice text)
{
	size_t n = text_plain_length(text);
	const char *quote = n > 0 ? memchr(text.p, '"', n) : NULL;

	return quote != NULL ? (size_t)(quote - text.p) : n;
}

/* The backslashes of escaped invisible characters are part of the value, so they are doubled. */
static void append_value(struct buf *out, struct slice text)
{
	while (text.n > 0) {
		size_t plain = plain_length(text);
		size_t n = plain > 0 ? plain : text_utf8_length(text);
		uint32_t code = n > 0 && plain == 0 ? unicode_decode(slice_of(text.p, n)) : 0;

		if (plain > 0)
			buf_append(out, text.p, plain);
		else if (n == 0)
			buf_append_str(out, "\xEF\xBF\xBD");
		else if (code == '"' || code == '\\')
			buf_printf(out, "\\%c", (int)code);
		else if (unicode_is_hidden(code))
			buf_printf(out, "\\\\u{%x}", code);
		else
			buf_append(out, text.p, n);
		n = n > 0 ? n : 1;
		text = slice_of(text.p + n, text.n - n);
	}
}

static void append_label(struct buf *out, bool *is_first, struct slice name, struct slice value)
{
	if (value.n == 0)
		return;
	buf_append_char(out, *is_first ? '{' : ',');
	buf_append_slice(out, name);
	buf_append_str(out, "=\"");
	append_value(out, value);
	buf_append_char(out, '"');
	*is_first = false;
}

/*
 * For a histogram: `end` is the suffix of the name, `le` the bucket bound; otherwise "" and NULL.
 */
static void begin_sample(struct metric_writer *writer, const char *end, const struct slice *values,
			 const char *le)
{
	const struct metric_row *row = &rows[writer->metric];
	struct slice names = slice_str(row->labels);
	bool is_first = true;

	buf_append_str(writer->out, row->name);
	buf_append_str(writer->out, end);
	for (size_t i = 0; names.n > 0; i++) {
		struct slice name = slice_cut(&names, ',');

		CHECK(i < METRIC_LABELS_MAX && values != NULL);
		append_label(writer->out, &is_first, name, values[i]);
	}
	if (le != NULL)
		append_label(writer->out, &is_first, SLICE_LIT("le"), slice_str(le));
	buf_append_str(writer->out, is_first ? " " : "} ");
}

static void append_seconds(struct buf *out, uint64_t ms)
{
	buf_printf(out, "%llu.%03u", (unsigned long long)(ms / 1000), (unsigned int)(ms % 1000));
}

static void put_number(struct metric_writer *writer, const char *end, const struct slice *values,
		       const char *le, uint64_t value)
{
	begin_sample(writer, end, values, le);
	buf_append_u64(writer->out, value);
	buf_append_char(writer->out, '\n');
}

void metric_put(struct metric_writer *writer, const struct slice *values, uint64_t value)
{
	put_number(writer, "", values, NULL, value);
}

void metric_put_ms(struct metric_writer *writer, const struct slice *values, uint64_t ms)
{
	begin_sample(writer, "", values, NULL);
	append_seconds(writer->out, ms);
	buf_append_char(writer->out, '\n');
}

void metric_put_histogram(struct metric_writer *writer, const struct slice *values,
			  const struct latency_histogram *histogram)
{
	uint64_t sum = 0;

	CHECK(strcmp(rows[writer->metric].type, TYPE_HISTOGRAM) == 0);
	for (size_t i = 0; i < LATENCY_HISTOGRAM_BUCKETS; i++) {
		uint64_t bound_ms = latency_histogram_bound_ms(i);
		char le[32] = "+Inf";

		sum += histogram->buckets[i];
		if (bound_ms != UINT64_MAX)
			snprintf(le, sizeof(le), "%d.%03d", (int)(bound_ms / 1000),
				 (int)(bound_ms % 1000));
		put_number(writer, "_bucket", values, le, sum);
	}
	CHECK(sum == histogram->count);
	begin_sample(writer, "_sum", values, NULL);
	append_seconds(writer->out, histogram->sum_ms);
	buf_append_char(writer->out, '\n');
	put_number(writer, "_count", values, NULL, sum);
}
