/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table keyed by a seeded hash of issuer, kind and name: a request costs as many lookups as its
 * token has names, and none while there are no entries.
 */
#include "session/deny_list.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"

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

static uint64_t key_of(const struct deny_list *deny_list, struct slice issuer, enum denial_by by,
		       struct slice name)
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
		map_find_link(&deny_list->by_key,
			      key_of(deny_list, statement->issuer, statement->by, statement->name));

	for (; at != NULL; at = at->next) {
		struct denial *denial = container_of(at, struct denial, by_key);

		if (denial->origin == statement->origin && denial->by == statement->by &&
		    slice_is_equal(denial->issuer, statement->issuer) &&
		    slice_is_equal(denial->name, statement->name))
			return denial;
	}
	return NULL;
}

static void remove_entry(struct deny_list *deny_list, struct denial *denial)
{
	map_remove_link(&deny_list->by_key, &denial->by_key);
	list_remove(&denial->link);
	CHECK(deny_list->count > 0);
	deny_list->count--;
	free(denial);
}

static struct denial *make_entry(struct deny_list *deny_list, const struct statement *statement)
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
			key_of(deny_list, denial->issuer, denial->by, denial->name),
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

const struct denial *deny_list_add(struct deny_list *deny_list, struct slice issuer,
				   enum denial_by by, struct slice name, uint64_t until_ms)
{
	const struct statement statement = { DENIAL_ORDERED, by, issuer, name };
	struct denial *denial;

	deny_list_sweep(deny_list);
	denial = find_entry(deny_list, &statement);
	if (denial == NULL && deny_list->count >= DENY_LIST_MAX)
		return NULL;
	if (denial == NULL)
		denial = make_entry(deny_list, &statement);
	denial->until_ms = until_ms;
	tell_watchers(deny_list, denial->issuer, by, denial->name);
	return denial;
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
	denial = find_entry(deny_list, &statement);
	if (denial == NULL && deny_list->count - deny_list->unsure < DENY_LIST_MAX)
		denial = make_entry(deny_list, &statement);
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
			remove_entry(deny_list, denial);
			continue;
		}
		denial->until_ms = denial->configured_ms;
		denial->is_lifted = false;
		tell_watchers(deny_list, denial->issuer, denial->by, denial->name);
	}
}

/* ---- more of both ---- */

void deny_list_restore(struct deny_list *deny_list, const struct denial *denial)
{
	const struct statement statement = { denial->origin, denial->by, denial->issuer,
					     denial->name };
	struct denial *copy = make_entry(deny_list, &statement);

	CHECK(list_is_empty(&deny_list->watchers)); /* they would have to be told */
	deny_list->last_number--;                   /* the copy keeps its number */
	copy->number = denial->number;
	copy->until_ms = denial->until_ms;
	copy->is_lifted = denial->is_lifted;
	if (deny_list->last_number < denial->number)
		deny_list->last_number = denial->number;
}

bool deny_list_remove(struct deny_list *deny_list, uint64_t number)
{
	LIST_FOREACH(node, &deny_list->entries) {
		struct denial *denial = container_of(node, struct denial, link);

		if (denial->number != number || denial->is_lifted)
			continue;
		if (denial->origin == DENIAL_CONFIGURED)
			denial->is_lifted = true;
		else
			remove_entry(deny_list, denial);
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
			remove_entry(deny_list, denial);
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
		remove_entry(deny_list, container_of(deny_list->entries.next, struct denial, link));
	CHECK(deny_list->count == 0);
	map_fini(&deny_list->by_key);
}
