/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe's process counts towards the limits of its server; if no further process may run, the
 * probe waits for room as long as it would wait for an answer. Whatever does not prove the modern
 * era counts as legacy: whether that is right shows when the server is sent initialize.
 */
#include "upstream/era_probe.h"

#include "base/check.h"
#include "base/mem.h"
#include "io/loop.h"
#include "process/server.h"
#include "upstream/modern.h"
#include "upstream/stdio.h"
#include "upstream/upstream.h"

#define ANSWER_MS 15000
#define RETRY_MS 1000

struct era_probe {
	struct list link;
	struct era_probes *probes;
	struct server *server;
	struct upstream *upstream; /* NULL: there is no room for its process, or it is closed */
	struct upstream_setup setup;
	struct list waiters;
	struct timer retry;
	struct timer deadline;
	struct task telling;
	bool is_over;
};

static struct era_waiter *waiter_at(struct list *node)
{
	return container_of(node, struct era_waiter, link);
}

static void era_probe_free(struct era_probe *probe)
{
	CHECK(probe->upstream == NULL);
	probe->server->users--;
	list_remove(&probe->link);
	timer_stop(&probe->retry);
	timer_stop(&probe->deadline);
	task_cancel(&probe->telling);
	buf_fini(&probe->setup.claims);
	loop_defer_free(probe->probes->shared->loop, probe);
}

/* Waiters may do anything, so they are told when nothing of the process is on the call stack. */
static void era_probe_on_telling(struct task *task)
{
	struct era_probe *probe = container_of(task, struct era_probe, telling);
	struct list waiters;

	list_init(&waiters);
	list_splice(&waiters, &probe->waiters);
	era_probe_free(probe);
	while (!list_is_empty(&waiters)) {
		struct era_waiter *waiter = waiter_at(waiters.next);

		era_waiter_leave(waiter);
		waiter->on_verdict(waiter);
	}
}

static void era_probe_end(struct era_probe *probe, enum era era)
{
	CHECK(!probe->is_over);
	probe->is_over = true;
	timer_stop(&probe->retry);
	timer_stop(&probe->deadline);
	era_note_probed(probe->server, era);
	task_schedule(probe->probes->shared->loop, &probe->telling);
}

/* ---- what the process does ---- */

static struct era_probe *probe_of(const struct upstream *upstream)
{
	return container_of(upstream->setup, struct era_probe, setup);
}

/* The response is not used: a process that serves clients is asked again. */
static void era_probe_on_ready(struct upstream *upstream, const struct envelope *response,
			       struct slice described)
{
	CHECK(upstream_is_modern(upstream));
	(void)response;
	(void)described;
	era_probe_end(probe_of(upstream), ERA_MODERN);
	upstream_close(upstream, REASON_DONE);
}

/* Other errors prove nothing: older servers return all kinds of them. BACK-ERA-03 */
static void era_probe_on_refused(struct upstream *upstream, const struct envelope *response)
{
	bool is_modern = modern_is_named(response->error.text);

	era_probe_end(probe_of(upstream), is_modern ? ERA_MODERN : ERA_LEGACY);
	upstream_close(upstream, REASON_DONE);
}

/* The loss of the process counts like an answer that does not prove the modern era. */
static void era_probe_on_closed(struct upstream *upstream)
{
	struct era_probe *probe = probe_of(upstream);

	CHECK(probe->upstream == upstream);
	probe->upstream = NULL;
	if (!probe->is_over)
		era_probe_end(probe, ERA_LEGACY);
}

static void era_probe_on_lost(struct upstream *upstream, enum reason reason)
{
	(void)upstream;
	(void)reason; /* on_closed has run before */
}

static const struct upstream_owner_ops owner_ops = {
	.on_ready = era_probe_on_ready,
	.on_refused = era_probe_on_refused,
	.on_closed = era_probe_on_closed,
	.on_lost = era_probe_on_lost,
};

static void era_probe_on_deadline(struct timer *timer)
{
	struct era_probe *probe = container_of(timer, struct era_probe, deadline);

	era_probe_end(probe, ERA_LEGACY);
	if (probe->upstream != NULL)
		upstream_close(probe->upstream, REASON_DONE);
}

/* ---- the beginning ---- */

static void era_probe_start(struct era_probe *probe)
{
	struct upstream_shared *shared = probe->probes->shared;
	uint64_t wait_ms = 0;

	if (server_admit(probe->server, &wait_ms) != REASON_NONE) {
		timer_start(shared->loop, &probe->retry, RETRY_MS);
		return;
	}
	probe->upstream = stdio_new(shared, probe->server);
	probe->upstream->is_disposable = true;
	timer_start(shared->loop, &probe->deadline, wait_ms + ANSWER_MS);
	upstream_begin(probe->upstream, &owner_ops, &probe->setup, wait_ms);
}

static void era_probe_on_retry(struct timer *timer)
{
	era_probe_start(container_of(timer, struct era_probe, retry));
}

static struct era_probe *era_probe_new(struct era_probes *probes, struct server *server,
				       struct slice claims)
{
	struct era_probe *probe = mem_zalloc(sizeof(*probe));

	probe->probes = probes;
	probe->server = server;
	server->users++;
	probe->setup.era = &upstream_era_modern;
	buf_append_slice(&probe->setup.claims, claims);
	list_init(&probe->waiters);
	timer_init(&probe->retry, era_probe_on_retry);
	timer_init(&probe->deadline, era_probe_on_deadline);
	task_init(&probe->telling, era_probe_on_telling);
	list_append(&probes->all, &probe->link);
	return probe;
}

void era_probes_ask(struct era_probes *probes, struct server *server, struct slice claims,
		    struct era_waiter *waiter)
{
	struct era_probe *probe = NULL;

	CHECK(waiter->on_verdict != NULL && !era_waiter_is_waiting(waiter));
	LIST_FOREACH(node, &probes->all) {
		struct era_probe *other = container_of(node, struct era_probe, link);

		if (other->server == server)
			probe = other;
	}
	if (probe != NULL) {
		list_append(&probe->waiters, &waiter->link);
		return;
	}
	probe = era_probe_new(probes, server, claims);
	list_append(&probe->waiters, &waiter->link);
	timer_start(probes->shared->loop, &probe->deadline, ANSWER_MS);
	era_probe_start(probe);
}

void era_waiter_leave(struct era_waiter *waiter)
{
	list_remove(&waiter->link);
}

bool era_waiter_is_waiting(const struct era_waiter *waiter)
{
	return !list_is_empty(&waiter->link);
}

/* ---- all of them ---- */

void era_probes_init(struct era_probes *probes, struct upstream_shared *shared)
{
	probes->shared = shared;
	list_init(&probes->all);
}

void era_probes_end(struct era_probes *probes, enum reason reason)
{
	while (!list_is_empty(&probes->all)) {
		struct era_probe *probe = container_of(probes->all.next, struct era_probe, link);

		probe->is_over = true;
		while (!list_is_empty(&probe->waiters))
			era_waiter_leave(waiter_at(probe->waiters.next));
		if (probe->upstream != NULL)
			upstream_close(probe->upstream, reason);
		era_probe_free(probe);
	}
}
