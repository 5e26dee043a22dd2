/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources are subscribed to one after the other, each by a call of our own that is handled like a
 * session's. What the server refuses, or does not answer in time, is left out of the
 * acknowledgement.
 */
#include "router/change_listener.h"

#include <stdint.h>

#include "base/mem.h"
#include "io/loop.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "router/client.h"
#include "router/dispatch.h"
#include "router/modern_tasks.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"
#include "router/subscriptions.h"
#include "router/text_set.h"
#include "session/principal.h"

#define ACKNOWLEDGE_MS (10 * 1000) /* bridging.md §2.3.6 */
#define ID_MEMBER "\"io.modelcontextprotocol/subscriptionId\":"

struct change_listener {
	struct call *call;
	struct holder *holder;   /* counts the listeners of its caller */
	struct text_set wanted;  /* resources that are still to be subscribed to */
	struct call subscribing; /* to the one last taken from `wanted` */
	bool is_subscribing;     /* its response is awaited */
	struct task step;
	struct timer deadline;
	struct task_listener tasks;
	unsigned int lists; /* enum offer: whose changes are reported */
	bool is_acknowledged;
};

static const struct client *client_of(const struct change_listener *listener)
{
	return listener->call->client;
}

static void change_listener_push(struct change_listener *listener, uint64_t key, struct buf *text)
{
	at_end(msg_unref) struct msg *msg = msg_new_take(text);

	(void)listener->call->ops->on_message(listener->call, STREAM_NOTIFICATION, key, msg);
}

/* ---- what is acknowledged ---- */

static struct json filter_member(struct slice params, const char *name)
{
	const char *const path[] = { "notifications", name };

	return scan_path(params, path, 2);
}

/* MOD-TASK-01 */
static void append_tasks(struct buf *out, const struct task_listener *tasks)
{
	at_end(buf_fini) struct buf ids = { 0 };

	task_listener_append_ids(&ids, tasks);
	if (ids.len > 0) {
		write_member(out, SLICE_LIT("taskIds"), SLICE_LIT("["));
		buf_append_slice(out, buf_slice(&ids));
		buf_append_char(out, ']');
	}
}

/* MOD-SUB-01, -06 */
static void acknowledge(struct change_listener *listener)
{
	const struct text_set *uris = &client_of(listener)->subscriptions;
	struct buf text = { 0 };
	const char *comma = "";

	CHECK(!listener->is_acknowledged);
	timer_stop(&listener->deadline);
	text_set_fini(&listener->wanted);
	task_listener_settle(&listener->tasks);
	listener->is_acknowledged = true;
	buf_append_str(
		&text,
		"{\"jsonrpc\":\"2.0\",\"method\":"
		"\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":{" ID_MEMBER);
	buf_append_slice(&text, listener->call->id);
	buf_append_str(&text, "},\"notifications\":{");
	for (size_t i = 0; i < METHOD_CHANGES; i++) {
		if (listener->lists & method_changes[i].offer)
			write_member(&text, slice_str(method_changes[i].wanted), SLICE_LIT("true"));
	}
	if (uris->count > 0) {
		write_member(&text, SLICE_LIT("resourceSubscriptions"), SLICE_LIT("["));
		LIST_EACH(const struct text_set_item, item, &uris->items, link) {
			buf_printf(&text, "%s\"", comma);
			buf_append_slice(&text, slice_of(item->text, item->length));
			buf_append_char(&text, '"');
			comma = ",";
		}
		buf_append_char(&text, ']');
	}
	append_tasks(&text, &listener->tasks);
	buf_append_str(&text, "}}}");
	change_listener_push(listener, 0, &text);
}

/* ---- resources, one after the other ---- */

/* Stops when the set is full: a client cannot be subscribed to more than that. */
static int note_uri(struct slice element, void *arg)
{
	struct change_listener *listener = arg;
	struct json uri = scan_value(element);
	at_end(buf_fini) struct buf room = { 0 };

	if (uri.type == JSON_STRING &&
	    permissions_allow_json(&client_of(listener)->server->conf.permissions,
				   &client_of(listener)->rights, PERMISSION_RESOURCE, uri))
		text_set_add(&listener->wanted, text_set_spell(uri, &room));
	return listener->wanted.count < TEXT_SET_MAX ? 0 : -1;
}

/* Reads the list in one pass: the request may be as long as its client likes. */
static void note_uris(struct change_listener *listener, const struct envelope *env)
{
	struct json list = filter_member(env->params.text, "resourceSubscriptions");

	text_set_init(&listener->wanted);
	(void)!scan_array(list.text, SIZE_MAX, note_uri, listener, NULL);
}

static void note_step(struct change_listener *listener)
{
	listener->is_subscribing = false;
	task_schedule(client_of(listener)->router->loop, &listener->step);
}

static struct change_listener *of_subscribing(struct call *call)
{
	return container_of(call, struct change_listener, subscribing);
}

static void subscribing_on_response(struct call *call, not_used const struct slice *parts,
				    not_used size_t count)
{
	/* The client's subscriptions say whether it was granted. */
	note_step(of_subscribing(call));
}

static void subscribing_on_failed(struct call *call, not_used enum reason reason)
{
	note_step(of_subscribing(call));
}

static void subscribing_on_cancelled(struct call *call)
{
	note_step(of_subscribing(call));
}

static bool subscribing_drop_message(not_used struct call *call, not_used enum stream_kind kind,
				     not_used uint64_t key, not_used struct msg *msg)
{
	return false;
}

static bool subscribing_has_no_reader(not_used const struct call *call)
{
	return false;
}

static const struct call_ops subscribing_ops = {
	.on_message = subscribing_drop_message,
	.is_reachable = subscribing_has_no_reader,
	.on_response = subscribing_on_response,
	.on_failed = subscribing_on_failed,
	.on_cancelled = subscribing_on_cancelled,
};

static void subscribe_to(struct change_listener *listener, struct slice uri)
{
	struct client *client = listener->call->client;
	at_end(buf_fini) struct buf text = { 0 };
	struct envelope env;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"resources/subscribe\","
			      "\"params\":{\"uri\":\"");
	buf_append_slice(&text, uri);
	buf_append_str(&text, "\"}}");
	if (scan_envelope(buf_slice(&text), &client->router->limits, 0, &env, NULL) == 0) {
		call_init(&listener->subscribing, &subscribing_ops, &env);
		listener->is_subscribing = true;
		call_link(&listener->subscribing, client);
		if (!subscribe_take(&listener->subscribing, &env))
			dispatch_call(&listener->subscribing, &env);
	} else {
		note_step(listener); /* cannot happen: we wrote it */
	}
}

static void subscribe_to_next(struct change_listener *listener)
{
	struct text_set_item *item =
		container_of(listener->wanted.items.next, struct text_set_item, link);
	at_end(mem_free) char *uri = mem_dup_slice(slice_of(item->text, item->length));

	text_set_remove(&listener->wanted, slice_str(uri));
	subscribe_to(listener, slice_str(uri));
}

/* One per turn: the call may be answered at once, from within this function. */
static void change_listener_on_step(struct task *task)
{
	struct change_listener *listener = container_of(task, struct change_listener, step);
	bool has_resources =
		(client_of(listener)->pool->capabilities.offers & OFFER_SUBSCRIBE) != 0;

	CHECK(!listener->is_subscribing);
	if (listener->is_acknowledged)
		return;
	if (has_resources && listener->wanted.count > 0)
		subscribe_to_next(listener);
	else if (!task_listener_begin(&listener->tasks))
		acknowledge(listener);
}

static struct change_listener *of_tasks(struct task_listener *tasks)
{
	return container_of(tasks, struct change_listener, tasks);
}

static void tasks_on_settled(struct task_listener *tasks)
{
	acknowledge(of_tasks(tasks));
}

static void tasks_on_over(struct task_listener *tasks)
{
	change_listener_finish(of_tasks(tasks));
}

static const struct task_listener_ops tasks_ops = { .on_settled = tasks_on_settled,
						    .on_over = tasks_on_over };

static void stop_subscribing(struct change_listener *listener)
{
	if (!listener->is_subscribing)
		return;
	call_give_up(&listener->subscribing, "nobody waits for it any more");
	call_cancel(&listener->subscribing);
}

static void change_listener_on_deadline(struct timer *timer)
{
	struct change_listener *listener = container_of(timer, struct change_listener, deadline);

	stop_subscribing(listener);
	acknowledge(listener);
}

struct change_listener *change_listener_begin(struct call *call, const struct envelope *env)
{
	struct change_listener *listener;
	struct client *client = call->client;
	struct router *router = client->router;
	struct holder *holder = holder_get(&router->sessions.holders, &router->requests,
					   client->principal, &client->peer);

	CHECK(client->pool->agreed != NULL);
	if (holder->count >= router->sessions.conf.max_per_principal) {
		holder_unref(&holder);
		result_send_error(call, MCP_INTERNAL_ERROR,
				  SLICE_LIT("This caller has too many subscription streams"));
		return NULL;
	}
	holder->count++;
	listener = mem_alloc(sizeof(*listener));
	*listener = (struct change_listener){ .call = call, .holder = holder };
	note_uris(listener, env);
	task_listener_init(&listener->tasks, &tasks_ops, call,
			   scan_member(env->params.text, SLICE_LIT("notifications")).text);
	task_init(&listener->step, change_listener_on_step);
	timer_init(&listener->deadline, change_listener_on_deadline);
	timer_start(router->loop, &listener->deadline, ACKNOWLEDGE_MS);
	for (size_t i = 0; i < METHOD_CHANGES; i++) {
		if (filter_member(env->params.text, method_changes[i].wanted).type == JSON_TRUE)
			listener->lists |=
				method_changes[i].offer & call->client->pool->capabilities.tells;
	}
	task_schedule(router->loop, &listener->step);
	return listener;
}

/* ---- notifications ---- */

/*
 * Notifications about lists reach every member of the pool; those about resources, only
 * subscribers.
 */
static bool is_wanted(const struct change_listener *listener, struct slice method)
{
	for (size_t i = 0; i < METHOD_CHANGES; i++) {
		if (slice_is_equal(method, method_changes[i].notification))
			return (listener->lists & method_changes[i].offer) != 0;
	}
	return slice_is_equal(method, SLICE_LIT("notifications/resources/updated"));
}

/* MOD-SUB-02, -03. The server's own _meta does not decide whose notification it is. */
void change_listener_tell(struct change_listener *listener, uint64_t key, struct msg *msg)
{
	struct buf text = { 0 };
	struct envelope env;

	if (!listener->is_acknowledged ||
	    scan_envelope(msg->text, &client_of(listener)->router->limits, SCAN_LENIENT, &env,
			  NULL) < 0 ||
	    !is_wanted(listener, env.method))
		return;
	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"");
	buf_append_slice(&text, env.method);
	buf_append_str(&text, "\",\"params\":{\"_meta\":{" ID_MEMBER);
	buf_append_slice(&text, listener->call->id);
	buf_append_char(&text, '}');
	if (env.uri.type == JSON_STRING) {
		buf_append_str(&text, ",\"uri\":");
		buf_append_slice(&text, env.uri.text);
	}
	buf_append_str(&text, "}}");
	change_listener_push(listener, key, &text);
}

/* ---- the end ---- */

void change_listener_end(struct change_listener **owned)
{
	struct change_listener *listener = *owned;

	if (listener == NULL)
		return;
	stop_subscribing(listener);
	task_listener_end(&listener->tasks);
	task_cancel(&listener->step);
	timer_stop(&listener->deadline);
	text_set_fini(&listener->wanted);
	subscribe_forget(listener->call->client);
	listener->holder->count--;
	holder_unref(&listener->holder);
	loop_defer_free(client_of(listener)->router->loop, listener);
	*owned = NULL;
}

void change_listener_finish(struct change_listener *listener)
{
	at_end(buf_fini) struct buf result = { 0 };

	buf_append_str(&result, "{\"_meta\":{" ID_MEMBER);
	buf_append_slice(&result, listener->call->id);
	buf_append_str(&result, "}}");
	result_send_own(listener->call, buf_slice(&result));
}
