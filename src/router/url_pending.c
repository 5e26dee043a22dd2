/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids are compared as they were written: a server that spells one in two ways only makes its client
 * wait for the full time.
 */
#include "router/url_pending.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "jsonrpc/scan.h"
#include "router/url_elicitation.h"

struct item {
	struct list link;
	uint64_t child;
	size_t length;
	char id[];
};

static struct item *item_at(struct list *node)
{
	return container_of(node, struct item, link);
}

static struct item *find(const struct url_pending *pending, uint64_t child, struct slice id)
{
	LIST_FOREACH(node, &pending->items) {
		struct item *item = item_at(node);

		if (item->child == child && slice_is_equal(slice_of(item->id, item->length), id))
			return item;
	}
	return NULL;
}

static void drop(struct url_pending *pending, struct item *item)
{
	list_remove(&item->link);
	pending->count--;
	free(item);
}

/* ---- waiting ---- */

struct look {
	const struct url_pending *pending;
	uint64_t child;
	bool is_found;
};

static int look_at(struct slice element, void *arg)
{
	struct look *look = arg;
	struct slice id = scan_member(element, SLICE_LIT("id")).text;

	look->is_found = find(look->pending, look->child, id) != NULL;
	return look->is_found ? -1 : 0;
}

static bool is_any_pending(const struct url_pending *pending, const struct url_waiter *waiter)
{
	struct look look = { .pending = pending, .child = waiter->child };
	struct error err;
	int count = scan_array(waiter->wanted, URL_ELICITATIONS_MAX, look_at, &look, &err);

	CHECK(count > 0 || look.is_found);
	return look.is_found;
}

bool url_pending_wait(struct url_pending *pending, struct url_waiter *waiter)
{
	CHECK(waiter->on_over != NULL);
	if (!is_any_pending(pending, waiter))
		return false;
	list_append(&pending->waiters, &waiter->link);
	return true;
}

void url_waiter_leave(struct url_waiter *waiter)
{
	list_remove(&waiter->link);
}

static void tell_waiters(struct url_pending *pending, uint64_t child)
{
	LIST_FOREACH_SAFE(node, &pending->waiters) {
		struct url_waiter *waiter = container_of(node, struct url_waiter, link);

		if (waiter->child != child || is_any_pending(pending, waiter))
			continue;
		url_waiter_leave(waiter);
		waiter->on_over(waiter);
	}
}

/* ---- what is pending ---- */

struct adding {
	struct url_pending *pending;
	uint64_t child;
};

static int add_one(struct slice element, void *arg)
{
	const struct adding *adding = arg;
	struct url_pending *pending = adding->pending;
	struct slice id = scan_member(element, SLICE_LIT("id")).text;
	struct item *item;

	if (find(pending, adding->child, id) != NULL)
		return 0;
	if (pending->count >= URL_PENDING_MAX)
		drop(pending, item_at(pending->items.next));
	item = mem_alloc(sizeof(*item) + id.n);
	item->child = adding->child;
	item->length = id.n;
	memcpy(item->id, id.p, id.n);
	list_init(&item->link);
	list_append(&pending->items, &item->link);
	pending->count++;
	return 0;
}

void url_pending_add(struct url_pending *pending, uint64_t child, struct slice wanted)
{
	struct adding adding = { pending, child };
	struct error err;

	CHECK(scan_array(wanted, URL_ELICITATIONS_MAX, add_one, &adding, &err) > 0);
}

bool url_pending_end(struct url_pending *pending, uint64_t child, struct slice id)
{
	struct item *item = find(pending, child, id);

	if (item == NULL)
		return false;
	drop(pending, item);
	tell_waiters(pending, child);
	return true;
}

void url_pending_forget(struct url_pending *pending, uint64_t child)
{
	LIST_FOREACH_SAFE(node, &pending->items) {
		if (item_at(node)->child == child)
			drop(pending, item_at(node));
	}
	tell_waiters(pending, child);
}

/* ---- beginning and end ---- */

void url_pending_init(struct url_pending *pending)
{
	*pending = (struct url_pending){ .count = 0 };
	list_init(&pending->items);
	list_init(&pending->waiters);
}

void url_pending_fini(struct url_pending *pending)
{
	CHECK(list_is_empty(&pending->waiters));
	while (!list_is_empty(&pending->items))
		drop(pending, item_at(pending->items.next));
}
