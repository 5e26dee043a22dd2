/* SPDX-License-Identifier: Apache-2.0 */
#include "router/call_span.h"

#include <stdio.h>

#include "base/check.h"
#include "io/peer.h"
#include "jsonrpc/value.h"
#include "mcp/method.h"
#include "mcp/revision.h"
#include "mcp/trace_context.h"
#include "router/audit_call.h"
#include "router/call.h"
#include "router/client.h"
#include "router/router.h"
#include "session/session.h"
#include "trace/span.h"
#include "trace/trace_message.h"

#define CODE_BYTES 24

/* ---- the beginning ---- */

static struct slice meta_text(const struct envelope *env, struct slice name)
{
	return env->has_more_meta ? scan_plain_string(scan_member(env->meta.text, name)) :
				    slice_of(NULL, 0);
}

static struct span *begin(struct exporter *exporter, const struct envelope *env)
{
	struct slice state = meta_text(env, SLICE_LIT("tracestate"));
	struct trace_parent parent;

	if (!trace_parent_read(meta_text(env, SLICE_LIT("traceparent")), &parent))
		return span_new(exporter, NULL, slice_of(NULL, 0));
	return span_new(exporter, &parent, trace_state_is_valid(state) ? state : slice_of(NULL, 0));
}

/*
 * Says what the call is about. The name of an unknown method may be any text: the span is not named
 * after it.
 */
static void say_target(struct span *span, const struct method *method, const struct envelope *env)
{
	struct slice name = { NULL, 0 }, uri = { NULL, 0 };
	struct buf room = { 0 }, room_of_uri = { 0 };
	bool is_tool = method->id == METHOD_TOOLS_CALL;

	if (is_tool || method->id == METHOD_PROMPTS_GET)
		(void)!scan_read_string(env->name, &room, &name);
	(void)!scan_read_string(env->uri, &room_of_uri, &uri);
	span_set_name(span, method->name.n > 0 ? method->name : SLICE_LIT("other"), name);
	span_say(span, SPAN_BOTH, "mcp.method.name", env->method);
	span_say(span, SPAN_BOTH, is_tool ? "gen_ai.tool.name" : "gen_ai.prompt.name", name);
	if (is_tool)
		span_say(span, SPAN_BOTH, "gen_ai.operation.name", SLICE_LIT("execute_tool"));
	span_say(span, SPAN_BOTH, "mcp.resource.uri", uri);
	buf_fini(&room);
	buf_fini(&room_of_uri);
}

/*
 * Says who the client is. Only the part of the session's id that is in the log, as the id is a
 * secret. SEC-04
 */
static void say_client(struct span *span, const struct client *client, const struct envelope *env,
		       const struct audit_origin *origin)
{
	const struct session *session = client->session;
	bool is_text = env->id.type == JSON_STRING && !env->id.has_escape;
	bool has_address = origin->peer->family != 0;
	char address[PEER_TEXT_BYTES];

	peer_format(origin->peer, address);
	span_say(span, SPAN_GATEWAY, "jsonrpc.request.id",
		 is_text ? scan_plain_string(env->id) : env->id.text);
	span_say(span, SPAN_GATEWAY, "mcp.protocol.version", client->revision->name);
	if (session != NULL && session->state != SESSION_NEW)
		span_say(span, SPAN_GATEWAY, "mcp.session.id",
			 slice_of(session->entry.id, SESSION_ID_SHOWN));
	if (has_address)
		span_say(span, SPAN_GATEWAY, "client.address", slice_str(address));
	span_say(span, SPAN_GATEWAY, "network.transport",
		 has_address ? SLICE_LIT("tcp") : SLICE_LIT("unix"));
	span_say(span, SPAN_GATEWAY, "network.protocol.name", SLICE_LIT("http"));
	span_say(span, SPAN_GATEWAY, "mcpgated.front", slice_str(origin->front));
	span_say(span, SPAN_GATEWAY, "mcpgated.era",
		 client->revision->is_modern ? SLICE_LIT("modern") : SLICE_LIT("legacy"));
}

void call_span_begin(struct call *call, const struct client *client, const struct envelope *env,
		     const struct audit_origin *origin)
{
	struct span *span = begin(client->router->exporter, env);

	CHECK(call->span == NULL);
	if (span == NULL)
		return;
	call->span = span;
	memcpy(call->trace_id, span_trace_id(span).p, TRACE_ID_DIGITS);
	say_target(span, call->method, env);
	span_say(span, SPAN_BOTH, "mcpgated.server", slice_str(client->server->conf.name));
	say_client(span, client, env, origin);
	span_say(span, SPAN_PROCESS, "network.transport", SLICE_LIT("pipe"));
}

/* ---- on its way ---- */

const struct envelope *call_span_mark(const struct call *call, const struct envelope *env,
				      struct call_traced *traced)
{
	char parent[TRACE_PARENT_DIGITS + 1];
	struct error err;

	traced->text = (struct buf){ .data = NULL }; /* only this: most calls have no span */
	if (call->span == NULL)
		return env;
	span_format_parent(call->span, parent);
	if (!trace_message_set_parent(&traced->text, env, parent) ||
	    scan_envelope(buf_slice(&traced->text), &call->client->router->limits, 0, &traced->env,
			  &err) < 0)
		return env;
	return &traced->env;
}

void call_traced_fini(struct call_traced *traced)
{
	buf_fini(&traced->text);
}

/* ---- the end ---- */

/* The code of the error response, as text; empty if there is none. */
static struct slice read_code(const struct slice *parts, size_t count, char text[CODE_BYTES])
{
	struct buf answer = { 0 };
	struct json code;
	long long number;
	int n = 0;

	for (size_t i = 0; i < count; i++)
		buf_append_slice(&answer, parts[i]);
	code = scan_member(scan_member(buf_slice(&answer), SLICE_LIT("error")).text,
			   SLICE_LIT("code"));
	if (value_read_integer(code, &number) == 0)
		n = snprintf(text, CODE_BYTES, "%lld", number);
	buf_fini(&answer);
	return slice_of(text, (size_t)n);
}

void call_span_end(struct call *call, enum call_status status, enum reason reason,
		   const struct slice *parts, size_t count)
{
	const struct upstream *upstream = call->request.upstream;
	const char *why = call->refused_by != RULE_NONE ? call->refused_as :
			  reason != REASON_NONE         ? reason_get(reason)->text :
							  NULL;
	struct slice error = { NULL, 0 };
	char code[CODE_BYTES];

	CHECK(call->span != NULL && status < CALL_STATUSES);
	if (status == CALL_TOOL_ERROR) {
		error = SLICE_LIT("tool_error");
	} else if (status == CALL_ERROR) {
		error = read_code(parts, count, code);
		span_say(call->span, SPAN_BOTH, "rpc.response.status_code", error);
		if (error.n == 0)
			error = SLICE_LIT("_OTHER");
	} else if (status == CALL_FAILED) {
		error = slice_str(reason_get(reason)->text);
	}
	span_say(call->span, SPAN_GATEWAY, "mcpgated.status", slice_str(call_status_name(status)));
	if (why != NULL)
		span_say(call->span, SPAN_GATEWAY, "mcpgated.reason", slice_str(why));
	if (upstream != NULL && upstream->revision != NULL)
		span_say(call->span, SPAN_PROCESS, "mcp.protocol.version",
			 upstream->revision->name);
	span_end(&call->span, error);
}
