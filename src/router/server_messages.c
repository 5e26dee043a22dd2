/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that a server writes is untrusted: ids and tokens are looked up among those of its own
 * upstream, and a message reaches a client of that upstream or nobody. BACK-SEC-01, bridging.md I1,
 * I2.
 */
#include "router/server_messages.h"

#include <stdlib.h>

#include "mcp/error.h"
#include "mcp/method.h"
#include "router/call.h"
#include "router/client.h"
#include "router/convert.h"
#include "router/dispatch.h"
#include "router/listen.h"
#include "router/modern_tasks.h"
#include "router/subscriptions.h"
#include "router/pool.h"
#include "router/running_tasks.h"
#include "router/server_request.h"
#include "upstream/send.h"

/* ---- requests ---- */

/* The client capabilities that the server was told. */
static struct slice told_capabilities(const struct pool *pool)
{
	static const char *const path[] = { "params", "capabilities" };

	return scan_path(pool->setup.initialize->text, path, ARRAY_LEN(path)).text;
}

static void ask_client(struct client *client, struct upstream *upstream, const struct envelope *env,
		       const struct method *method)
{
	at_end(convert_fini) struct convert convert = { .text = { 0 } };
	const struct envelope *converted =
		convert_server_request(&convert, client_lacks(client, upstream), method, env);

	if (converted == NULL) {
		send_error(
			upstream, env->id.text, MCP_INVALID_PARAMS,
			SLICE_LIT(
				"Invalid params: the client's revision of MCP cannot express this"));
	} else if (server_request_open(client, upstream, converted, method) &&
		   method->id == METHOD_ELICITATION) {
		struct json id = scan_member(converted->params.text, SLICE_LIT("elicitationId"));

		/* The end of a URL elicitation is reported by a notification that names it. */
		if (id.type == JSON_STRING)
			text_set_add(&client->elicitations, id.text);
	}
}

/*
 * The server requires what its client has not declared: the call that it works on may fail because
 * of it. MOD-CAP-01
 */
static void note_missing(struct upstream *upstream, unsigned int needs)
{
	struct upstream_request *only = upstream_only_request(upstream);
	struct call *call = upstream->lease;

	if (call == NULL && only != NULL && dispatch_is_of_call(only))
		call = container_of(only, struct call, request);
	if (call != NULL)
		call->missing |= needs;
}

void server_messages_take_request(struct upstream *upstream, const struct envelope *env)
{
	const struct method *method = method_find(env->method);
	const struct pool *pool = upstream->pool;

	CHECK(env->kind == ENVELOPE_REQUEST);
	if (method->id == METHOD_PING) {
		send_result(upstream, env->id.text, SLICE_LIT("{}"));
		return;
	}
	if (!upstream_is_serving(upstream) && !upstream->is_inherited) {
		send_error(upstream, env->id.text, MCP_INVALID_REQUEST,
			   SLICE_LIT("Invalid request: the handshake is not through"));
		return;
	}
	if (!asking_is_declared(told_capabilities(pool), method)) {
		note_missing(upstream, asking_needs(method, env->params.text));
		send_error(upstream, env->id.text, MCP_METHOD_NOT_FOUND,
			   SLICE_LIT(
				   "Method not found: the client did not declare this capability"));
	} else if (!asking_is_possible(told_capabilities(pool), method, env->params.text)) {
		note_missing(upstream, asking_needs(method, env->params.text));
		send_error(upstream, env->id.text, MCP_INVALID_PARAMS,
			   SLICE_LIT("Invalid params: the client did not declare this mode"));
	} else if (upstream->client == NULL) {
		send_error(upstream, env->id.text, MCP_INVALID_PARAMS,
			   SLICE_LIT("Invalid params: it is not related to a request of a client"));
	} else {
		ask_client(upstream->client, upstream, env, method);
	}
}

/* ---- notifications ---- */

static bool progress_increases(double *last, struct json value)
{
	char digits[64];
	double progress;
	long long number;

	if (value.type != JSON_NUMBER || value.text.n >= sizeof(digits))
		return false;
	if (scan_int(value, &number) == 0) {
		progress = (double)number;
	} else {
		memcpy(digits, value.text.p, value.text.n);
		digits[value.text.n] = '\0';
		progress = strtod(digits, NULL);
	}
	if (!(progress > *last))
		return false;
	*last = progress;
	return true;
}

static struct call *call_of(struct upstream_request *request)
{
	return request != NULL ? container_of(request, struct call, request) : NULL;
}

/* The task's call has been answered: the progress goes to the session's own stream. UTIL-PROG-02 */
static bool take_task_progress(struct upstream *upstream, const struct envelope *env,
			       struct json token)
{
	struct running_task *task = running_tasks_find(upstream, token);
	struct splice_edit edit = { token.text, { NULL, 0 } };
	at_end(msg_unref) struct msg *msg = NULL;

	if (task == NULL || !progress_increases(&task->progress, env->progress))
		return false;
	edit.with = task->client_token;
	msg = client_copy_message(env, &edit, 1);
	stream_push(client_stream(task->client), STREAM_PROGRESS, 0, msg);
	return true;
}

/* UTIL-PROG-01 */
static void take_progress(struct upstream *upstream, const struct envelope *env)
{
	struct json token = env->progress_of;
	struct upstream_request *request = upstream_find_request(upstream, token);
	struct call *call = NULL;
	struct splice_edit edit = { token.text, { NULL, 0 } };
	at_end(msg_unref) struct msg *msg = NULL;

	/* A list that is fetched for many has no token. */
	if (request != NULL && dispatch_is_of_call(request))
		call = call_of(request);
	if (request == NULL && take_task_progress(upstream, env, token))
		return;
	/* One that stands still is a sign of life, too. */
	if (call != NULL)
		call_renew(call);
	if (call == NULL || call->token.n == 0 ||
	    !progress_increases(&call->progress, env->progress)) {
		upstream_note_stray(upstream, COUNTER_CHILD_STRAY_PROGRESS, env);
		return;
	}
	call_note_heard(call);
	edit.with = call->token;
	msg = client_copy_message(env, &edit, 1);
	call->ops->on_message(call, STREAM_PROGRESS, 0, msg);
}

/*
 * UTIL-LOG-01; bridging.md §1.7: to the call that it is about, if there is one, or else to the
 * client's own stream.
 */
static void take_log(struct client *client, struct call *call, const struct envelope *env)
{
	struct stream *own = client_stream(client);
	int level = client_named_level(env);
	at_end(msg_unref) struct msg *msg = NULL;

	if (level < client->level)
		return;
	msg = client_copy_message(env, NULL, 0);
	if ((call == NULL || !call->ops->on_message(call, STREAM_LOG, 0, msg)) && own != NULL)
		stream_push(own, STREAM_LOG, 0, msg);
}

/* The call that a log line of an upstream with one client is about. */
static struct call *logged_call(const struct upstream *upstream)
{
	CHECK(upstream->client != NULL && upstream->client->pool == upstream->pool);
	if (upstream->about != NULL && call_of(upstream->about)->client == upstream->client)
		return call_of(upstream->about);
	return upstream->lease != NULL ? upstream->lease : call_of(upstream_only_request(upstream));
}

/* An unknown notification: for the call or session that has the process to itself. */
static void take_other(struct upstream *upstream, const struct envelope *env)
{
	struct stream *own = client_stream(upstream->client);
	at_end(msg_unref) struct msg *msg = client_copy_message(env, NULL, 0);

	if (upstream->lease == NULL && own != NULL)
		stream_push(own, STREAM_NOTIFICATION, 0, msg);
	else if (upstream->lease == NULL ||
		 !upstream->lease->ops->on_message(upstream->lease, STREAM_NOTIFICATION, 0, msg))
		upstream_note_stray(upstream, COUNTER_CHILD_DROPPED, env);
}

/*
 * Whether this ends a URL elicitation that a modern client was given when its call failed: only we
 * are told of that. bridging.md §2.3.7
 */
static bool ends_url(struct upstream *upstream, const struct envelope *env)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("elicitationId"));

	return url_pending_end(&upstream->pool->urls, upstream_child_number(upstream), id.text);
}

/* To the client that was given the elicitation, once. UTIL-ELIC-01 */
static void take_elicitation_end(struct upstream *upstream, const struct envelope *env)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("elicitationId"));

	LIST_EACH_SAFE(struct pool_member, member, &upstream->pool->members, link) {
		struct client *client = member->client;
		at_end(msg_unref) struct msg *msg = NULL;

		if (!(client->revision->features & REVISION_MODES) ||
		    !text_set_remove(&client->elicitations, id.text))
			continue;
		msg = client_copy_message(env, NULL, 0);
		member->ops->on_notification(member, 0, msg);
		return;
	}
	upstream_note_stray(upstream, COUNTER_CHILD_DROPPED, env);
}

/* Looks at all clients: the server may have asked others than the one it works for now. */
static void take_cancelled(struct upstream *upstream, const struct envelope *env)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("requestId"));

	LIST_EACH(struct pool_member, member, &upstream->pool->members, link) {
		const struct client *client = member->client;
		struct server_request *request =
			server_request_find_of_server(client, upstream, id.text);

		if (request != NULL) {
			server_request_cancel(request, env, id.text);
			return;
		}
	}
}

/* bridging.md §1.7 */
static void take_of_modern(struct upstream *upstream, const struct envelope *env,
			   const struct method *method)
{
	at_end(convert_fini) struct convert convert = { .text = { 0 } };
	struct client *only = upstream->client;

	if (method->id == METHOD_PROGRESS)
		take_progress(upstream, env);
	else if ((method->id == METHOD_LIST_CHANGED || method->id == METHOD_RESOURCE_UPDATED) &&
		 listen_covers(upstream, env))
		notification_fanout_take(upstream, modern_server_notification(&convert, env),
					 method);
	else if (method->id == METHOD_MESSAGE && upstream->logged != NULL)
		take_log(call_of(upstream->logged)->client, call_of(upstream->logged), env);
	else if (method->id == METHOD_MESSAGE && only != NULL && only->level >= 0)
		take_log(only, logged_call(upstream), env);
	else if (!task_listener_take(upstream, env) && !listen_take_notification(upstream, env))
		upstream_note_stray(upstream, COUNTER_CHILD_DROPPED, env);
}

static void take_of_legacy(struct upstream *upstream, const struct envelope *env,
			   const struct method *method)
{
	struct client *only = upstream->client; /* that the server works for now */
	/* If nobody can be asked, the sessions, which may be thousands, are not searched. REL-24 */
	bool may_have_asked = pool_is_leased(upstream->pool) || !pool_is_shared(upstream->pool);

	if (method->id == METHOD_PROGRESS)
		take_progress(upstream, env);
	else if (method->id == METHOD_LIST_CHANGED || method->id == METHOD_RESOURCE_UPDATED)
		notification_fanout_take(upstream, env, method);
	else if (method->id == METHOD_ELICITATION_COMPLETE && ends_url(upstream, env))
		return;
	else if (method->id == METHOD_ELICITATION_COMPLETE && may_have_asked)
		take_elicitation_end(upstream, env);
	else if (method->id == METHOD_CANCELLED && may_have_asked)
		take_cancelled(upstream, env);
	else if (only == NULL || (method->id == METHOD_TASK_STATUS &&
				  client_lacks(only, upstream) & REVISION_TASKS))
		upstream_note_stray(upstream, COUNTER_CHILD_DROPPED, env);
	else if (method->id == METHOD_MESSAGE)
		take_log(only, logged_call(upstream), env);
	else {
		if (method->id == METHOD_TASK_STATUS)
			running_tasks_note_status(upstream, env->params.text);
		take_other(upstream, env);
	}
}

void server_messages_take_notification(struct upstream *upstream, const struct envelope *env)
{
	const struct method *method = method_find(env->method);

	CHECK(env->kind == ENVELOPE_NOTIFICATION &&
	      (upstream_is_serving(upstream) || upstream->is_inherited));
	if (upstream_is_modern(upstream))
		take_of_modern(upstream, env, method);
	else
		take_of_legacy(upstream, env, method);
}
