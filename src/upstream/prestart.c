/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each of these processes counts towards the limits of its server.
 *
 * A probe that has no room waits for it as long as it would wait for an answer. Whatever does not
 * prove the modern era counts as legacy: whether that is right shows when the server is sent
 * initialize. A probe that fails is no failure of the server.
 *
 * A look that fails counts, and is logged, as a failure of the server like that of any other
 * process. A server that refuses initialize is asked again in the modern era, in a new process,
 * unless its era is known.
 */
#include "upstream/prestart.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "io/ipc.h"
#include "io/loop.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/revision.h"
#include "obs/log.h"
#include "process/child.h"
#include "process/server.h"
#include "session/principal.h"
#include "process/spawn.h"
#include "upstream/send.h"
#include "upstream/stdio.h"
#include "upstream/upstream.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define PROBE_ANSWER_MS 15000
#define RETRY_MS 1000
#define LOOKS_AT_ONCE 4
#define LIST_MS 30000
#define PAGES_MAX 200
#define PAGE_TOOLS_MAX 100000
#define CURSOR_BYTES_MAX 4096

enum trial_state {
	TRIAL_QUEUED,  /* has no process: a look waits for its turn, a probe for room */
	TRIAL_ASKED,   /* the process is started, and then sent the handshake */
	TRIAL_LISTING, /* a look: it has answered, and is asked for its tools */
	TRIAL_OVER,    /* those who wait are about to be told */
};

#define TO(state) (1u << TRIAL_##state)
static const struct state_row states[] = {
	[TRIAL_QUEUED] = { "queued", TO(ASKED) | TO(OVER) },
	[TRIAL_ASKED] = { "asked", TO(QUEUED) | TO(LISTING) | TO(OVER) },
	[TRIAL_LISTING] = { "listing", TO(OVER) },
	[TRIAL_OVER] = { "over", 0 },
};
#undef TO

struct trial {
	struct list link;
	struct prestart *prestart;
	struct server *server;
	bool is_look; /* false: a probe */
	enum trial_state state;
	struct upstream *upstream; /* NULL: there is none yet, or it is closed */
	struct upstream_setup setup;
	bool lacks_credential; /* its caller has none for the server */
	struct list waiters;
	struct task telling;
	struct timer retry;    /* a probe: is there room for its process? */
	struct timer deadline; /* a probe: of all of it; a look: of the list */
	/* of a look */
	struct upstream_request listing;
	uint64_t began_ms;
	uint64_t answered_ms; /* how long the handshake took */
	struct buf name;      /* what the server calls itself; decoded */
	struct buf version;
	size_t tools;
	size_t pages;
};

static void trial_set_state(struct trial *trial, enum trial_state state)
{
	CHECK(states[trial->state].next & 1u << state);
	LOG(TRIAL_STATE, LOG_STR("server", trial->server->conf.name),
	    LOG_STR("trial", trial->is_look ? "look" : "probe"),
	    LOG_STR("from", states[trial->state].name), LOG_STR("to", states[state].name));
	trial->state = state;
}

static struct trial *trial_of(const struct upstream *upstream)
{
	return container_of(upstream->setup, struct trial, setup);
}

/* ---- those who wait ---- */

static void trial_add_waiter(struct trial *trial, struct trial_waiter *waiter)
{
	CHECK(waiter->on_verdict != NULL && !trial_waiter_is_waiting(waiter));
	list_append(&trial->waiters, &waiter->link);
}

void trial_waiter_leave(struct trial_waiter *waiter)
{
	list_remove(&waiter->link);
}

bool trial_waiter_is_waiting(const struct trial_waiter *waiter)
{
	return !list_is_empty(&waiter->link);
}

static struct trial_waiter *take_waiter(struct list *waiters)
{
	struct trial_waiter *waiter = container_of(waiters->next, struct trial_waiter, link);

	trial_waiter_leave(waiter);
	return waiter;
}

/* ---- the end ---- */

static void trial_start(struct trial *trial);
static void look_go_on(struct prestart *prestart);

static void trial_free(struct trial *trial)
{
	CHECK(trial->upstream == NULL && list_is_empty(&trial->waiters));
	trial->server->users--;
	list_remove(&trial->link);
	timer_stop(&trial->retry);
	timer_stop(&trial->deadline);
	task_cancel(&trial->telling);
	msg_unref(&trial->setup.initialize);
	buf_fini(&trial->setup.claims);
	principal_unref(&trial->setup.principal);
	buf_fini(&trial->name);
	buf_fini(&trial->version);
	loop_defer_free(trial->prestart->shared->loop, trial);
}

/* Waiters may do anything, so they are told when nothing of the process is on the call stack. */
static void trial_on_telling(struct task *task)
{
	struct trial *trial = container_of(task, struct trial, telling);
	struct prestart *prestart = trial->prestart;
	struct list waiters;

	list_init(&waiters);
	list_splice(&waiters, &trial->waiters);
	if (trial->state == TRIAL_OVER) {
		trial_free(trial);
		look_go_on(prestart);
	}
	while (!list_is_empty(&waiters)) {
		struct trial_waiter *waiter = take_waiter(&waiters);

		waiter->on_verdict(waiter);
	}
}

static void trial_tell(struct trial *trial)
{
	task_schedule(trial->prestart->shared->loop, &trial->telling);
}

static bool is_same_caller(const struct upstream_setup *one, const struct upstream_setup *other)
{
	return one != NULL && one->principal == other->principal &&
	       slice_is_equal(buf_slice(&one->claims), buf_slice(&other->claims));
}

static void trial_end(struct trial *trial)
{
	trial_set_state(trial, TRIAL_OVER);
	LIST_EACH(struct trial_waiter, waiter, &trial->waiters, link)
		waiter->lacks_credential =
			trial->lacks_credential && is_same_caller(waiter->of, &trial->setup);
	timer_stop(&trial->retry);
	timer_stop(&trial->deadline);
	if (trial->upstream != NULL)
		upstream_close(trial->upstream, REASON_DONE);
	trial_tell(trial);
}

static void probe_end(struct trial *trial, enum era era)
{
	era_note_probed(trial->server, era);
	trial_end(trial);
}

/* The server was not asked: that says nothing of it. */
static void probe_end_without(struct trial *trial)
{
	trial->lacks_credential = true;
	trial_end(trial);
}

/* tools: the number of its tools, or an enum ipc_found. */
static void look_end(struct trial *trial, int tools)
{
	const struct server *server = trial->server;

	spawner_note_found(server->spawner, server->conf.server, tools, buf_slice(&trial->name),
			   buf_slice(&trial->version));
	trial_end(trial);
}

/* ---- the tools ---- */

/* error: why the tools could not be counted, or NULL. */
static void look_report(struct trial *trial, const char *error)
{
	const char *server = trial->server->conf.name;
	struct slice revision = trial->upstream->revision->name;

	CHECK(trial->state == TRIAL_LISTING);
	if (error == NULL)
		LOG_BY(SERVER_FOUND, (uintptr_t)trial->server, LOG_STR("server", server),
		       LOG_SLICE("name", buf_slice(&trial->name)),
		       LOG_SLICE("version", buf_slice(&trial->version)),
		       LOG_SLICE("revision", revision), LOG_INT("tools", trial->tools),
		       LOG_INT("start_ms", trial->answered_ms));
	else
		LOG_BY(SERVER_UNLISTED, (uintptr_t)trial->server, LOG_STR("server", server),
		       LOG_SLICE("name", buf_slice(&trial->name)),
		       LOG_SLICE("version", buf_slice(&trial->version)),
		       LOG_SLICE("revision", revision), LOG_STR("error", error),
		       LOG_INT("start_ms", trial->answered_ms));
	look_end(trial, error == NULL ? (int)trial->tools : IPC_FOUND_UNLISTED);
}

static void look_list(struct trial *trial, struct slice cursor)
{
	struct upstream *upstream = trial->upstream;
	uint64_t id = upstream_next_id(upstream);
	at_end(buf_fini) struct buf params = { 0 };

	if (cursor.n > 0)
		buf_printf(&params, "{\"cursor\":%.*s}", SLICE_ARG(cursor));
	upstream_add_request(upstream, &trial->listing, id);
	send_request(upstream, id, SLICE_LIT("tools/list"), buf_slice(&params));
}

static int count_tool(not_used struct slice element, void *arg)
{
	size_t *count = arg;

	(*count)++;
	return 0;
}

static void on_list(struct upstream_request *request, const struct envelope *env)
{
	struct trial *trial = container_of(request, struct trial, listing);
	struct json tools = scan_member(env->result.text, SLICE_LIT("tools"));
	struct json cursor = scan_member(env->result.text, SLICE_LIT("nextCursor"));

	upstream_end_request(request, true);
	if (env->kind != ENVELOPE_RESULT ||
	    scan_array(tools.text, PAGE_TOOLS_MAX, count_tool, &trial->tools, NULL) < 0)
		look_report(trial, "tools/list was answered with an error, or with no list");
	else if (cursor.type != JSON_STRING)
		look_report(trial, NULL);
	else if (++trial->pages == PAGES_MAX || cursor.text.n > CURSOR_BYTES_MAX)
		look_report(trial, "tools/list has no end");
	else
		look_list(trial, cursor.text);
}

static void on_malformed_list(struct upstream_request *request, enum reason reason)
{
	upstream_end_request(request, true);
	look_report(container_of(request, struct trial, listing),
		    reason == REASON_CHILD_LINE_TOO_LONG ?
			    "the answer to tools/list is larger than limits.response" :
			    "tools/list was answered with something that is no message");
}

static const struct upstream_request_ops list_ops = {
	.on_response = on_list,
	.on_malformed = on_malformed_list,
};

static void trial_on_deadline(struct timer *timer)
{
	struct trial *trial = container_of(timer, struct trial, deadline);

	if (trial->is_look)
		look_report(trial, "tools/list was not answered within 30 s");
	else
		probe_end(trial, ERA_LEGACY);
}

/* ---- the process ---- */

static void look_on_ready(struct trial *trial, struct slice result)
{
	static const char *const name[] = { "serverInfo", "name" };
	static const char *const version[] = { "serverInfo", "version" };
	static const char *const tools[] = { "capabilities", "tools" };

	trial_set_state(trial, TRIAL_LISTING);
	trial->answered_ms = clock_now_ms() - trial->began_ms;
	(void)!scan_decode_string(scan_path(result, name, ARRAY_LEN(name)), &trial->name);
	(void)!scan_decode_string(scan_path(result, version, ARRAY_LEN(version)), &trial->version);
	if (upstream_is_modern(trial->upstream)) {
		era_note(trial->server, ERA_MODERN);
	} else {
		era_note_answered(trial->server);
		send_initialized(trial->upstream);
	}
	trial_tell(trial);
	if (scan_path(result, tools, ARRAY_LEN(tools)).type == JSON_ABSENT) {
		look_report(trial, NULL);
		return;
	}
	timer_start(trial->prestart->shared->loop, &trial->deadline, LIST_MS);
	look_list(trial, slice_of(NULL, 0));
}

static void on_ready(struct upstream *upstream, const struct envelope *response,
		     not_used struct slice described)
{
	struct trial *trial = trial_of(upstream);

	if (trial->is_look)
		look_on_ready(trial, response->result.text);
	else /* a process that serves clients is asked again */
		probe_end(trial, ERA_MODERN);
}

static void look_on_refused(struct trial *trial, const struct envelope *response)
{
	struct upstream *upstream = trial->upstream;

	if (upstream_is_modern(upstream) || era_of(trial->server) != ERA_UNKNOWN) {
		upstream_era_note_refusal(upstream, response);
		upstream_refuse(upstream);
		return;
	}
	if (modern_is_named(response->error.text))
		era_note(trial->server, ERA_MODERN);
	trial_set_state(trial, TRIAL_QUEUED);
	upstream_close(upstream, REASON_DONE);
	trial->setup.era = &upstream_era_modern;
	trial_start(trial);
}

/* Other errors prove nothing to a probe: older servers return all kinds of them. BACK-ERA-03 */
static void on_refused(struct upstream *upstream, const struct envelope *response)
{
	struct trial *trial = trial_of(upstream);

	if (trial->is_look)
		look_on_refused(trial, response);
	else
		probe_end(trial, modern_is_named(response->error.text) ? ERA_MODERN : ERA_LEGACY);
}

static void on_request(struct upstream *upstream, const struct envelope *env)
{
	if (slice_is_equal(env->method, SLICE_LIT("ping")))
		send_result(upstream, env->id.text, SLICE_LIT("{}"));
	else
		send_error(upstream, env->id.text, MCP_METHOD_NOT_FOUND,
			   SLICE_LIT("Method not found"));
}

static void look_on_unanswered(struct trial *trial, const struct upstream *upstream)
{
	if (upstream_is_modern(upstream))
		era_note(trial->server, ERA_UNKNOWN);
	else if (upstream->era != NULL)
		era_note_unanswered(trial->server);
	look_end(trial, IPC_FOUND_FAILING);
}

/* If it was not closed here, the process is lost. */
static void on_closed(struct upstream *upstream)
{
	struct trial *trial = trial_of(upstream);

	CHECK(trial->upstream == upstream);
	trial->upstream = NULL;
	map_remove(&upstream->requests, trial->listing.id);
	if (trial->state == TRIAL_LISTING)
		look_end(trial, IPC_FOUND_UNLISTED);
	else if (trial->state == TRIAL_ASKED && trial->is_look)
		look_on_unanswered(trial, upstream);
	else if (trial->state == TRIAL_ASKED &&
		 upstream->child->lost_reason == REASON_CREDENTIAL_MISSING)
		probe_end_without(trial);
	else if (trial->state == TRIAL_ASKED)
		probe_end(trial, ERA_LEGACY);
}

static const struct upstream_owner_ops owner_ops = {
	.on_ready = on_ready,
	.on_refused = on_refused,
	.on_request = on_request,
	.on_closed = on_closed,
};

/* ---- the beginning ---- */

static void trial_start(struct trial *trial)
{
	struct upstream_shared *shared = trial->prestart->shared;
	uint64_t wait_ms = 0;

	CHECK(trial->upstream == NULL);
	if (server_admit(trial->server, &wait_ms) != REASON_NONE) {
		if (trial->is_look)
			look_end(trial, IPC_FOUND_UNLISTED);
		else
			timer_start(shared->loop, &trial->retry, RETRY_MS);
		return;
	}
	trial_set_state(trial, TRIAL_ASKED);
	trial->upstream = stdio_new(shared, trial->server);
	trial->upstream->is_disposable = !trial->is_look;
	if (!trial->is_look)
		timer_start(shared->loop, &trial->deadline, wait_ms + PROBE_ANSWER_MS);
	upstream_begin(trial->upstream, &owner_ops, &trial->setup, wait_ms);
}

static void trial_on_retry(struct timer *timer)
{
	trial_start(container_of(timer, struct trial, retry));
}

static struct trial *trial_find(const struct prestart *prestart, const struct server *server,
				bool is_look)
{
	LIST_EACH(struct trial, trial, &prestart->trials, link)
		if (trial->server == server && trial->is_look == is_look)
			return trial;
	return NULL;
}

static struct trial *trial_new(struct prestart *prestart, struct server *server, bool is_look)
{
	struct trial *trial = mem_zalloc(sizeof(*trial));

	trial->prestart = prestart;
	trial->server = server;
	server->users++;
	trial->is_look = is_look;
	trial->setup.era = &upstream_era_modern;
	trial->listing.ops = &list_ops;
	list_init(&trial->waiters);
	task_init(&trial->telling, trial_on_telling);
	timer_init(&trial->retry, trial_on_retry);
	timer_init(&trial->deadline, trial_on_deadline);
	list_append(&prestart->trials, &trial->link);
	return trial;
}

void prestart_probe(struct prestart *prestart, struct server *server,
		    const struct upstream_setup *of, struct trial_waiter *waiter)
{
	struct trial *trial = trial_find(prestart, server, false);

	waiter->of = of;
	waiter->lacks_credential = false;
	if (trial != NULL) {
		trial_add_waiter(trial, waiter);
		return;
	}
	trial = trial_new(prestart, server, false);
	trial_add_waiter(trial, waiter);
	buf_append_slice(&trial->setup.claims, buf_slice(&of->claims));
	if (of->principal != NULL)
		trial->setup.principal = principal_ref(of->principal);
	timer_start(prestart->shared->loop, &trial->deadline, PROBE_ANSWER_MS);
	trial_start(trial);
}

static void look_begin(struct trial *trial)
{
	CHECK(trial->state == TRIAL_QUEUED);
	trial->began_ms = clock_now_ms();
	if (era_of(trial->server) != ERA_MODERN)
		trial->setup.era = &upstream_era_legacy;
	if (trial->server->is_retired)
		look_end(trial, IPC_FOUND_UNLISTED); /* the answer is no longer needed */
	else
		trial_start(trial);
}

/* Begins as many looks as may run at once. */
static void look_go_on(struct prestart *prestart)
{
	size_t running = 0;

	LIST_EACH(struct trial, each, &prestart->trials, link)
		running += each->is_look && each->state != TRIAL_QUEUED;
	LIST_EACH(struct trial, trial, &prestart->trials, link) {
		if (running >= LOOKS_AT_ONCE)
			return;
		if (!trial->is_look || trial->state != TRIAL_QUEUED)
			continue;
		look_begin(trial);
		running++;
	}
}

static struct msg *make_initialize(const struct revision *revision)
{
	struct buf text = { 0 };

	buf_printf(&text,
		   "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
		   "\"protocolVersion\":\"%.*s\",\"capabilities\":{},\"clientInfo\":{"
		   "\"name\":\"mcpgated\",\"version\":\"" PACKAGE_VERSION "\"}}}",
		   SLICE_ARG(revision->name));
	return msg_new_take(&text);
}

void prestart_look(struct prestart *prestart, struct server *server)
{
	struct trial *trial = trial_new(prestart, server, true);

	CHECK(server->conf.claims.count == 0);
	trial->setup.revision = revision_newest();
	trial->setup.initialize = make_initialize(trial->setup.revision);
	look_go_on(prestart);
}

bool prestart_wait(struct prestart *prestart, const struct server *server,
		   struct trial_waiter *waiter)
{
	struct trial *trial = trial_find(prestart, server, true);

	if (trial == NULL || trial->state > TRIAL_ASKED)
		return false;
	trial_add_waiter(trial, waiter);
	if (trial->state == TRIAL_QUEUED)
		look_begin(trial); /* somebody needs it now */
	return true;
}

/* ---- warm processes ---- */

/* One that fails is replaced as any failed start is repeated: after the back-off. */

/* The warm processes of one server. */
struct warm_set {
	struct list link;
	const struct prestart *prestart;
	struct server *server;
	struct list upstreams;
	size_t count;
	struct task refill;
	struct timer retry;
};

static void warm_set_remove(struct warm_set *set, struct upstream *upstream)
{
	CHECK(upstream->warm_set == set && set->count > 0);
	list_remove(&upstream->link);
	upstream->warm_set = NULL;
	set->count--;
	task_schedule(set->prestart->shared->loop, &set->refill);
}

static void warm_on_closed(struct upstream *upstream)
{
	warm_set_remove(upstream->warm_set, upstream);
}

/* Nothing has been sent to a warm process, so none of the other events of an owner can occur. */
static const struct upstream_owner_ops warm_owner_ops = {
	.on_closed = warm_on_closed,
};

static void warm_set_on_refill(struct task *task)
{
	struct warm_set *set = container_of(task, struct warm_set, refill);
	uint64_t wait_ms = 0;

	while (!set->prestart->is_held && set->count < set->server->conf.warm) {
		struct upstream *upstream;

		if (server_admit(set->server, &wait_ms) != REASON_NONE) {
			timer_start(set->prestart->shared->loop, &set->retry, RETRY_MS);
			return;
		}
		upstream = stdio_new(set->prestart->shared, set->server);
		upstream->warm_set = set;
		list_append(&set->upstreams, &upstream->link);
		set->count++;
		upstream_begin(upstream, &warm_owner_ops, NULL, wait_ms);
	}
}

static void warm_set_on_retry(struct timer *timer)
{
	struct warm_set *set = container_of(timer, struct warm_set, retry);

	task_schedule(set->prestart->shared->loop, &set->refill);
}

void prestart_keep_warm(struct prestart *prestart, struct server *server)
{
	struct warm_set *set = mem_zalloc(sizeof(*set));

	CHECK(server->conf.warm > 0 && !prestart->is_held);
	set->prestart = prestart;
	set->server = server;
	server->users++;
	list_init(&set->upstreams);
	task_init(&set->refill, warm_set_on_refill);
	timer_init(&set->retry, warm_set_on_retry);
	list_append(&prestart->warm, &set->link);
	task_schedule(set->prestart->shared->loop, &set->refill);
}

/* One that is there before those that are being started, and these before those that wait to be. */
static struct upstream *warm_set_find_nearest(const struct warm_set *set)
{
	struct upstream *nearest = NULL;

	LIST_EACH(struct upstream, upstream, &set->upstreams, link) {
		CHECK(upstream->state <= UPSTREAM_WARM);
		if (nearest == NULL || upstream->state > nearest->state)
			nearest = upstream;
	}
	return nearest;
}

struct upstream *prestart_take(struct prestart *prestart, const struct server *server)
{
	LIST_EACH(struct warm_set, set, &prestart->warm, link) {
		struct upstream *upstream;

		if (set->server != server || list_is_empty(&set->upstreams))
			continue;
		upstream = warm_set_find_nearest(set);
		warm_set_remove(set, upstream);
		return upstream;
	}
	return NULL;
}

void prestart_hold(struct prestart *prestart)
{
	prestart->is_held = true;
}

static void warm_set_end(struct warm_set *set, enum reason reason)
{
	LIST_DRAIN(struct upstream, upstream, &set->upstreams, link)
		upstream_close(upstream, reason);
	task_cancel(&set->refill);
	timer_stop(&set->retry);
	list_remove(&set->link);
	set->server->users--;
	loop_defer_free(set->prestart->shared->loop, set);
}

void prestart_drop_warm(struct prestart *prestart, const struct server *server, enum reason reason)
{
	LIST_EACH_SAFE(struct warm_set, set, &prestart->warm, link)
		if (set->server == server)
			warm_set_end(set, reason);
}

/* ---- all of them ---- */

void prestart_init(struct prestart *prestart, struct upstream_shared *shared)
{
	*prestart = (struct prestart){ .shared = shared };
	list_init(&prestart->trials);
	list_init(&prestart->warm);
}

void prestart_end(struct prestart *prestart, enum reason reason)
{
	LIST_DRAIN(struct warm_set, set, &prestart->warm, link)
		warm_set_end(set, reason);
	LIST_DRAIN(struct trial, trial, &prestart->trials, link) {
		while (!list_is_empty(&trial->waiters))
			(void)take_waiter(&trial->waiters);
		if (trial->state != TRIAL_OVER)
			trial_set_state(trial, TRIAL_OVER);
		if (trial->upstream != NULL)
			upstream_close(trial->upstream, reason);
		trial_free(trial);
	}
}
