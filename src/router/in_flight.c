/* SPDX-License-Identifier: Apache-2.0 */
/* A task may outlive its caller's session, so the count has its own reference to the principal. */
#include "router/in_flight.h"

#include <stdlib.h>

#include "base/mem.h"
#include "io/loop.h"
#include "mcp/method.h"
#include "policy/call_limits.h"
#include "router/client.h"
#include "router/router.h"
#include "session/holder.h"
#include "session/principal.h"
#include "upstream/leftover.h"
#include "upstream/upstream.h"

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
