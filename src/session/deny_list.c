/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table keyed by a seeded hash of issuer, kind and name: a request costs as many lookups as its
 * token has names, and none while there are no entries.
 */
#include "session/deny_list.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "obs/log.h"

#define KEPT \
	1 /* as a time: the configuration that is being read has the entry, but not yet its time */

const char *denial_by_name(enum denial_by by)
{
	static const char *const names[] = {
		[DENIAL_BY_SUB] = "sub",
		[DENIAL_BY_CLIENT_ID] = "client_id",
		[DENIAL_BY_JTI] = "jti",
		[DENIAL_BY_SID] = "sid",
	};

	CHECK(by < DENIAL_BY_COUNT);
	return names[by];
}

const char *denial_origin_name(enum denial_origin origin)
{
	static const char *const names[] = {
		[DENIAL_ORDERED] = "operator",
		[DENIAL_CONFIGURED] = "configuration",
	};

	CHECK(origin < DENIAL_ORIGIN_COUNT);
	return names[origin];
}

/* ---- texts ---- */

struct denial_marks *denial_marks_copy(const struct denial_marks *marks)
{
	size_t size = marks->issuer.n;
	struct denial_marks *copy;
	char *at;

	for (size_t i = 0; i < DENIAL_BY_COUNT; i++)
		size += marks->names[i].n;
	copy = mem_alloc(sizeof(*copy) + size);
	at = (char *)(copy + 1);
	copy->issuer = mem_put_slice(&at, marks->issuer);
	for (size_t i = 0; i < DENIAL_BY_COUNT; i++)
		copy->names[i] = mem_put_slice(&at, marks->names[i]);
	return copy;
}

static uint64_t denials_key_of(const struct deny_list *deny_list, struct slice issuer,
			       enum denial_by by, struct slice name)
{
	return text_hash_part(text_hash_part(deny_list->seed + by, issuer), name);
}

/* ---- entries ---- */

/* What an entry says. */
struct statement {
	enum denial_origin origin;
	enum denial_by by;
	struct slice issuer;
	struct slice name;
};

static struct denial *find_entry(const struct deny_list *deny_list,
				 const struct statement *statement)
{
	struct map_link *at =
		map_find_link(&deny_list->by_key, denials_key_of(deny_list, statement->issuer,
								 statement->by, statement->name));

	for (; at != NULL; at = at->next) {
		struct denial *denial = container_of(at, struct denial, by_key);

		if (denial->origin == statement->origin && denial->by == statement->by &&
		    slice_is_equal(denial->issuer, statement->issuer) &&
		    slice_is_equal(denial->name, statement->name))
			return denial;
	}
	return NULL;
}

static void denials_remove_entry(struct deny_list *deny_list, struct denial *denial)
{
	map_remove_link(&deny_list->by_key, &denial->by_key);
	list_remove(&denial->link);
	CHECK(deny_list->count > 0);
	deny_list->count--;
	free(denial);
}

static struct denial *denials_make_entry(struct deny_list *deny_list,
					 const struct statement *statement)
{
	struct denial *denial =
		mem_alloc(sizeof(*denial) + statement->issuer.n + statement->name.n);
	char *at = (char *)(denial + 1);

	CHECK(statement->issuer.n > 0 && statement->name.n > 0);
	*denial = (struct denial){ .number = ++deny_list->last_number,
				   .by = statement->by,
				   .origin = statement->origin };
	denial->issuer = mem_put_slice(&at, statement->issuer);
	denial->name = mem_put_slice(&at, statement->name);
	map_insert_link(&deny_list->by_key,
			denials_key_of(deny_list, denial->issuer, denial->by, denial->name),
			&denial->by_key);
	list_append(&deny_list->entries, &denial->link);
	deny_list->count++;
	return denial;
}

/*
 * Without a name, tells all watchers of the issuer. A watcher that is told may end others, which
 * then leave whichever list they are in.
 */
static void tell_watchers(struct deny_list *deny_list, struct slice issuer, enum denial_by by,
			  struct slice name)
{
	struct list named;

	list_init(&named);
	LIST_FOREACH_SAFE(node, &deny_list->watchers) {
		const struct deny_watcher *watcher = container_of(node, struct deny_watcher, link);
		struct denial_marks marks;

		watcher->ops->show(watcher, &marks);
		if (!slice_is_equal(issuer, marks.issuer) ||
		    (name.n > 0 && !slice_is_equal(name, marks.names[by])))
			continue;
		list_remove(node);
		list_append(&named, node);
	}
	while (!list_is_empty(&named)) {
		struct deny_watcher *watcher = container_of(named.next, struct deny_watcher, link);

		deny_list_unwatch(watcher);
		watcher->ops->on_denied(watcher);
	}
	if (deny_list->observer != NULL)
		deny_list->observer->on_denial(deny_list->observer, issuer, by, name);
}

/*
 * What was removed, and is only remembered, gives way once others were told. NULL: there are `most`
 * already, besides `spare` that will go.
 */
static struct denial *find_or_make(struct deny_list *deny_list, const struct statement *statement,
				   size_t most, size_t spare)
{
	struct denial *denial = find_entry(deny_list, statement);

	if (denial != NULL)
		return denial;
	LIST_EACH_SAFE(struct denial, other, &deny_list->entries, link) {
		if (deny_list->count - spare < most)
			break;
		if (other->origin == DENIAL_ORDERED && other->is_lifted && !other->is_untold)
			denials_remove_entry(deny_list, other);
	}
	return deny_list->count - spare < most ? denials_make_entry(deny_list, statement) : NULL;
}

/* Later than what was known of it, whatever the clocks of other nodes say. */
static void note_order(const struct deny_list *deny_list, struct denial *denial)
{
	uint64_t now_ms = clock_wall_ms();

	if (!deny_list->is_shared)
		return;
	denial->changed_ms = now_ms > denial->changed_ms ? now_ms : denial->changed_ms + 1;
	denial->is_untold = true;
}

const struct denial *deny_list_add(struct deny_list *deny_list, struct slice issuer,
				   enum denial_by by, struct slice name, uint64_t until_ms)
{
	struct denial *denial;

	deny_list_sweep(deny_list);
	denial = find_or_make(deny_list, &(struct statement){ DENIAL_ORDERED, by, issuer, name },
			      DENY_LIST_MAX, 0);
	if (denial == NULL)
		return NULL;
	denial->until_ms = until_ms;
	denial->is_lifted = false;
	note_order(deny_list, denial);
	tell_watchers(deny_list, denial->issuer, by, denial->name);
	return denial;
}

/* At the same time two orders count in the same way everywhere. */
static bool is_later(const struct denial *order, const struct denial *than)
{
	if (order->changed_ms != than->changed_ms)
		return order->changed_ms > than->changed_ms;
	if (order->is_lifted != than->is_lifted)
		return than->is_lifted;
	return order->until_ms > than->until_ms;
}

const struct denial *deny_list_take(struct deny_list *deny_list, const struct denial *order,
				    bool *is_full_r)
{
	const struct statement statement = { DENIAL_ORDERED, order->by, order->issuer,
					     order->name };
	struct denial *denial = find_entry(deny_list, &statement);

	CHECK(deny_list->is_shared);
	if (denial == NULL ? order->until_ms <= clock_wall_ms() : !is_later(order, denial))
		return NULL;
	deny_list_sweep(deny_list);
	denial = find_or_make(deny_list, &statement, DENY_LIST_MAX - DENY_LIST_OWN, 0);
	*is_full_r = denial == NULL;
	if (denial == NULL)
		return NULL;
	denial->until_ms = order->until_ms;
	denial->is_lifted = order->is_lifted;
	denial->changed_ms = order->changed_ms;
	denial->is_untold = false;
	if (!denial->is_lifted)
		tell_watchers(deny_list, denial->issuer, denial->by, denial->name);
	return denial;
}

void deny_list_untell(struct deny_list *deny_list)
{
	CHECK(deny_list->is_shared);
	LIST_EACH(struct denial, denial, &deny_list->entries, link)
		denial->is_untold = denial->origin == DENIAL_ORDERED;
}

void deny_list_tell(struct deny_list *deny_list, struct slice issuer, struct slice sub)
{
	CHECK(issuer.n > 0);
	tell_watchers(deny_list, issuer, DENIAL_BY_SUB, sub);
}

/* ---- the configuration ---- */

void deny_list_configure_begin(struct deny_list *deny_list)
{
	deny_list_sweep(deny_list);
	deny_list->unsure = 0;
	LIST_FOREACH(node, &deny_list->entries) {
		struct denial *denial = container_of(node, struct denial, link);

		denial->configured_ms = 0;
		deny_list->unsure += denial->origin == DENIAL_CONFIGURED;
	}
}

void deny_list_configure_keep(struct deny_list *deny_list, struct slice issuer, enum denial_by by,
			      struct slice name, uint64_t until_ms)
{
	const struct statement statement = { DENIAL_CONFIGURED, by, issuer, name };
	struct denial *denial = find_entry(deny_list, &statement);

	if (denial == NULL || denial->configured_ms > 0 || until_ms <= clock_wall_ms())
		return;
	denial->configured_ms = KEPT; /* the real time follows, unless it has passed by then */
	deny_list->unsure--;
}

bool deny_list_configure(struct deny_list *deny_list, struct slice issuer, enum denial_by by,
			 struct slice name, uint64_t until_ms)
{
	const struct statement statement = { DENIAL_CONFIGURED, by, issuer, name };
	struct denial *denial;

	if (until_ms <= clock_wall_ms())
		return true;
	denial = find_or_make(deny_list, &statement, DENY_LIST_MAX, deny_list->unsure);
	/* If the configuration has an entry twice, the later time counts. */
	if (denial != NULL && denial->configured_ms < until_ms)
		denial->configured_ms = until_ms;
	return denial != NULL;
}

void deny_list_configure_end(struct deny_list *deny_list)
{
	deny_list->unsure = 0;
	LIST_FOREACH_SAFE(node, &deny_list->entries) {
		struct denial *denial = container_of(node, struct denial, link);

		if (denial->origin != DENIAL_CONFIGURED ||
		    denial->until_ms == denial->configured_ms)
			continue;
		if (denial->configured_ms <= KEPT) {
			denials_remove_entry(deny_list, denial);
			continue;
		}
		denial->until_ms = denial->configured_ms;
		denial->is_lifted = false;
		tell_watchers(deny_list, denial->issuer, denial->by, denial->name);
	}
}

/* ---- more of both ---- */

/* Adds a copy of another process's entry, with its number. There must be no watchers yet. */
static void deny_list_restore(struct deny_list *deny_list, const struct denial *denial)
{
	const struct statement statement = { denial->origin, denial->by, denial->issuer,
					     denial->name };
	struct denial *copy = denials_make_entry(deny_list, &statement);

	CHECK(list_is_empty(&deny_list->watchers)); /* they would have to be told */
	deny_list->last_number--;                   /* the copy keeps its number */
	copy->number = denial->number;
	copy->until_ms = denial->until_ms;
	copy->is_lifted = denial->is_lifted;
	copy->changed_ms = denial->changed_ms;
	if (deny_list->last_number < denial->number)
		deny_list->last_number = denial->number;
}

bool deny_list_remove(struct deny_list *deny_list, uint64_t number)
{
	LIST_FOREACH(node, &deny_list->entries) {
		struct denial *denial = container_of(node, struct denial, link);

		if (denial->number != number || denial->is_lifted)
			continue;
		if (denial->origin == DENIAL_ORDERED && !deny_list->is_shared) {
			denials_remove_entry(deny_list, denial);
			return true;
		}
		denial->is_lifted = true;
		if (denial->origin == DENIAL_ORDERED)
			note_order(deny_list, denial);
		return true;
	}
	return false;
}

void deny_list_sweep(struct deny_list *deny_list)
{
	uint64_t now_ms = clock_wall_ms();

	LIST_FOREACH_SAFE(node, &deny_list->entries) {
		struct denial *denial = container_of(node, struct denial, link);

		if (denial->until_ms <= now_ms)
			denials_remove_entry(deny_list, denial);
	}
}

/* There can be two such entries, one of each origin. */
static const struct denial *find_in_force(const struct deny_list *deny_list, struct slice issuer,
					  enum denial_by by, struct slice name)
{
	uint64_t now_ms = clock_wall_ms();

	for (enum denial_origin origin = 0; origin < DENIAL_ORIGIN_COUNT; origin++) {
		const struct denial *denial =
			find_entry(deny_list, &(struct statement){ origin, by, issuer, name });

		if (denial != NULL && !denial->is_lifted && now_ms < denial->until_ms)
			return denial;
	}
	return NULL;
}

const struct denial *deny_list_find(const struct deny_list *deny_list,
				    const struct denial_marks *marks)
{
	const struct denial *denial = NULL;

	if (deny_list->count == 0 || marks->issuer.n == 0)
		return NULL;
	for (size_t i = 0; i < DENIAL_BY_COUNT && denial == NULL; i++)
		if (marks->names[i].n > 0)
			denial = find_in_force(deny_list, marks->issuer, (enum denial_by)i,
					       marks->names[i]);
	return denial;
}

/* ---- watchers ---- */

void deny_watcher_init(struct deny_watcher *watcher, const struct deny_watcher_ops *ops)
{
	CHECK(ops != NULL);
	watcher->ops = ops;
	list_init(&watcher->link);
}

void deny_list_watch(struct deny_list *deny_list, struct deny_watcher *watcher)
{
	list_remove(&watcher->link);
	list_append(&deny_list->watchers, &watcher->link);
}

void deny_list_unwatch(struct deny_watcher *watcher)
{
	list_remove(&watcher->link);
}

/* ---- whole ---- */

void deny_list_init(struct deny_list *deny_list)
{
	*deny_list = (struct deny_list){ .count = 0 };
	list_init(&deny_list->entries);
	list_init(&deny_list->watchers);
	random_bytes(&deny_list->seed, sizeof(deny_list->seed));
}

void deny_list_fini(struct deny_list *deny_list)
{
	CHECK(list_is_empty(&deny_list->watchers));
	while (!list_is_empty(&deny_list->entries))
		denials_remove_entry(deny_list,
				     container_of(deny_list->entries.next, struct denial, link));
	CHECK(deny_list->count == 0);
	map_fini(&deny_list->by_key);
}

/* ---- for the next gateway ---- */

/* All records are checked before any is added. */

#define NUMBER_MAX ((uint64_t)1 << 53)

struct record {
	uint64_t number;
	uint64_t until_ms;
	uint64_t by;
	uint64_t origin;
	uint64_t changed;      /* twice changed_ms, and is_lifted */
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

static char *denials_put(char *at, const void *data, size_t size)
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
			.changed = denial->changed_ms * 2 + denial->is_lifted,
			.issuer_bytes = denial->issuer.n,
			.name_bytes = denial->name.n,
		};
		size_t left = DENY_SNAPSHOT_BYTES - (size_t)(at - begin);

		/* Names are short: there is room for DENY_LIST_MAX entries. */
		if (denial->issuer.n + denial->name.n + reserve > left)
			continue;
		at = denials_put(at, &record, sizeof(record));
		at = denials_put(at, denial->issuer.p, denial->issuer.n);
		at = denials_put(at, denial->name.p, denial->name.n);
	}
	CHECK(at <= begin + DENY_SNAPSHOT_BYTES - sizeof(end_record));
	at = denials_put(at, &end_record, sizeof(end_record));
	halves_end(snapshot, DENY_SNAPSHOT_BYTES, (size_t)(at - begin));
}

/* ---- reading ---- */

/* Takes the next record off the front. Returns 1; 0 at the end; -1 if it is not valid. */
static int denials_take(struct slice *rest, struct record *record_r, struct slice *issuer_r,
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
	    record_r->changed > (record_r->origin == DENIAL_CONFIGURED ? 1 : NUMBER_MAX) ||
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
	while ((step = denials_take(&checked, &record, &issuer, &name)) > 0)
		count++;
	if (step < 0 || count > DENY_LIST_MAX) {
		LOG(DENIALS_LOST, LOG_INT("bytes", rest.n));
		return false;
	}
	while (denials_take(&rest, &record, &issuer, &name) > 0)
		deny_list_restore(deny_list,
				  &(struct denial){ .number = record.number,
						    .until_ms = record.until_ms,
						    .by = (enum denial_by)record.by,
						    .origin = (enum denial_origin)record.origin,
						    .is_lifted = record.changed % 2 != 0,
						    .changed_ms = record.changed / 2,
						    .issuer = issuer,
						    .name = name });
	return true;
}
