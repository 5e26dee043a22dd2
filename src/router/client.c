/* SPDX-License-Identifier: Apache-2.0 */
#include "router/client.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "jsonrpc/splice.h"
#include "mcp/level.h"
#include "mcp/revision.h"
#include "router/call.h"
#include "router/pool.h"
#include "router/router.h"
#include "session/holder.h"
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
	list_init(&client->list_waits);
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
	map_fini(&client->server_requests.by_id);
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
	struct buf text = { 0 };
	struct msg *msg;

	splice_append(&text, env->text, edits, count, env->has_line_break ? SPLICE_ONE_LINE : 0);
	msg = msg_new(buf_slice(&text));
	buf_fini(&text);
	return msg;
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
	/*
	 * Tasks in a principal's pool are for sessions: only they have been told of them.
	 * bridging.md §2.5
	 */
	if (upstream->pool != NULL && pool_is_shared(upstream->pool) &&
	    (upstream->pool->principal == NULL || client->session == NULL))
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
