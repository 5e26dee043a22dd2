/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes are written when they are said: at the end there is only to be added what the end
 * says.
 */
#include "trace/span.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "trace/exporter.h"

#define PARTS 2
/* Of OTLP: Span.SpanKind, Status.StatusCode, SpanFlags. */
#define KIND_SERVER 2
#define KIND_CLIENT 3
#define STATUS_ERROR 2
#define FLAG_SAMPLED 0x1
#define FLAG_KNOWS_IS_REMOTE 0x100
#define FLAG_IS_REMOTE 0x200

/* One of the two spans. */
struct half {
	bool is_ours; /* to be exported */
	char id[TRACE_SPAN_DIGITS + 1];
	uint64_t began_ns; /* of the monotonic clock; 0: not yet */
	struct buf attributes;
};

struct span {
	struct exporter *exporter;
	char trace_id[TRACE_ID_DIGITS + 1];
	char parent_id[TRACE_SPAN_DIGITS + 1]; /* of the first; empty: none */
	struct buf state;                      /* JSON text; empty: none */
	struct buf name;                       /* JSON text */
	uint64_t wall_ns;                      /* when the monotonic clock was at the next */
	uint64_t at_ns;
	struct half halves[PARTS];
};

/* ---- the beginning ---- */

static void make_ids(struct span *span, const struct trace_parent *parent)
{
	unsigned char bytes[TRACE_ID_DIGITS / 2 + TRACE_SPAN_DIGITS];
	unsigned char *of_spans = bytes + TRACE_ID_DIGITS / 2;

	random_bytes(bytes, sizeof(bytes));
	/* None of them may be nothing but zeros. */
	bytes[0] |= 1;
	of_spans[0] |= 1;
	of_spans[TRACE_SPAN_DIGITS / 2] |= 1;
	text_to_hex(bytes, TRACE_ID_DIGITS / 2, span->trace_id);
	for (int i = 0; i < PARTS; i++)
		text_to_hex(of_spans + i * TRACE_SPAN_DIGITS / 2, TRACE_SPAN_DIGITS / 2,
			    span->halves[i].id);
	if (parent == NULL)
		return;
	CHECK(parent->trace_id.n == TRACE_ID_DIGITS && parent->span_id.n == TRACE_SPAN_DIGITS);
	memcpy(span->trace_id, parent->trace_id.p, TRACE_ID_DIGITS);
	memcpy(span->parent_id, parent->span_id.p, TRACE_SPAN_DIGITS);
}

struct span *span_new(struct exporter *exporter, const struct trace_parent *parent,
		      struct slice state)
{
	struct span *span;

	if (parent != NULL ? !parent->is_sampled : !exporter_samples(exporter))
		return NULL;
	span = mem_zalloc(sizeof(*span));
	span->exporter = exporter;
	make_ids(span, parent);
	if (parent != NULL && state.n > 0)
		write_string(&span->state, state);
	span->wall_ns = clock_wall_ns();
	span->at_ns = clock_monotonic_ns();
	span->halves[SPAN_GATEWAY].is_ours = span->halves[SPAN_PROCESS].is_ours = true;
	span->halves[SPAN_GATEWAY].began_ns = span->at_ns;
	return span;
}

/* ---- what is said ---- */

static struct slice cut(struct slice text)
{
	return slice_of(text.p, text.n < SPAN_TEXT_BYTES_MAX ? text.n : SPAN_TEXT_BYTES_MAX);
}

void span_set_name(struct span *span, struct slice method, struct slice target)
{
	at_end(buf_fini) struct buf text = { 0 };

	buf_append_slice(&text, cut(method));
	if (target.n > 0) {
		buf_append_char(&text, ' ');
		buf_append_slice(&text, cut(target));
	}
	span->name.len = 0;
	write_string(&span->name, buf_slice(&text));
}

static void half_say(struct half *half, const char *key, struct slice value)
{
	buf_printf(&half->attributes, "%s{\"key\":\"%s\",\"value\":{\"stringValue\":",
		   half->attributes.len > 0 ? "," : "", key);
	write_string(&half->attributes, cut(value));
	buf_append_str(&half->attributes, "}}");
}

void span_say(struct span *span, enum span_part part, const char *key, struct slice value)
{
	if (value.n == 0)
		return;
	for (int i = 0; i < PARTS; i++)
		if (part == SPAN_BOTH || part == (enum span_part)i)
			half_say(&span->halves[i], key, value);
}

struct slice span_trace_id(const struct span *span)
{
	return slice_of(span->trace_id, TRACE_ID_DIGITS);
}

void span_format_parent(const struct span *span, char text_r[TRACE_PARENT_DIGITS + 1])
{
	int n = snprintf(text_r, TRACE_PARENT_DIGITS + 1, "00-%s-%s-01", span->trace_id,
			 span->halves[SPAN_PROCESS].id);

	CHECK(n == TRACE_PARENT_DIGITS);
}

void span_note_sent(struct span *span)
{
	struct half *half = &span->halves[SPAN_PROCESS];

	if (half->began_ns == 0)
		half->began_ns = clock_monotonic_ns();
}

struct span *span_hand_on(struct span *span)
{
	struct half *half = &span->halves[SPAN_PROCESS];
	struct span *other = mem_alloc(sizeof(*other));

	CHECK(half->is_ours && half->began_ns == 0);
	*other = *span;
	other->halves[SPAN_GATEWAY].is_ours = false;
	other->halves[SPAN_GATEWAY].attributes = (struct buf){ 0 };
	other->name = other->state = (struct buf){ 0 };
	buf_append_slice(&other->name, buf_slice(&span->name));
	buf_append_slice(&other->state, buf_slice(&span->state));
	half->is_ours = false;
	half->attributes = (struct buf){ 0 };
	return other;
}

/* ---- the end ---- */

/* The wall clock may have jumped since: what counts is how long it took. REL-49 */
static void put_time(struct buf *out, const struct span *span, const char *key, uint64_t at_ns)
{
	CHECK(at_ns >= span->at_ns);
	buf_printf(out, ",\"%s\":\"%" PRIu64 "\"", key, span->wall_ns + (at_ns - span->at_ns));
}

static void put_half(struct buf *out, const struct span *span, enum span_part part,
		     struct slice error, uint64_t now_ns)
{
	const struct half *half = &span->halves[part];
	bool is_first = part == SPAN_GATEWAY;
	const char *parent_id = is_first ? span->parent_id : span->halves[SPAN_GATEWAY].id;
	unsigned int flags = FLAG_SAMPLED | FLAG_KNOWS_IS_REMOTE;

	buf_printf(out, "{\"traceId\":\"%s\",\"spanId\":\"%s\"", span->trace_id, half->id);
	if (parent_id[0] != '\0')
		buf_printf(out, ",\"parentSpanId\":\"%s\"", parent_id);
	if (span->state.len > 0) {
		buf_append_str(out, ",\"traceState\":");
		buf_append_slice(out, buf_slice(&span->state));
	}
	if (is_first && parent_id[0] != '\0')
		flags |= FLAG_IS_REMOTE;
	buf_printf(out, ",\"flags\":%u,\"kind\":%d,\"name\":", flags,
		   is_first ? KIND_SERVER : KIND_CLIENT);
	buf_append_slice(out, buf_slice(&span->name));
	put_time(out, span, "startTimeUnixNano", half->began_ns);
	put_time(out, span, "endTimeUnixNano", now_ns);
	buf_append_str(out, ",\"attributes\":[");
	buf_append_slice(out, buf_slice(&half->attributes));
	buf_append_char(out, ']');
	if (error.n > 0)
		buf_printf(out, ",\"status\":{\"code\":%d}", STATUS_ERROR);
	buf_append_char(out, '}');
}

void span_end(struct span **span, struct slice error)
{
	struct span *s = *span;
	at_end(buf_fini) struct buf text = { 0 };
	uint64_t now_ns;

	if (s == NULL)
		return;
	CHECK(s->name.len > 0);
	now_ns = clock_monotonic_ns();
	span_say(s, SPAN_BOTH, "error.type", error);
	for (int i = 0; i < PARTS; i++) {
		if (s->halves[i].is_ours && s->halves[i].began_ns > 0) {
			text.len = 0;
			put_half(&text, s, (enum span_part)i, error, now_ns);
			exporter_add(s->exporter, buf_slice(&text));
		}
		buf_fini(&s->halves[i].attributes);
	}
	buf_fini(&s->name);
	buf_fini(&s->state);
	free(s);
	*span = NULL;
}

/* ---- trace message ---- */

static const struct slice parent_name = SLICE("traceparent"), state_name = SLICE("tracestate");

bool trace_message_add(struct buf *out, const struct envelope *env, const char *members)
{
	if (env->kind != ENVELOPE_REQUEST || slice_is_equal(env->method, SLICE_LIT("initialize")))
		return false;
	if (env->meta.type == JSON_OBJECT ?
		    scan_member(env->meta.text, parent_name).type != JSON_ABSENT ||
			    scan_member(env->meta.text, state_name).type != JSON_ABSENT :
		    env->meta.type != JSON_ABSENT ||
			    (env->params.type != JSON_OBJECT && env->params.type != JSON_ABSENT))
		return false;
	write_with_meta(out, env, members);
	return true;
}

bool trace_message_set_parent(struct buf *out, const struct envelope *env, const char *parent)
{
	struct json there = { .type = JSON_ABSENT };
	struct splice_edit edit;
	at_end(buf_fini) struct buf members = { 0 };
	bool is_set;

	if (env->has_more_meta)
		there = scan_member(env->meta.text, parent_name);
	if (there.type != JSON_ABSENT) {
		buf_printf(&members, "\"%s\"", parent);
		edit = (struct splice_edit){ there.text, buf_slice(&members) };
		splice_append(out, env->text, &edit, 1, 0);
		is_set = true;
	} else {
		buf_printf(&members, "\"traceparent\":\"%s\"", parent);
		is_set = trace_message_add(out, env, buf_terminate(&members));
	}
	return is_set;
}
