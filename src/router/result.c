/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses are passed on byte for byte, with the client's id in place of ours, if nothing else has
 * to be changed.
 */
#include "router/result.h"

#include "io/aside.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/revision.h"
#include "router/call.h"
#include "router/client.h"
#include "router/convert.h"
#include "router/pages.h"
#include "router/era.h"
#include "router/listing.h"
#include "router/modern_tasks.h"
#include "router/pool.h"
#include "router/process_slots.h"
#include "router/seal.h"
#include "router/server_request.h"
#include "router/url_pending.h"
#include "session/principal.h"

static void open_aside(const struct call *call)
{
	if (call->may_pause)
		aside_open();
}

/* Everything that is sent is sent from here. */
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

/* As send_text, with its last brace, unless the call has ended while the text was written. */
static void send_rest(struct call *call, struct buf *text)
{
	buf_append_char(text, '}');
	if (call->state != CALL_ENDED)
		send_text(call, text);
	buf_fini(text);
}

#define RESPONSE_BEGIN "{\"jsonrpc\":\"2.0\",\"id\":"

static void begin_response(struct buf *text, struct slice id, const char *member)
{
	buf_append_str(text, RESPONSE_BEGIN);
	buf_append_slice(text, id);
	buf_append_str(text, ",\"");
	buf_append_str(text, member);
	buf_append_str(text, "\":");
}

/* ---- for modern clients ---- */

/* Whether the response is for a modern client. */
static bool is_for_modern(const struct call *call)
{
	return call->client->revision->is_modern;
}

/* Whether it is the response of a modern server, to which the call was sent. */
static bool is_passed(const struct call *call)
{
	return call->request.upstream != NULL && upstream_is_modern(call->request.upstream);
}

/* MOD-TASK-01 */
static void send_task_result(struct call *call, enum modern_result kind, struct slice result)
{
	struct buf text = { 0 };

	begin_response(&text, call->id, "result");
	if (!task_result_append(&text, call, kind, result)) {
		buf_fini(&text);
		call_fail(call, REASON_CHILD_PROTOCOL_ERROR);
		return;
	}
	buf_append_char(&text, '}');
	send_text(call, &text);
}

/* MOD-RES-02, bridging.md §2.4 */
static void send_passed_result(struct call *call, struct slice result)
{
	at_end(buf_fini) struct buf text = { 0 }, state = { 0 }, info = { 0 };
	bool is_private = !principal_is_anonymous(call->client->principal);
	enum modern_result kind;

	open_aside(call);
	kind = modern_server_kind(scan_member(result, SLICE_LIT("resultType")));
	aside_close();
	if (call->state == CALL_ENDED)
		return;
	if (call->task != NULL || kind == MODERN_TASK) {
		send_task_result(call, kind, result);
		return;
	}
	if (kind == MODERN_UNKNOWN || (kind == MODERN_INPUT_REQUIRED &&
				       !request_state_append_wrapped(&state, call, result))) {
		call_fail(call, REASON_CHILD_PROTOCOL_ERROR);
		return;
	}
	begin_response(&text, call->id, "result");
	buf_append_slice(&info, call->client->pool->server_info);
	open_aside(call);
	era_append_passed_result(&text, call->method, result, buf_slice(&info), buf_slice(&state),
				 is_private);
	aside_close();
	send_rest(call, &text);
}

/* Sends what most modern servers send: nothing has to be rewritten. Returns whether it was that. */
static bool send_split_result(struct call *call, const struct envelope *env)
{
	struct slice parts[3 + ERA_PARTS_MAX + 1] = { SLICE_LIT(RESPONSE_BEGIN), call->id,
						      SLICE_LIT(",\"result\":") };
	size_t count;

	if (env->has_line_break || call->task != NULL)
		return false;
	count = era_split_passed_result(call->method, env, call->client->pool->server_info,
					!principal_is_anonymous(call->client->principal),
					parts + 3);
	if (count == 0)
		return false;
	parts[3 + count] = SLICE_LIT("}");
	send_parts(call, parts, 3 + count + 1);
	return true;
}

/* Sends what most results of legacy servers are: nothing has to be rewritten. */
static void send_plain_result(struct call *call, struct slice result)
{
	struct slice parts[3 + ERA_PARTS_MAX + 1] = { SLICE_LIT(RESPONSE_BEGIN), call->id,
						      SLICE_LIT(",\"result\":") };
	size_t count = 3;

	count += era_split_plain_result(call->method, result, call->client->pool->server_info,
					parts + count);
	parts[count++] = SLICE_LIT("}");
	send_parts(call, parts, count);
}

static void send_modern_result(struct call *call, struct slice result)
{
	at_end(buf_fini) struct buf info = { 0 };
	struct buf text = { 0 };

	if (is_passed(call)) {
		send_passed_result(call, result);
		return;
	}
	buf_append_slice(&info, call->client->pool->server_info);
	buf_reserve(&text, call->id.n + result.n + info.len + 200);
	begin_response(&text, call->id, "result");
	open_aside(call);
	era_append_result(&text, call->method, result, buf_slice(&info));
	aside_close();
	send_rest(call, &text);
}

/*
 * The server could not do without what the client has not declared. needs: bits of enum
 * asking_need. bridging.md §2.3.4
 */
static void send_missing(struct call *call, unsigned int needs)
{
	struct buf text = { 0 };
	at_end(buf_fini) struct buf data = { 0 };

	buf_append_str(&data, "{\"requiredCapabilities\":");
	asking_append_needs(&data, needs);
	buf_append_char(&data, '}');
	write_error(&text, call->id, MCP_MISSING_CAPABILITY,
		    SLICE_LIT("Missing required client capability"), buf_slice(&data));
	call->is_error = true;
	call->http_status = 400;
	send_text(call, &text);
}

/*
 * A legacy server wants URLs to be opened first. Returns whether its error says so, or nobody waits for it. bridging.md
 * §2.3.7
 */
static bool ask_to_open(struct call *call, struct slice error)
{
	const struct upstream *asked = call->request.upstream;
	struct pool *pool = call->client->pool;
	uint64_t child = asked != NULL ? upstream_child_number(asked) : call->preferred_child;
	at_end(buf_fini) struct buf wanted = { 0 };
	bool is_wanted = call->method->flags & METHOD_ASKING && !is_passed(call);

	open_aside(call);
	is_wanted = is_wanted && url_elicitation_read(error, &wanted);
	aside_close();
	if (call->state == CALL_ENDED)
		return true;
	if (is_wanted && call->client->can_open_urls && pool_find_upstream(pool, child) != NULL)
		url_pending_add(&pool->urls, child, buf_slice(&wanted));
	if (is_wanted)
		result_send_url_elicitations(call, child, buf_slice(&wanted));
	return is_wanted;
}

static void send_modern_error(struct call *call, struct slice error)
{
	struct buf text = { 0 };
	int code;

	if (ask_to_open(call, error))
		return;
	if (call->missing != 0) {
		send_missing(call, call->missing);
		return;
	}
	begin_response(&text, call->id, "error");
	open_aside(call);
	if (is_passed(call))
		era_append_passed_error(&text, error, &code);
	else
		era_append_error(&text, call->method, error, &code);
	aside_close();
	call->is_error = true;
	call->http_status = code == MCP_METHOD_NOT_FOUND   ? 404 :
			    code == MCP_MISSING_CAPABILITY ? 400 :
							     0;
	send_rest(call, &text);
}

/* ---- our own responses ---- */

void result_send_own(struct call *call, struct slice result)
{
	struct buf text = { 0 };

	if (is_for_modern(call)) {
		send_modern_result(call, result);
		return;
	}
	write_result(&text, call->id, result);
	send_text(call, &text);
}

void result_send_discovery(struct call *call)
{
	struct buf text = { 0 };

	CHECK(is_for_modern(call) && call->client->pool->agreed != NULL);
	begin_response(&text, call->id, "result");
	era_append_discovery(&text, call->client->pool);
	buf_append_char(&text, '}');
	send_text(call, &text);
}

void result_send_input_required(struct call *call, struct slice requests, struct slice state)
{
	struct slice info = call->client->pool->server_info;
	struct buf text = { 0 };

	CHECK(is_for_modern(call) && requests.n > 0);
	begin_response(&text, call->id, "result");
	buf_append_str(&text, "{\"resultType\":\"input_required\",\"inputRequests\":{");
	buf_append_slice(&text, requests);
	buf_append_str(&text, "},\"requestState\":");
	buf_append_slice(&text, state);
	if (info.n > 0) {
		write_member(&text, SLICE_LIT("_meta"), SLICE_LIT("{"));
		write_member(&text, SLICE_LIT("io.modelcontextprotocol/serverInfo"), info);
		buf_append_char(&text, '}');
	}
	buf_append_str(&text, "}}");
	send_text(call, &text);
}

void result_send_url_elicitations(struct call *call, uint64_t child, struct slice wanted)
{
	at_end(buf_fini) struct buf requests = { 0 }, state = { 0 };

	if (!call->client->can_open_urls) {
		send_missing(call, ASKING_URLS);
		return;
	}
	url_elicitation_append_requests(&requests, wanted);
	request_state_append_replay(&state, call, child, wanted);
	result_send_input_required(call, buf_slice(&requests), buf_slice(&state));
}

void result_send_malformed_answer(struct call *call)
{
	result_send_error(call, MCP_INVALID_PARAMS,
			  SLICE_LIT("Invalid params: inputResponses has an answer that is none"));
}

void result_send_invalid_state(struct call *call)
{
	struct buf text = { 0 };

	write_error(&text, call->id, MCP_INVALID_PARAMS,
		    SLICE_LIT("Invalid params: this requestState is not valid, or no longer"),
		    SLICE_LIT("{\"reason\":\"invalid_request_state\"}"));
	call->is_error = true;
	call->http_status = 400;
	send_text(call, &text);
}

void result_send_error(struct call *call, int code, struct slice message)
{
	struct buf text = { 0 };

	write_error(&text, call->id, code, message, (struct slice){ NULL, 0 });
	call->is_error = true;
	call->http_status = code == MCP_METHOD_NOT_FOUND ? 404 :
			    code == MCP_INTERNAL_ERROR   ? 0 :
							   400;
	send_text(call, &text);
}

void result_send_no_room(struct call *call)
{
	result_send_error(call, MCP_INTERNAL_ERROR,
			  SLICE_LIT("The session has too many subscriptions"));
}

/* ---- responses of servers ---- */

/* Whether the tool itself reports that it has failed. */
static bool is_tool_error(const struct call *call, const struct envelope *env)
{
	return call->method->id == METHOD_TOOLS_CALL && env->kind == ENVELOPE_RESULT &&
	       env->is_error.type == JSON_TRUE;
}

/* Unless it ends meanwhile. */
static void send_with_client_id(struct call *call, const struct envelope *env)
{
	struct slice text = env->text;
	struct slice id = env->id.text;
	struct buf edited = { 0 };

	call->is_tool_error = is_tool_error(call, env);
	if (is_for_modern(call)) {
		if (env->is_plain_result && !env->has_line_break && !is_passed(call))
			send_plain_result(call, env->result.text);
		else if (env->kind == ENVELOPE_RESULT && is_passed(call) &&
			 send_split_result(call, env))
			return;
		else if (env->kind == ENVELOPE_RESULT)
			send_modern_result(call, env->result.text);
		else
			send_modern_error(call, env->error.text);
		return;
	}
	call->is_error = env->kind == ENVELOPE_ERROR;
	if (!env->has_line_break && !env->is_unusual && id.n > 0) {
		const struct slice parts[] = { slice_between(text.p, id.p), call->id,
					       slice_between(id.p + id.n, text.p + text.n) };

		send_parts(call, parts, ARRAY_LEN(parts));
		return;
	}
	/* It is written unusually: brings it into the usual form. */
	begin_response(&edited, call->id, env->kind == ENVELOPE_RESULT ? "result" : "error");
	open_aside(call);
	splice_append(&edited, env->kind == ENVELOPE_RESULT ? env->result.text : env->error.text,
		      NULL, 0, SPLICE_ONE_LINE);
	aside_close();
	send_rest(call, &edited);
}

/*
 * The rest of a list is at the same process, which its cursor names. Returns false if the list is
 * at its end.
 */
static bool send_with_cursor(struct call *call, const struct envelope *env)
{
	const struct upstream *upstream = call->request.upstream;
	uint64_t child = upstream != NULL ? upstream_child_number(upstream) : 0;
	struct splice_edit edit = { { NULL, 0 }, { NULL, 0 } };
	at_end(buf_fini) struct buf sealed = { 0 }, result = { 0 };
	struct json cursor;

	open_aside(call);
	cursor = scan_member(env->result.text, SLICE_LIT("nextCursor"));
	if (cursor.type == JSON_STRING) {
		cursor_append_sealed(&sealed, child, cursor);
		edit = (struct splice_edit){ cursor.text, buf_slice(&sealed) };
		splice_append(&result, env->result.text, &edit, 1, SPLICE_ONE_LINE);
	}
	aside_close();
	if (cursor.type == JSON_STRING && call->state != CALL_ENDED)
		result_send_own(call, buf_slice(&result));
	return cursor.type == JSON_STRING || call->state == CALL_ENDED;
}

void result_send(struct call *call, const struct envelope *env)
{
	struct convert convert, bridge, listing;
	const struct upstream *upstream = call->request.upstream;

	convert_init(&convert);
	convert_init(&bridge);
	convert_init(&listing);
	CHECK(env->kind == ENVELOPE_RESULT || env->kind == ENVELOPE_ERROR);
	if (!call_tell_response(call, env))
		return;
	open_aside(call);
	if (upstream != NULL && env->kind == ENVELOPE_RESULT)
		listing_look(call->client->server, call->method, env->result.text, call->page);
	if (upstream != NULL && upstream_is_modern(upstream) && !call->client->revision->is_modern)
		env = modern_server_response(&bridge, call->method, env);
	env = listing_filter(&listing, call, env);
	if (env != NULL)
		env = convert_response(&convert, client_lacks(call->client, upstream), call->method,
				       env);
	aside_close();
	if (call->state != CALL_ENDED && env == NULL) {
		call_fail(call, REASON_CHILD_PROTOCOL_ERROR);
	} else if (call->state != CALL_ENDED) {
		if (env->kind != ENVELOPE_RESULT || !(call->method->flags & METHOD_PAGED) ||
		    !pool_is_shared(call->client->pool) || !send_with_cursor(call, env))
			send_with_client_id(call, env);
	}
	convert_fini(&convert);
	convert_fini(&listing);
	convert_fini(&bridge);
}

void result_send_kept(struct call *call, const struct revision *revision,
		      const struct envelope *env)
{
	at_end(convert_fini) struct convert convert = { .text = { 0 } },
					    listing = { .text = { 0 } };
	/* Tasks have been left out for everybody. */
	unsigned int lost =
		revision_lacks(call->client->revision, revision) & ~(unsigned int)REVISION_TASKS;

	CHECK(pool_is_shared(call->client->pool));
	open_aside(call);
	env = listing_filter(&listing, call, env);
	if (env != NULL)
		env = convert_response(&convert, lost, call->method, env);
	aside_close();
	if (call->state == CALL_ENDED)
		return;
	if (env == NULL)
		call_fail(call, REASON_CHILD_PROTOCOL_ERROR);
	else
		send_with_client_id(call, env);
}

void result_send_initialize(struct call *call, const struct revision *agreed,
			    const struct envelope *env)
{
	const struct revision *revision = call->client->revision;
	at_end(convert_fini) struct convert convert = { .text = { 0 } };
	at_end(buf_fini) struct buf quoted = { 0 }, hidden = { 0 }, edited = { 0 };
	struct splice_edit edits[2];
	struct json capabilities;
	size_t count = 1;

	CHECK(call->method->id == METHOD_INITIALIZE && agreed != NULL);
	env = convert_response(&convert, revision_lacks(revision, agreed), call->method, env);
	capabilities = scan_member(env->result.text, SLICE_LIT("capabilities"));
	edits[0].span = scan_member(env->result.text, SLICE_LIT("protocolVersion")).text;
	buf_printf(&quoted, "\"%.*s\"", SLICE_ARG(revision->name));
	edits[0].with = buf_slice(&quoted);
	/* For a modern server we wrote the result ourselves, in this order. bridging.md §2.5 */
	if (agreed->is_modern) {
		task_extension_append_without(&hidden, capabilities.text);
		edits[count++] = (struct splice_edit){ capabilities.text, buf_slice(&hidden) };
	}
	splice_append(&edited, env->result.text, edits, count, SPLICE_ONE_LINE);
	result_send_own(call, buf_slice(&edited));
}
