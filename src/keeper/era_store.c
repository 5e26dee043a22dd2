/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table is what the file holds, or would. A program's digest is made when an entry is written or looked for, so that a
 * flood of messages costs nothing. A file that is lost only costs questions that have been asked before.
 */
/* EVP would read a configuration and make its tables first, which takes longer than the rest of the keeper's start. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "keeper/era_store.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "keeper/gateway_entry.h"
#include "keeper/memory_file.h"
#include "keeper/state_file.h"
#include "obs/log.h"

/* ---- digests of programs ---- */

/*
 * Files are looked at, not read: number, size and dates. Of the device there is no word: its number may be another one
 * after each boot. That a file is the same one too rarely costs a question, too often at most a day in the wrong era.
 */

#include "base/buf.h"
#include "keeper/launch.h"

static void append_text(struct buf *out, struct slice text)
{
	buf_append_u64(out, text.n);
	buf_append_char(out, ':');
	buf_append_slice(out, text);
}

static void append_date(struct buf *out, const struct timespec *date)
{
	buf_printf(out, " %lld.%09ld", (long long)date->tv_sec, date->tv_nsec);
}

/* Whether it is a plain file, as the process of the server would find it. */
static bool append_file(struct buf *out, int cwd, const char *path)
{
	struct stat status;

	if (fstatat(cwd, path, &status, 0) < 0 || !S_ISREG(status.st_mode))
		return false;
	buf_printf(out, "file %llu %lld", (unsigned long long)status.st_ino,
		   (long long)status.st_size);
	append_date(out, &status.st_mtim);
	append_date(out, &status.st_ctim);
	return true;
}

static void append_files(struct buf *out, const struct launch_spec *spec, int cwd)
{
	for (char **path = spec->candidates; *path != NULL; path++)
		if (append_file(out, cwd, *path))
			break;
	for (size_t i = 0; i < spec->server->args.count; i++)
		(void)append_file(out, cwd, spec->server->args.items[i].p);
}

void program_digest_make(const struct launch_spec *spec, struct program_digest *digest_r)
{
	const struct config_server *server = spec->server;
	int cwd = AT_FDCWD;
	SHA256_CTX context;
	struct buf text = { 0 };

	_Static_assert(sizeof(digest_r->bytes) == SHA256_DIGEST_LENGTH, "it is SHA-256");
	append_text(&text, slice_str(server->conf.name));
	append_text(&text, slice_or_empty(server->command));
	for (size_t i = 0; i < server->args.count; i++)
		append_text(&text, server->args.items[i]);
	if (server->cwd != NULL)
		cwd = open(server->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cwd >= 0 || cwd == AT_FDCWD)
		append_files(&text, spec, cwd);
	if (cwd >= 0)
		close(cwd);
	CHECK(SHA256_Init(&context) == 1 && SHA256_Update(&context, text.data, text.len) == 1 &&
	      SHA256_Final(digest_r->bytes, &context) == 1);
	buf_wipe(&text); /* arguments may hold secrets */
}

/* ---- the table ---- */

/* A few hundred at most: they are looked through. */

#define SECONDS_MAX (UINT64_MAX / 1000)

const struct era_entry *era_table_find(const struct era_table *table,
				       const struct program_digest *digest)
{
	for (size_t i = 0; i < table->count; i++)
		if (memcmp(&table->entries[i].digest, digest, sizeof(*digest)) == 0)
			return &table->entries[i];
	return NULL;
}

void era_table_set(struct era_table *table, const struct era_entry *entry)
{
	const struct era_entry *known = era_table_find(table, &entry->digest);
	size_t at = 0;

	if (known != NULL) {
		at = (size_t)(known - table->entries);
	} else if (table->count < ERA_TABLE_MAX) {
		at = table->count++;
	} else {
		for (size_t i = 1; i < ERA_TABLE_MAX; i++)
			if (table->entries[i].noted_at_ms < table->entries[at].noted_at_ms)
				at = i;
	}
	table->entries[at] = *entry;
}

void era_table_write(const struct era_table *table, struct buf *out)
{
	buf_append_slice(out, ERA_TABLE_FIRST_LINE);
	buf_append_char(out, '\n');
	for (size_t i = 0; i < table->count; i++) {
		const struct era_entry *entry = &table->entries[i];

		for (size_t k = 0; k < sizeof(entry->digest.bytes); k++)
			buf_printf(out, "%02x", entry->digest.bytes[k]);
		buf_printf(out, " %s %llu %llu\n", era_name(entry->memory.era),
			   (unsigned long long)entry->noted_at_ms / 1000,
			   (unsigned long long)entry->memory.probed_at_ms / 1000);
	}
}

static int read_era(struct slice word, enum era *era_r)
{
	for (enum era era = ERA_UNKNOWN; era <= ERA_MODERN; era++) {
		if (!slice_is_equal(word, slice_str(era_name(era))))
			continue;
		*era_r = era;
		return 0;
	}
	return -1;
}

static int read_seconds(struct slice word, uint64_t *ms_r)
{
	if (text_parse_u64(word, ms_r) < 0 || *ms_r > SECONDS_MAX)
		return -1;
	*ms_r *= 1000;
	return 0;
}

static int read_entry(struct slice line, struct era_entry *entry_r)
{
	struct slice digest = slice_cut(&line, ' ');
	struct slice era = slice_cut(&line, ' ');
	struct slice noted = slice_cut(&line, ' ');

	if (text_from_hex(digest, entry_r->digest.bytes, sizeof(entry_r->digest.bytes)) < 0 ||
	    read_era(era, &entry_r->memory.era) < 0 ||
	    read_seconds(noted, &entry_r->noted_at_ms) < 0)
		return -1;
	return read_seconds(line, &entry_r->memory.probed_at_ms);
}

int era_table_read(struct era_table *table_r, struct slice text, struct error *err)
{
	bool is_whole = text.n > 0 && text.n <= ERA_TABLE_TEXT_MAX && text.p[text.n - 1] == '\n';
	struct era_entry entry;

	table_r->count = 0;
	text.n -= is_whole;
	if (!is_whole || !slice_is_equal(slice_cut(&text, '\n'), ERA_TABLE_FIRST_LINE))
		return error_set(err, ERROR_INVALID, "it is from another version, or incomplete");
	while (text.p != NULL) {
		if (table_r->count == ERA_TABLE_MAX ||
		    read_entry(slice_cut(&text, '\n'), &entry) < 0) {
			table_r->count = 0;
			return error_set(err, ERROR_INVALID, "it has an invalid line");
		}
		era_table_set(table_r, &entry);
	}
	return 0;
}

/* ---- the store ---- */

#define FILE_NAME "eras"
#define NEVER UINT64_MAX

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
