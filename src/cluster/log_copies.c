/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/log_copies.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "router/digest.h"

#define COPIED_BYTES (1024 * 1024) /* of logs: what is more waits until these have been answered */

/* A log of a stream, as it is in the store, or is to be. */
struct log_copy {
	struct map_link by_name;
	struct list
		link; /* among those written that are not answered, or the removed ones; else none */
	uint32_t generation;
	size_t size;         /* of what was written; 0: it is to be written from its beginning */
	uint64_t written_ms; /* when it last was */
	bool is_refused;     /* by the store: it is not written before all are looked at again */
	uint64_t removed_at; /* what `scanned` was */
	struct buf id;       /* of the session */
	struct buf name;     /* ID:NUMBER */
};

void store_key_append(struct buf *out, const char *prefix, char kind, struct slice id)
{
	buf_append_str(out, prefix);
	buf_append(out, (const char[]){ ':', kind, ':' }, 3);
	buf_append_slice(out, id);
}

/* A seeded hash of 64 bits stands for the name: what it kept by mistake would expire. */
static bool has_other_copy(const struct log_copies *copies, const struct log_copy *copy)
{
	return map_find_link(&copies->by_name, copy->by_name.key)->next != NULL;
}

static void free_copy(struct log_copies *copies, struct log_copy *copy)
{
	map_remove_link(&copies->by_name, &copy->by_name);
	list_remove(&copy->link);
	buf_fini(&copy->id);
	buf_fini(&copy->name);
	free(copy);
}

static struct slice number_of(const struct log_copy *copy)
{
	return slice_of(copy->name.data + copy->id.len + 1, copy->name.len - copy->id.len - 1);
}

/* Its keys are those of the session, of the set of its streams, and of the stream. */
static void send_of_copy(struct log_copies *copies, const struct log_copy *copy, const char *script,
			 const struct slice *more, size_t more_count, redis_reply_fn *on_reply)
{
	struct slice arguments[REDIS_ARGUMENTS_MAX];
	struct buf keys[3] = { 0 };
	size_t n = 0;

	store_key_append(&keys[0], copies->prefix, 's', buf_slice(&copy->id));
	store_key_append(&keys[1], copies->prefix, 'e', buf_slice(&copy->id));
	store_key_append(&keys[2], copies->prefix, 'e', buf_slice(&copy->name));
	arguments[n++] = SLICE_LIT("3");
	for (size_t i = 0; i < 3; i++)
		arguments[n++] = buf_slice(&keys[i]);
	arguments[n++] = slice_str(copies->node);
	arguments[n++] = number_of(copy);
	if (more_count > 0)
		memcpy(arguments + n, more, more_count * sizeof(*more));
	redis_send_script(copies->redis, script, arguments, n + more_count, on_reply, copies);
	for (size_t i = 0; i < 3; i++)
		buf_fini(&keys[i]);
}

static void on_removed(void *arg, const redisReply *reply)
{
	struct log_copies *copies = arg;

	copies->on_reply(copies->arg, reply);
}

/*
 * All pages were looked at since: those of streams that have another one were overwritten. Another node may have
 * taken the session.
 */
static void remove_copies(struct log_copies *copies, size_t used)
{
	static const char script[] = "local n = redis.call('HGET', KEYS[1], 'n') "
				     "if n and n ~= ARGV[1] then return 1 end "
				     "redis.call('DEL', KEYS[3]) "
				     "redis.call('SREM', KEYS[2], ARGV[2]) return 1";

	LIST_DRAIN(struct log_copy, copy, &copies->removed, link) {
		if (copies->scanned - copy->removed_at < used)
			return;
		if (copy->id.len > 0 && !has_other_copy(copies, copy))
			send_of_copy(copies, copy, script, NULL, 0, on_removed);
		free_copy(copies, copy);
	}
}

static void on_copied(void *arg, const redisReply *reply)
{
	struct log_copies *copies = arg;
	struct log_copy *copy = container_of(copies->writings.next, struct log_copy, link);
	bool is_other = slice_is_equal(redis_text(reply), SLICE_LIT("other"));

	CHECK(!list_is_empty(&copies->writings));
	list_remove(&copy->link);
	copy->is_refused = reply != NULL && reply->type == REDIS_REPLY_ERROR;
	if (is_other || copy->is_refused)
		copy->size = 0; /* it is written again, as all is after a loss */
	copies->must_compare |= is_other || reply == NULL;
	if (copies->must_compare && reply != NULL)
		log_copies_compare(copies);
	copies->on_reply(copies->arg, reply);
}

static void write_copy(struct log_copies *copies, struct log_copy *copy, struct slice text)
{
	static const char script[] =
		"local n = redis.call('HGET', KEYS[1], 'n') "
		"if n and n ~= ARGV[1] then return ARGV[6] end "
		"if ARGV[3] == '0' then redis.call('SET', KEYS[3], ARGV[4]) "
		"elseif redis.call('STRLEN', KEYS[3]) ~= tonumber(ARGV[3]) then return 'other' "
		"else redis.call('APPEND', KEYS[3], ARGV[4]) end "
		"redis.call('SADD', KEYS[2], ARGV[2]) "
		"redis.call('PEXPIRE', KEYS[2], ARGV[5]) redis.call('PEXPIRE', KEYS[3], ARGV[5]) "
		"return 1";
	char from[24], life[24];

	snprintf(from, sizeof(from), "%zu", copy->size);
	snprintf(life, sizeof(life), "%" PRIu64, copies->life_ms);
	list_append(&copies->writings, &copy->link);
	copy->size += text.n;
	copy->written_ms = clock_now_ms();
	send_of_copy(copies, copy, script,
		     (struct slice[]){ slice_str(from), text, slice_str(life),
				       buf_slice(&copy->id) },
		     4, on_copied);
}

/* Its text begins "of ID EPOCH NUMBER ". */
static void name_copy(struct log_copy *copy, struct slice text)
{
	struct slice id = stream_log_name(text), line = slice_cut(&text, '\n');
	uint64_t number = 0;

	for (int i = 0; i < 3; i++)
		slice_cut(&line, ' ');
	if (id.n != DIGEST_TEXT || text_parse_u64(slice_cut(&line, ' '), &number) < 0)
		id = slice_of(NULL, 0); /* of nobody: it is not written */
	buf_append_slice(&copy->id, id);
	buf_printf(&copy->name, "%.*s:%" PRIu64, SLICE_ARG(id), number);
}

static struct log_copy *add_copy(struct log_copies *copies, size_t page, uint32_t generation,
				 struct slice text)
{
	struct log_copy *copy = mem_zalloc(sizeof(*copy));

	copy->generation = generation;
	copy->written_ms = clock_now_ms();
	list_init(&copy->link);
	name_copy(copy, text);
	map_insert_link(&copies->by_name, text_hash(copies->seed, buf_slice(&copy->name)),
			&copy->by_name);
	copies->by_page[page] = copy;
	if (page >= copies->page_count)
		copies->page_count = page + 1;
	return copy;
}

/* What has been added to the log that begins at this page. Returns how much is sent. */
static size_t copy_log(struct log_copies *copies, size_t page)
{
	struct log_copy *copy = copies->by_page[page];
	at_end(buf_fini) struct buf text = { 0 };
	uint64_t mark =
		stream_log_file_read(copies->file, page, copy != NULL ? copy->size : 0, &text);
	uint32_t generation = stream_log_generation_of(mark);

	/* It may have been overwritten while it was read: then it is another one, or none, by now. */
	atomic_thread_fence(memory_order_acquire);
	if (text.len == 0 || generation != stream_log_generation_of(copies->file->marks[page]) ||
	    (copy != NULL && copy->generation != generation))
		return 0;
	if (copy == NULL)
		copy = add_copy(copies, page, generation, buf_slice(&text));
	if (copy->id.len == 0) {
		copy->size += text.len;
		return 0;
	}
	write_copy(copies, copy, buf_slice(&text));
	return text.len;
}

/* There is one, and it is not more than anybody would take. */
static bool is_fit(uint64_t mark)
{
	return mark != 0 && stream_log_size_of(mark) <= LOG_COPY_BYTES_MAX;
}

/* It has no log, or another one begins at its page. */
static void drop_copies(struct log_copies *copies)
{
	for (size_t page = 0; page < copies->page_count; page++) {
		struct log_copy *copy = copies->by_page[page];
		uint64_t mark = copies->file->marks[page];

		if (copy == NULL ||
		    (copy->generation == stream_log_generation_of(mark) && is_fit(mark)))
			continue;
		copies->by_page[page] = NULL;
		copy->removed_at = copies->scanned;
		list_append(&copies->removed, &copy->link);
	}
}

/* What has not changed for long is written once more, before it expires. */
static bool is_written(const struct log_copies *copies, struct log_copy *copy, uint64_t mark)
{
	if (copy != NULL && clock_now_ms() - copy->written_ms >= copies->life_ms / 3)
		copy->size = 0;
	return copy != NULL && (copy->is_refused || copy->size == stream_log_size_of(mark));
}

/* What is new is written before what it replaces goes; each has its turn. */
void log_copies_compare(struct log_copies *copies)
{
	size_t used, left, bytes = 0;

	if (copies->file == NULL)
		return;
	copies->must_compare = true;
	if (!list_is_empty(&copies->writings))
		return;
	used = copies->file->used < STREAM_LOG_PAGES ? copies->file->used : STREAM_LOG_PAGES;
	drop_copies(copies);
	for (left = used; left > 0 && bytes < COPIED_BYTES; left--) {
		size_t page = copies->next_page < used ? copies->next_page : 0;
		uint64_t mark = copies->file->marks[page];

		copies->next_page = page + 1;
		copies->scanned++;
		if (is_fit(mark) && !is_written(copies, copies->by_page[page], mark))
			bytes += copy_log(copies, page);
	}
	copies->must_compare = bytes >= COPIED_BYTES;
	remove_copies(copies, used);
}

void log_copies_try_again(struct log_copies *copies)
{
	for (size_t page = 0; page < copies->page_count; page++)
		if (copies->by_page[page] != NULL)
			copies->by_page[page]->is_refused = false;
	log_copies_compare(copies);
}

void log_copies_write_anew(struct log_copies *copies)
{
	for (size_t page = 0; page < copies->page_count; page++)
		if (copies->by_page[page] != NULL)
			copies->by_page[page]->size = 0;
	log_copies_try_again(copies);
}

bool log_copies_are_written(const struct log_copies *copies)
{
	return !copies->must_compare && list_is_empty(&copies->writings);
}

void log_copies_init(struct log_copies *copies, int fd)
{
	copies->file = stream_log_file_map(fd);
	copies->by_page = mem_zalloc(STREAM_LOG_PAGES * sizeof(struct log_copy *));
	random_bytes(&copies->seed, sizeof(copies->seed));
	list_init(&copies->removed);
	list_init(&copies->writings);
}

void log_copies_fini(struct log_copies *copies)
{
	for (size_t page = 0; page < copies->page_count; page++)
		if (copies->by_page[page] != NULL)
			free_copy(copies, copies->by_page[page]);
	LIST_DRAIN(struct log_copy, copy, &copies->removed, link)
		free_copy(copies, copy);
	free(copies->by_page);
	if (copies->file != NULL)
		munmap((void *)(uintptr_t)copies->file, STREAM_LOG_FILE_BYTES);
}
