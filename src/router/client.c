/* SPDX-License-Identifier: Apache-2.0 */

#include "router/client.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "io/loop.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/level.h"
#include "mcp/method.h"
#include "mcp/revision.h"
#include "policy/call_limits.h"
#include "router/call.h"
#include "router/era.h"
#include "router/pool.h"
#include "router/router.h"
#include "session/principal.h"
#include "session/session.h"
#include "upstream/upstream.h"

#define FIRST_SERVER_REQUEST 1000000

void client_init(struct client *client, struct router *router, struct server *server,
		 const struct peer *peer, const struct revision *revision)
{
	*client = (struct client){
		.router = router, .server = server, .peer = *peer, .revision = revision, .level = -1
	};
	server->users++;
	list_init(&client->calls);
	list_init(&client->running_tasks);
	list_init(&client->server_requests.all);
	text_set_init(&client->subscriptions);
	text_set_init(&client->elicitations);
	/*
	 * Starts high, so that clients that confuse the two id spaces find no collision.
	 * bridging.md §1.1
	 */
	client->server_requests.last_id = FIRST_SERVER_REQUEST;
}

void client_fini(struct client *client)
{
	CHECK(client->call_count == 0 && list_is_empty(&client->server_requests.all));
	CHECK(list_is_empty(&client->running_tasks));
	CHECK(client->server_requests.held_bytes == 0);
	CHECK(client->server->users > 0);
	client->server->users--;
	text_set_fini(&client->subscriptions);
	CHECK(client->list_wait_bytes == 0);
	text_set_fini(&client->elicitations);
	free(client->capabilities);
}

struct slice client_capabilities(const struct client *client)
{
	return client->capabilities != NULL ? slice_str(client->capabilities) :
					      buf_slice(&client->pool->setup.capabilities);
}

void client_add_call(struct client *client, struct call *call)
{
	list_append(&client->calls, &call->link);
	client->call_count++;
	client->router->calls++;
	if (client->session != NULL)
		session_hold(client->session);
}

void client_remove_call(struct client *client, struct call *call)
{
	CHECK(client->call_count > 0 && client->router->calls > 0);
	in_flight_free(&call->in_flight);
	list_remove(&call->link);
	client->call_count--;
	client->router->calls--;
	if (client->session != NULL)
		session_release(client->session);
}

int client_named_level(const struct envelope *env)
{
	return level_find(scan_plain_string(scan_member(env->params.text, SLICE_LIT("level"))));
}

struct msg *client_copy_message(const struct envelope *env, const struct splice_edit *edits,
				size_t count)
{
	at_end(buf_fini) struct buf text = { 0 };

	splice_append(&text, env->text, edits, count, env->has_line_break ? SPLICE_ONE_LINE : 0);
	return msg_new(buf_slice(&text));
}

struct stream *client_stream(const struct client *client)
{
	return client->session != NULL ? &client->session->standalone : NULL;
}

const void *client_fairness_key(const struct client *client)
{
	if (principal_is_anonymous(client->principal)) {
		CHECK(client->holder != NULL);
		return client->holder->is_crowd ? client : (const void *)client->holder;
	}
	return client->pool->principal != NULL ? (const void *)client : client->principal;
}

unsigned int client_lacks(const struct client *client, const struct upstream *upstream)
{
	unsigned int lacks = 0;

	if (upstream == NULL || upstream->revision == NULL)
		return 0;
	/* A shared process offers no tasks of 2025-11-25. bridging.md §2.5 */
	if (upstream->pool != NULL && pool_is_shared(upstream->pool))
		lacks = upstream->revision->features & REVISION_TASKS;
	return lacks | revision_lacks(client->revision, upstream->revision);
}

/* ---- admitted ---- */

/*
 * A position in an array of messages. Only this file knows the struct: nobody else can make one, or
 * change what it is for.
 */

struct admitted {
	const struct client *client;
	struct rights rights;
	const struct audit_origin *origin;
	const struct envelope *messages;
	size_t count;
	size_t next;
	bool is_taken; /* the one before `next` */
};

struct admitted *admitted_new(const struct client *client, const struct rights *rights,
			      const struct audit_origin *origin, const struct envelope *messages,
			      size_t count)
{
	struct admitted *admitted = mem_alloc(sizeof(*admitted));

	CHECK(count > 0);
	CHECK(client != NULL || count == 1);
	*admitted = (struct admitted){ .client = client,
				       .rights = *rights,
				       .origin = origin,
				       .messages = messages,
				       .count = count };
	return admitted;
}

void admitted_free(struct admitted **admitted)
{
	free(*admitted);
	*admitted = NULL;
}

size_t admitted_count(const struct admitted *admitted)
{
	return admitted->count;
}

const struct audit_origin *admitted_origin(const struct admitted *admitted)
{
	return admitted->origin;
}

const struct envelope *admitted_next(struct admitted *admitted)
{
	if (admitted->next == admitted->count)
		return NULL;
	admitted->is_taken = false;
	return &admitted->messages[admitted->next++];
}

const struct envelope *admitted_take(struct admitted *admitted, const struct client *client)
{
	CHECK(admitted->next > 0 && !admitted->is_taken);
	CHECK(admitted->client == client);
	admitted->is_taken = true;
	return &admitted->messages[admitted->next - 1];
}

const struct rights *admitted_rights(const struct admitted *admitted)
{
	return &admitted->rights;
}

/* ---- in flight ---- */

/* A task may outlive its caller's session, so the count has its own reference to the principal. */

struct in_flight {
	struct holder *counted
		[2]; /* of the server, of the tool; NULL: there is no such limit, or it is over */
	struct principal *principal;
	struct loop *loop;
	struct timer kept;
	struct upstream_leftover leftover;
	bool is_left; /* owned by nobody: freed when it stops counting */
};

static void stop(struct in_flight *in_flight)
{
	for (size_t i = 0; i < ARRAY_LEN(in_flight->counted); i++) {
		if (in_flight->counted[i] != NULL)
			in_flight->counted[i]->count--;
		holder_unref(&in_flight->counted[i]);
	}
	principal_unref(&in_flight->principal);
}

/* It counts no longer; whoever owns it frees it later. */
static void on_over(struct in_flight *in_flight)
{
	if (in_flight->is_left)
		in_flight_free(&in_flight);
	else
		stop(in_flight);
}

static void on_kept(struct timer *timer)
{
	on_over(container_of(timer, struct in_flight, kept));
}

static void on_leftover(struct upstream_leftover *leftover)
{
	on_over(container_of(leftover, struct in_flight, leftover));
}

/*
 * Whether the call counts until its end: subscription streams have no end, and requests about tasks
 * are needed to see how tasks end.
 */
static bool has_end(const struct envelope *env)
{
	enum method_id method = method_find(env->method)->id;

	return method != METHOD_LISTEN && method != METHOD_TASKS;
}

struct in_flight *in_flight_new(const struct client *client, const struct envelope *env)
{
	const struct call_limits *limits = &client->server->conf.limits;
	const struct call_limit *applied[] = { &limits->all, call_limits_of_tool(limits, env) };
	struct in_flight *in_flight = NULL;

	_Static_assert(ARRAY_LEN(applied) == ARRAY_LEN(in_flight->counted), "a place for each");
	for (size_t i = 0; i < ARRAY_LEN(applied); i++) {
		if (applied[i] == NULL || applied[i]->concurrency == 0 || !has_end(env))
			continue;
		if (in_flight == NULL) {
			in_flight = mem_zalloc(sizeof(*in_flight));
			in_flight->loop = client->router->loop;
			in_flight->principal = principal_ref(client->principal);
			timer_init(&in_flight->kept, on_kept);
			list_init(&in_flight->leftover.link);
			in_flight->leftover.on_over = on_leftover;
		}
		in_flight->counted[i] =
			holder_get(&client->router->sessions.holders, applied[i]->in_flight_scope,
				   client->principal, &client->peer);
		in_flight->counted[i]->count++;
	}
	return in_flight;
}

void in_flight_keep(struct in_flight *in_flight, uint64_t ms)
{
	if (in_flight != NULL && in_flight->principal != NULL)
		timer_start(in_flight->loop, &in_flight->kept, ms);
}

void in_flight_bind(struct in_flight *in_flight, struct upstream *upstream, uint64_t id)
{
	if (in_flight == NULL || in_flight->principal == NULL)
		return;
	list_remove(&in_flight->leftover.link);
	in_flight->leftover.id = id;
	list_append(&upstream->leftovers, &in_flight->leftover.link);
}

void in_flight_leave(struct in_flight **in_flight, uint64_t ms)
{
	struct in_flight *left = *in_flight;

	*in_flight = NULL;
	if (left == NULL)
		return;
	if (left->principal == NULL) {
		in_flight_free(&left);
		return;
	}
	CHECK(!list_is_empty(&left->leftover.link));
	left->is_left = true;
	timer_start(left->loop, &left->kept, ms);
}

void in_flight_free(struct in_flight **in_flight)
{
	if (*in_flight == NULL)
		return;
	timer_stop(&(*in_flight)->kept);
	list_remove(&(*in_flight)->leftover.link);
	stop(*in_flight);
	free(*in_flight);
	*in_flight = NULL;
}

/* ---- capability class ---- */

/*
 * A class leaves out roots.listChanged and tasks, which are declared only to a session's own
 * process, and unknown members. Extensions and experimental capabilities count as they were
 * written.
 */

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

static bool is_declared(struct json value)
{
	return value.type != JSON_ABSENT && value.type != JSON_NULL && value.type != JSON_FALSE;
}

/*
 * {"a":{},"b":{}} with those that `value` has; if it has neither, with `otherwise`, if that is
 * given.
 */
static void capability_class_append_parts(struct buf *out, struct json value,
					  const char *const parts[2], const char *otherwise)
{
	buf_append_char(out, '{');
	for (size_t i = 0; i < 2; i++)
		if (is_declared(scan_member(value.text, slice_str(parts[i]))))
			write_member(out, slice_str(parts[i]), SLICE_LIT("{}"));
	if (out->data[out->len - 1] == '{' && otherwise != NULL)
		write_member(out, slice_str(otherwise), SLICE_LIT("{}"));
	buf_append_char(out, '}');
}

enum kind { ROOTS, SAMPLING, ELICITATION, EXTENSIONS, EXPERIMENTAL, KINDS };

static const struct slice kinds[KINDS] = {
	[ROOTS] = SLICE("roots"),
	[SAMPLING] = SLICE("sampling"),
	[ELICITATION] = SLICE("elicitation"),
	[EXTENSIONS] = SLICE("extensions"),
	[EXPERIMENTAL] = SLICE("experimental"),
};

/*
 * Except for that of tasks, which each request declares itself: it decides neither what a server
 * offers nor whether it asks.
 */
static void append_extensions(struct buf *out, struct json value)
{
	at_end(buf_fini) struct buf others = { 0 };

	if (value.type != JSON_OBJECT)
		return;
	task_extension_append_others(&others, value.text);
	if (others.len > 2)
		write_member(out, kinds[EXTENSIONS], buf_slice(&others));
}

void capability_class_append(struct buf *out, struct slice capabilities, bool has_extras)
{
	static const char *const sampling_parts[] = { "tools", "context" };
	static const char *const elicitation_parts[] = { "form", "url" };
	struct json declared[KINDS] = { { .type = JSON_ABSENT } };

	SCAN_MEMBERS(member, capabilities)
		for (enum kind kind = 0; kind < KINDS; kind++)
			if (declared[kind].type == JSON_ABSENT &&
			    slice_is_equal(member.name, kinds[kind]))
				declared[kind] = member.value;
	buf_append_char(out, '{');
	if (is_declared(declared[ROOTS]))
		write_member(out, kinds[ROOTS], SLICE_LIT("{}"));
	if (is_declared(declared[SAMPLING])) {
		write_name(out, kinds[SAMPLING]);
		capability_class_append_parts(out, declared[SAMPLING], sampling_parts, NULL);
	}
	if (is_declared(declared[ELICITATION])) {
		write_name(out, kinds[ELICITATION]);
		capability_class_append_parts(out, declared[ELICITATION], elicitation_parts,
					      "form");
	}
	if (has_extras)
		append_extensions(out, declared[EXTENSIONS]);
	if (has_extras && declared[EXPERIMENTAL].type == JSON_OBJECT)
		splice_member(out, kinds[EXPERIMENTAL], declared[EXPERIMENTAL].text);
	buf_append_char(out, '}');
}

struct msg *capability_class_initialize(const struct revision *revision, struct slice class)
{
	at_end(buf_fini) struct buf params = { 0 };
	struct buf text = { 0 };

	buf_printf(&params,
		   "{\"protocolVersion\":\"%.*s\",\"capabilities\":", SLICE_ARG(revision->name));
	buf_append_slice(&params, class);
	buf_append_str(&params,
		       ",\"clientInfo\":{\"name\":\"mcpgated\",\"version\":\"" PACKAGE_VERSION
		       "\"}}");
	write_call(&text, SLICE_LIT("0"), SLICE_LIT("initialize"), buf_slice(&params));
	return msg_new_take(&text);
}
