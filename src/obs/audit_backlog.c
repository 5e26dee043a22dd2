/* SPDX-License-Identifier: Apache-2.0 */
#include "obs/audit_backlog.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

size_t audit_backlog_add(struct audit_backlog *backlog, enum audit_share which, uint64_t number,
			 struct slice line)
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

bool audit_backlog_is_empty(const struct audit_backlog *backlog, enum audit_share share)
{
	return backlog->shares[share].count == 0;
}

size_t audit_backlog_copy(const struct audit_backlog *backlog, enum audit_share which, char *lines,
			  size_t bytes_max, size_t *count_r)
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

void audit_backlog_drop(struct audit_backlog *backlog, enum audit_share which, size_t count)
{
	struct audit_backlog_share *share = &backlog->shares[which];

	CHECK(count <= share->count);
	while (count-- > 0)
		remove_record(share, at(share->records.next));
	if (share->count == 0)
		map_fini(&share->callers);
}
