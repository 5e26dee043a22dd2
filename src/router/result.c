/* SPDX-License-Identifier: Apache-2.0 */
/* Responses go on byte for byte with the client's id in place of ours, wherever nothing has to be changed. */
#include "router/result.h"

#include "jsonrpc/splice.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/revision.h"
#include "router/call.h"
#include "router/client.h"
#include "router/convert.h"
#include "router/cursor.h"
#include "router/modern_server.h"
#include "router/pool.h"
#include "router/router.h"

/* All that is sent is sent from here. */
static void send_parts(struct call *call, const struct slice *parts, size_t count)
{
	CHECK(call->state == CALL_WAITING || call->state == CALL_SENT);
	call_respond(call, parts, count);
}

static void send_text(struct call *call, struct buf *text)
{
	struct slice whole = buf_slice(text);

	send_parts(call, &whole, 1);
	buf_fini(text);
}

/* ---- ours ---- */

void result_send_own(struct call *call, struct slice result)
{
	struct buf text = { 0 };

	write_result(&text, call->id, result);
	send_text(call, &text);
}

void result_send_error(struct call *call, int code, struct slice message)
{
	struct buf text = { 0 };

	write_error(&text, call->id, code, message, (struct slice){ NULL, 0 });
	send_text(call, &text);
}

void result_send_no_room(struct call *call)
{
	result_send_error(call, MCP_INTERNAL_ERROR,
			  SLICE_LIT("The session has too many subscriptions"));
}

/* ---- servers' ---- */

static void send_with_client_id(struct call *call, const struct envelope *env)
{
	struct slice text = env->text;
	struct slice id = env->id.text;
	struct buf edited = { 0 };

	if (!env->has_line_break && !env->is_unusual && id.n > 0) {
		const struct slice parts[] = { slice_between(text.p, id.p), call->id,
					       slice_between(id.p + id.n, text.p + text.n) };

		send_parts(call, parts, ARRAY_LEN(parts));
		return;
	}
	/* Written unusually: put it in order. */
	buf_append_str(&edited, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_append_slice(&edited, call->id);
	buf_append_str(&edited, env->kind == ENVELOPE_RESULT ? ",\"result\":" : ",\"error\":");
	splice_append(&edited, env->kind == ENVELOPE_RESULT ? env->result.text : env->error.text,
		      NULL, 0, SPLICE_ONE_LINE);
	buf_append_char(&edited, '}');
	send_text(call, &edited);
}

/* A list goes on at the same server: its cursor says so. Returns false if the list is at its end. */
static bool send_with_cursor(struct call *call, const struct envelope *env)
{
	struct json cursor = scan_member(env->result.text, SLICE_LIT("nextCursor"));
	struct splice_edit edit = { cursor.text, { NULL, 0 } };
	struct buf sealed = { 0 };
	struct buf result = { 0 };

	if (cursor.type != JSON_STRING)
		return false;
	cursor_append_sealed(&sealed, upstream_child_number(call->request.upstream), cursor);
	edit.with = buf_slice(&sealed);
	splice_append(&result, env->result.text, &edit, 1, SPLICE_ONE_LINE);
	result_send_own(call, buf_slice(&result));
	buf_fini(&sealed);
	buf_fini(&result);
	return true;
}

void result_send(struct call *call, const struct envelope *env)
{
	struct convert convert = { .text = { 0 } }, bridge = { .text = { 0 } };
	const struct upstream *upstream = call->request.upstream;

	CHECK(env->kind == ENVELOPE_RESULT || env->kind == ENVELOPE_ERROR);
	if (!call_tell_response(call, env))
		return;
	if (upstream != NULL && upstream_is_modern(upstream) && !call->client->revision->is_modern)
		env = modern_server_response(&bridge, call->method, env);
	env = convert_response(&convert, client_lacks(call->client, call->request.upstream),
			       call->method, env);
	if (env->kind != ENVELOPE_RESULT || !(call->method->flags & METHOD_PAGED) ||
	    !pool_is_shared(call->client->pool) || !send_with_cursor(call, env))
		send_with_client_id(call, env);
	convert_fini(&convert);
	convert_fini(&bridge);
}

void result_send_kept(struct call *call, const struct revision *revision,
		      const struct envelope *env)
{
	struct convert convert = { .text = { 0 } };
	unsigned int lost = revision_lacks(call->client->revision, revision) & ~REVISION_TASKS;

	CHECK(pool_is_shared(call->client->pool));
	send_with_client_id(call, convert_response(&convert, lost, call->method, env));
	convert_fini(&convert);
}

void result_send_initialize(struct call *call, const struct revision *agreed,
			    const struct envelope *env)
{
	const struct revision *revision = call->client->revision;
	struct convert convert = { .text = { 0 } };
	struct buf quoted = { 0 };
	struct buf edited = { 0 };
	struct splice_edit edit;

	CHECK(call->method->id == METHOD_INITIALIZE && agreed != NULL);
	env = convert_response(&convert, revision_lacks(revision, agreed), call->method, env);
	edit.span = scan_member(env->result.text, SLICE_LIT("protocolVersion")).text;
	buf_printf(&quoted, "\"%.*s\"", SLICE_ARG(revision->name));
	edit.with = buf_slice(&quoted);
	splice_append(&edited, env->result.text, &edit, 1, SPLICE_ONE_LINE);
	result_send_own(call, buf_slice(&edited));
	buf_fini(&quoted);
	buf_fini(&edited);
	convert_fini(&convert);
}
