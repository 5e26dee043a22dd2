/* SPDX-License-Identifier: Apache-2.0 */
#include "session/stream_log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/text.h"
#include "obs/log.h"

#define USED_PAGES_LEFT 1024 /* their memory stays */
#define HEAD_MAX 64

/* ---- pages ---- */

static uint64_t mark_of(uint32_t generation, size_t size)
{
	return (uint64_t)generation << 32 | size;
}

static size_t pages_for(size_t size)
{
	return (size + STREAM_LOG_PAGE_BYTES - 1) / STREAM_LOG_PAGE_BYTES;
}

static void set_mark(const struct stream_log *log, uint64_t mark)
{
	struct stream_logs *logs = log->logs;

	if (logs->is_left)
		return;
	atomic_store_explicit(&logs->file->marks[log->first], mark, memory_order_release);
	if (logs->on_change != NULL)
		logs->on_change(logs);
}

static void count_pages(struct stream_log *log, ptrdiff_t pages)
{
	struct stream_log_owner *owner = log->owner;

	CHECK(pages >= 0 || owner->pages >= (size_t)-pages);
	log->pages += (size_t)pages;
	owner->pages += (size_t)pages;
	ranking_set(&log->logs->ranking, &owner->ranked, owner->pages);
}

/* Without logs, the memory goes back. */
static void forget_all(struct stream_logs *logs)
{
	CHECK(logs->count == 0);
	if (logs->is_left)
		return;
	if (logs->file->form != STREAM_LOG_FORM || logs->file->used > USED_PAGES_LEFT)
		madvise(logs->file, STREAM_LOG_FILE_BYTES, MADV_REMOVE);
	logs->file->form = STREAM_LOG_FORM;
	logs->file->used = 0;
	buf_fini(&logs->free);
	logs->is_full = false;
}

static void free_log(struct stream_log *log)
{
	struct stream_logs *logs = log->logs;

	if (log->holder != NULL)
		*log->holder = NULL;
	if (log->pages > 0)
		set_mark(log, 0);
	for (uint32_t page = log->first; log->pages > 0; page = logs->file->next[page]) {
		if (!logs->is_left)
			buf_append(&logs->free, &page, sizeof(page));
		count_pages(log, -1);
	}
	list_remove(&log->link);
	free(log);
	CHECK(logs->count > 0);
	if (--logs->count == 0)
		forget_all(logs);
}

static void lose(struct stream_log *log)
{
	struct stream_logs *logs = log->logs;

	if (!logs->is_full)
		LOG(STREAM_LOG_LOST, LOG_INT("bytes", log->size));
	logs->is_full = true;
	free_log(log);
}

/* *holder is NULL behind it if its log was the one to give way. */
static bool take_page(struct stream_log **holder, uint32_t *page_r)
{
	struct stream_logs *logs = (*holder)->logs;
	uint32_t used = logs->file->used;

	while (logs->free.len == 0 && used == STREAM_LOG_PAGES) {
		struct ranked *most = ranking_first(&logs->ranking);
		const struct stream_log_owner *owner =
			container_of(most, struct stream_log_owner, ranked);

		CHECK(most != NULL);
		lose(container_of(owner->logs.next, struct stream_log, link));
		if (*holder == NULL)
			return false;
	}
	if (logs->free.len == 0) {
		*page_r = used;
		logs->file->used = used + 1;
	} else {
		logs->free.len -= sizeof(*page_r);
		memcpy(page_r, logs->free.data + logs->free.len, sizeof(*page_r));
	}
	return true;
}

static bool reserve(struct stream_log **holder, size_t size)
{
	while ((*holder)->pages < pages_for((*holder)->size + size)) {
		struct stream_log *log = *holder;
		uint32_t page;

		if (!take_page(holder, &page))
			return false;
		if (log->pages == 0)
			log->first = log->at = page;
		else
			log->logs->file->next[log->last] = page;
		log->last = page;
		count_pages(log, 1);
	}
	return true;
}

static void put(struct stream_log *log, struct slice text)
{
	struct stream_log_file *file = log->logs->file;

	while (text.n > 0) {
		size_t offset = log->size % STREAM_LOG_PAGE_BYTES;
		size_t n = STREAM_LOG_PAGE_BYTES - offset;

		if (offset == 0 && log->size > 0)
			log->at = file->next[log->at];
		if (n > text.n)
			n = text.n;
		/* Compilers make a slow loop of memcpy where they know a bound. */
		memmove(file->pages[log->at] + offset, text.p, n);
		log->size += n;
		text = slice_of(text.p + n, text.n - n);
	}
}

/* ---- logs ---- */

void stream_log_owner_init(struct stream_log_owner *owner)
{
	*owner = (struct stream_log_owner){ .pages = 0 };
	ranked_init(&owner->ranked);
	list_init(&owner->logs);
}

void stream_log_owner_fini(struct stream_log_owner *owner)
{
	LIST_DRAIN(struct stream_log, log, &owner->logs, link)
		free_log(log);
	CHECK(owner->pages == 0);
}

static struct stream_log *add(struct stream_logs *logs, struct stream_log_owner *owner)
{
	struct stream_log *log = mem_zalloc(sizeof(*log));

	log->logs = logs;
	log->owner = owner;
	list_append(&owner->logs, &log->link);
	logs->count++;
	return log;
}

void stream_log_new(struct stream_logs *logs, struct stream_log_owner *owner,
		    struct stream_log **holder)
{
	*holder = NULL;
	if (logs == NULL || logs->file == NULL || logs->is_left)
		return;
	*holder = add(logs, owner);
	(*holder)->holder = holder;
	if (++logs->generation == 0)
		logs->generation = 1;
	(*holder)->generation = logs->generation;
}

static void append(struct stream_log **holder, struct slice head, struct slice text,
		   struct slice end)
{
	size_t size = head.n + text.n + end.n;

	if (size > STREAM_LOG_BYTES_MAX - (*holder)->size) {
		lose(*holder);
	} else if (reserve(holder, size)) {
		put(*holder, head);
		put(*holder, text);
		put(*holder, end);
		set_mark(*holder, mark_of((*holder)->generation, (*holder)->size));
	}
}

void stream_log_append(struct stream_log **holder, struct slice head, struct slice text)
{
	if (*holder != NULL && !(*holder)->logs->is_left)
		append(holder, head, text, SLICE_LIT("\n"));
}

/* What a line begins with. Returns its length. */
static size_t format_head(char out[HEAD_MAX], const char *word, uint64_t first, uint64_t second,
			  bool has_text)
{
	size_t n = strlen(word);

	memcpy(out, word, n);
	if (first != STREAM_LOG_NONE) {
		out[n++] = ' ';
		n += text_format_u64(first, out + n);
	}
	if (second != STREAM_LOG_NONE) {
		out[n++] = ' ';
		n += text_format_u64(second, out + n);
	}
	if (has_text)
		out[n++] = ' ';
	return n;
}

void stream_log_write(struct buf *out, const char *word, uint64_t first, uint64_t second,
		      struct slice text)
{
	out->len += format_head(buf_reserve(out, HEAD_MAX), word, first, second, text.n > 0);
	buf_append_slice(out, text);
	buf_append_char(out, '\n');
}

void stream_log_note(struct stream_log **holder, const char *word, uint64_t first, uint64_t second,
		     struct slice text)
{
	char head[HEAD_MAX];
	size_t n = format_head(head, word, first, second, text.n > 0);

	stream_log_append(holder, slice_of(head, n), text);
}

/* The other one is there before the one goes, unless that has to give way to it. */
void stream_log_replace(struct stream_log **holder, struct slice text)
{
	const struct stream_log *old = *holder;
	struct stream_log *new = NULL;

	if (old == NULL || old->logs->is_left)
		return;
	stream_log_new(old->logs, old->owner, &new);
	append(&new, text, SLICE_LIT(""), SLICE_LIT(""));
	stream_log_free(holder);
	*holder = new;
	if (new != NULL)
		new->holder = holder;
}

void stream_log_read(const struct stream_log *log, struct buf *out)
{
	if (log->size > 0)
		(void)!stream_log_file_read(log->logs->file, log->first, 0, out);
}

void stream_log_add(struct stream_logs *logs, struct stream_log_owner *owner, struct slice text)
{
	struct stream_log *log;

	stream_log_new(logs, owner, &log);
	if (log == NULL)
		return;
	CHECK(text.n > 0);
	append(&log, text, SLICE_LIT(""), SLICE_LIT(""));
	if (log != NULL)
		log->holder = NULL;
}

bool stream_log_take(struct stream_log_owner *owner, struct buf *out)
{
	struct stream_log *log;

	if (list_is_empty(&owner->logs))
		return false;
	log = container_of(owner->logs.next, struct stream_log, link);
	stream_log_read(log, out);
	free_log(log);
	return true;
}

void stream_log_free(struct stream_log **holder)
{
	if (*holder == NULL)
		return;
	CHECK((*holder)->holder == holder);
	free_log(*holder);
}

/* ---- what the gateway before has left ---- */

/* Each page is looked at once: whoever left the file may have chained them as he liked. */
enum page_use { PAGE_UNSEEN, PAGE_LOOKED_AT, PAGE_TAKEN, PAGE_SPENT };

struct found {
	struct stream_logs *logs;
	unsigned char *uses; /* of each page */
	stream_log_found_fn *on_found;
	void *arg;
};

/* Whether there is a log that has its pages to itself. */
static bool is_whole(const struct found *found, uint32_t first, size_t size, uint32_t *last_r)
{
	const struct stream_log_file *file = found->logs->file;
	uint32_t page = first;
	size_t count = 0;

	while (page < file->used && found->uses[page] == PAGE_UNSEEN) {
		found->uses[page] = PAGE_LOOKED_AT;
		*last_r = page;
		if (++count == pages_for(size))
			return true;
		page = file->next[page];
	}
	return false;
}

/* Of the pages that is_whole has looked at. */
static void settle(const struct found *found, uint32_t first, enum page_use use)
{
	uint32_t page = first;

	while (page < found->logs->file->used && found->uses[page] == PAGE_LOOKED_AT) {
		found->uses[page] = (unsigned char)use;
		page = found->logs->file->next[page];
	}
}

static bool take_over(struct found *found, uint32_t first, uint64_t mark, uint32_t last)
{
	struct stream_logs *logs = found->logs;
	at_end(buf_fini) struct buf text = { 0 };
	struct stream_log_owner *owner;
	struct stream_log *log;

	if (stream_log_file_read(logs->file, first, 0, &text) != mark)
		return false;
	owner = found->on_found(found->arg, buf_slice(&text));
	if (owner == NULL)
		return false;
	log = add(logs, owner);
	log->first = first;
	log->last = log->at = last;
	log->size = text.len;
	log->generation = stream_log_generation_of(mark);
	count_pages(log, (ptrdiff_t)pages_for(text.len));
	return true;
}

static void read_all(struct found *found)
{
	struct stream_logs *logs = found->logs;

	for (uint32_t page = 0; page < logs->file->used; page++) {
		uint64_t mark = logs->file->marks[page];
		uint32_t last = 0;
		bool is_taken;

		if (mark == 0)
			continue;
		if (stream_log_generation_of(mark) > logs->generation)
			logs->generation = stream_log_generation_of(mark);
		is_taken = is_whole(found, page, stream_log_size_of(mark), &last) &&
			   take_over(found, page, mark, last);
		settle(found, page, is_taken ? PAGE_TAKEN : PAGE_SPENT);
		if (!is_taken)
			logs->file->marks[page] = 0;
	}
	for (uint32_t page = 0; page < logs->file->used; page++)
		if (found->uses[page] != PAGE_TAKEN)
			buf_append(&logs->free, &page, sizeof(page));
}

void stream_logs_open(struct stream_logs *logs, int fd, stream_log_found_fn *on_found, void *arg)
{
	struct found found = { logs, NULL, on_found, arg };
	void *map;

	*logs = (struct stream_logs){ .file = NULL };
	ranking_init(&logs->ranking);
	map = mmap(NULL, STREAM_LOG_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return;
	logs->file = map;
	if (logs->file->form == STREAM_LOG_FORM && logs->file->used <= STREAM_LOG_PAGES) {
		found.uses = mem_zalloc(STREAM_LOG_PAGES);
		read_all(&found);
		free(found.uses);
	}
	if (logs->count == 0)
		forget_all(logs);
}

void stream_logs_fini(struct stream_logs *logs)
{
	CHECK(logs->count == 0);
	if (logs->file != NULL)
		munmap(logs->file, STREAM_LOG_FILE_BYTES);
	buf_fini(&logs->free);
	logs->file = NULL;
}

struct slice stream_log_name(struct slice text)
{
	return slice_is_equal(slice_cut(&text, ' '), SLICE_LIT("of")) ? slice_cut(&text, ' ') :
									slice_of(NULL, 0);
}

/* ---- for who only reads ---- */

const struct stream_log_file *stream_log_file_map(int fd)
{
	void *map = mmap(NULL, STREAM_LOG_FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);

	return map != MAP_FAILED ? map : NULL;
}

uint64_t stream_log_file_read(const struct stream_log_file *file, size_t page, size_t from,
			      struct buf *out)
{
	uint64_t mark = atomic_load_explicit(&file->marks[page], memory_order_acquire);
	size_t size = stream_log_size_of(mark);
	size_t at = 0;

	CHECK(page < STREAM_LOG_PAGES);
	if (size > STREAM_LOG_BYTES_MAX)
		return 0;
	while (at < size && page < STREAM_LOG_PAGES) {
		size_t n = size - at < STREAM_LOG_PAGE_BYTES ? size - at : STREAM_LOG_PAGE_BYTES;
		size_t skip = from > at ? from - at : 0;

		if (skip < n)
			buf_append(out, file->pages[page] + skip, n - skip);
		at += n;
		page = file->next[page];
	}
	return mark;
}
