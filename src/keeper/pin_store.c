/* SPDX-License-Identifier: Apache-2.0 */
/* What a gateway may write at any time is never mapped here, but read once. */
#include "keeper/pin_store.h"

#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "keeper/memory_file.h"
#include "keeper/state_directory.h"
#include "keeper/state_file.h"
#include "obs/log.h"
#include "policy/pin_record.h"
#include "process/pin_memory.h"

#define FILE_NAME "pins"
#define NEVER UINT64_MAX

/* ---- the memory file ---- */

int pin_store_read(const struct pin_store *store, struct buf *text, struct error *err)
{
	struct halves head;
	size_t size;
	off_t at;

	if (pread(store->memory, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return error_set_errno(err, "the memory file cannot be read");
	if (head.half > 1 || head.bytes[head.half] > PIN_MEMORY_TEXT_BYTES)
		return error_set(err, ERROR_INVALID, "the gateway left invalid data in it");
	size = head.bytes[head.half];
	at = (off_t)halves_find_text(&head, PIN_MEMORY_TEXT_BYTES);
	if (size > 0 && pread(store->memory, buf_reserve(text, size), size, at) != (ssize_t)size)
		return error_set_errno(err, "the memory file cannot be read");
	text->len += size;
	return 0;
}

static int fill(const struct pin_store *store, struct slice text, struct error *err)
{
	const struct halves head = { .bytes = { text.n } };

	if (pwrite(store->memory, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	    pwrite(store->memory, text.p, text.n, sizeof(head)) == (ssize_t)text.n)
		return 0;
	return error_set_errno(err, "the memory file for pins cannot be written");
}

/* ---- the file ---- */

/* The lock stays for the daemon's life: two that write in turn would forget each other's pins. */
static int lock_directory(struct pin_store *store, struct error *err)
{
	int directory;

	if (store->directory >= 0)
		return 0;
	directory = state_directory_open(true, err);
	if (directory < 0)
		return -1;
	if (flock(directory, LOCK_EX | LOCK_NB) == 0) {
		store->directory = directory;
		return 0;
	}
	close(directory);
	return error_set(err, ERROR_BUSY, "another daemon uses the state directory");
}

static void note_outcome(struct pin_store *store, int result, const struct error *err)
{
	if (result < 0 && !store->has_failed)
		LOG(PINS_UNSAVED, LOG_STR("reason", err->text));
	store->has_failed = result < 0;
}

static void save(struct pin_store *store)
{
	struct error err = { ERROR_NONE, "" };
	struct buf text = { 0 };
	int result = lock_directory(store, &err);

	store->is_due = false;
	store->written_at_ms = clock_now_ms();
	if (result == 0)
		result = pin_store_read(store, &text, &err);
	if (result == 0)
		result = state_file_write(store->directory, FILE_NAME, buf_slice(&text), &err);
	note_outcome(store, result, &err);
	if (result < 0) {
		store->is_due = true;
		store->write_at_ms = store->written_at_ms + PIN_STORE_EACH_MS;
	}
	buf_fini(&text);
}

void pin_store_note(struct pin_store *store)
{
	uint64_t earliest_ms = clock_now_ms() + PIN_STORE_GATHER_MS;

	if (store->is_due || !store->is_used)
		return;
	store->is_due = true;
	store->write_at_ms = earliest_ms;
	if (store->written_at_ms > 0 && store->written_at_ms + PIN_STORE_EACH_MS > earliest_ms)
		store->write_at_ms = store->written_at_ms + PIN_STORE_EACH_MS;
}

uint64_t pin_store_do_due(struct pin_store *store)
{
	if (store->is_due && clock_now_ms() >= store->write_at_ms)
		save(store);
	return store->is_due ? store->write_at_ms : NEVER;
}

/* ---- beginning and end ---- */

static bool has_pins(const struct config *config)
{
	for (size_t i = 0; i < config->server_count; i++)
		if (config->servers[i].conf.pin != PIN_OFF)
			return true;
	return false;
}

/* What the servers list next is no first sight: who reads this has all of it wait for the operator. SEC-68 */
static void write_lost(const struct config *config, struct buf *text)
{
	struct pins lost;

	pins_init(&lost);
	pins_lose(&lost);
	buf_append_str(text, PIN_MEMORY_FIRST_LINE);
	for (size_t i = 0; i < config->server_count; i++)
		pin_record_write(&lost, config->servers[i].conf.name, false, text);
	pins_fini(&lost);
}

static int load(struct pin_store *store, const struct config *config, struct error *err)
{
	static const struct slice first = SLICE(PIN_MEMORY_FIRST_LINE);
	struct error why = { ERROR_NONE, "" };
	struct buf text = { 0 };
	int result = state_file_read(FILE_NAME, slice_of(first.p, first.n - 1),
				     PIN_MEMORY_TEXT_BYTES, &text, &why);

	if (result < 0) {
		LOG(PINS_UNREADABLE, LOG_STR("reason", why.text));
		write_lost(config, &text);
		/* At once: by the next start, somebody might have removed what cannot be used. */
		store->is_due = store->is_used;
		store->write_at_ms = clock_now_ms();
	}
	result = fill(store, buf_slice(&text), err);
	buf_fini(&text);
	return result;
}

int pin_store_init(struct pin_store *store, const struct config *config, struct error *err)
{
	struct error why = { ERROR_NONE, "" };

	*store = (struct pin_store){ .directory = -1 };
	store->memory = memory_file_shared("pins", PIN_MEMORY_FILE_BYTES, err);
	if (store->memory < 0)
		return -1;
	store->is_used = has_pins(config);
	if (store->is_used)
		note_outcome(store, lock_directory(store, &why), &why);
	return load(store, config, err); /* a reload may make use of them */
}

void pin_store_renew(struct pin_store *store, const struct config *config)
{
	CHECK(store->memory >= 0);
	store->is_used = has_pins(config);
}

void pin_store_fini(struct pin_store *store)
{
	if (store->is_due)
		save(store);
	if (store->directory >= 0)
		close(store->directory);
	close(store->memory);
}
