/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/send.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/level.h"
#include "mcp/revision.h"
#include "obs/log.h"
#include "process/server.h"
#include "session/principal.h"
#include "upstream/upstream.h"
#include "upstream/upstream_ops.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define VERSIONS_MAX 64

static const struct slice none = { NULL, 0 };

/* ---- edits ---- */

/* Whether this member of _meta has a meaning in the modern era, or is ours alone to write. */
static bool is_reserved(struct slice name)
{
	static const struct slice names[] = {
		SLICE(MODERN_META "protocolVersion"), SLICE(MODERN_META "clientCapabilities"),
		SLICE(MODERN_META "clientInfo"),      SLICE(MODERN_META "logLevel"),
		SLICE(MODERN_META "subscriptionId"),  SLICE(SCAN_CALLER_META),
	};

	return slices_has((struct slices){ names, ARRAY_LEN(names) }, name);
}

/* Keeps the edits ordered by position. */
void send_edits_add(struct send_edits *edits, struct slice span, struct slice with)
{
	size_t at = edits->count++;

	CHECK(at < SEND_EDITS_MAX);
	for (; at > 0 && edits->items[at - 1].span.p > span.p; at--)
		edits->items[at] = edits->items[at - 1];
	edits->items[at] = (struct splice_edit){ span, with };
}

/* Whether something may have to be left out: a quick test, which can say yes without need. */
static bool has_reserved(const struct envelope *env)
{
	static const struct slice prefix = SLICE(MODERN_META);

	if (env->asserted_caller.type != JSON_ABSENT)
		return true;
	if (!env->has_more_meta)
		return env->protocol_version.type != JSON_ABSENT ||
		       env->client_capabilities.type != JSON_ABSENT ||
		       env->client_info.type != JSON_ABSENT || env->log_level.type != JSON_ABSENT;
	return memmem(env->meta.text.p, env->meta.text.n, prefix.p, prefix.n) != NULL;
}

/*
 * Members reserved to the modern era are left out: some older servers stop responding when they see
 * one. So is what only we may say. Those of trace context and of vendors stay. BACK-MSG-06, -09.
 */
void send_edits_add_meta(struct send_edits *edits, const struct envelope *env, struct slice token)
{
	static const struct slice progress_token = SLICE("progressToken");
	struct json own = env->progress_token;

	if (env->meta.type != JSON_OBJECT)
		return;
	if (!has_reserved(env)) {
		if (token.n > 0)
			send_edits_add(edits, own.text, token);
		return;
	}
	buf_append_char(&edits->meta, '{');
	if (!env->has_more_meta && own.type != JSON_ABSENT)
		write_member(&edits->meta, progress_token, token.n > 0 ? token : own.text);
	SCAN_MEMBERS(member, env->has_more_meta ? env->meta.text : slice_of(NULL, 0))
		if (!is_reserved(member.name))
			write_member(&edits->meta, member.name,
				     token.n > 0 && slice_is_equal(member.name, progress_token) ?
					     token :
					     member.value.text);
	buf_append_char(&edits->meta, '}');
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
	at_end(buf_fini) struct buf written = { 0 };

	CHECK(upstream->era->is_modern);
	modern_append_params(&written, upstream->setup, params, request);
	send_written_request(upstream, id, method, buf_slice(&written));
}

/* Whether env already says what `request` requires, except for spans that can be replaced. */
static bool is_passable(const struct envelope *env, const struct modern_request *request)
{
	struct slice level = request->level >= 0 ? level_name(request->level) : none;

	return request->is_modern && env->meta.type == JSON_OBJECT &&
	       env->asserted_caller.type == JSON_ABSENT &&
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
	at_end(buf_fini) struct buf params = { 0 };

	buf_append_str(&params, "{\"uri\":\"");
	splice_append(&params, uri, NULL, 0, SPLICE_ESCAPE_SEPARATORS);
	buf_append_str(&params, "\"}");
	send_request(upstream, id, method, buf_slice(&params));
}

/*
 * The client's initialize is passed on as it is, except for its id, its revision and members
 * reserved to the modern era.
 */
int send_initialize(struct upstream *upstream, uint64_t id)
{
	const struct upstream_setup *setup = upstream->setup;
	at_end(send_edits_fini) struct send_edits edits = { .count = 0 };
	at_end(buf_fini) struct buf version = { 0 };
	struct envelope env;
	char digits[20];

	CHECK(upstream->state == UPSTREAM_HANDSHAKE && id != 0);
	if (scan_envelope(setup->initialize->text, &upstream->shared->limits, 0, &env, NULL) < 0)
		return -1;
	buf_printf(&version, "\"%.*s\"", SLICE_ARG(setup->revision->name));
	send_edits_add(&edits, env.id.text, slice_of(digits, text_format_u64(id, digits)));
	send_edits_add(&edits, scan_member(env.params.text, SLICE_LIT("protocolVersion")).text,
		       buf_slice(&version));
	send_edits_add_meta(&edits, &env, none);
	send_message(upstream, &env, &edits);
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
	at_end(buf_fini) struct buf reason = { 0 };

	write_string(&reason, slice_str(why));
	send_cancelled(upstream, id, buf_slice(&reason));
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

/* ---- modern servers ---- */

/* Params are written member by member, each value as it was received. */

/* ---- requests ---- */

struct writing {
	struct buf *out;
	const struct upstream_setup *setup;
	const struct modern_request *request;
	struct slice meta; /* the client's */
};

/* The client's name and capabilities. */
static void append_client(const struct writing *writing)
{
	static const char *const path[] = { "params", "clientInfo" };
	const struct upstream_setup *setup = writing->setup;
	struct slice capabilities = writing->request->capabilities;
	struct json info = { .type = JSON_ABSENT };

	if (capabilities.n == 0)
		capabilities = buf_slice(&setup->capabilities);
	if (setup->initialize != NULL)
		info = scan_path(setup->initialize->text, path, ARRAY_LEN(path));
	splice_member(writing->out, SLICE_LIT(MODERN_META "clientCapabilities"),
		      capabilities.n > 0 ? capabilities : SLICE_LIT("{}"));
	splice_member(writing->out, SLICE_LIT(MODERN_META "clientInfo"),
		      info.type == JSON_OBJECT ?
			      info.text :
			      SLICE_LIT("{\"name\":\"mcpgated\",\"version\":\"" PACKAGE_VERSION
					"\"}"));
}

static void append_meta(const struct writing *writing)
{
	const struct modern_request *request = writing->request;
	struct buf *out = writing->out;

	buf_append_str(out, "\"_meta\":{");
	write_name(out, SLICE_LIT(MODERN_META "protocolVersion"));
	buf_printf(out, "\"%.*s\"", SLICE_ARG(revision_modern.name));
	if (!request->is_modern || writing->meta.n == 0) /* or it is our own, for a modern client */
		append_client(writing);
	if (request->level >= 0) {
		write_name(out, SLICE_LIT(MODERN_META "logLevel"));
		buf_printf(out, "\"%.*s\"", SLICE_ARG(level_name(request->level)));
	}
	if (request->token.n > 0)
		splice_member(out, SLICE_LIT("progressToken"), request->token);
	SCAN_MEMBERS(member, writing->meta)
		if (!slice_is_equal(member.name, SLICE_LIT("progressToken")) &&
		    !slice_is_equal(member.name, SLICE_LIT(MODERN_META "protocolVersion")) &&
		    !slice_is_equal(member.name, SLICE_LIT(MODERN_META "logLevel")) &&
		    !slice_is_equal(member.name, SLICE_LIT(SCAN_CALLER_META)) &&
		    (request->is_modern || !is_reserved(member.name)))
			splice_member(out, member.name, member.value.text);
	buf_append_char(out, '}');
}

void modern_append_params(struct buf *out, const struct upstream_setup *setup, struct slice params,
			  const struct modern_request *request)
{
	struct writing writing = { .out = out,
				   .setup = setup,
				   .request = request,
				   .meta = scan_member(params, SLICE_LIT("_meta")).text };

	CHECK(setup != NULL && out->len == 0);
	buf_append_char(out, '{');
	append_meta(&writing);
	SCAN_MEMBERS(param, params) {
		bool is_cursor =
			request->cursor.n > 0 && slice_is_equal(param.name, SLICE_LIT("cursor"));
		bool is_task_id =
			request->task_id.n > 0 && slice_is_equal(param.name, SLICE_LIT("taskId"));

		if ((request->is_modern || !slice_is_equal(param.name, SLICE_LIT("task"))) &&
		    !slice_is_equal(param.name, SLICE_LIT("_meta")) &&
		    !slice_is_equal(param.name, SLICE_LIT("inputResponses")) &&
		    !slice_is_equal(param.name, SLICE_LIT("requestState")))
			splice_member(out, param.name,
				      is_cursor  ? request->cursor :
				      is_task_id ? request->task_id :
						   param.value.text);
	}
	if (request->input_responses.n > 0)
		splice_member(out, SLICE_LIT("inputResponses"), request->input_responses);
	if (request->request_state.n > 0)
		splice_member(out, SLICE_LIT("requestState"), request->request_state);
	buf_append_char(out, '}');
}

/* ---- what a server says of itself ---- */

static int is_ours(struct slice element, void *arg)
{
	bool *is_found = arg;

	if (scan_type(element) == JSON_STRING &&
	    slice_is_equal(slice_of(element.p + 1, element.n - 2), revision_modern.name))
		*is_found = true;
	return 0;
}

/* Whether an array of revisions includes the modern one. */
static bool has_ours(struct json versions)
{
	bool is_found = false;

	return versions.type == JSON_ARRAY &&
	       scan_array(versions.text, VERSIONS_MAX, is_ours, &is_found, NULL) >= 0 && is_found;
}

bool modern_is_named(struct slice error)
{
	static const char *const path[] = { "data", "supported" };
	long long code;

	return value_read_integer(scan_member(error, SLICE_LIT("code")), &code) == 0 &&
	       code == MCP_UNSUPPORTED_VERSION && has_ours(scan_path(error, path, ARRAY_LEN(path)));
}

/* MOD-DISC-01, bridging.md §2.2; tasks of the legacy era are a different protocol: §2.5 */
int modern_read_discovery(struct slice result, const char *name, struct buf *out)
{
	static const char *const path[] = { "_meta", MODERN_META "serverInfo" };
	struct json kind = scan_member(result, SLICE_LIT("resultType"));
	struct json capabilities = scan_member(result, SLICE_LIT("capabilities"));
	struct json instructions = scan_member(result, SLICE_LIT("instructions"));
	struct json info = scan_path(result, path, ARRAY_LEN(path));

	if (!has_ours(scan_member(result, SLICE_LIT("supportedVersions"))) ||
	    capabilities.type != JSON_OBJECT ||
	    (kind.type != JSON_ABSENT &&
	     !slice_is_equal(scan_plain_string(kind), SLICE_LIT("complete"))))
		return -1;
	buf_printf(out, "{\"protocolVersion\":\"%.*s\",\"capabilities\":{",
		   SLICE_ARG(revision_modern.name));
	SCAN_MEMBERS(member, capabilities.text)
		if (!slice_is_equal(member.name, SLICE_LIT("tasks")))
			splice_member(out, member.name, member.value.text);
	buf_append_char(out, '}');
	if (info.type == JSON_OBJECT)
		splice_member(out, SLICE_LIT("serverInfo"), info.text);
	else
		buf_printf(out, ",\"serverInfo\":{\"name\":\"%s\",\"version\":\"0\"}", name);
	if (instructions.type == JSON_STRING)
		splice_member(out, SLICE_LIT("instructions"), instructions.text);
	buf_append_char(out, '}');
	return 0;
}

/* ---- claims ---- */

/* The keeper refuses a text in which claims are missing: it checks for itself. */

int claims_append(struct buf *out, const struct server_conf *conf,
		  const struct principal *principal)
{
	for (size_t i = 0; i < conf->claims.count; i++) {
		const char *value = principal_claim(principal, conf->claims.items[i]);

		if (value == NULL) {
			LOG_BY(CLAIM_MISSING, principal->by_key.key, LOG_STR("server", conf->name),
			       LOG_SLICE("principal", principal->identity.subject),
			       LOG_SLICE("claim", conf->claims.items[i]));
			return -1;
		}
		buf_append_slice(out, conf->claims.items[i]);
		buf_append_char(out, '\0');
		buf_append(out, value, strlen(value) + 1);
	}
	return 0;
}
