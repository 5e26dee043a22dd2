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

struct in_flight {
	struct holder *counted
		[2]; /* of the server, of the tool; NULL: there is no such limit, or it is over */
	struct principal *principal;
	struct loop *loop;
	struct timer kept;
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

static void on_kept(struct timer *timer)
{
	stop(container_of(timer, struct in_flight, kept));
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

void in_flight_free(struct in_flight **in_flight)
{
	if (*in_flight == NULL)
		return;
	timer_stop(&(*in_flight)->kept);
	stop(*in_flight);
	free(*in_flight);
	*in_flight = NULL;
}
