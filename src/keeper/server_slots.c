/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record in the table is a copy of one in the configuration that it is of, which stays for as long as there is such a
 * copy.
 */
#include "keeper/server_slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config/difference.h"
#include "obs/log.h"

struct generation {
	struct config *config;
	size_t users; /* slots, and whatever is in use */
};

static struct generation *generation_new(struct config *config)
{
	struct generation *generation = mem_zalloc(sizeof(*generation));

	*generation = (struct generation){ .config = config, .users = 1 };
	return generation;
}

static void generation_unref(struct generation *generation)
{
	CHECK(generation->users > 0);
	if (--generation->users > 0)
		return;
	config_free(&generation->config);
	free(generation);
}

/* The slot gets the record of this server; what it had before is gone. */
static void slot_set(struct server_slots *slots, uint32_t number, size_t server)
{
	struct server_slot *slot = &slots->slots[number];
	struct generation *before = slot->generation;

	CHECK(number < SERVERS_MAX && server < slots->current->config->server_count);
	slot->generation = slots->current;
	slot->generation->users++;
	slot->state = SERVER_SLOT_CURRENT;
	slot->until_ms = 0;
	slot->is_known = slots->current->config->servers[server].enabled;
	slots->table.servers[number] = slots->current->config->servers[server];
	slots->table.servers[number].conf.server = number;
	if (slots->table.server_count <= number)
		slots->table.server_count = number + 1;
	if (before != NULL)
		generation_unref(before);
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

void server_slots_init(struct server_slots *slots, struct config *config)
{
	CHECK(config->server_count <= SERVERS_MAX);
	*slots = (struct server_slots){ .slots = mem_zalloc(SERVERS_MAX * sizeof(*slots->slots)) };
	slots->current = generation_new(config);
	slots->table.servers = mem_zalloc(SERVERS_MAX * sizeof(*slots->table.servers));
	table_take(slots, config);
	slots->numbers = mem_zalloc((config->server_count + 1) * sizeof(*slots->numbers));
	for (size_t i = 0; i < config->server_count; i++) {
		slots->numbers[i] = (uint32_t)i;
		slot_set(slots, (uint32_t)i, i);
	}
}

struct config *server_slots_fini(struct server_slots *slots)
{
	struct config *config = slots->current->config;

	slots->current->config = NULL;
	for (size_t i = 0; i < slots->table.server_count; i++)
		if (slots->slots[i].generation != NULL)
			generation_unref(slots->slots[i].generation);
	generation_unref(slots->current);
	free(slots->slots);
	free(slots->table.servers);
	free(slots->numbers);
	return config;
}

struct config *server_slots_config(const struct server_slots *slots)
{
	return slots->current->config;
}

/* The number of the server with this name that is in use; SERVERS_MAX: there is none. */
static uint32_t find_current(const struct server_slots *slots, const char *name)
{
	uint32_t i = 0;

	while (i < slots->table.server_count &&
	       (slots->slots[i].state != SERVER_SLOT_CURRENT ||
		strcmp(slots->table.servers[i].conf.name, name) != 0))
		i++;
	return i < slots->table.server_count ? i : SERVERS_MAX;
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
			 SERVER_SLOTS_RESERVE_MS;
	server->enabled = false;
}

/* How many of its name were retired after it. */
static size_t count_younger(const struct server_slots *slots, size_t number)
{
	const char *name = slots->table.servers[number].conf.name;
	size_t count = 0;

	for (size_t i = 0; i < slots->table.server_count; i++)
		count += slots->slots[i].state == SERVER_SLOT_RETIRING &&
			 slots->slots[i].retired > slots->slots[number].retired &&
			 strcmp(slots->table.servers[i].conf.name, name) == 0;
	return count;
}

/* Sessions of a name that has gone have a limit in time, those of one that is back have none any more. mcpgated.yaml(5) */
static void bound_retiring(struct server_slots *slots, size_t number)
{
	struct server_slot *slot = &slots->slots[number];
	uint32_t same = find_current(slots, slots->table.servers[number].conf.name);
	uint64_t until_ms = clock_now_ms() + SERVER_SLOTS_RESERVE_MS;

	CHECK(slot->state == SERVER_SLOT_RETIRING);
	if (!slot->is_known) {
		slot_end(slots, number, SERVER_SLOT_RELEASED);
		return;
	}
	if (count_younger(slots, number) >= SERVER_SLOTS_RETIRING_MAX) {
		/* Whatever comes later leaves it no more time. */
		if (slot->until_ms == 0 || slot->until_ms > until_ms)
			slot->until_ms = until_ms;
	} else if (same < SERVERS_MAX && slots->slots[same].is_known) {
		slot->until_ms = 0;
	} else if (slot->until_ms == 0) {
		slot->until_ms = until_ms + slots->table.drain_timeout_ms;
	}
}

void server_slots_use(struct server_slots *slots, struct config *next, const uint32_t *numbers)
{
	struct generation *before = slots->current;

	for (size_t i = 0; i < slots->table.server_count; i++) {
		if (slots->slots[i].state != SERVER_SLOT_CURRENT)
			continue;
		slots->slots[i].state = SERVER_SLOT_RETIRING;
		slots->slots[i].retired = ++slots->retired;
	}
	slots->current = generation_new(next);
	table_take(slots, next);
	slots->numbers = mem_resize(slots->numbers, (next->server_count + 1) * sizeof(*numbers));
	for (size_t i = 0; i < next->server_count; i++) {
		slots->numbers[i] = numbers[i];
		slot_set(slots, numbers[i], i);
	}
	generation_unref(before);
	for (size_t i = 0; i < slots->table.server_count; i++)
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
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < slots->table.server_count; i++) {
		struct server_slot *slot = &slots->slots[i];

		if (slot->until_ms > 0 && slot->state == SERVER_SLOT_RETIRING &&
		    clock_now_ms() >= slot->until_ms) {
			LOG(SERVER_OVERDUE, LOG_STR("server", slots->table.servers[i].conf.name));
			slot_end(slots, i, SERVER_SLOT_OVER);
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
	generation_unref(slot->generation);
	*slot = (struct server_slot){ .state = SERVER_SLOT_FREE };
	slots->table.servers[number] = (struct config_server){ .enabled = false };
}
