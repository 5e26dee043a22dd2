/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans on their way to the collector: gathered in batches, which the fetcher process delivers one
 * at a time (auth/fetch_client). Adding a span never blocks: what cannot be kept is dropped, and
 * counted. The content of a span is opaque here (span.h). OTLP/HTTP with JSON; SEC-70
 *
 *	waiting -> under way -> taken | lost | waiting again
 *
 * A batch waits again if the collector asks for it, or does not answer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "io/loop.h"

/* Limits of what waits, and of one batch. */
#define EXPORTER_SPANS_MAX 2048
#define EXPORTER_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define EXPORTER_BATCH_SPANS 512
#define EXPORTER_BATCH_BYTES ((size_t)512 * 1024)
/* A batch is dropped after this many attempts. */
#define EXPORTER_TRIES_MAX 5
/* The longest pause between two attempts, whatever Retry-After says. */
#define EXPORTER_PAUSE_MAX_MS 60000

struct fetch_client;

struct exporter_conf {
	uint64_t sample_percent; /* of the traces that begin here */
	uint64_t interval_ms;    /* the longest that a span waits for others */
	char *service_name;
};

struct exporter;

/* Exports nothing before exporter_use. */
struct exporter *exporter_new(struct loop *loop);
/* Drops what waits. Accepts NULL. */
void exporter_free(struct exporter **exporter);

/*
 * From now on exports spans, including those that wait, through this client, which is borrowed, as
 * configured by conf, which is copied. client NULL: stops exporting, and drops what waits.
 */
void exporter_use(struct exporter *exporter, struct fetch_client *client,
		  const struct exporter_conf *conf);
/* Whether to record a trace that begins now. */
bool exporter_samples(const struct exporter *exporter);
/* Adds a copy of one span, JSON text of an OTLP Span. */
void exporter_add(struct exporter *exporter, struct slice span);
/*
 * The process is about to exit: sends what waits now; what is not accepted at the first attempt is
 * lost.
 */
void exporter_finish(struct exporter *exporter);
/* Whether the collector has not taken what was sent last. */
bool exporter_is_failing(const struct exporter *exporter);
/* Whether anything is still to be delivered. */
bool exporter_is_busy(const struct exporter *exporter);
