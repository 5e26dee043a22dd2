/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table by a seeded hash of issuer, kind and name: a request costs as many look-ups as its token has names, and
 * nothing while there are no entries.
 */
#include "session/denials.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"

const char *denial_by_name(enum denial_by by)
{
	static const char *const names[] = {
		[DENIAL_BY_SUB] = "sub",
		[DENIAL_BY_CLIENT_ID] = "client_id",
		[DENIAL_BY_JTI] = "jti",
		[DENIAL_BY_SID] = "sid",
	};

	return names[by];
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

static uint64_t key_of(const struct denials *denials, struct slice issuer, enum denial_by by,
		       struct slice name)
{
	return text_hash_part(text_hash_part(denials->seed + by, issuer), name);
}

/* ---- entries ---- */

static struct denial *find_entry(const struct denials *denials, struct slice issuer,
				 enum denial_by by, struct slice name)
{
	struct map_link *at = map_find_link(&denials->by_key, key_of(denials, issuer, by, name));

	for (; at != NULL; at = at->next) {
		struct denial *denial = container_of(at, struct denial, by_key);

		if (denial->by == by && slice_is_equal(denial->issuer, issuer) &&
		    slice_is_equal(denial->name, name))
			return denial;
	}
	return NULL;
}

static void remove_entry(struct denials *denials, struct denial *denial)
{
	map_remove_link(&denials->by_key, &denial->by_key);
	list_remove(&denial->link);
	denials->count--;
	free(denial);
}

static struct denial *make_entry(struct denials *denials, struct slice issuer, enum denial_by by,
				 struct slice name)
{
	struct denial *denial = mem_alloc(sizeof(*denial) + issuer.n + name.n);
	char *at = (char *)(denial + 1);

	*denial = (struct denial){ .number = ++denials->last_number, .by = by };
	denial->issuer = mem_put_slice(&at, issuer);
	denial->name = mem_put_slice(&at, name);
	map_insert_link(&denials->by_key, key_of(denials, issuer, by, name), &denial->by_key);
	list_append(&denials->entries, &denial->link);
	denials->count++;
	return denial;
}

static bool names_token(const struct denial *denial, const struct denial_marks *marks)
{
	return slice_is_equal(denial->issuer, marks->issuer) &&
	       slice_is_equal(denial->name, marks->names[denial->by]);
}

/* Whoever is told may end others that are in either list. */
static void tell_holders(struct denials *denials, const struct denial *denial)
{
	struct list named;

	list_init(&named);
	LIST_FOREACH_SAFE(node, &denials->holders) {
		const struct denials_holder *holder =
			container_of(node, struct denials_holder, link);
		struct denial_marks marks;

		holder->ops->show(holder, &marks);
		if (!names_token(denial, &marks))
			continue;
		list_remove(node);
		list_append(&named, node);
	}
	while (!list_is_empty(&named)) {
		struct denials_holder *holder =
			container_of(named.next, struct denials_holder, link);

		denials_leave(holder);
		holder->ops->on_denied(holder);
	}
}

const struct denial *denials_add(struct denials *denials, struct slice issuer, enum denial_by by,
				 struct slice name, uint64_t until_ms)
{
	struct denial *denial;

	CHECK(issuer.n > 0 && name.n > 0);
	denials_sweep(denials);
	denial = find_entry(denials, issuer, by, name);
	if (denial == NULL && denials->count >= DENIALS_MAX)
		return NULL;
	if (denial == NULL)
		denial = make_entry(denials, issuer, by, name);
	denial->until_ms = until_ms;
	tell_holders(denials, denial);
	return denial;
}

void denials_restore(struct denials *denials, const struct denial *denial)
{
	struct denial *copy = make_entry(denials, denial->issuer, denial->by, denial->name);

	denials->last_number--; /* it was not a new one */
	copy->number = denial->number;
	copy->until_ms = denial->until_ms;
	if (denials->last_number < denial->number)
		denials->last_number = denial->number;
}

bool denials_remove(struct denials *denials, uint64_t number)
{
	LIST_FOREACH(node, &denials->entries) {
		struct denial *denial = container_of(node, struct denial, link);

		if (denial->number != number)
			continue;
		remove_entry(denials, denial);
		return true;
	}
	return false;
}

void denials_sweep(struct denials *denials)
{
	uint64_t now_ms = clock_wall_ms();

	LIST_FOREACH_SAFE(node, &denials->entries) {
		struct denial *denial = container_of(node, struct denial, link);

		if (denial->until_ms <= now_ms)
			remove_entry(denials, denial);
	}
}

const struct denial *denials_find(const struct denials *denials, const struct denial_marks *marks)
{
	if (denials->count == 0 || marks->issuer.n == 0)
		return NULL;
	for (size_t i = 0; i < DENIAL_BY_COUNT; i++) {
		const struct denial *denial = NULL;

		if (marks->names[i].n > 0)
			denial = find_entry(denials, marks->issuer, (enum denial_by)i,
					    marks->names[i]);
		if (denial != NULL && clock_wall_ms() < denial->until_ms)
			return denial;
	}
	return NULL;
}

/* ---- holders ---- */

void denials_holder_init(struct denials_holder *holder, const struct denials_holder_ops *ops)
{
	holder->ops = ops;
	list_init(&holder->link);
}

void denials_join(struct denials *denials, struct denials_holder *holder)
{
	list_remove(&holder->link);
	list_append(&denials->holders, &holder->link);
}

void denials_leave(struct denials_holder *holder)
{
	list_remove(&holder->link);
}

/* ---- whole ---- */

void denials_init(struct denials *denials)
{
	*denials = (struct denials){ .count = 0 };
	list_init(&denials->entries);
	list_init(&denials->holders);
	random_bytes(&denials->seed, sizeof(denials->seed));
}

void denials_fini(struct denials *denials)
{
	CHECK(list_is_empty(&denials->holders));
	while (!list_is_empty(&denials->entries))
		remove_entry(denials, container_of(denials->entries.next, struct denial, link));
	map_fini(&denials->by_key);
}
