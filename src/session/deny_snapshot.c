/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records, preceded by their total length in bytes, which is written last so that a partial write
 * is never read. All records are checked before any is added.
 */
#include "session/deny_snapshot.h"

#include <sys/mman.h>

#include "base/check.h"
#include "obs/log.h"

#define DENY_SNAPSHOT_BYTES (DENY_SNAPSHOT_FILE_BYTES - sizeof(uint64_t))
#define NUMBER_MAX ((uint64_t)1 << 53)
#define BEING_WRITTEN UINT64_MAX

struct deny_snapshot {
	uint64_t bytes; /* of all records; 0: nothing has been written; or BEING_WRITTEN */
	char records[DENY_SNAPSHOT_BYTES];
};

struct record {
	uint64_t number;
	uint64_t until_ms;
	uint64_t by;
	uint64_t origin;
	uint64_t is_lifted;
	uint64_t issuer_bytes; /* the issuer follows this struct, then the name */
	uint64_t name_bytes;
};

/* Follows the last entry, so that a list without entries differs from no list. */
static const struct record end_record = { .number = 0 };

struct deny_snapshot *deny_snapshot_map(int fd)
{
	struct deny_snapshot *snapshot =
		mmap(NULL, sizeof(*snapshot), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(sizeof(*snapshot) == DENY_SNAPSHOT_FILE_BYTES);
	return snapshot != MAP_FAILED ? snapshot : NULL;
}

/* ---- writing ---- */

static char *put(char *at, const void *data, size_t size)
{
	memcpy(at, data, size);
	return at + size;
}

void deny_snapshot_save(struct deny_snapshot *snapshot, const struct deny_list *deny_list)
{
	size_t reserve = sizeof(struct record) + sizeof(end_record);
	char *at;

	if (snapshot == NULL)
		return;
	at = snapshot->records;
	__atomic_store_n(&snapshot->bytes, BEING_WRITTEN, __ATOMIC_SEQ_CST);
	LIST_FOREACH(node, &deny_list->entries) {
		const struct denial *denial = container_of(node, struct denial, link);
		const struct record record = {
			.number = denial->number,
			.until_ms = denial->until_ms,
			.by = denial->by,
			.origin = denial->origin,
			.is_lifted = denial->is_lifted,
			.issuer_bytes = denial->issuer.n,
			.name_bytes = denial->name.n,
		};
		size_t left = DENY_SNAPSHOT_BYTES - (size_t)(at - snapshot->records);

		/* Names are short: there is room for DENY_LIST_MAX entries. */
		if (denial->issuer.n + denial->name.n + reserve > left)
			continue;
		at = put(at, &record, sizeof(record));
		at = put(at, denial->issuer.p, denial->issuer.n);
		at = put(at, denial->name.p, denial->name.n);
	}
	CHECK(at <= snapshot->records + DENY_SNAPSHOT_BYTES - sizeof(end_record));
	at = put(at, &end_record, sizeof(end_record));
	__atomic_store_n(&snapshot->bytes, (uint64_t)(at - snapshot->records), __ATOMIC_SEQ_CST);
}

/* ---- reading ---- */

/* Takes the next record off the front. Returns 1; 0 at the end; -1 if it is not valid. */
static int take(struct slice *rest, struct record *record_r, struct slice *issuer_r,
		struct slice *name_r)
{
	if (rest->n < sizeof(*record_r))
		return -1;
	memcpy(record_r, rest->p, sizeof(*record_r));
	*rest = slice_of(rest->p + sizeof(*record_r), rest->n - sizeof(*record_r));
	if (record_r->number == 0)
		return rest->n == 0 ? 0 : -1;
	if (record_r->number > NUMBER_MAX || record_r->by >= DENIAL_BY_COUNT ||
	    record_r->origin >= DENIAL_ORIGIN_COUNT ||
	    record_r->is_lifted > (record_r->origin == DENIAL_CONFIGURED) ||
	    (record_r->until_ms > INT64_MAX && record_r->until_ms != UINT64_MAX) ||
	    record_r->issuer_bytes == 0 || record_r->issuer_bytes > rest->n ||
	    record_r->name_bytes == 0 || record_r->name_bytes > rest->n - record_r->issuer_bytes)
		return -1;
	*issuer_r = slice_of(rest->p, record_r->issuer_bytes);
	*name_r = slice_of(issuer_r->p + issuer_r->n, record_r->name_bytes);
	*rest = slice_between(name_r->p + name_r->n, rest->p + rest->n);
	return 1;
}

bool deny_snapshot_load(const struct deny_snapshot *snapshot, struct deny_list *deny_list)
{
	uint64_t bytes = snapshot != NULL ? snapshot->bytes : 0;
	struct slice issuer, name, rest, checked;
	struct record record;
	size_t count = 0;
	int step;

	if (bytes == 0)
		return false;
	rest = checked = slice_of(snapshot->records, bytes <= DENY_SNAPSHOT_BYTES ? bytes : 0);
	while ((step = take(&checked, &record, &issuer, &name)) > 0)
		count++;
	if (step < 0 || count > DENY_LIST_MAX) {
		LOG(DENIALS_LOST, LOG_INT("bytes", bytes));
		return false;
	}
	while (take(&rest, &record, &issuer, &name) > 0)
		deny_list_restore(deny_list,
				  &(struct denial){ .number = record.number,
						    .until_ms = record.until_ms,
						    .by = (enum denial_by)record.by,
						    .origin = (enum denial_origin)record.origin,
						    .is_lifted = record.is_lifted != 0,
						    .issuer = issuer,
						    .name = name });
	return true;
}
