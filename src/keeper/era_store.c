/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table is what the file holds, or would. A program's digest is made when an entry is written or looked for, so that a
 * flood of messages costs nothing. The file is not synced to the disk, which may take long: one that a crash has cut off is
 * no correct text, and only costs questions that have been asked before. A server that runs as the daemon's user may
 * write it, too: so it is opened like a stranger's.
 */
#include "keeper/era_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "keeper/memory_file.h"
#include "keeper/program_digest.h"
#include "keeper/state_directory.h"
#include "obs/log.h"

#define FILE_NAME "eras"
#define NEW_NAME "eras.new"
#define NEVER UINT64_MAX

/* ---- the file ---- */

static int read_text(int fd, struct buf *text, struct error *err)
{
	struct stat status;
	ssize_t n = 1;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
	    (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return error_set(err, ERROR_INVALID, "it is no plain file of this user alone");
	while (n > 0 && text->len <= ERA_TABLE_TEXT_MAX) {
		n = read(fd, buf_reserve(text, ERA_TABLE_TEXT_MAX), ERA_TABLE_TEXT_MAX);
		if (n > 0)
			text->len += (size_t)n;
	}
	return n < 0 ? error_set_errno(err, "it cannot be read") : 0;
}

static int read_file(struct era_table *table, int directory, struct error *err)
{
	int fd = openat(directory, FILE_NAME,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct buf text = { 0 };
	int result;

	if (fd < 0)
		return errno == ENOENT ? 0 : error_set_errno(err, "it cannot be opened");
	result = read_text(fd, &text, err);
	if (result == 0)
		result = era_table_read(table, buf_slice(&text), err);
	buf_fini(&text);
	close(fd);
	return result;
}

static int write_file(int directory, struct slice text, struct error *err)
{
	ssize_t n = -1;
	int fd;

	unlinkat(directory, NEW_NAME, 0); /* of a daemon that was killed meanwhile */
	fd = openat(directory, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd >= 0) {
		n = write(fd, text.p, text.n);
		close(fd);
	}
	if (n == (ssize_t)text.n && renameat(directory, NEW_NAME, directory, FILE_NAME) == 0)
		return 0;
	error_set_errno(err, "the file %s cannot be written", FILE_NAME);
	if (fd >= 0)
		unlinkat(directory, NEW_NAME, 0);
	return -1;
}

/* ---- the table ---- */

static void take_over(struct era_store *store)
{
	for (size_t i = 0; i < store->config->server_count; i++) {
		struct era_entry entry = { .memory = store->noted[i],
					   .noted_at_ms = clock_wall_ms() };

		if (!store->is_noted[i])
			continue;
		store->is_noted[i] = false;
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
		result = write_file(directory, buf_slice(&text), &err);
		buf_fini(&text);
		close(directory);
	}
	if (result < 0 && !store->has_failed)
		LOG(ERAS_UNSAVED, LOG_STR("reason", err.text));
	store->has_failed = result < 0;
}

/* NULL, or why the message is ignored. */
static const char *check(const struct era_store *store, const struct ipc_message *message)
{
	if (message->server >= store->config->server_count)
		return "there is no such server";
	if (store->config->servers[message->server].conf.era != ERA_UNKNOWN)
		return "the era of the server is configured";
	if (message->value < ERA_UNKNOWN || message->value > ERA_MODERN || message->child > 1)
		return "there is no such era";
	return NULL;
}

/* What is known of a server by now. */
static struct era_memory memory_of(const struct era_store *store, size_t server)
{
	const struct era_memory none = { .era = ERA_UNKNOWN };
	const struct era_entry *entry;
	struct program_digest digest;

	if (store->is_noted[server])
		return store->noted[server];
	if (store->table->count == 0 || store->config->servers[server].conf.era != ERA_UNKNOWN)
		return none;
	program_digest_make(&store->launch->specs[server], &digest);
	entry = era_table_find(store->table, &digest);
	return entry != NULL ? entry->memory : none;
}

void era_store_note(struct era_store *store, const struct ipc_message *message)
{
	const char *why = check(store, message);
	uint64_t earliest_ms = clock_now_ms() + ERA_STORE_GATHER_MS;
	struct era_memory *noted;

	if (why != NULL) {
		LOG(IPC_BAD_REQUEST, LOG_INT("type", message->type),
		    LOG_INT("server", message->server), LOG_INT("child", message->child),
		    LOG_STR("reason", why));
		return;
	}
	noted = &store->noted[message->server];
	if (!store->is_noted[message->server])
		*noted = memory_of(store, message->server);
	store->is_noted[message->server] = true;
	noted->era = (enum era)message->value;
	if (message->child == 1)
		noted->probed_at_ms = clock_wall_ms();
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

int era_store_hand_over(struct era_store *store, struct error *err)
{
	struct buf text = { 0 };
	int fd;

	for (size_t i = 0; i < store->config->server_count; i++) {
		struct era_memory known = memory_of(store, i);
		struct era_memory memory;

		/* Nothing of the keeper's own memory goes with it, between the members. */
		memset(&memory, 0, sizeof(memory));
		memory.era = known.era;
		memory.probed_at_ms = known.probed_at_ms;
		buf_append(&text, &memory, sizeof(memory));
	}
	fd = memory_file_sealed("eras", buf_slice(&text), err);
	buf_fini(&text);
	return fd;
}

/* ---- beginning and end ---- */

void era_store_init(struct era_store *store, const struct config *config,
		    const struct launch *launch)
{
	struct error err = { ERROR_NONE, "" };
	int directory = state_directory_open(false, &err);

	*store = (struct era_store){ .config = config, .launch = launch };
	store->table = mem_zalloc(sizeof(*store->table));
	store->noted = mem_zalloc((config->server_count + 1) * sizeof(*store->noted));
	store->is_noted = mem_zalloc((config->server_count + 1) * sizeof(*store->is_noted));
	if (directory < 0)
		return; /* it may still be made */
	if (read_file(store->table, directory, &err) < 0)
		LOG(ERAS_UNREADABLE, LOG_STR("reason", err.text));
	close(directory);
}

void era_store_fini(struct era_store *store)
{
	if (store->is_due)
		save(store);
	free(store->table);
	free(store->noted);
	free(store->is_noted);
}
