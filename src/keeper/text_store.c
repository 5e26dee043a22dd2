/* SPDX-License-Identifier: Apache-2.0 */
/* What a gateway may write at any time is never mapped here, but read once. */
/* EVP would read a configuration and make its tables first, which takes longer than the rest of the keeper's start. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "keeper/text_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/halves.h"
#include "base/text.h"
#include "config/state_directory.h"
#include "keeper/handover.h"
#include "keeper/programs.h"
#include "obs/log.h"
#include "policy/pins.h"
#include "process/pin_memory.h"
#include "router/kept_sessions.h"

/* ---- files in the state directory ---- */

/*
 * A file of ours in the state directory. A server that runs as the daemon's user may also write it,
 * so it is opened like an untrusted file. What is in it is whole, or is not used: its first line
 * ends with the SHA-256 of the text, and the file is on the disk before it takes its name, so that
 * neither a crash nor a power failure leaves half of it. A file that cannot be used stays beside
 * the next one as NAME.bad.
 */

#define NAME_BYTES 32
#define DIGEST_CHARS ((size_t)(2 * SHA256_DIGEST_LENGTH))
#define SEAL_BYTES (1 + DIGEST_CHARS) /* behind the first line: a space and the digest */

/* ---- the digest ---- */

static struct slice first_line_of(struct slice text)
{
	const char *end = text.n > 0 ? memchr(text.p, '\n', text.n) : NULL;

	return end != NULL ? slice_between(text.p, end) : text;
}

/* Of the text that consists of these two. */
static void make_seal(struct slice line, struct slice rest, char seal_r[SEAL_BYTES + 1])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	SHA256_CTX context;

	CHECK(SHA256_Init(&context) == 1 && SHA256_Update(&context, line.p, line.n) == 1 &&
	      SHA256_Update(&context, rest.p, rest.n) == 1 && SHA256_Final(digest, &context) == 1);
	seal_r[0] = ' ';
	text_to_hex(digest, sizeof(digest), seal_r + 1);
}

/* Appends the text that the file holds, if it is whole. */
static int unseal(struct slice file, struct slice old_first_line, struct buf *text,
		  struct error *err)
{
	struct slice line = first_line_of(file);
	struct slice rest = slice_between(line.p + line.n, file.p + file.n);
	char seal[SEAL_BYTES + 1];

	if (file.n == 0)
		return error_set(err, ERROR_INVALID, "it is empty");
	if (slice_is_equal(line, old_first_line) && file.p[file.n - 1] == '\n') {
		buf_append_slice(text, file); /* of an earlier release */
		return 0;
	}
	if (line.n < SEAL_BYTES)
		return error_set(err, ERROR_INVALID, "it is not a file of this daemon");
	line.n -= SEAL_BYTES;
	make_seal(line, rest, seal);
	if (memcmp(line.p + line.n, seal, SEAL_BYTES) != 0)
		return error_set(err, ERROR_INVALID, "it is not what was written, or a part of it");
	buf_append_slice(text, line);
	buf_append_slice(text, rest);
	return 0;
}

/* Beside, not away: the file is there until another takes its name, and then only this one is. */
static void state_file_set_aside(int directory, const char *name)
{
	char other[NAME_BYTES];

	CHECK((size_t)snprintf(other, sizeof(other), "%s.bad", name) < sizeof(other));
	unlinkat(directory, other, 0);
	if (linkat(directory, name, directory, other, 0) < 0)
		return; /* not in every file system; what was wrong with it is logged all the same */
}

/*
 * Appends the text last written. Returns 1; 0 if there is no file or directory; or -1 if the file
 * cannot be used: its contents are not what was written, are more than `most` bytes, or others may
 * have written them. Then it is set aside, and nothing is appended. A file without a digest, as
 * earlier releases wrote it, is used if `first_line` is its first line and its last one is whole.
 */
static int state_file_read(const char *name, struct slice first_line, size_t most, struct buf *text,
			   struct error *err)
{
	int directory = state_directory_open(false, NULL);
	size_t before = text->len;
	at_end(buf_fini) struct buf file = { 0 };
	int result;

	if (directory < 0)
		return 0;
	result = state_file_get(directory, name, most + SEAL_BYTES, &file, err);
	if (result == 1 && unseal(buf_slice(&file), first_line, text, err) < 0)
		result = -1;
	if (text->len > most) /* without a digest */
		result = error_set(err, ERROR_LIMIT, "it is too long");
	if (result < 0)
		text->len = before;
	if (result < 0)
		state_file_set_aside(directory, name);
	close(directory);
	return result;
}

/* With the digest behind its first line. */
static int state_file_write(int directory, const char *name, struct slice text, struct error *err)
{
	struct slice line = first_line_of(text);
	struct slice rest = slice_between(line.p + line.n, text.p + text.n);
	char seal[SEAL_BYTES + 1];
	const struct slice parts[] = { line, slice_of(seal, SEAL_BYTES), rest };

	make_seal(line, rest, seal);
	return state_file_put(directory, name, parts, ARRAY_LEN(parts), err);
}

#define NEVER UINT64_MAX
#define SLOW_FACTOR \
	20 /* a slow disk may take this part of the time: meanwhile nothing else is done */

struct text_kind {
	const char *name;
	struct slice first_line;
	size_t room; /* for the text, in each half of the memory file */
	uint64_t each_ms;
	/*
	 * Daemons with other addresses have files of their own. Otherwise all daemons of a user have
	 * one file, which one of them may write.
	 */
	bool is_of_address;
	bool (*is_used)(const struct config *config);
	void (*note_unsaved)(const char *reason);
	void (*note_unreadable)(const char *reason);
	/* What is read instead of a file that cannot be used; NULL: nothing. */
	void (*write_lost)(const struct config *config, struct buf *text);
};

/* ---- pins ---- */

static bool config_has_pins(const struct config *config)
{
	for (size_t i = 0; i < config->server_count; i++)
		if (config->servers[i].conf.pin != PIN_OFF)
			return true;
	return false;
}

static void note_pins_unsaved(const char *reason)
{
	LOG(PINS_UNSAVED, LOG_STR("reason", reason));
}

static void note_pins_unreadable(const char *reason)
{
	LOG(PINS_UNREADABLE, LOG_STR("reason", reason));
}

/* What the servers list next is no first sight: who reads this has all of it wait for the operator. SEC-68 */
static void write_pins_lost(const struct config *config, struct buf *text)
{
	struct pins lost;

	pins_init(&lost);
	pins_lose(&lost);
	buf_append_str(text, PIN_MEMORY_FIRST_LINE);
	for (size_t i = 0; i < config->server_count; i++)
		pin_record_write(&lost, config->servers[i].conf.name, false, text);
	pins_fini(&lost);
}

/* ---- sessions ---- */

static bool config_has_sessions(const struct config *config)
{
	return config->keeps_sessions;
}

static void note_sessions_unsaved(const char *reason)
{
	LOG(SESSIONS_UNSAVED, LOG_STR("reason", reason));
}

static void note_sessions_unreadable(const char *reason)
{
	LOG(SESSIONS_UNREADABLE, LOG_STR("reason", reason));
}

static const struct text_kind kinds[IPC_TEXT_KINDS] = {
	[IPC_TEXT_PINS] = { .name = "pins",
			    .first_line = SLICE(PIN_MEMORY_FIRST_LINE),
			    .room = PIN_MEMORY_TEXT_BYTES,
			    .each_ms = TEXT_STORE_PINS_MS,
			    .is_used = config_has_pins,
			    .note_unsaved = note_pins_unsaved,
			    .note_unreadable = note_pins_unreadable,
			    .write_lost = write_pins_lost },
	[IPC_TEXT_SESSIONS] = { .name = "sessions",
				.first_line = SLICE(KEPT_SESSIONS_FIRST_LINE),
				.room = KEPT_SESSIONS_TEXT_BYTES,
				.each_ms = TEXT_STORE_SESSIONS_MS,
				.is_of_address = true,
				.is_used = config_has_sessions,
				.note_unsaved = note_sessions_unsaved,
				.note_unreadable = note_sessions_unreadable },
};

/* ---- the memory file of a text ---- */

int text_store_read(const struct text_store *store, struct buf *text, struct error *err)
{
	const size_t room = store->kind->room;
	struct halves head;
	size_t size;
	off_t at;

	CHECK(store->memory >= 0);
	if (pread(store->memory, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return error_set_errno(err, "the memory file cannot be read");
	if (head.half > 1 || head.bytes[head.half] > room)
		return error_set(err, ERROR_INVALID, "the gateway left invalid data in it");
	size = head.bytes[head.half];
	at = (off_t)halves_find_text(&head, room);
	if (size > 0 && pread(store->memory, buf_reserve(text, size), size, at) != (ssize_t)size)
		return error_set_errno(err, "the memory file cannot be read");
	text->len += size;
	return 0;
}

static int text_store_fill(const struct text_store *store, struct slice text, struct error *err)
{
	const struct halves head = { .bytes = { text.n } };

	if (pwrite(store->memory, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	    pwrite(store->memory, text.p, text.n, sizeof(head)) == (ssize_t)text.n)
		return 0;
	return error_set_errno(err, "the memory file of %s cannot be written", store->name);
}

/* ---- the file ---- */

/* The lock stays for the daemon's life: two that write in turn would forget each other's texts. */
static int open_lock(const struct text_store *store, int directory, struct error *err)
{
	char name[TEXT_STORE_NAME_BYTES + sizeof(".lock")];
	int lock;

	snprintf(name, sizeof(name), "%s.lock", store->name);
	if (store->kind->is_of_address)
		lock = openat(directory, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	else
		lock = fcntl(directory, F_DUPFD_CLOEXEC, 0);
	if (lock < 0)
		return error_set_errno(err, "the lock of %s cannot be opened", store->name);
	if (flock(lock, LOCK_EX | LOCK_NB) == 0)
		return lock;
	close(lock);
	return error_set(err, ERROR_BUSY, "another daemon uses the state directory");
}

static int take_file(struct text_store *store, struct error *err)
{
	int directory;

	if (store->lock >= 0)
		return 0;
	directory = state_directory_open(true, err);
	if (directory < 0)
		return -1;
	store->lock = open_lock(store, directory, err);
	if (store->lock < 0) {
		close(directory);
		return -1;
	}
	store->directory = directory;
	return 0;
}

static void leave_file(struct text_store *store)
{
	if (store->lock < 0)
		return;
	close(store->lock);
	close(store->directory);
	store->lock = store->directory = -1;
}

/* What ends from now on must not come back from it. */
static void forget_file(struct text_store *store)
{
	int directory = state_directory_open(false, NULL);
	bool is_there =
		directory >= 0 && faccessat(directory, store->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;

	if (directory >= 0)
		close(directory);
	if (is_there && take_file(store, NULL) == 0 &&
	    unlinkat(store->directory, store->name, 0) < 0 && errno != ENOENT)
		store->kind->note_unsaved("its file cannot be removed");
	leave_file(store);
}

static void note_outcome(struct text_store *store, int result, const struct error *err)
{
	if (result < 0 && !store->has_failed)
		store->kind->note_unsaved(err->text);
	store->has_failed = result < 0;
}

static void text_store_save(struct text_store *store)
{
	struct error err = { ERROR_NONE, "" };
	at_end(buf_fini) struct buf text = { 0 };
	uint64_t began_ns = clock_monotonic_ns();
	int result = take_file(store, &err);

	store->is_due = false;
	store->written_at_ms = clock_now_ms();
	if (result == 0)
		result = text_store_read(store, &text, &err);
	if (text.len > 0)
		result = state_file_write(store->directory, store->name, buf_slice(&text), &err);
	store->took_ms = (clock_monotonic_ns() - began_ns) / 1000000;
	note_outcome(store, result, &err);
	if (result < 0) {
		store->is_due = true;
		store->write_at_ms =
			clock_now_ms() + TEXT_STORE_PINS_MS + SLOW_FACTOR * store->took_ms;
	}
}

static void text_store_note(struct text_store *store)
{
	uint64_t earliest_ms = clock_now_ms() + TEXT_STORE_GATHER_MS;
	uint64_t slow_ms = SLOW_FACTOR * store->took_ms;
	uint64_t each_ms = slow_ms > store->kind->each_ms ? slow_ms : store->kind->each_ms;

	if (store->is_due || !store->is_used)
		return;
	store->is_due = true;
	store->write_at_ms = earliest_ms;
	if (store->written_at_ms > 0 && store->written_at_ms + each_ms > earliest_ms)
		store->write_at_ms = store->written_at_ms + each_ms;
}

void text_stores_note(struct text_stores *stores, uint32_t kind)
{
	if (kind < IPC_TEXT_KINDS)
		text_store_note(&stores->items[kind]);
}

void text_stores_on_gateway_exit(struct text_stores *stores)
{
	stores->told = 0;
	for (uint32_t kind = 0; kind < IPC_TEXT_KINDS; kind++)
		text_store_note(&stores->items[kind]);
}

void text_stores_tell(struct text_stores *stores, int gateway_fd)
{
	struct ipc_message message = { .type = IPC_UNSAVED };

	CHECK(gateway_fd >= 0);
	for (uint32_t kind = 0; kind < IPC_TEXT_KINDS; kind++)
		if (stores->items[kind].is_used && stores->items[kind].has_failed)
			message.unsaved.kinds |= (uint8_t)(1u << kind);
	if (message.unsaved.kinds != stores->told && ipc_send(gateway_fd, &message, NULL) == 0)
		stores->told = message.unsaved.kinds;
}

static uint64_t do_due(struct text_store *store)
{
	if (store->is_due && clock_now_ms() >= store->write_at_ms)
		text_store_save(store);
	return store->is_due ? store->write_at_ms : NEVER;
}

uint64_t text_stores_do_due(struct text_stores *stores)
{
	uint64_t next_ms = NEVER;

	for (size_t i = 0; i < IPC_TEXT_KINDS; i++) {
		uint64_t due_ms = do_due(&stores->items[i]);

		next_ms = due_ms < next_ms ? due_ms : next_ms;
	}
	return next_ms;
}

/* ---- beginning and end ---- */

static void choose_name(struct text_store *store, const struct config *config)
{
	uint64_t hash = 0;

	if (!store->kind->is_of_address) {
		snprintf(store->name, sizeof(store->name), "%s", store->kind->name);
		return;
	}
	for (size_t i = 0; i < config->listen_count; i++)
		hash = text_hash_part(hash, slice_str(config->listen[i].address));
	snprintf(store->name, sizeof(store->name), "%s-%016" PRIx64, store->kind->name, hash);
}

static int text_store_load(struct text_store *store, const struct config *config, struct error *err)
{
	const struct text_kind *kind = store->kind;
	struct slice first = kind->first_line;
	struct error why = { ERROR_NONE, "" };
	at_end(buf_fini) struct buf text = { 0 };
	int result = state_file_read(store->name, slice_of(first.p, first.n - 1), kind->room, &text,
				     &why);

	if (result < 0) {
		kind->note_unreadable(why.text);
		if (kind->write_lost != NULL)
			kind->write_lost(config, &text);
		/* At once: by the next start, somebody might have removed what cannot be used. */
		store->is_due = store->is_used && kind->write_lost != NULL;
		store->write_at_ms = clock_now_ms();
	}
	return text_store_fill(store, buf_slice(&text), err);
}

static int text_store_init(struct text_store *store, const struct text_kind *kind,
			   const struct config *config, struct handover *from, struct error *err)
{
	struct error why = { ERROR_NONE, "" };
	int left = handover_take_memory(from, kind->name, HALVES_BYTES(kind->room), err);

	*store = (struct text_store){ .kind = kind, .directory = -1, .lock = -1 };
	choose_name(store, config);
	store->memory =
		left != 0 ? left : memory_file_shared(kind->name, HALVES_BYTES(kind->room), err);
	if (store->memory < 0)
		return -1;
	store->is_used = kind->is_used(config);
	if (store->is_used)
		note_outcome(store, take_file(store, &why), &why);
	else if (kind->is_of_address)
		forget_file(store);
	if (left > 0) {
		text_store_note(store); /* the program before may not have come to write it */
		return 0;
	}
	/* Pins: a reload may make use of them. Sessions of another daemon are not ours. */
	return kind->is_of_address && store->lock < 0 ? 0 : text_store_load(store, config, err);
}

int text_stores_init(struct text_stores *stores, const struct config *config, struct handover *from,
		     struct error *err)
{
	stores->told = 0;
	for (size_t i = 0; i < IPC_TEXT_KINDS; i++)
		if (text_store_init(&stores->items[i], &kinds[i], config, from, err) < 0)
			return -1;
	return 0;
}

void text_stores_hand_over(const struct text_stores *stores, struct handover *to)
{
	for (size_t i = 0; i < IPC_TEXT_KINDS; i++)
		handover_write(to, "memory %d %s", handover_give(to, stores->items[i].memory),
			       stores->items[i].kind->name);
}

static void text_store_renew(struct text_store *store, const struct config *config)
{
	struct text_store next = { .kind = store->kind };

	CHECK(store->memory >= 0);
	choose_name(&next, config);
	next.is_used = store->kind->is_used(config);
	if (store->kind->is_of_address && (!next.is_used || strcmp(store->name, next.name) != 0)) {
		forget_file(store);
		store->is_due = next.is_used; /* under the other name */
		store->write_at_ms = clock_now_ms();
	}
	memcpy(store->name, next.name, sizeof(next.name));
	store->is_used = next.is_used;
}

void text_stores_renew(struct text_stores *stores, const struct config *config)
{
	for (size_t i = 0; i < IPC_TEXT_KINDS; i++)
		text_store_renew(&stores->items[i], config);
}

void text_stores_fini(struct text_stores *stores)
{
	for (size_t i = 0; i < IPC_TEXT_KINDS; i++) {
		struct text_store *store = &stores->items[i];

		if (store->is_due)
			text_store_save(store);
		leave_file(store);
		close(store->memory);
	}
}
