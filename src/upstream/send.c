/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/send.h"

#include "base/check.h"
#include "base/text.h"
#include "jsonrpc/write.h"
#include "mcp/level.h"
#include "mcp/revision.h"
#include "upstream/modern.h"
#include "upstream/upstream.h"
#include "upstream/upstream_ops.h"

static const struct slice none = { NULL, 0 };

/* ---- edits ---- */

/* Keeps the edits ordered by position. */
void send_edits_add(struct send_edits *edits, struct slice span, struct slice with)
{
	size_t at = edits->count++;

	CHECK(at < SEND_EDITS_MAX);
	for (; at > 0 && edits->items[at - 1].span.p > span.p; at--)
		edits->items[at] = edits->items[at - 1];
	edits->items[at] = (struct splice_edit){ span, with };
}

struct meta_rebuild {
	struct buf *out;
	struct slice token; /* the new progressToken; empty: it stays as it is */
};

/*
 * Members reserved to the modern era are left out: some older servers stop responding when they see
 * one. Those of trace context and of vendors stay. BACK-MSG-06.
 */
static int meta_add_member(struct slice name, struct json value, void *arg)
{
	const struct meta_rebuild *rebuild = arg;
	bool is_token = rebuild->token.n > 0 && slice_is_equal(name, SLICE_LIT("progressToken"));

	if (modern_is_reserved(name))
		return 0;
	buf_append_char(rebuild->out, rebuild->out->len > 0 ? ',' : '{');
	buf_append_char(rebuild->out, '"');
	buf_append_slice(rebuild->out, name);
	buf_append_str(rebuild->out, "\":");
	buf_append_slice(rebuild->out, is_token ? rebuild->token : value.text);
	return 0;
}

/* Whether something may have to be left out: a quick test, which can say yes without need. */
static bool has_reserved(const struct envelope *env)
{
	static const struct slice prefix = SLICE(MODERN_META);

	if (!env->has_more_meta)
		return env->protocol_version.type != JSON_ABSENT ||
		       env->client_capabilities.type != JSON_ABSENT ||
		       env->client_info.type != JSON_ABSENT || env->log_level.type != JSON_ABSENT;
	return memmem(env->meta.text.p, env->meta.text.n, prefix.p, prefix.n) != NULL;
}

void send_edits_add_meta(struct send_edits *edits, const struct envelope *env, struct slice token)
{
	struct meta_rebuild rebuild = { .out = &edits->meta, .token = token };
	struct json own = env->progress_token;

	if (env->meta.type != JSON_OBJECT)
		return;
	if (!has_reserved(env)) {
		if (token.n > 0)
			send_edits_add(edits, own.text, token);
		return;
	}
	if (env->has_more_meta)
		scan_members(env->meta.text, meta_add_member, &rebuild);
	else if (own.type != JSON_ABSENT)
		(void)meta_add_member(SLICE_LIT("progressToken"), own, &rebuild);
	buf_append_str(&edits->meta, edits->meta.len > 0 ? "}" : "{}");
	send_edits_add(edits, env->meta.text, buf_slice(&edits->meta));
}

void send_edits_fini(struct send_edits *edits)
{
	buf_fini(&edits->meta);
}

/* ---- messages ---- */

static struct buf *begin_message(struct upstream *upstream)
{
	struct buf *message = &upstream->shared->scratch;

	CHECK(upstream->state != UPSTREAM_CLOSED);
	message->len = 0;
	return message;
}

static void end_message(struct upstream *upstream)
{
	upstream->ops->write(upstream, &upstream->shared->scratch);
}

/* It has no answer, but some servers write one. */
static void note_notification(struct upstream *upstream)
{
	upstream->notifications++;
	upstream->notified_after_id = upstream->last_id;
}

void send_message(struct upstream *upstream, const struct envelope *env,
		  const struct send_edits *edits)
{
	unsigned int flags = (env->has_line_break ? SPLICE_ONE_LINE : 0u) |
			     (env->has_separator ? SPLICE_ESCAPE_SEPARATORS : 0u);

	/*
	 * The id of a server's own request, which may contain a separator as well, goes back to it.
	 * BACK-FRAME-01
	 */
	for (size_t i = 0; i < edits->count; i++)
		if (slice_has_prefix(edits->items[i].with, SLICE_LIT("\"")) &&
		    text_plain_length(edits->items[i].with) < edits->items[i].with.n)
			flags |= SPLICE_ESCAPE_SEPARATORS;
	splice_append(begin_message(upstream), env->text, edits->items, edits->count, flags);
	end_message(upstream);
	if (env->kind == ENVELOPE_NOTIFICATION)
		note_notification(upstream);
}

static void send_written_request(struct upstream *upstream, uint64_t id, struct slice method,
				 struct slice params)
{
	char digits[20];

	write_call(begin_message(upstream), slice_of(digits, text_format_u64(id, digits)), method,
		   params);
	end_message(upstream);
}

void send_modern_request(struct upstream *upstream, uint64_t id, struct slice method,
			 struct slice params, const struct modern_request *request)
{
	struct buf written = { 0 };

	CHECK(upstream->era->is_modern);
	modern_append_params(&written, upstream->setup, params, request);
	send_written_request(upstream, id, method, buf_slice(&written));
	buf_fini(&written);
}

/* Whether env already says what `request` requires, except for spans that can be replaced. */
static bool is_passable(const struct envelope *env, const struct modern_request *request)
{
	struct slice level = request->level >= 0 ? level_name(request->level) : none;

	return request->is_modern && env->meta.type == JSON_OBJECT &&
	       slice_is_equal(scan_plain_string(env->protocol_version), revision_modern.name) &&
	       slice_is_equal(scan_plain_string(env->log_level), level) &&
	       (env->log_level.type != JSON_ABSENT) == (level.n > 0) &&
	       (env->progress_token.type != JSON_ABSENT) == (request->token.n > 0) &&
	       env->input_responses.text.n == request->input_responses.n &&
	       env->request_state.text.n == request->request_state.n;
}

void send_passed_request(struct upstream *upstream, uint64_t id, const struct envelope *env,
			 const struct modern_request *request)
{
	struct send_edits edits = { .count = 0 };
	char digits[20];

	CHECK(upstream->era->is_modern);
	if (!is_passable(env, request)) {
		send_modern_request(upstream, id, env->method, env->params.text, request);
		return;
	}
	send_edits_add(&edits, env->id.text, slice_of(digits, text_format_u64(id, digits)));
	if (request->token.n > 0)
		send_edits_add(&edits, env->progress_token.text, request->token);
	if (request->cursor.n > 0 && env->cursor.type != JSON_ABSENT)
		send_edits_add(&edits, env->cursor.text, request->cursor);
	if (request->task_id.n > 0 && env->task_id.type != JSON_ABSENT)
		send_edits_add(&edits, env->task_id.text, request->task_id);
	send_message(upstream, env, &edits);
}

void send_request(struct upstream *upstream, uint64_t id, struct slice method, struct slice params)
{
	static const struct modern_request own = { .level = -1 };

	if (upstream->era->is_modern)
		send_modern_request(upstream, id, method, params, &own);
	else
		send_written_request(upstream, id, method, params);
}

void send_subscription(struct upstream *upstream, uint64_t id, struct slice method,
		       struct slice uri)
{
	struct buf params = { 0 };

	buf_append_str(&params, "{\"uri\":\"");
	splice_append(&params, uri, NULL, 0, SPLICE_ESCAPE_SEPARATORS);
	buf_append_str(&params, "\"}");
	send_request(upstream, id, method, buf_slice(&params));
	buf_fini(&params);
}

/*
 * The client's initialize is passed on as it is, except for its id, its revision and members
 * reserved to the modern era.
 */
int send_initialize(struct upstream *upstream, uint64_t id)
{
	const struct upstream_setup *setup = upstream->setup;
	struct send_edits edits = { .count = 0 };
	struct buf version = { 0 };
	struct envelope env;
	struct error err;
	char digits[20];

	CHECK(upstream->state == UPSTREAM_HANDSHAKE && id != 0);
	if (scan_envelope(setup->initialize->text, &upstream->shared->limits, 0, &env, &err) < 0)
		return -1;
	buf_printf(&version, "\"%.*s\"", SLICE_ARG(setup->revision->name));
	send_edits_add(&edits, env.id.text, slice_of(digits, text_format_u64(id, digits)));
	send_edits_add(&edits, scan_member(env.params.text, SLICE_LIT("protocolVersion")).text,
		       buf_slice(&version));
	send_edits_add_meta(&edits, &env, none);
	send_message(upstream, &env, &edits);
	send_edits_fini(&edits);
	buf_fini(&version);
	return 0;
}

void send_initialized(struct upstream *upstream)
{
	write_call(begin_message(upstream), none, SLICE_LIT("notifications/initialized"), none);
	end_message(upstream);
	note_notification(upstream);
}

void send_cancelled(struct upstream *upstream, uint64_t id, struct slice reason)
{
	struct buf *message = begin_message(upstream);

	buf_append_str(
		message,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":");
	buf_append_u64(message, id);
	if (reason.n > 0) {
		buf_append_str(message, ",\"reason\":");
		buf_append_slice(message, reason);
	}
	buf_append_str(message, "}}");
	end_message(upstream);
	note_notification(upstream);
}

void send_given_up(struct upstream *upstream, uint64_t id, const char *why)
{
	struct buf reason = { 0 };

	write_string(&reason, slice_str(why));
	send_cancelled(upstream, id, buf_slice(&reason));
	buf_fini(&reason);
}

void send_result(struct upstream *upstream, struct slice id, struct slice result)
{
	write_result(begin_message(upstream), id, result);
	end_message(upstream);
}

void send_error(struct upstream *upstream, struct slice id, int code, struct slice message)
{
	write_error(begin_message(upstream), id, code, message, none);
	end_message(upstream);
}
