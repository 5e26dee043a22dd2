/* SPDX-License-Identifier: Apache-2.0 */
#include "router/kept_pools.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/revision.h"
#include "process/server.h"
#include "process/spawn.h"
#include "router/pool.h"
#include "router/router.h"
#include "upstream/upstream.h"

#define DEPTH_MAX 1024 /* of a line; what it contains was accepted before, under any limit */

#define SHORT_BYTES 4096 /* of lines that come first */

/* ---- lines ---- */

void kept_text_put(struct kept_text *text, const struct buf *line)
{
	CHECK(text->at <= text->max);
	if (line->len > KEPT_LINE_MAX || line->len > text->max - text->at) {
		text->lacks_some = true;
		return;
	}
	memcpy(text->bytes + text->at, line->data, line->len);
	text->at += line->len;
}

struct slice kept_line(const struct buf *text)
{
	struct slice line = slice_of(text->data, text->len - 1);
	at_end(buf_fini) struct buf valid = { 0 };

	if (canonical_append(&valid, line, DEPTH_MAX) < 0)
		line.n = 0;
	return line;
}

bool kept_line_read_id(struct slice line, struct slice begin, struct digest *id_r)
{
	size_t n;

	return slice_has_prefix(line, begin) && line.n >= begin.n + 1 + DIGEST_TEXT &&
	       text_from_base64url(slice_of(line.p + begin.n + 1, DIGEST_TEXT), id_r->bytes, &n) ==
		       0;
}

const struct revision *kept_line_revision(struct json name)
{
	struct slice text = scan_plain_string(name);

	return revision_is_modern(text) ? &revision_modern : revision_find(text);
}

/* ---- the set ---- */

static struct kept_pools *pools_of(const struct pool *pool)
{
	return &pool->router->kept_sessions.pools;
}

static struct kept_pool *kept_pool_new(struct kept_pools *pools, const struct digest *id)
{
	struct kept_pool *one = mem_zalloc(sizeof(*one));

	one->id = *id;
	list_init(&one->processes);
	list_append(&pools->list, &one->link);
	return one;
}

static void kept_pool_drop(struct kept_pool *one)
{
	CHECK(list_is_empty(&one->processes));
	if (one->pool != NULL)
		one->pool->kept = NULL;
	list_remove(&one->link);
	buf_fini(&one->line);
	free(one);
}

/* Of this pool, or of the gateway before. pool NULL: of any that is for new clients, or of the gateway before. */
static struct kept_pool *find_pool(const struct kept_pools *pools, const struct digest *id,
				   const struct pool *pool)
{
	LIST_EACH(struct kept_pool, one, &pools->list, link)
		if ((one->pool == NULL ||
		     (pool != NULL ? one->pool == pool : !pool_is_retired(one->pool))) &&
		    memcmp(one->id.bytes, id->bytes, DIGEST_BYTES) == 0)
			return one;
	return NULL;
}

struct kept_pool *kept_pools_find(const struct kept_pools *pools, const struct digest *id)
{
	return find_pool(pools, id, NULL);
}

void kept_pools_forget_idle(struct kept_pools *pools)
{
	LIST_EACH_SAFE(struct kept_pool, one, &pools->list, link)
		if (one->pool == NULL && list_is_empty(&one->processes))
			kept_pool_drop(one);
}

void kept_pools_drop_all(struct kept_pools *pools)
{
	LIST_EACH_SAFE(struct kept_pool, one, &pools->list, link) {
		LIST_EACH_SAFE(struct upstream, upstream, &one->processes, link)
			upstream_close(upstream, REASON_IDLE_TIMEOUT);
		kept_pool_drop(one);
	}
}

void kept_pools_put(const struct kept_pools *pools, struct kept_text *text)
{
	size_t above = 0;

	for (size_t most = SHORT_BYTES; above < text->max; most *= 4) {
		LIST_EACH(struct kept_pool, one, &pools->list, link) {
			const struct pool *pool = one->pool;
			const struct buf *line = &one->line;

			/* The pool of now may have the same id as one from before a reload, which nobody inherits. */
			if (line->len > above && line->len <= most &&
			    (pool == NULL || !pool_is_retired(pool)))
				kept_text_put(text, line);
		}
		above = most;
	}
}

bool kept_pools_take_line(struct kept_pools *pools, struct slice line)
{
	struct kept_pool *one;
	struct digest id;

	if (!kept_line_read_id(line, SLICE_LIT(KEPT_POOL_BEGIN), &id))
		return false;
	if (kept_pools_find(pools, &id) != NULL)
		return true; /* before and after a reload of its server */
	one = kept_pool_new(pools, &id);
	buf_append_slice(&one->line, line);
	buf_append_char(&one->line, '\n');
	return true;
}

/* ---- processes ---- */

bool kept_pools_hold(const struct kept_pools *pools, const struct server *server, uint64_t child)
{
	LIST_EACH(struct kept_pool, one, &pools->list, link)
		LIST_EACH(const struct upstream, held, &one->processes, link)
			if (held->server == server && upstream_child_number(held) == child)
				return true;
	return false;
}

static void digest_pool(const struct pool *pool, struct digest *digest_r)
{
	struct slice server = slice_str(pool->server->conf.name), class = slice_str(pool->class);
	struct slice claims = buf_slice(&pool->setup.claims);
	at_end(buf_fini) struct buf text = { 0 };
	struct digest owner = { { 0 } };

	if (pool->principal != NULL)
		digest_principal(pool->principal, &owner);
	buf_append(&text, (const char *)owner.bytes, DIGEST_BYTES);
	buf_printf(&text, "%zu:%.*s%zu:%.*s%zu:%.*s", server.n, SLICE_ARG(server), class.n,
		   SLICE_ARG(class), claims.n, SLICE_ARG(claims));
	digest_bytes(buf_slice(&text), digest_r);
}

static void write_pool(struct kept_pool *one)
{
	const struct pool *pool = one->pool;

	one->line.len = 0;
	buf_append_str(&one->line, KEPT_POOL_BEGIN);
	digest_append(&one->line, &one->id);
	buf_append_str(&one->line, ",\"server\":");
	write_string(&one->line, slice_str(pool->server->conf.name));
	buf_printf(&one->line,
		   ",\"agreed\":\"%.*s\",\"described\":", SLICE_ARG(pool->agreed->name));
	splice_append(&one->line, pool->memory.described->text, NULL, 0, SPLICE_ONE_LINE);
	buf_append_str(&one->line, "}\n");
}

static void keep_process(const struct upstream *upstream)
{
	struct pool *pool = upstream->pool;
	struct kept_pools *pools = pools_of(pool);
	struct digest id;

	if (upstream->child == NULL || pool_is_retired(pool) || !pools->is_on)
		return;
	digest_pool(pool, &id);
	if (pool->kept == NULL)
		pool->kept = find_pool(pools, &id, pool);
	if (pool->kept == NULL)
		pool->kept = kept_pool_new(pools, &id);
	pool->kept->pool = pool;
	write_pool(pool->kept);
	spawned_note_owner(&upstream->child->spawned,
			   slice_of((const char *)id.bytes, DIGEST_BYTES));
	pools->on_change(pools, false);
}

void kept_pool_note_process(const struct upstream *upstream)
{
	CHECK(pool_is_shared(upstream->pool) && upstream_is_serving(upstream));
	if (!pool_is_leased(upstream->pool))
		keep_process(upstream);
}

void kept_pools_note_all(const struct list *all)
{
	LIST_EACH(const struct pool, pool, all, link)
		LIST_EACH(const struct upstream, upstream, &pool->upstreams, link)
			if (pool_is_shared(pool) && upstream_is_serving(upstream))
				kept_pool_note_process(upstream);
}

void kept_pool_hand_over(const struct upstream *upstream)
{
	const struct pool *pool = upstream->pool;

	if (pool_is_shared(pool) && pool_is_leased(pool) && pool->upstream_count == 1 &&
	    upstream->state == UPSTREAM_READY && upstream->lease == NULL &&
	    upstream_load(upstream) == 0)
		keep_process(upstream);
}

void kept_pool_end(struct pool *pool)
{
	struct kept_pool *one = pool->kept;

	if (one == NULL)
		return;
	pool->kept = NULL;
	one->pool = NULL;
	if (list_is_empty(&one->processes))
		kept_pool_drop(one);
	pools_of(pool)->on_change(pools_of(pool), false);
}

bool kept_pool_has_processes(const struct pool *pool)
{
	const struct kept_pool *one;
	struct digest id;

	if (!timer_is_running(&pool->router->kept_sessions.holding))
		return false; /* none is held at all */
	digest_pool(pool, &id);
	one = find_pool(pools_of(pool), &id, pool);
	if (one == NULL)
		return false;
	LIST_EACH(struct upstream, upstream, &one->processes, link)
		if (upstream->server == pool->server)
			return true;
	return false;
}

struct upstream *kept_pool_take_process(struct pool *pool)
{
	struct kept_pools *pools = pools_of(pool);
	const struct revision *agreed;
	struct upstream *process = NULL;
	struct kept_pool *one;
	struct slice line;
	struct digest id;

	digest_pool(pool, &id);
	one = find_pool(pools, &id, pool);
	if (one == NULL || list_is_empty(&one->processes))
		return NULL;
	line = kept_line(&one->line);
	agreed = kept_line_revision(scan_member(line, SLICE_LIT("agreed")));
	while (process == NULL && !list_is_empty(&one->processes)) {
		process = container_of(one->processes.next, struct upstream, link);
		list_remove(&process->link);
		if (process->server == pool->server && agreed != NULL)
			break;
		upstream_close(process, REASON_RETIRED);
		process = NULL;
	}
	if (process != NULL) {
		process->revision = agreed;
		msg_unref(&pool->inherited_result);
		pool->inherited_result = msg_new(scan_member(line, SLICE_LIT("described")).text);
	}
	/*
	 * If this gateway dies before the process has answered, the next one needs the line, too. That its server is
	 * modern, the pool may not know yet.
	 */
	if (process != NULL && (agreed->is_modern || !pool_is_leased(pool))) {
		one->pool = pool;
		pool->kept = one;
	}
	if (list_is_empty(&one->processes) && one->pool == NULL) {
		kept_pool_drop(one);
		pools->on_change(pools, true); /* or it would be taken again, with calls of ours */
	}
	return process;
}
