/* SPDX-License-Identifier: Apache-2.0 */
#include "server_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/difference.h"
#include "io/aside.h"
#include "keeper/sandbox.h"
#include "obs/log.h"
#include "process/child.h"
#include "process/server_rules.h"

#define SWEEP_MS 200
/* What was begun under a configuration may point into it for so long: who is asked about a token, most of all. */
#define GENERATION_KEPT_MS 60000

_Static_assert(GENERATION_KEPT_MS > 2 * VERIFIER_WAIT_MS, "an inquiry is over by then");

/* ---- rows ---- */

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
	endpoint->card = from->card;
	endpoint->arguments = from->arguments;
	endpoint->arguments.paths.base = base; /* where its processes are */
}

static bool has_other_rules(const struct server_row *row, const struct generation *generation)
{
	const struct config *before = row->rules->config, *now = generation->config;

	return config_compare_servers(before, config_find_server(before, row->name), now,
				      config_find_server(now, row->name)) != CONFIG_SAME;
}

static void row_take_rules(struct server_table *table, size_t number,
			   const struct config_server *from)
{
	const struct config_server *own = &table->slots.table.servers[number];
	struct generation *generation = server_slots_generation(&table->slots);
	struct server *server = &table->servers[number];
	struct server_row *row = &table->rows[number];

	server_take_rules(server, &from->conf, has_other_rules(row, generation));
	take_endpoint_rules(&table->endpoints[number], &from->endpoint, &own->endpoint, server);
	server_slots_hold(&row->rules, generation);
}

/* What the next scrape sees goes on from what the last has seen. */
static void share_stats(struct server_table *table, size_t number)
{
	for (size_t i = 0; i < table->count; i++)
		if (i != number && table->rows[i].name != NULL &&
		    strcmp(table->rows[i].name, table->rows[number].name) == 0) {
			server_share_stats(&table->servers[number], &table->servers[i]);
			return;
		}
}

static void row_make(struct server_table *table, const struct config_server *from, uint32_t number)
{
	struct server_row *row = &table->rows[number];
	struct server *server = &table->servers[number];
	struct server_conf conf = from->conf;

	CHECK(row->name == NULL && number < SERVERS_MAX);
	row->name = mem_strdup(from->conf.name);
	server_slots_hold(&row->rules, server_slots_generation(&table->slots));
	sandbox_describe(from, table->landlock, &conf.confinement);
	conf.name = row->name;
	conf.fleet = from->is_endpoint ? NULL : &table->fleet;
	conf.server = number;
	server_init(server, table->loop, table->spawner, &conf);
	share_stats(table, number);
	table->endpoints[number] = from->endpoint;
	table->endpoints[number].server = server;
	table->endpoints[number].place.permissions = &server->conf.permissions;
}

/* One that is in use stays as it is but for its rules; what it is made of is equal, and so the old text can go. */
static void row_keep(struct server_table *table, const struct config_server *from, uint32_t number)
{
	struct endpoint *endpoint = &table->endpoints[number];

	table->servers[number].conf.claims = from->conf.claims;
	table->servers[number].conf.credential = from->conf.credential;
	table->servers[number].conf.legs = from->conf.legs;
	row_take_rules(table, number, from);
	endpoint->path = from->endpoint.path;
	endpoint->sse_path = from->endpoint.sse_path;
	endpoint->message_path = from->endpoint.message_path;
	endpoint->arguments.paths.base = from->endpoint.arguments.paths.base;
}

static void row_fini(struct server_table *table, size_t number)
{
	server_fini(&table->servers[number]);
	server_slots_hold(&table->rows[number].rules, NULL);
	free(table->rows[number].name);
}

static void row_free(struct server_table *table, size_t number)
{
	LOG(SERVER_RETIRED, LOG_STR("server", table->rows[number].name));
	row_fini(table, number);
	server_slots_free_one(&table->slots, number);
	memset(&table->rows[number], 0, sizeof(table->rows[number]));
	memset(&table->servers[number], 0, sizeof(table->servers[number]));
	memset(&table->endpoints[number], 0, sizeof(table->endpoints[number]));
	spawner_release(table->spawner, (uint32_t)number);
}

/* ---- those that are retired ---- */

static struct server_table *table_of(const struct server_slots *slots)
{
	return container_of(slots, struct server_table, slots);
}

/* Of one that is on its way out nobody has a session. */
static bool is_used(const struct server_slots *slots, uint32_t number)
{
	return table_of(slots)->servers[number].users > 0;
}

static void on_over(struct server_slots *slots, uint32_t number)
{
	struct server_table *table = table_of(slots);

	router_end_sessions_of(table->router, &table->servers[number], REASON_RETIRED);
}

/* Their time is that of the configuration; the keeper has a reserve. */
static const struct server_slots_conf slots_conf = {
	.retiring_max = SERVER_TABLE_RETIRED_MAX,
	.kept_ms = GENERATION_KEPT_MS,
	.is_used = is_used,
	.on_over = on_over,
};

static void row_retire(struct server_table *table, size_t number, bool is_removed)
{
	struct server *server = &table->servers[number];

	server->pin_memory = NULL;
	router_retire_server(table->router, server);
	if (is_removed)
		kept_sessions_forget_server(&table->router->kept_sessions,
					    slice_str(table->rows[number].name));
}

/* Ends what is over; later again, if there is anything that a reload has replaced. */
static void table_do_due(struct server_table *table)
{
	bool is_due = server_slots_do_due(&table->slots) < UINT64_MAX;

	for (size_t i = 0; i < table->count; i++)
		is_due |= table->servers[i].is_retired;
	if (is_due)
		timer_start(table->loop, &table->sweep, SWEEP_MS);
}

/* Not at once: what is freed may be on the stack. */
static void on_sweep(struct timer *timer)
{
	struct server_table *table = container_of(timer, struct server_table, sweep);

	for (size_t i = 0; i < table->count; i++)
		if (table->servers[i].is_retired && server_is_unused(&table->servers[i])) {
			aside_finish(table->loop); /* that may still look at it */
			row_free(table, i);
			table->on_change();
		}
	table_do_due(table);
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
	server_slots_init(&table->slots, &slots_conf);
	timer_init(&table->sweep, on_sweep);
}

void server_table_fini(struct server_table *table)
{
	struct config *config;

	timer_stop(&table->sweep);
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].name != NULL)
			row_fini(table, i);
	config = server_slots_fini(&table->slots);
	config_free(&config);
	free(table->servers);
	free(table->endpoints);
	free(table->rows);
}

/* What the operator says of who may use what holds for those that are retired, too. */
static void retire_others(struct server_table *table)
{
	const struct server_slots *slots = &table->slots;

	for (size_t i = 0; i < table->count; i++) {
		uint32_t same;

		if (table->rows[i].name == NULL || slots->slots[i].state == SERVER_SLOT_CURRENT)
			continue;
		same = server_slots_find_successor(slots, (uint32_t)i);
		if (same < SERVERS_MAX)
			row_take_rules(table, i, &slots->table.servers[same]);
		if (!table->servers[i].is_retired)
			row_retire(table, i, same == SERVERS_MAX);
	}
}

/* What was not enabled nobody has. */
static void free_released(struct server_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		if (server_slots_is_released(&table->slots, i))
			server_slots_free_one(&table->slots, i);
}

void server_table_use(struct server_table *table, struct config *config, const uint32_t *numbers)
{
	at_end(mem_free) bool *is_new = mem_zalloc((config->server_count + 1) * sizeof(*is_new));

	server_slots_use(&table->slots, config, numbers);
	table->count = table->slots.table.server_count;
	table->fleet.max = config->max_processes;
	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *from = &config->servers[i];

		if (!from->enabled)
			continue;
		is_new[i] = table->rows[numbers[i]].name == NULL;
		if (is_new[i])
			row_make(table, from, numbers[i]);
		else
			row_keep(table, from, numbers[i]);
	}
	retire_others(table);
	for (size_t i = 0; i < config->server_count && table->is_started; i++)
		if (is_new[i])
			router_start_server(table->router, &table->servers[numbers[i]]);
	server_slots_bound(&table->slots);
	free_released(table);
	table_do_due(table);
}

void server_table_start(struct server_table *table)
{
	CHECK(!table->is_started);
	table->is_started = true;
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].name != NULL && !table->servers[i].is_retired)
			router_start_server(table->router, &table->servers[i]);
}

size_t server_table_count_children(const struct server_table *table)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++)
		count += table->servers[i].count;
	return count;
}

bool server_table_is_quiet(const struct server_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		LIST_EACH(struct child, child, &table->servers[i].children, link)
			if (!child_is_quiet(child))
				return false;
	return true;
}

void server_table_kill_children(struct server_table *table, enum reason reason)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].name != NULL)
			child_kill_all(&table->servers[i], reason);
}
