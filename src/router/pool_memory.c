/* SPDX-License-Identifier: Apache-2.0 */
#include "router/pool_memory.h"

#include <string.h>

#include "router/convert.h"
#include "router/era.h"
#include "router/listing.h"
#include "router/pool.h"
#include "router/router.h"
#include "upstream/upstream.h"

static struct pool_memories *memories_of(const struct pool *pool)
{
	return &pool->router->pool_memories;
}

void pool_memories_init(struct pool_memories *memories)
{
	*memories = (struct pool_memories){ .count_max = POOL_MEMORIES_MAX,
					    .bytes_max = POOL_MEMORIES_BYTES };
	list_init(&memories->idle);
}

static bool is_idle(const struct pool *pool)
{
	return !list_is_empty(&pool->memory.link);
}

static void leave_idle(struct pool *pool)
{
	struct pool_memories *memories = memories_of(pool);

	if (!is_idle(pool))
		return;
	CHECK(memories->count > 0 && memories->bytes >= pool->memory.bytes);
	memories->count--;
	memories->bytes -= pool->memory.bytes;
	list_remove(&pool->memory.link);
}

/* When it is woken, the pool notices that nothing holds it any longer. */
static void pool_memory_on_end(struct timer *timer)
{
	pool_wake(container_of(timer, struct pool, memory.ends));
}

void pool_memory_init(struct pool *pool)
{
	list_init(&pool->memory.link);
	timer_init(&pool->memory.ends, pool_memory_on_end);
}

void pool_memory_fini(struct pool *pool)
{
	leave_idle(pool);
	timer_stop(&pool->memory.ends);
	msg_unref(&pool->memory.described);
}

void pool_memory_begin(struct pool *pool)
{
	uint64_t remember_ms = pool->server->conf.remember_ms;

	CHECK(pool_is_shared(pool) && pool->upstream_count == 0);
	if (remember_ms == 0 || pool->initialize_result == NULL)
		return;
	pool->memory.restarts = pool->server->restarts;
	timer_start(pool->router->loop, &pool->memory.ends, remember_ms);
}

void pool_memory_end(struct pool *pool)
{
	timer_stop(&pool->memory.ends);
}

void pool_memory_note_lost(struct pool *pool)
{
	pool->memory.losses++;
	pool_memory_end(pool);
}

bool pool_memory_holds(const struct pool *pool)
{
	return timer_is_running(&pool->memory.ends) && !pool_is_retired(pool) &&
	       pool->memory.restarts == pool->server->restarts &&
	       pool->agreed->is_modern == (era_of(pool->server) == ERA_MODERN);
}

static void set_initialize_result(struct pool *pool, struct msg *msg)
{
	msg_unref(&pool->initialize_result);
	pool->initialize_result = msg;
	pool->server_info = era_server_info(msg->text);
}

bool pool_memory_describe(struct pool *pool, struct slice result, struct slice written)
{
	struct msg *now = server_capabilities_share(result, pool->principal != NULL);
	bool is_other = pool->initialize_result == NULL ||
			!slice_is_equal(pool->initialize_result->text, now->text);

	msg_unref(&pool->memory.described);
	pool->memory.described =
		slice_is_equal(result, written) ?
			msg_ref(now) :
			server_capabilities_share(written, pool->principal != NULL);
	set_initialize_result(pool, now);
	return is_other;
}

void pool_memory_use_rules(struct pool *pool)
{
	at_end(convert_fini) struct convert pinned = { 0 };
	at_end(msg_unref) struct msg *now = NULL;

	if (pool->initialize_result == NULL)
		return;
	now = intake_again(pool->server, &scan_limits_none, pool->memory.described->text);
	/* Always: only our own members stand beside the result. */
	if (now != NULL)
		set_initialize_result(
			pool, msg_new(pinning_take_server(&pinned, pool->server, now->env)->text));
}

/* Leaves the pool as if it had never had a process. */
static void pool_memory_forget(struct pool *pool)
{
	CHECK(pool->member_count == 0 && pool->upstream_count == pool->starting);
	pool_memory_end(pool);
	pool->agreed = NULL;
	pool->server_info = slice_of(NULL, 0);
	pool->capabilities = (struct server_capabilities){ 0, 0 };
	msg_unref(&pool->initialize_result);
	msg_unref(&pool->memory.described);
}

static size_t count_bytes(const struct pool *pool)
{
	return sizeof(*pool) + pool->initialize_result->text.n +
	       (pool->memory.described != pool->initialize_result ? pool->memory.described->text.n :
								    0) +
	       pool->setup.initialize->text.n + pool->setup.claims.len +
	       pool->setup.capabilities.len + strlen(pool->class);
}

static bool pool_memory_has_room(const struct pool_memories *memories)
{
	return memories->count <= memories->count_max && memories->bytes <= memories->bytes_max;
}

/* The pool is freed later, when none of its functions is on the call stack. */
static void pool_memory_give_up(struct pool *pool)
{
	leave_idle(pool);
	pool_memory_end(pool);
	pool_wake(pool);
}

/* A caller that makes up many kinds of clients only drives out its own pools. */
static void keep_to_share(const struct pool *pool)
{
	struct pool *oldest = NULL;
	size_t count = 0;

	LIST_EACH(struct pool, other, &memories_of(pool)->idle, memory.link) {
		if (other->server != pool->server || other->principal != pool->principal)
			continue;
		if (oldest == NULL)
			oldest = other;
		count++;
	}
	if (count > POOL_MEMORIES_EACH)
		pool_memory_give_up(oldest);
}

bool pool_memory_keep(struct pool *pool)
{
	struct pool_memories *memories = memories_of(pool);

	if (is_idle(pool) && pool_memory_holds(pool))
		return true;
	leave_idle(pool);
	if (!pool_memory_holds(pool)) {
		pool_memory_forget(pool);
		return false;
	}
	pool->memory.bytes = count_bytes(pool);
	list_append(&memories->idle, &pool->memory.link);
	memories->count++;
	memories->bytes += pool->memory.bytes;
	keep_to_share(pool);
	while (!pool_memory_has_room(memories))
		pool_memory_give_up(container_of(memories->idle.next, struct pool, memory.link));
	return true; /* if the pool itself had to go, it gets another turn */
}

void pool_memory_use(struct pool *pool)
{
	leave_idle(pool);
	if (pool->member_count == 0 && pool->upstream_count == pool->starting &&
	    !pool_memory_holds(pool))
		pool_memory_forget(pool);
}
