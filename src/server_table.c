/* SPDX-License-Identifier: Apache-2.0 */
#include "server_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config/difference.h"
#include "keeper/sandbox.h"
#include "obs/log.h"
#include "process/child.h"
#include "process/server_rules.h"

#define SWEEP_MS 200
/* What was begun under a configuration may point into it for so long: who is asked about a token, most of all. */
#define GENERATION_KEPT_MS 60000

_Static_assert(GENERATION_KEPT_MS > 2 * VERIFIER_WAIT_MS, "an inquiry is over by then");

struct generation {
	struct list link;
	struct config *config;
	size_t users;            /* rows that are made of it, or have its rules */
	uint64_t replaced_at_ms; /* 0: it is in use */
};

/* ---- configurations ---- */

static struct generation *generation_at(struct list *node)
{
	return container_of(node, struct generation, link);
}

static struct generation *generation_new(struct server_table *table, struct config *config)
{
	struct generation *generation = mem_zalloc(sizeof(*generation));

	generation->config = config;
	if (!list_is_empty(&table->generations))
		generation_at(table->generations.prev)->replaced_at_ms = clock_now_ms();
	list_append(&table->generations, &generation->link);
	return generation;
}

static void generation_free(struct generation *generation)
{
	CHECK(generation->users == 0);
	list_remove(&generation->link);
	config_free(&generation->config);
	free(generation);
}

static void set_generation(struct generation **place, struct generation *generation)
{
	if (generation != NULL)
		generation->users++;
	if (*place != NULL)
		(*place)->users--;
	*place = generation;
}

/* ---- rows ---- */

static bool has_name(const struct server_row *row, const char *name)
{
	return row->name != NULL && strcmp(row->name, name) == 0;
}

static const struct config_server *find_server(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->server_count; i++)
		if (config->servers[i].enabled && strcmp(config->servers[i].conf.name, name) == 0)
			return &config->servers[i];
	return NULL;
}

/* What a configuration says of paths stays what it was for those that are made of another one. */
static void take_endpoint_rules(struct endpoint *endpoint, const struct endpoint *from,
				const struct endpoint *own, const struct server *server)
{
	struct protected_resource place = from->place;
	struct slice base = endpoint->arguments.paths.base;

	if (!slice_is_equal(own->path, from->path)) {
		place.resource = own->place.resource;
		place.metadata = own->place.metadata;
		place.accepted = own->place.accepted;
	}
	place.permissions = &server->conf.permissions;
	endpoint->place = place;
	endpoint->arguments = from->arguments;
	endpoint->arguments.paths.base = base; /* where its processes are */
}

static bool has_other_rules(const struct server_row *row, const struct generation *generation)
{
	const struct config *before = row->rules->config, *now = generation->config;

	return config_compare_servers(before, config_find_server(before, row->name), now,
				      config_find_server(now, row->name)) != CONFIG_SAME;
}

static void row_take_rules(struct server_table *table, size_t number, struct generation *generation,
			   const struct config_server *from)
{
	struct server *server = &table->servers[number];
	struct server_row *row = &table->rows[number];
	const struct config_server *own = find_server(row->processes->config, row->name);

	CHECK(own != NULL);
	server_take_rules(server, &from->conf, has_other_rules(row, generation));
	take_endpoint_rules(&table->endpoints[number], &from->endpoint, &own->endpoint, server);
	set_generation(&row->rules, generation);
}

/* What the next scrape sees goes on from what the last has seen. */
static void share_stats(struct server_table *table, size_t number)
{
	for (size_t i = 0; i < table->count; i++)
		if (i != number && has_name(&table->rows[i], table->rows[number].name)) {
			server_share_stats(&table->servers[number], &table->servers[i]);
			return;
		}
}

static void row_make(struct server_table *table, struct generation *generation,
		     struct config_server *from, const struct gateway_server *given)
{
	struct server_row *row = &table->rows[given->number];
	struct server *server = &table->servers[given->number];
	struct server_conf conf = from->conf;

	CHECK(row->name == NULL && given->number < SERVERS_MAX);
	row->name = mem_strdup(from->conf.name);
	set_generation(&row->processes, generation);
	set_generation(&row->rules, generation);
	sandbox_describe(from, table->landlock, &conf.confinement);
	conf.name = row->name;
	conf.fleet = &table->fleet;
	conf.server = given->number;
	server_init(server, table->loop, table->spawner, &conf);
	share_stats(table, given->number);
	era_remember(server, &given->era);
	table->endpoints[given->number] = from->endpoint;
	table->endpoints[given->number].server = server;
	table->endpoints[given->number].place.permissions = &server->conf.permissions;
	if (table->count <= given->number)
		table->count = given->number + 1;
}

/* One that is in use stays as it is but for its rules; what it is made of is equal, and so the old text can go. */
static void row_keep(struct server_table *table, struct generation *generation,
		     const struct config_server *from, uint32_t number)
{
	struct endpoint *endpoint = &table->endpoints[number];

	table->servers[number].conf.claims = from->conf.claims;
	set_generation(&table->rows[number].processes, generation);
	row_take_rules(table, number, generation, from);
	endpoint->path = from->endpoint.path;
	endpoint->sse_path = from->endpoint.sse_path;
	endpoint->message_path = from->endpoint.message_path;
	endpoint->arguments.paths.base = from->endpoint.arguments.paths.base;
}

static void row_free(struct server_table *table, size_t number)
{
	struct server_row *row = &table->rows[number];

	LOG(SERVER_RETIRED, LOG_STR("server", row->name));
	server_fini(&table->servers[number]);
	set_generation(&row->processes, NULL);
	set_generation(&row->rules, NULL);
	free(row->name);
	memset(row, 0, sizeof(*row));
	memset(&table->servers[number], 0, sizeof(table->servers[number]));
	memset(&table->endpoints[number], 0, sizeof(table->endpoints[number]));
	spawner_release(table->spawner, (uint32_t)number);
}

/* ---- those that are retired ---- */

static bool is_retired(const struct server_table *table, size_t number)
{
	return table->rows[number].name != NULL && table->servers[number].is_retired;
}

/* Of one name: where there are too many, the sessions of the oldest end. */
static void bound_retired(struct server_table *table, const char *name)
{
	size_t count = 0, oldest = SERVERS_MAX;

	for (size_t i = 0; i < table->count; i++) {
		if (!is_retired(table, i) || !has_name(&table->rows[i], name) ||
		    table->servers[i].users == 0)
			continue; /* of one that is on its way out nobody has a session */
		count++;
		if (oldest == SERVERS_MAX ||
		    table->rows[i].retired_number < table->rows[oldest].retired_number)
			oldest = i;
	}
	if (count > SERVER_TABLE_RETIRED_MAX)
		router_end_sessions_of(table->router, &table->servers[oldest], REASON_RETIRED);
}

static void row_retire(struct server_table *table, size_t number, bool is_removed)
{
	struct server_row *row = &table->rows[number];

	row->retired_at_ms = clock_now_ms();
	row->retired_number = ++table->retired;
	row->is_removed = is_removed;
	table->servers[number].pin_memory = NULL;
	router_retire_server(table->router, &table->servers[number]);
	if (is_removed)
		kept_sessions_forget_server(&table->router->kept_sessions, slice_str(row->name));
	bound_retired(table, row->name);
}

static void sweep_row(struct server_table *table, size_t number)
{
	const struct server_row *row = &table->rows[number];
	struct server *server = &table->servers[number];

	if (row->is_removed && clock_now_ms() - row->retired_at_ms >= table->drain_ms)
		router_end_sessions_of(table->router, server, REASON_RETIRED);
	if (!server_is_unused(server))
		return;
	row_free(table, number);
	table->on_change();
}

/* Not at once: what is freed may be on the stack. */
static void on_sweep(struct timer *timer)
{
	struct server_table *table = container_of(timer, struct server_table, sweep);
	bool is_due = false;

	for (size_t i = 0; i < table->count; i++)
		if (is_retired(table, i))
			sweep_row(table, i);
	LIST_FOREACH_SAFE(node, &table->generations) {
		struct generation *generation = generation_at(node);

		if (generation->replaced_at_ms > 0 && generation->users == 0 &&
		    clock_now_ms() - generation->replaced_at_ms >= GENERATION_KEPT_MS)
			generation_free(generation);
	}
	for (size_t i = 0; i < table->count; i++)
		is_due |= is_retired(table, i);
	is_due |= table->generations.next != table->generations.prev;
	if (is_due)
		timer_start(table->loop, &table->sweep, SWEEP_MS);
}

/* ---- whole ---- */

void server_table_init(struct server_table *table, struct router *router, struct spawner *spawner,
		       int landlock, void (*on_change)(void))
{
	*table = (struct server_table){ .loop = router->loop,
					.spawner = spawner,
					.router = router,
					.landlock = landlock,
					.on_change = on_change };
	table->servers = mem_zalloc(SERVERS_MAX * sizeof(*table->servers));
	table->endpoints = mem_zalloc(SERVERS_MAX * sizeof(*table->endpoints));
	table->rows = mem_zalloc(SERVERS_MAX * sizeof(*table->rows));
	list_init(&table->generations);
	timer_init(&table->sweep, on_sweep);
}

void server_table_fini(struct server_table *table)
{
	timer_stop(&table->sweep);
	for (size_t i = 0; i < table->count; i++) {
		if (table->rows[i].name == NULL)
			continue;
		server_fini(&table->servers[i]);
		set_generation(&table->rows[i].processes, NULL);
		set_generation(&table->rows[i].rules, NULL);
		free(table->rows[i].name);
	}
	while (!list_is_empty(&table->generations))
		generation_free(generation_at(table->generations.next));
	free(table->servers);
	free(table->endpoints);
	free(table->rows);
}

/* What is not of the generation any more is retired; but what the operator says of who may use what holds there, too. */
static void retire_others(struct server_table *table, struct generation *generation)
{
	for (size_t i = 0; i < table->count; i++) {
		struct server_row *row = &table->rows[i];
		const struct config_server *same;

		if (row->name == NULL || row->processes == generation)
			continue;
		same = find_server(generation->config, row->name);
		if (same != NULL)
			row_take_rules(table, i, generation, same);
		if (!table->servers[i].is_retired)
			row_retire(table, i, same == NULL);
		else if (same == NULL && !row->is_removed)
			row->retired_at_ms = clock_now_ms();
		row->is_removed = same == NULL;
	}
}

void server_table_use(struct server_table *table, struct config *config,
		      const struct gateway_server *given)
{
	struct generation *generation = generation_new(table, config);
	bool *is_new = mem_zalloc((config->server_count + 1) * sizeof(*is_new));

	table->fleet.max = config->max_processes;
	table->drain_ms = config->drain_timeout_ms;
	for (size_t i = 0; i < config->server_count; i++) {
		struct config_server *from = &config->servers[i];

		if (!from->enabled)
			continue;
		is_new[i] = table->rows[given[i].number].name == NULL;
		if (is_new[i])
			row_make(table, generation, from, &given[i]);
		else
			row_keep(table, generation, from, given[i].number);
	}
	retire_others(table, generation);
	for (size_t i = 0; i < config->server_count; i++)
		if (is_new[i])
			router_start_server(table->router, &table->servers[given[i].number]);
	free(is_new);
	if (table->generations.next != table->generations.prev)
		timer_start(table->loop, &table->sweep, SWEEP_MS);
}

size_t server_table_count_children(const struct server_table *table)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++)
		count += table->servers[i].count;
	return count;
}

void server_table_kill_children(struct server_table *table, enum reason reason)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].name != NULL)
			child_kill_all(&table->servers[i], reason);
}
