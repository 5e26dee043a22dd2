/* SPDX-License-Identifier: Apache-2.0 */
#include "obs/audit.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "obs/counters.h"
#include "obs/log.h"

/* ---- audit backlog ---- */

struct caller {
	uint64_t number;
	struct ranked ranked;
	struct list records; /* oldest first */
	size_t bytes;
};

struct record {
	struct list link; /* of all */
	struct list own;  /* of its caller's */
	struct caller *caller;
	size_t length;
	char line[];
};

static struct record *at(struct list *link)
{
	return container_of(link, struct record, link);
}

/* What a record costs, not only its text. */
static size_t weight(size_t length)
{
	return length + sizeof(struct record);
}

static void change_bytes(struct audit_backlog_share *share, struct caller *caller, ptrdiff_t bytes)
{
	share->bytes += (size_t)bytes;
	caller->bytes += (size_t)bytes;
	ranking_set(&share->ranking, &caller->ranked, caller->bytes);
}

static struct caller *get_caller(struct audit_backlog_share *share, uint64_t number)
{
	struct caller *caller = map_find(&share->callers, number);

	if (caller != NULL)
		return caller;
	caller = mem_zalloc(sizeof(*caller));
	caller->number = number;
	ranked_init(&caller->ranked);
	list_init(&caller->records);
	map_insert(&share->callers, number, caller);
	return caller;
}

static void remove_record(struct audit_backlog_share *share, struct record *record)
{
	struct caller *caller = record->caller;

	CHECK(share->count > 0 && share->bytes >= caller->bytes);
	CHECK(caller->bytes >= weight(record->length));
	list_remove(&record->link);
	list_remove(&record->own);
	share->count--;
	change_bytes(share, caller, -(ptrdiff_t)weight(record->length));
	free(record);
	if (!list_is_empty(&caller->records))
		return;
	CHECK(caller->bytes == 0);
	map_remove(&share->callers, caller->number);
	free(caller);
}

/*
 * Makes room for one of the caller with this number: those that have more give up their newest.
 * Returns false if nobody has more.
 */
static bool make_room(struct audit_backlog_share *share, uint64_t number, size_t room,
		      size_t bytes_max, size_t *lost)
{
	while (share->bytes + room > bytes_max) {
		const struct caller *own = map_find(&share->callers, number);
		struct ranked *first = ranking_first(&share->ranking);
		struct caller *most;

		CHECK(first != NULL);
		most = container_of(first, struct caller, ranked);
		if (most->bytes <= (own != NULL ? own->bytes : 0) + room)
			return false;
		remove_record(share, container_of(most->records.prev, struct record, own));
		++*lost;
	}
	return true;
}

/*
 * Appends a line, of this caller. Returns how many lines are lost for that: newest ones of the
 * caller that has most, or this one.
 */
static size_t audit_backlog_add(struct audit_backlog *backlog, enum audit_share which,
				uint64_t number, struct slice line)
{
	static const size_t bytes_max[] = {
		[AUDIT_CALLS] = AUDIT_CALLS_WAITING_MAX,
		[AUDIT_OTHERS] = AUDIT_OTHERS_WAITING_MAX,
		[AUDIT_REFUSALS] = AUDIT_REFUSALS_WAITING_MAX,
	};
	struct audit_backlog_share *share = &backlog->shares[which];
	struct record *record;
	size_t lost = 0;

	CHECK(line.n > 0 && line.p[line.n - 1] == '\n');
	if (share->records.next == NULL) {
		list_init(&share->records);
		ranking_init(&share->ranking);
	}
	if (!make_room(share, number, weight(line.n), bytes_max[which], &lost))
		return lost + 1;
	record = mem_alloc(sizeof(*record) + line.n);
	record->length = line.n;
	memcpy(record->line, line.p, line.n);
	record->caller = get_caller(share, number);
	list_append(&share->records, &record->link);
	list_append(&record->caller->records, &record->own);
	share->count++;
	change_bytes(share, record->caller, (ptrdiff_t)weight(line.n));
	return lost;
}

/*
 * Copies the oldest lines of a share: as many as fit, but no more than bytes_max. Returns their
 * length, and their number.
 */
static size_t audit_backlog_copy(const struct audit_backlog *backlog, enum audit_share which,
				 char *lines, size_t bytes_max, size_t *count_r)
{
	const struct audit_backlog_share *share = &backlog->shares[which];
	const struct list *link = &share->records;
	size_t length = 0;

	for (*count_r = 0; *count_r < share->count; ++*count_r) {
		const struct record *record = at(link->next);

		if (length + record->length > bytes_max)
			break;
		memcpy(lines + length, record->line, record->length);
		length += record->length;
		link = link->next;
	}
	return length;
}

/* Removes the `count` oldest lines of a share. */
static void audit_backlog_drop(struct audit_backlog *backlog, enum audit_share which, size_t count)
{
	struct audit_backlog_share *share = &backlog->shares[which];

	CHECK(count <= share->count);
	while (count-- > 0)
		remove_record(share, at(share->records.next));
	if (share->count == 0)
		map_fini(&share->callers);
}

/* ---- records ---- */

#define SCHEMA_VERSION 1
#define FIXED_BYTES_MAX 128 /* of our own texts */
#define NUMBER_BYTES_MAX 20
#define ESCAPE_BYTES 6 /* that a byte may become */
#define SAID_EVERY_MS 10000
#define OTHERS_PART 4 /* all but calls get 1/4 of the pipe */
#define FINISH_TRIES 50
#define FINISH_TRY_MS 10

static const struct {
	const char *name;
	/* the name in a line, with quotes and colon; for texts also the opening quote */
	struct slice lead;
	size_t bytes_max;
	const char *help;
} fields[] = {
#define X(field, text, most, what) \
	[AUDIT_##field] = { text, SLICE(",\"" text "\":\""), most, what },
#include "obs/audit.def"
};

const char *audit_field_name(enum audit_field field)
{
	CHECK(field < AUDIT_FIELD_COUNT);
	return fields[field].name;
}

const char *audit_field_help(enum audit_field field)
{
	CHECK(field < AUDIT_FIELD_COUNT);
	return fields[field].help;
}

/* Returns false if there is no room. */
static bool put_name(struct text_line *line, enum audit_field field, bool is_text)
{
	struct slice lead;

	CHECK(field < AUDIT_FIELD_COUNT);
	lead = fields[field].lead;
	if (!line_has_room(line, lead.n + NUMBER_BYTES_MAX + TEXT_LINE_END_BYTES))
		return false;
	line_put(line, slice_of(lead.p, is_text ? lead.n : lead.n - 1));
	return true;
}

static size_t bytes_max_of(enum audit_field field)
{
	CHECK(field < AUDIT_FIELD_COUNT);
	return fields[field].bytes_max > 0 ? fields[field].bytes_max : FIXED_BYTES_MAX;
}

/* Appends name and text at once. Returns false if the text must be truncated. */
static bool put_verbatim(struct text_line *line, enum audit_field field, struct slice text)
{
	const struct slice lead = fields[field].lead;
	char *at = line->bytes + line->length;

	if (text.n > bytes_max_of(field) ||
	    !line_has_room(line, lead.n + text.n + 1 + TEXT_LINE_END_BYTES))
		return false;
	memcpy(at, lead.p, lead.n);
	memcpy(at + lead.n, text.p, text.n);
	at[lead.n + text.n] = '"';
	line->length += lead.n + text.n + 1;
	return true;
}

void audit_put_own(struct text_line *line, enum audit_field field, struct slice text)
{
	if (text.n > 0 && !put_verbatim(line, field, text))
		(void)audit_put_text(line, field, text);
}

bool audit_put_text(struct text_line *line, enum audit_field field, struct slice text)
{
	size_t most = bytes_max_of(field);
	bool is_whole;

	if (text.n == 0 ||
	    (text_verbatim_length(text) == text.n && put_verbatim(line, field, text)))
		return true;
	if (!put_name(line, field, true))
		return false;
	is_whole = line_put_shown(line, text, most);
	line_put(line, SLICE_LIT("\""));
	return is_whole;
}

size_t audit_room(enum audit_field field, size_t length)
{
	size_t most = bytes_max_of(field);

	if (length == 0)
		return 0;
	if (length < most / ESCAPE_BYTES)
		most = length * ESCAPE_BYTES;
	return fields[field].lead.n + NUMBER_BYTES_MAX + most + TEXT_LINE_END_BYTES;
}

void audit_put_number(struct text_line *line, enum audit_field field, uint64_t number)
{
	if (put_name(line, field, false))
		line_put_number(line, number <= INT64_MAX ? (int64_t)number : INT64_MAX);
}

void audit_put_true(struct text_line *line, enum audit_field field)
{
	if (put_name(line, field, false))
		line_puts(line, "true");
}

void audit_line_begin(struct text_line *line, const char *event)
{
	line_init(line, sizeof(line->bytes));
	line_put(line, SLICE_LIT("{"));
	line_put(line, slice_of(fields[AUDIT_TIME].lead.p + 1, fields[AUDIT_TIME].lead.n - 1));
	line_put_time(line, clock_wall_now_ms());
	line_put(line, SLICE_LIT("\""));
	audit_put_number(line, AUDIT_SCHEMA, SCHEMA_VERSION);
	audit_put_own(line, AUDIT_EVENT, slice_str(event));
}

static void end_line(struct text_line *line)
{
	line_puts(line, "}\n");
	CHECK(line->bytes[line->length - 1] == '\n'); /* fields leave room for it */
}

/* A write to a pipe of at most PIPE_BUF bytes is atomic. */
static bool write_whole(const struct audit *audit, struct slice lines)
{
	ssize_t n;

	CHECK(lines.n <= PIPE_BUF);
	do {
		n = write(audit->fd, lines.p, lines.n);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)lines.n;
}

/* Reports the number of lost lines. Returns false if there is still no room. */
static bool tell_lost(struct audit *audit)
{
	struct text_line line;

	if (audit->lost == 0)
		return true;
	audit_line_begin(&line, "lost");
	audit_put_number(&line, AUDIT_LINES, audit->lost);
	end_line(&line);
	if (!write_whole(audit, slice_of(line.bytes, line.length)))
		return false;
	audit->lost = 0;
	return true;
}

static void note_lost(struct audit *audit, size_t lines)
{
	uint64_t now_ms = clock_now_ms();

	audit->lost += lines;
	for (size_t i = 0; i < lines; i++)
		counter_add(COUNTER_AUDIT_LOST);
	if (audit->said_at_ms != 0 && now_ms - audit->said_at_ms < SAID_EVERY_MS)
		return;
	audit->said_at_ms = now_ms;
	LOG(AUDIT_LOST, LOG_INT("records", counter_get(COUNTER_AUDIT_LOST)));
}

/* ---- shares ---- */

/*
 * A pipe consists of pages, and a long line occupies a page of its own: unread bytes may use up to
 * twice as much of the capacity.
 */
static bool has_room(const struct audit *audit, enum audit_share share)
{
	int unread = 0;

	return share == AUDIT_CALLS || audit->pipe_bytes == 0 ||
	       ioctl(audit->fd, FIONREAD, &unread) < 0 ||
	       (size_t)unread < audit->pipe_bytes / OTHERS_PART;
}

static bool write_lines(struct audit *audit, enum audit_share share, struct slice lines,
			size_t count)
{
	if (!has_room(audit, share) || !tell_lost(audit) || !write_whole(audit, lines))
		return false;
	audit->written += count;
	return true;
}

static bool is_waiting(const struct audit *audit)
{
	for (enum audit_share share = 0; share < AUDIT_SHARES; share++)
		if (audit->backlog.shares[share].count > 0)
			return true;
	return false;
}

bool audit_drain(struct audit *audit)
{
	bool has_written;

	do {
		has_written = false;
		for (enum audit_share share = 0; share < AUDIT_SHARES; share++) {
			char lines[PIPE_BUF];
			size_t count;
			size_t length = audit_backlog_copy(&audit->backlog, share, lines,
							   sizeof(lines), &count);

			if (count == 0 ||
			    !write_lines(audit, share, slice_of(lines, length), count))
				continue;
			audit_backlog_drop(&audit->backlog, share, count);
			has_written = true;
		}
	} while (has_written);
	return !is_waiting(audit);
}

/* Queues the line at the end of its share. Returns how many lines are lost for that. */
static size_t defer(struct audit *audit, enum audit_share share, uint64_t caller, struct slice line)
{
	bool is_first = !is_waiting(audit);
	size_t lost;

	if (audit->on_waiting == NULL)
		return 1;
	lost = audit_backlog_add(&audit->backlog, share, caller, line);
	if (is_first)
		audit->on_waiting(audit);
	return lost;
}

/* Writes the line, or queues it if lines of its share already wait or the pipe is full. */
static bool write_or_defer(struct audit *audit, enum audit_share share, uint64_t caller,
			   struct slice line)
{
	size_t lost = 0;

	if (audit->backlog.shares[share].count > 0 || !write_lines(audit, share, line, 1))
		lost = defer(audit, share, caller, line);
	if (lost > 0)
		note_lost(audit, lost);
	return lost == 0;
}

/* All at once, which is the rule, unless some have to wait. */
static bool write_gathered(struct audit *audit, size_t count, struct slice lines)
{
	enum audit_share share = AUDIT_CALLS;

	for (size_t i = 0; i < count; i++) {
		if (audit->gathered_are[i].share != AUDIT_CALLS)
			share = audit->gathered_are[i].share;
		if (audit->backlog.shares[audit->gathered_are[i].share].count > 0)
			return false;
	}
	return write_lines(audit, share, lines, count);
}

bool audit_flush(struct audit *audit)
{
	size_t count = audit->gathered_lines;
	struct slice lines = slice_of(audit->gathered, audit->gathered_length);
	bool are_kept = true;

	CHECK(count <= AUDIT_GATHERED_LINES && lines.n <= sizeof(audit->gathered));
	audit->gathered_lines = audit->gathered_length = 0;
	if (count == 0 || write_gathered(audit, count, lines))
		return true;
	for (size_t i = 0; i < count; i++) {
		const struct audit_gathered *of = &audit->gathered_are[i];

		if (!write_or_defer(audit, of->share, of->caller, slice_of(lines.p, of->length)))
			are_kept = false;
		lines = slice_of(lines.p + of->length, lines.n - of->length);
	}
	return are_kept;
}

static void gather(struct audit *audit, enum audit_share share, uint64_t caller,
		   const struct text_line *line)
{
	if (audit->gathered_lines == AUDIT_GATHERED_LINES ||
	    audit->gathered_length + line->length > sizeof(audit->gathered))
		(void)audit_flush(audit);
	memcpy(audit->gathered + audit->gathered_length, line->bytes, line->length);
	audit->gathered_length += line->length;
	audit->gathered_are[audit->gathered_lines] =
		(struct audit_gathered){ caller, share, line->length };
	if (audit->gathered_lines++ == 0)
		audit->on_gathering(audit);
}

bool audit_write(struct audit *audit, enum audit_share share, uint64_t caller,
		 struct text_line *line)
{
	end_line(line);
	if (share != AUDIT_REFUSALS && audit->on_gathering != NULL) {
		gather(audit, share, caller, line);
		return true;
	}
	(void)audit_flush(audit); /* earlier records go first */
	return write_or_defer(audit, share, caller, slice_of(line->bytes, line->length));
}

bool audit_write_now(struct audit *audit, enum audit_share share, struct text_line *line)
{
	end_line(line);
	(void)audit_flush(audit);
	if (write_lines(audit, share, slice_of(line->bytes, line->length), 1))
		return true;
	note_lost(audit, 1);
	return false;
}

void audit_finish(struct audit *audit)
{
	(void)audit_flush(audit);
	for (int i = 0; i < FINISH_TRIES && !audit_drain(audit); i++)
		(void)poll(NULL, 0, FINISH_TRY_MS);
	for (enum audit_share share = 0; share < AUDIT_SHARES; share++) {
		size_t lost = audit->backlog.shares[share].count;

		if (lost == 0)
			continue;
		note_lost(audit, lost);
		audit_backlog_drop(&audit->backlog, share, lost);
	}
}
