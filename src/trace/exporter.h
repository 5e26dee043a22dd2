/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans on their way to the collector: gathered in batches, which the program that fetches takes there one at a time
 * (auth/fetch_client). Whoever adds one never waits: what cannot be kept is lost, and counted. What a span says it does
 * not know (span.h). OTLP/HTTP with JSON; SEC-70
 *
 *	waiting -> under way -> taken | lost, or waiting again: a collector that says so, or does not answer, is tried again
 */
#ifndef MCPGATED_TRACE_EXPORTER_H
#define MCPGATED_TRACE_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "io/loop.h"

/* Bounds of what waits, and of one batch. */
#define EXPORTER_SPANS_MAX 2048
#define EXPORTER_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define EXPORTER_BATCH_SPANS 512
#define EXPORTER_BATCH_BYTES ((size_t)512 * 1024)
/* A batch is given up after so many tries. */
#define EXPORTER_TRIES_MAX 5
/* The longest pause between two, whatever Retry-After says. */
#define EXPORTER_PAUSE_MAX_MS 60000

struct fetch_client;

struct exporter_conf {
	uint64_t sample_percent; /* of the traces that begin here */
	uint64_t interval_ms;    /* a span waits no longer for others */
	char *service_name;
};

struct exporter;

/* It exports nothing before exporter_use. */
struct exporter *exporter_new(struct loop *loop);
/* What waits is forgotten. Accepts NULL. */
void exporter_free(struct exporter **exporter);

/*
 * From now on spans go by this client, which is borrowed, as conf, which is copied, says; what waits goes by it, too. NULL:
 * nothing is exported any more, and what waits is lost.
 */
void exporter_use(struct exporter *exporter, struct fetch_client *client,
		  const struct exporter_conf *conf);
/* Whether a trace that begins now is to be recorded. */
bool exporter_samples(const struct exporter *exporter);
/* Takes a copy of one span, JSON text of a Span of OTLP. */
void exporter_add(struct exporter *exporter, struct slice span);
/* The process is about to end: what waits is sent now, and what is not taken at the first try is lost. */
void exporter_finish(struct exporter *exporter);
/* Whether something is still to be taken. */
bool exporter_is_busy(const struct exporter *exporter);

#endif
