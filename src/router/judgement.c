/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Its front judges the call as admission does. What only a server's list can tell follows, as on
 * the call's first way. Limits are not asked: the call was counted when it came.
 */
#include "router/judgement.h"

#include "router/client.h"
#include "router/dispatch.h"
#include "router/list_cache.h"
#include "router/list_wait.h"
#include "router/listing.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"
#include "router/tool_check.h"

static void send_on(struct call *call, const struct envelope *env)
{
	const struct client *client = call->client;

	/* As in forward: of an endpoint over several servers each caller has its own lists. */
	if (!pool_is_shared(client->pool) || client->server->conf.legs.count > 0 ||
	    !list_cache_take(call, env))
		dispatch_call(call, env);
}

static void go_on(struct call *call, const struct envelope *env)
{
	pin_check_begin(send_on, call, env);
}

void judgement_begin(struct call *call, const struct envelope *env)
{
	struct call_refusal refusal;

	CHECK(call->state == CALL_WAITING && call->waiter.queue == NULL);
	call->configuration = call->client->router->configuration;
	msg_unref(&call->body); /* whoever needs it again copies the message */
	if (call->ops->judge == NULL) {
		send_on(call, env);
	} else if (!call->ops->judge(call, env, &refusal)) {
		call->refused_by = refusal.rule;
		call->refused_as = refusal.word;
		result_send_error(call, refusal.code, slice_str(refusal.text));
	} else if (tool_check_is_needed(call)) {
		tool_check_begin(go_on, call, env);
	} else {
		go_on(call, env);
	}
}
