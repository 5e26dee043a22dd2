/* SPDX-License-Identifier: Apache-2.0 */
/* No process is started for one: a task ends with its process. */
#include "router/task_call.h"

#include "base/mem.h"
#include "mcp/error.h"
#include "router/call.h"
#include "router/capability_class.h"
#include "router/client.h"
#include "router/pool_demand.h"
#include "router/result.h"
#include "router/router.h"
#include "router/task_id.h"
#include "upstream/claims.h"

struct upstream *task_call_find_upstream(const struct client *client, struct slice claims,
					 const struct task_id *id)
{
	LIST_FOREACH(node, &client->router->slots.pools) {
		struct pool *pool = container_of(node, struct pool, link);
		struct upstream *upstream = NULL;

		if (pool->server == client->server &&
		    (pool->principal == NULL || pool->principal == client->principal) &&
		    slice_is_equal(buf_slice(&pool->setup.claims), claims))
			upstream = pool_find_upstream(pool, id->child);
		if (upstream != NULL)
			return upstream;
	}
	return NULL;
}

enum reason task_call_join(struct pool_member *member, struct call *call,
			   const struct envelope *env)
{
	struct client *client = member->client;
	struct json name = scan_member(env->params.text, SLICE_LIT("taskId"));
	struct buf claims = { 0 }, class = { 0 };
	struct upstream *upstream = NULL;

	if (claims_append(&claims, &client->server->conf, client->principal) < 0) {
		buf_fini(&claims);
		return REASON_CLAIM_MISSING;
	}
	call->task = task_id_open(client, name);
	if (call->task != NULL)
		upstream = task_call_find_upstream(client, buf_slice(&claims), call->task);
	buf_fini(&claims);
	if (upstream == NULL) {
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown task"));
		return REASON_DONE;
	}
	pool_join_as(member, upstream->pool);
	/* What it may be asked, in a pool whose clients differ in that. */
	if (upstream->pool->principal == NULL) {
		capability_class_append(&class, env->client_capabilities.text, true);
		client->capabilities = mem_dup_slice(buf_slice(&class));
		buf_fini(&class);
	}
	return REASON_NONE;
}

bool task_call_is_known(const struct router *router, const struct server *server)
{
	LIST_FOREACH(node, &router->slots.pools) {
		const struct pool *pool = container_of(node, struct pool, link);

		if (pool->server == server && pool->agreed != NULL)
			return (pool->capabilities.offers & OFFER_TASKS) != 0;
	}
	return era_of(server) != ERA_LEGACY;
}
