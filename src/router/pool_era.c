/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For a legacy client, a server is sent initialize at once: most servers know it, and nobody has to
 * wait for a probe that legacy servers do not know. A server is probed only if it has failed or
 * refused to initialize, or is to serve a modern client.
 */
#include "router/pool_era.h"

#include "jsonrpc/scan.h"
#include "router/client.h"
#include "router/pool.h"
#include "router/router.h"
#include "upstream/modern.h"
#include "upstream/upstream_era.h"

static void ask(struct pool *pool, struct era_waiter *waiter)
{
	if (!era_waiter_is_waiting(waiter))
		era_probes_ask(&pool->router->era_probes, pool->server,
			       buf_slice(&pool->setup.claims), waiter);
}

static void on_verdict(struct era_waiter *waiter)
{
	pool_wake(container_of(waiter, struct pool, verdict));
}

/* A pool uses one era only: processes of the other one finish their calls. */
static void retire_others(struct pool *pool, bool is_modern)
{
	LIST_FOREACH_SAFE(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		if (upstream->state == UPSTREAM_READY && upstream_is_modern(upstream) != is_modern)
			upstream_retire(upstream);
	}
}

static void on_verdict_aside(struct era_waiter *waiter)
{
	struct pool *pool = container_of(waiter, struct pool, aside);

	if (era_of(pool->server) == ERA_MODERN)
		retire_others(pool, true);
	pool_wake(pool);
}

void pool_era_init(struct pool *pool)
{
	list_init(&pool->verdict.link);
	pool->verdict.on_verdict = on_verdict;
	list_init(&pool->aside.link);
	pool->aside.on_verdict = on_verdict_aside;
}

const struct upstream_era *pool_era_choose(const struct pool *pool)
{
	return era_of(pool->server) == ERA_MODERN ? &upstream_era_modern : &upstream_era_legacy;
}

static bool is_for_modern(const struct pool *pool)
{
	const struct pool_member *first =
		container_of(pool->joining.next, struct pool_member, link);

	return !list_is_empty(&pool->joining) && first->client->revision->is_modern;
}

bool pool_era_is_awaited(struct pool *pool)
{
	struct server *server = pool->server;

	if (!era_waiter_is_waiting(&pool->verdict) &&
	    first_looks_wait(&pool->router->first_looks, server, &pool->verdict))
		return true;
	/* A server whose starts are refused is not probed either: callers are refused at once. */
	if ((is_for_modern(pool) || era_is_doubtful(server)) && era_may_probe(server) &&
	    !backoff_has_given_up(&server->backoff))
		ask(pool, &pool->verdict);
	return era_waiter_is_waiting(&pool->verdict);
}

void pool_era_ask_aside(struct pool *pool)
{
	if (era_may_probe(pool->server) && !backoff_has_given_up(&pool->server->backoff))
		ask(pool, &pool->aside);
}

void pool_era_note_ready(const struct upstream *upstream)
{
	struct pool *pool = upstream->pool;
	bool is_modern = upstream_is_modern(upstream);

	if (is_modern)
		era_note(pool->server, ERA_MODERN);
	else
		era_note_answered(pool->server);
	retire_others(pool, is_modern);
}

void pool_era_note_lost(const struct upstream *upstream)
{
	if (upstream->era == NULL || upstream->ready_at_ms > 0)
		return;
	if (upstream_is_modern(upstream))
		era_note(upstream->server, ERA_UNKNOWN);
	else
		era_note_unanswered(upstream->server);
}

bool pool_era_reconsider(const struct upstream *upstream, const struct envelope *response)
{
	struct pool *pool = upstream->pool;

	if (upstream_is_modern(upstream))
		return false; /* it is a failure, and is reported as one */
	if (pool->server->conf.era == ERA_UNKNOWN && modern_is_named(response->error.text))
		era_note(pool->server, ERA_MODERN);
	else if (era_may_probe(pool->server))
		ask(pool, &pool->verdict);
	else
		return false;
	return true;
}
