/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record in the table is a copy of one in the configuration that it is of, which stays for as
 * long as there is such a copy.
 */
#include "keeper/server_slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config/difference.h"
#include "obs/log.h"

/* ---- configurations ---- */

struct generation *server_slots_generation(const struct server_slots *slots)
{
	return container_of(slots->generations.prev, struct generation, link);
}

static void generation_free(struct generation *generation)
{
	CHECK(generation->users == 0);
	list_remove(&generation->link);
	config_free(&generation->config);
	free(generation);
}

void server_slots_hold(struct generation **place, struct generation *generation)
{
	if (generation != NULL)
		generation->users++;
	if (*place != NULL) {
		CHECK((*place)->users > 0);
		(*place)->users--;
	}
	*place = generation;
}

/* Returns when the next one can be freed; UINT64_MAX: nobody knows. */
static uint64_t free_generations(struct server_slots *slots)
{
	uint64_t now = clock_now_ms(), next = UINT64_MAX;

	LIST_EACH_SAFE(struct generation, generation, &slots->generations, link) {
		uint64_t due_ms = generation->replaced_at_ms + slots->conf->kept_ms;

		if (generation == server_slots_generation(slots) || generation->users > 0)
			continue;
		if (now >= due_ms)
			generation_free(generation);
		else if (due_ms < next)
			next = due_ms;
	}
	return next;
}

/* ---- slots ---- */

/* The slot gets the record of this server; what it had before is gone. */
static void slot_set(struct server_slots *slots, uint32_t number, size_t server)
{
	struct server_slot *slot = &slots->slots[number];
	const struct config *config = server_slots_generation(slots)->config;

	CHECK(number < SERVERS_MAX && server < config->server_count);
	server_slots_hold(&slot->generation, server_slots_generation(slots));
	slot->state = SERVER_SLOT_CURRENT;
	slot->until_ms = 0;
	slot->is_known = config->servers[server].enabled;
	slots->table.servers[number] = config->servers[server];
	slots->table.servers[number].conf.server = number;
	if (slots->table.server_count <= number)
		slots->table.server_count = number + 1;
}

/* Everything but the servers. */
static void table_take(struct server_slots *slots, const struct config *config)
{
	struct config_server *servers = slots->table.servers;
	size_t server_count = slots->table.server_count;

	slots->table = *config;
	slots->table.servers = servers;
	slots->table.server_count = server_count;
}

void server_slots_init(struct server_slots *slots, const struct server_slots_conf *conf)
{
	*slots = (struct server_slots){ .conf = conf };
	slots->slots = mem_zalloc(SERVERS_MAX * sizeof(*slots->slots));
	slots->table.servers = mem_zalloc(SERVERS_MAX * sizeof(*slots->table.servers));
	list_init(&slots->generations);
}

void server_slots_begin(struct server_slots *slots, struct config *config)
{
	at_end(mem_free) uint32_t *numbers =
		mem_alloc((config->server_count + 1) * sizeof(*numbers));

	CHECK(list_is_empty(&slots->generations) && config->server_count <= SERVERS_MAX);
	for (size_t i = 0; i < config->server_count; i++)
		numbers[i] = (uint32_t)i;
	server_slots_use(slots, config, numbers);
}

struct config *server_slots_fini(struct server_slots *slots)
{
	struct config *config = server_slots_generation(slots)->config;

	server_slots_generation(slots)->config = NULL;
	for (size_t i = 0; i < slots->table.server_count; i++)
		server_slots_hold(&slots->slots[i].generation, NULL);
	LIST_DRAIN(struct generation, generation, &slots->generations, link)
		generation_free(generation);
	free(slots->slots);
	free(slots->table.servers);
	free(slots->numbers);
	return config;
}

struct config *server_slots_config(const struct server_slots *slots)
{
	return server_slots_generation(slots)->config;
}

/* Enabled or not. SERVERS_MAX: none. */
static uint32_t find_current(const struct server_slots *slots, const char *name)
{
	uint32_t i = 0;

	while (i < slots->table.server_count &&
	       (slots->slots[i].state != SERVER_SLOT_CURRENT ||
		strcmp(slots->table.servers[i].conf.name, name) != 0))
		i++;
	return i < slots->table.server_count ? i : SERVERS_MAX;
}

uint32_t server_slots_find_name(const struct server_slots *slots, const char *name)
{
	uint32_t number = find_current(slots, name);

	return number < SERVERS_MAX && slots->slots[number].is_known ? number : SERVERS_MAX;
}

uint32_t server_slots_find_successor(const struct server_slots *slots, uint32_t number)
{
	const struct config_server *servers = slots->table.servers;
	uint32_t same = server_slots_find_name(slots, servers[number].conf.name);

	return same < SERVERS_MAX && servers[same].is_endpoint == servers[number].is_endpoint ?
		       same :
		       SERVERS_MAX;
}

int server_slots_plan(const struct server_slots *slots, const struct config *next,
		      uint32_t *numbers_r, struct error *err)
{
	uint32_t unused = 0;

	for (size_t i = 0; i < next->server_count; i++) {
		uint32_t same = find_current(slots, next->servers[i].conf.name);

		if (same < SERVERS_MAX && config_compare_servers(&slots->table, same, next, i) !=
						  CONFIG_OTHER_PROCESSES) {
			numbers_r[i] = same;
			continue;
		}
		while (unused < SERVERS_MAX && slots->slots[unused].state != SERVER_SLOT_FREE)
			unused++;
		if (unused == SERVERS_MAX)
			return error_set(err, ERROR_BUSY,
					 "too many servers of earlier configurations still have "
					 "processes; try again later");
		numbers_r[i] = unused++;
	}
	return 0;
}

/* Its processes get the time that they have to stop. */
static void slot_end(struct server_slots *slots, size_t number, enum server_slot_state state)
{
	struct config_server *server = &slots->table.servers[number];
	struct server_slot *slot = &slots->slots[number];

	CHECK(slot->state == SERVER_SLOT_RETIRING && state > SERVER_SLOT_RETIRING);
	slot->state = state;
	slot->until_ms = clock_now_ms() + server->conf.stop_grace_ms + server->conf.stop_term_ms +
			 slots->conf->reserve_ms;
	server->enabled = false;
}

/* Whether more than retiring_max of its name are kept, and it is none of the youngest. */
static bool is_one_too_many(const struct server_slots *slots, uint32_t number)
{
	const struct server_slots_conf *conf = slots->conf;
	const char *name = slots->table.servers[number].conf.name;
	size_t younger = 0;

	if (conf->is_used != NULL && !conf->is_used(slots, number))
		return false;
	for (uint32_t i = 0; i < slots->table.server_count; i++)
		younger += slots->slots[i].state == SERVER_SLOT_RETIRING &&
			   slots->slots[i].retired > slots->slots[number].retired &&
			   strcmp(slots->table.servers[i].conf.name, name) == 0 &&
			   (conf->is_used == NULL || conf->is_used(slots, i));
	return younger >= conf->retiring_max;
}

/*
 * Sessions of a name that has gone have a limit in time, those of one that is back have none any
 * more. mcpgated.yaml(5)
 */
static void bound_retiring(struct server_slots *slots, uint32_t number)
{
	struct server_slot *slot = &slots->slots[number];
	uint32_t same = server_slots_find_successor(slots, number);
	uint64_t until_ms = clock_now_ms() + slots->conf->reserve_ms;

	CHECK(slot->state == SERVER_SLOT_RETIRING);
	if (!slot->is_known) {
		slot_end(slots, number, SERVER_SLOT_RELEASED);
		return;
	}
	if (is_one_too_many(slots, number)) {
		/* Whatever comes later leaves it no more time. */
		if (slot->until_ms == 0 || slot->until_ms > until_ms) {
			slot->until_ms = until_ms;
			slot->removed_at_ms = 0;
		}
	} else if (same < SERVERS_MAX) {
		slot->until_ms = slot->removed_at_ms = 0;
	} else if (slot->until_ms == 0 || slot->removed_at_ms > 0) {
		/* The drain_timeout of now counts, also where a later reload has changed it. */
		if (slot->removed_at_ms == 0)
			slot->removed_at_ms = clock_now_ms();
		slot->until_ms = slot->removed_at_ms + slots->conf->reserve_ms +
				 slots->table.drain_timeout_ms;
	}
}

void server_slots_use(struct server_slots *slots, struct config *next, const uint32_t *numbers)
{
	struct generation *generation = mem_zalloc(sizeof(*generation));

	for (size_t i = 0; i < slots->table.server_count; i++) {
		if (slots->slots[i].state != SERVER_SLOT_CURRENT)
			continue;
		slots->slots[i].state = SERVER_SLOT_RETIRING;
		slots->slots[i].retired = ++slots->retired;
	}
	if (!list_is_empty(&slots->generations))
		server_slots_generation(slots)->replaced_at_ms = clock_now_ms();
	generation->config = next;
	list_append(&slots->generations, &generation->link);
	table_take(slots, next);
	slots->numbers = mem_resize(slots->numbers, (next->server_count + 1) * sizeof(*numbers));
	for (size_t i = 0; i < next->server_count; i++) {
		slots->numbers[i] = numbers[i];
		slot_set(slots, numbers[i], i);
	}
}

void server_slots_bound(struct server_slots *slots)
{
	for (uint32_t i = 0; i < slots->table.server_count; i++)
		if (slots->slots[i].state == SERVER_SLOT_RETIRING)
			bound_retiring(slots, i);
}

struct server_slot *server_slots_find(const struct server_slots *slots, uint32_t number)
{
	struct server_slot *slot = number < SERVERS_MAX ? &slots->slots[number] : NULL;

	return slot != NULL && slot->is_known && slot->state != SERVER_SLOT_RELEASED ? slot : NULL;
}

uint64_t server_slots_do_due(struct server_slots *slots)
{
	uint64_t next = free_generations(slots);

	for (uint32_t i = 0; i < slots->table.server_count; i++) {
		struct server_slot *slot = &slots->slots[i];

		if (slot->until_ms > 0 && slot->state == SERVER_SLOT_RETIRING &&
		    clock_now_ms() >= slot->until_ms) {
			slot_end(slots, i, SERVER_SLOT_OVER);
			slots->conf->on_over(slots, i);
		}
		if (slot->until_ms > clock_now_ms() && slot->until_ms < next)
			next = slot->until_ms;
	}
	return next;
}

bool server_slots_is_overdue(const struct server_slots *slots, size_t number)
{
	const struct server_slot *slot = &slots->slots[number];

	CHECK(number < SERVERS_MAX);
	return slot->state > SERVER_SLOT_RETIRING && clock_now_ms() >= slot->until_ms;
}

bool server_slots_release(struct server_slots *slots, uint32_t number)
{
	struct server_slot *slot = server_slots_find(slots, number);

	if (slot == NULL || slot->state == SERVER_SLOT_CURRENT)
		return false;
	if (slot->state == SERVER_SLOT_RETIRING)
		slot_end(slots, number, SERVER_SLOT_RELEASED);
	slot->state = SERVER_SLOT_RELEASED;
	return true;
}

void server_slots_release_all(struct server_slots *slots)
{
	for (uint32_t i = 0; i < slots->table.server_count; i++)
		(void)!server_slots_release(slots, i);
}

bool server_slots_is_released(const struct server_slots *slots, size_t number)
{
	CHECK(number < SERVERS_MAX);
	return slots->slots[number].state == SERVER_SLOT_RELEASED;
}

void server_slots_free_one(struct server_slots *slots, size_t number)
{
	struct server_slot *slot = &slots->slots[number];

	CHECK(slot->generation != NULL && slot->starts.processes == 0);
	server_slots_hold(&slot->generation, NULL);
	*slot = (struct server_slot){ .state = SERVER_SLOT_FREE };
	slots->table.servers[number] = (struct config_server){ .enabled = false };
}

static void log_over(struct server_slots *slots, uint32_t number)
{
	LOG(SERVER_OVERDUE, LOG_STR("server", slots->table.servers[number].conf.name));
}

const struct server_slots_conf server_slots_keeper = {
	.retiring_max = SERVER_SLOTS_RETIRING_MAX,
	.reserve_ms = SERVER_SLOTS_RESERVE_MS,
	.on_over = log_over,
};
