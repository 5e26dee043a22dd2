/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table is what the file holds, or would. A program's digest is made when an entry is written or looked for, so that a
 * flood of messages costs nothing. A file that is lost only costs questions that have been asked before.
 */
#include "keeper/era_store.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "keeper/gateway_entry.h"
#include "keeper/memory_file.h"
#include "keeper/program_digest.h"
#include "keeper/state_directory.h"
#include "keeper/state_file.h"
#include "obs/log.h"

#define FILE_NAME "eras"
#define NEVER UINT64_MAX

/* ---- the table ---- */

static void take_over(struct era_store *store)
{
	for (size_t i = 0; i < store->slots->table.server_count; i++) {
		struct server_era *noted = &store->slots->slots[i].era;
		struct era_entry entry = { .memory = noted->memory,
					   .noted_at_ms = clock_wall_ms() };

		if (!noted->is_noted)
			continue;
		noted->is_noted = false;
		program_digest_make(&store->launch->specs[i], &entry.digest);
		era_table_set(store->table, &entry);
	}
}

static void save(struct era_store *store)
{
	struct error err = { ERROR_NONE, "" };
	struct buf text = { 0 };
	int directory = state_directory_open(true, &err);
	int result = -1;

	store->is_due = false;
	store->written_at_ms = clock_now_ms();
	take_over(store);
	if (directory >= 0) {
		era_table_write(store->table, &text);
		result = state_file_write(directory, FILE_NAME, buf_slice(&text), &err);
		buf_fini(&text);
		close(directory);
	}
	if (result < 0 && !store->has_failed)
		LOG(ERAS_UNSAVED, LOG_STR("reason", err.text));
	store->has_failed = result < 0;
}

static const struct config_server *server_of(const struct era_store *store, size_t number)
{
	return &store->slots->table.servers[number];
}

/* NULL, or why the message is ignored. */
static const char *check(const struct era_store *store, const struct ipc_message *message)
{
	uint32_t server = message->era.server;

	if (server_slots_find(store->slots, server) == NULL)
		return "there is no such server";
	if (server_of(store, server)->conf.era != ERA_UNKNOWN)
		return "the era of the server is configured";
	if (message->era.era < ERA_UNKNOWN || message->era.era > ERA_MODERN ||
	    message->era.is_probed > 1)
		return "there is no such era";
	return NULL;
}

/* What is known of a server by now. */
static struct era_memory memory_of(const struct era_store *store, size_t server)
{
	const struct era_memory none = { .era = ERA_UNKNOWN };
	const struct era_entry *entry;
	struct program_digest digest;

	if (store->slots->slots[server].era.is_noted)
		return store->slots->slots[server].era.memory;
	if (store->table->count == 0 || store->launch->specs[server].candidates == NULL ||
	    server_of(store, server)->conf.era != ERA_UNKNOWN)
		return none;
	program_digest_make(&store->launch->specs[server], &digest);
	entry = era_table_find(store->table, &digest);
	return entry != NULL ? entry->memory : none;
}

void era_store_note(struct era_store *store, const struct ipc_message *message)
{
	const char *why = check(store, message);
	uint64_t earliest_ms = clock_now_ms() + ERA_STORE_GATHER_MS;
	struct server_era *noted;

	if (why != NULL) {
		LOG(IPC_BAD_REQUEST, LOG_INT("type", message->type),
		    LOG_INT("server", message->era.server), LOG_STR("reason", why));
		return;
	}
	noted = &server_slots_find(store->slots, message->era.server)->era;
	noted->memory = memory_of(store, message->era.server);
	noted->is_noted = true;
	noted->memory.era = (enum era)message->era.era;
	if (message->era.is_probed == 1)
		noted->memory.probed_at_ms = clock_wall_ms();
	if (store->is_due)
		return;
	store->is_due = true;
	store->write_at_ms = earliest_ms;
	if (store->written_at_ms > 0 && store->written_at_ms + ERA_STORE_EACH_MS > earliest_ms)
		store->write_at_ms = store->written_at_ms + ERA_STORE_EACH_MS;
}

uint64_t era_store_do_due(struct era_store *store)
{
	if (store->is_due && clock_now_ms() >= store->write_at_ms)
		save(store);
	return store->is_due ? store->write_at_ms : NEVER;
}

int era_store_hand_over(struct era_store *store, const uint32_t *numbers, size_t count,
			struct error *err)
{
	struct buf text = { 0 };
	int fd;

	for (size_t i = 0; i < count; i++) {
		struct era_memory known = memory_of(store, numbers[i]);
		struct gateway_server server;

		/* Nothing of the keeper's own memory goes with it, between the members. */
		memset(&server, 0, sizeof(server));
		server.number = numbers[i];
		server.era.era = known.era;
		server.era.probed_at_ms = known.probed_at_ms;
		buf_append(&text, &server, sizeof(server));
	}
	fd = memory_file_sealed("servers", buf_slice(&text), err);
	buf_fini(&text);
	return fd;
}

/* By the digests that the programs have until now. */
void era_store_renew(struct era_store *store)
{
	take_over(store);
}

/* ---- beginning and end ---- */

void era_store_init(struct era_store *store, const struct server_slots *slots,
		    const struct launch *launch)
{
	struct error err = { ERROR_NONE, "" };
	struct buf text = { 0 };
	int result;

	*store = (struct era_store){ .slots = slots, .launch = launch };
	store->table = mem_zalloc(sizeof(*store->table));
	result = state_file_read(FILE_NAME, ERA_TABLE_FIRST_LINE, ERA_TABLE_TEXT_MAX, &text, &err);
	if (result == 1 && era_table_read(store->table, buf_slice(&text), &err) < 0) {
		state_file_set_aside(FILE_NAME);
		result = -1;
	}
	if (result < 0)
		LOG(ERAS_UNREADABLE, LOG_STR("reason", err.text));
	buf_fini(&text);
}

void era_store_fini(struct era_store *store)
{
	if (store->is_due)
		save(store);
	free(store->table);
}
