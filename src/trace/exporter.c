/* SPDX-License-Identifier: Apache-2.0 */
/* Batches in the order of their spans; the first is the one that is under way, if one is, and takes no more then. */
#include "trace/exporter.h"

#include <stdlib.h>
#include <string.h>

#include "auth/document.h"
#include "auth/fetch_client.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/write.h"
#include "obs/counters.h"
#include "obs/log.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define PAUSE_MIN_MS 1000 /* after the first failure; doubles */
#define PAUSE_STEP_MS 1000
#define LOST_QUIET_MS 60000
#define WORDS_BYTES_MAX 200
#define INSTANCE_BYTES 16

static const char scope[] =
	"]},\"scopeSpans\":[{\"scope\":{\"name\":\"mcpgated\",\"version\":\"" PACKAGE_VERSION
	"\"},\"spans\":[";
static const char end[] = "]}]}]}";

static const struct slice no_words = { NULL, 0 };

struct batch {
	struct list link;
	struct buf spans; /* with commas */
	size_t count;
	unsigned int tries;
};

struct exporter {
	struct loop *loop;
	struct fetch_client *client; /* NULL: nothing is exported */
	uint64_t sample_percent;
	uint64_t interval_ms;
	struct buf head; /* of each body: whose spans they are */
	char instance[INSTANCE_BYTES * 2 + 1];
	struct list batches;
	size_t count; /* of the spans in them, as is the next */
	size_t bytes;
	struct inquiry inquiry;
	struct timer timer;
	uint64_t not_before_ms;
	uint64_t lost;
	uint64_t lost_told_ms; /* 0: not yet */
	bool is_failing;       /* it has been logged that the collector takes none */
	bool is_finishing;
};

/* ---- what is lost ---- */

/* said: the collector's own words, or empty */
static void note_lost(struct exporter *exporter, size_t count, const char *why, struct slice said)
{
	uint64_t now_ms = clock_now_ms();

	if (count == 0)
		return;
	exporter->lost += count;
	counter_add_many(COUNTER_SPANS_LOST, count);
	if (exporter->lost_told_ms != 0 && now_ms - exporter->lost_told_ms < LOST_QUIET_MS)
		return;
	exporter->lost_told_ms = now_ms;
	LOG(SPANS_LOST, LOG_INT("spans", exporter->lost), LOG_STR("why", why),
	    LOG_SLICE("said", said));
}

static struct batch *first_of(const struct exporter *exporter)
{
	return list_is_empty(&exporter->batches) ?
		       NULL :
		       container_of(exporter->batches.next, struct batch, link);
}

static void batch_end(struct exporter *exporter, struct batch *batch)
{
	CHECK(exporter->count >= batch->count && exporter->bytes >= batch->spans.len);
	exporter->count -= batch->count;
	exporter->bytes -= batch->spans.len;
	list_remove(&batch->link);
	buf_fini(&batch->spans);
	free(batch);
}

static void lose_all(struct exporter *exporter, const char *why)
{
	struct batch *batch;

	note_lost(exporter, exporter->count, why, no_words);
	while ((batch = first_of(exporter)) != NULL)
		batch_end(exporter, batch);
}

/* ---- the collector's answer ---- */

/* The beginning of a text, in one line. The log shows what is not seen as an escape. */
static void append_words(struct buf *out, struct slice text)
{
	bool is_apart = false;

	for (size_t i = 0; i < text.n; i++) {
		if (strchr(" \t\r\n", text.p[i]) != NULL) {
			is_apart = out->len > 0;
			continue;
		}
		/* Whole characters alone. */
		if (out->len + 2 > WORDS_BYTES_MAX - 3 && ((unsigned char)text.p[i] & 0xC0) != 0x80)
			break;
		if (is_apart)
			buf_append_char(out, ' ');
		is_apart = false;
		buf_append_char(out, text.p[i]);
	}
}

/* What a collector says of its refusal: the message of a Status, that of a partial success; else whatever it has answered. */
static void read_words(struct slice body, struct buf *words)
{
	json_auto_t *document = document_parse(body, NULL);
	const json_t *partial = json_object_get(document, "partialSuccess");
	const json_t *message = partial != NULL ? json_object_get(partial, "errorMessage") :
						  json_object_get(document, "message");

	if (json_is_string(message))
		append_words(words,
			     slice_of(json_string_value(message), json_string_length(message)));
	else if (partial == NULL)
		append_words(words, body);
}

/* How many of the spans it says it does not take; what cannot be understood says nothing. */
static size_t read_rejected(struct slice body, size_t count)
{
	json_auto_t *document = document_parse(body, NULL);
	const json_t *number =
		json_object_get(json_object_get(document, "partialSuccess"), "rejectedSpans");
	long long rejected = json_is_string(number) ? atoll(json_string_value(number)) :
						      json_integer_value(number);

	if (rejected <= 0)
		return 0;
	return (unsigned long long)rejected < count ? (size_t)rejected : count;
}

static void on_taken(struct exporter *exporter, struct batch *batch,
		     const struct fetch_answer *answer)
{
	size_t rejected = answer->body.n > 0 ? read_rejected(answer->body, batch->count) : 0;
	at_end(buf_fini) struct buf words = { 0 };

	if (rejected > 0)
		read_words(answer->body, &words);
	if (exporter->is_failing)
		LOG(SPANS_TAKEN, LOG_INT("lost", exporter->lost));
	exporter->is_failing = false;
	counter_add_many(COUNTER_SPANS_EXPORTED, batch->count - rejected);
	note_lost(exporter, rejected, "the collector has rejected them", buf_slice(&words));
	batch_end(exporter, batch);
}

/* What may be otherwise another time. OTLP, Retryable Response Codes */
static bool is_retryable(const struct fetch_answer *answer)
{
	switch (answer->status) {
	case 0: /* no whole answer */
	case 429:
	case 502:
	case 503:
	case 504:
		return true;
	default:
		return false;
	}
}

/* Longer and longer, and not all gateways at once; no shorter than it says. */
static uint64_t find_pause(const struct batch *batch, uint32_t retry_after_s)
{
	uint64_t pause_ms = (uint64_t)PAUSE_MIN_MS << (batch->tries - 1);

	CHECK(batch->tries > 0 && batch->tries <= EXPORTER_TRIES_MAX);
	pause_ms += random_below(pause_ms / 2);
	if (pause_ms < retry_after_s * 1000ull)
		pause_ms = retry_after_s * 1000ull;
	return pause_ms < EXPORTER_PAUSE_MAX_MS ? pause_ms : EXPORTER_PAUSE_MAX_MS;
}

static void on_not_taken(struct exporter *exporter, struct batch *batch,
			 const struct fetch_answer *answer)
{
	at_end(buf_fini) struct buf words = { 0 };

	read_words(answer->body, &words);
	batch->tries++;
	if (!exporter->is_failing)
		LOG(SPANS_NOT_TAKEN, LOG_INT("status", answer->status),
		    LOG_STR("error", answer->error), LOG_SLICE("said", buf_slice(&words)));
	exporter->is_failing = true;
	if (exporter->is_finishing) {
		lose_all(exporter, "the collector does not take them, and the daemon stops");
	} else if (!is_retryable(answer)) {
		note_lost(exporter, batch->count, "the collector does not take them",
			  buf_slice(&words));
		batch_end(exporter, batch);
	} else if (batch->tries == EXPORTER_TRIES_MAX) {
		exporter->not_before_ms = clock_now_ms() + find_pause(batch, answer->retry_after_s);
		note_lost(exporter, batch->count, "the collector does not take them for too long",
			  buf_slice(&words));
		batch_end(exporter, batch);
	} else {
		exporter->not_before_ms = clock_now_ms() + find_pause(batch, answer->retry_after_s);
	}
}

/* ---- sending ---- */

static bool is_full(const struct batch *batch)
{
	return batch->count == EXPORTER_BATCH_SPANS || batch->spans.len >= EXPORTER_BATCH_BYTES;
}

static void exporter_send(struct exporter *exporter)
{
	const struct batch *batch = first_of(exporter);
	at_end(buf_fini) struct buf body = { 0 };

	CHECK(batch != NULL && exporter->client != NULL && !inquiry_is_running(&exporter->inquiry));
	buf_append_slice(&body, buf_slice(&exporter->head));
	buf_append_slice(&body, buf_slice(&batch->spans));
	buf_append(&body, end, sizeof(end) - 1);
	inquiry_start_spans(exporter->client, &exporter->inquiry, buf_slice(&body));
}

/* The next one goes when it is full, when its time has come, or when nothing more will come. */
static void exporter_go_on(struct exporter *exporter)
{
	const struct batch *batch = first_of(exporter);
	uint64_t now_ms = clock_now_ms();

	if (batch == NULL || exporter->client == NULL || inquiry_is_running(&exporter->inquiry))
		return;
	if (exporter->is_finishing ||
	    (now_ms >= exporter->not_before_ms && (is_full(batch) || batch->tries > 0)))
		exporter_send(exporter);
	else if (now_ms < exporter->not_before_ms)
		timer_start(exporter->loop, &exporter->timer, PAUSE_STEP_MS);
	else if (!timer_is_running(&exporter->timer))
		timer_start(exporter->loop, &exporter->timer, exporter->interval_ms);
}

static void exporter_on_due(struct timer *timer)
{
	struct exporter *exporter = container_of(timer, struct exporter, timer);

	if (first_of(exporter) != NULL && exporter->client != NULL &&
	    !inquiry_is_running(&exporter->inquiry) && clock_now_ms() >= exporter->not_before_ms)
		exporter_send(exporter);
	else
		exporter_go_on(exporter);
}

static void exporter_on_answer(struct inquiry *inquiry, const struct fetch_answer *answer)
{
	struct exporter *exporter = container_of(inquiry, struct exporter, inquiry);
	struct batch *batch = first_of(exporter);

	CHECK(batch != NULL);
	if (answer->status >= 200 && answer->status < 300)
		on_taken(exporter, batch, answer);
	else
		on_not_taken(exporter, batch, answer);
	exporter_go_on(exporter);
}

/* ---- adding ---- */

static struct batch *open_batch(struct exporter *exporter)
{
	bool is_first_open = !inquiry_is_running(&exporter->inquiry);
	struct batch *batch = NULL;

	if (!list_is_empty(&exporter->batches))
		batch = container_of(exporter->batches.prev, struct batch, link);
	/* What has been tried once stays as it is. */
	if (batch != NULL && !is_full(batch) && batch->tries == 0 &&
	    (is_first_open || batch != first_of(exporter)))
		return batch;
	batch = mem_zalloc(sizeof(*batch));
	list_append(&exporter->batches, &batch->link);
	return batch;
}

void exporter_add(struct exporter *exporter, struct slice span)
{
	struct batch *batch;
	size_t before;

	CHECK(span.n > 0);
	if (exporter->client == NULL || exporter->count >= EXPORTER_SPANS_MAX ||
	    exporter->bytes + span.n > EXPORTER_BYTES_MAX) {
		note_lost(exporter, 1, "more wait than may", no_words);
		return;
	}
	batch = open_batch(exporter);
	before = batch->spans.len;
	if (batch->count > 0)
		buf_append_char(&batch->spans, ',');
	buf_append_slice(&batch->spans, span);
	batch->count++;
	exporter->count++;
	exporter->bytes += batch->spans.len - before;
	exporter_go_on(exporter);
}

bool exporter_samples(const struct exporter *exporter)
{
	return exporter->client != NULL && random_below(100) < exporter->sample_percent;
}

/* ---- whole ---- */

static void make_head(struct exporter *exporter, const char *service_name)
{
	struct buf *head = &exporter->head;

	head->len = 0;
	buf_append_str(head, "{\"resourceSpans\":[{\"resource\":{\"attributes\":["
			     "{\"key\":\"service.name\",\"value\":{\"stringValue\":");
	write_string(head, slice_str(service_name));
	buf_append_str(
		head,
		"}},{\"key\":\"service.version\",\"value\":{\"stringValue\":\"" PACKAGE_VERSION
		"\"}},{\"key\":\"service.instance.id\",\"value\":{\"stringValue\":\"");
	buf_append_str(head, exporter->instance);
	buf_append_str(head, "\"}}");
	buf_append(head, scope, sizeof(scope) - 1);
}

void exporter_use(struct exporter *exporter, struct fetch_client *client,
		  const struct exporter_conf *conf)
{
	struct batch *batch;

	if (client != exporter->client) {
		inquiry_cancel(&exporter->inquiry);
		timer_stop(&exporter->timer);
		exporter->not_before_ms = 0;
		exporter->is_failing = false;
		if ((batch = first_of(exporter)) != NULL)
			batch->tries = 0;
	}
	exporter->client = client;
	if (client == NULL) {
		lose_all(exporter, "traces.otlp is not configured any more");
		return;
	}
	CHECK(conf->service_name != NULL && conf->interval_ms > 0);
	exporter->sample_percent = conf->sample_percent;
	exporter->interval_ms = conf->interval_ms;
	make_head(exporter, conf->service_name);
	exporter_go_on(exporter);
}

void exporter_finish(struct exporter *exporter)
{
	exporter->is_finishing = true;
	exporter_go_on(exporter);
}

bool exporter_is_failing(const struct exporter *exporter)
{
	return exporter->is_failing;
}

bool exporter_is_busy(const struct exporter *exporter)
{
	return exporter->count > 0 && exporter->client != NULL;
}

struct exporter *exporter_new(struct loop *loop)
{
	struct exporter *exporter = mem_zalloc(sizeof(*exporter));
	unsigned char bytes[INSTANCE_BYTES];

	exporter->loop = loop;
	list_init(&exporter->batches);
	timer_init(&exporter->timer, exporter_on_due);
	exporter->inquiry.on_done = exporter_on_answer;
	random_bytes(bytes, sizeof(bytes));
	text_to_hex(bytes, sizeof(bytes), exporter->instance);
	return exporter;
}

void exporter_free(struct exporter **exporter)
{
	struct exporter *e = *exporter;
	struct batch *batch;

	if (e == NULL)
		return;
	inquiry_cancel(&e->inquiry);
	timer_stop(&e->timer);
	while ((batch = first_of(e)) != NULL)
		batch_end(e, batch);
	buf_fini(&e->head);
	free(e);
	*exporter = NULL;
}
