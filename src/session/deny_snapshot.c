/* SPDX-License-Identifier: Apache-2.0 */
/* All records are checked before any is added. */
#include "session/deny_snapshot.h"

#include <sys/mman.h>

#include "base/check.h"
#include "obs/log.h"

#define NUMBER_MAX ((uint64_t)1 << 53)

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

struct halves *deny_snapshot_map(int fd)
{
	void *snapshot =
		mmap(NULL, DENY_SNAPSHOT_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return snapshot != MAP_FAILED ? snapshot : NULL;
}

/* ---- writing ---- */

static char *put(char *at, const void *data, size_t size)
{
	memcpy(at, data, size);
	return at + size;
}

void deny_snapshot_save(struct halves *snapshot, const struct deny_list *deny_list)
{
	size_t reserve = sizeof(struct record) + sizeof(end_record);
	char *begin, *at;

	if (snapshot == NULL)
		return;
	begin = at = halves_begin(snapshot, DENY_SNAPSHOT_BYTES);
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
		size_t left = DENY_SNAPSHOT_BYTES - (size_t)(at - begin);

		/* Names are short: there is room for DENY_LIST_MAX entries. */
		if (denial->issuer.n + denial->name.n + reserve > left)
			continue;
		at = put(at, &record, sizeof(record));
		at = put(at, denial->issuer.p, denial->issuer.n);
		at = put(at, denial->name.p, denial->name.n);
	}
	CHECK(at <= begin + DENY_SNAPSHOT_BYTES - sizeof(end_record));
	at = put(at, &end_record, sizeof(end_record));
	halves_end(snapshot, DENY_SNAPSHOT_BYTES, (size_t)(at - begin));
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

bool deny_snapshot_load(const struct halves *snapshot, struct deny_list *deny_list)
{
	struct slice issuer, name, checked, rest = { NULL, 0 };
	bool is_valid = snapshot == NULL || halves_read(snapshot, DENY_SNAPSHOT_BYTES, &rest);
	struct record record;
	size_t count = 0;
	int step;

	if (is_valid && rest.n == 0)
		return false;
	checked = rest;
	while ((step = take(&checked, &record, &issuer, &name)) > 0)
		count++;
	if (step < 0 || count > DENY_LIST_MAX) {
		LOG(DENIALS_LOST, LOG_INT("bytes", rest.n));
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
