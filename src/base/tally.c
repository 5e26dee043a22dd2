/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tally.h"

#include <stdlib.h>

#include "base/mem.h"

struct tally_entry {
	struct list link;
	struct tally_count count;
};

void tally_init(struct tally *tally, tally_told_fn *on_told)
{
	*tally = (struct tally){ .on_told = on_told };
	list_init(&tally->entries);
}

static void forget(struct tally *tally, struct tally_entry *entry)
{
	CHECK(map_take(&tally->by_key, entry->count.key) == entry);
	list_remove(&entry->link);
	free(entry);
}

void tally_fini(struct tally *tally)
{
	LIST_DRAIN(struct tally_entry, entry, &tally->entries, link)
		forget(tally, entry);
	map_fini(&tally->by_key);
}

/* NULL: it is not kept. */
static struct tally_entry *entry_of(struct tally *tally, uint64_t key)
{
	struct tally_entry *entry = map_find(&tally->by_key, key);

	if (entry != NULL || tally->on_counted == NULL || tally->by_key.count >= TALLY_KEYS_MAX)
		return entry;
	entry = mem_zalloc(sizeof(*entry));
	entry->count.key = key;
	list_append(&tally->entries, &entry->link);
	map_insert(&tally->by_key, key, entry);
	return entry;
}

void tally_add(struct tally *tally, uint64_t key, uint64_t amount)
{
	struct tally_entry *entry = entry_of(tally, key);

	if (entry == NULL)
		return;
	entry->count.amount += amount;
	tally->on_counted(tally);
}

void tally_reset(struct tally *tally, uint64_t key)
{
	struct tally_entry *entry = entry_of(tally, key);

	if (entry == NULL)
		return;
	entry->count.amount = 0;
	entry->count.is_anew = true;
	tally->on_counted(tally);
}

bool tally_take(struct tally *tally, struct tally_count *count_r)
{
	struct tally_entry *entry = container_of(tally->entries.next, struct tally_entry, link);

	if (list_is_empty(&tally->entries))
		return false;
	*count_r = entry->count;
	forget(tally, entry);
	return true;
}

void tally_hear(struct tally *tally, uint64_t key, uint64_t amount)
{
	struct tally_entry *entry = map_find(&tally->by_key, key);

	if (amount == 0 && entry != NULL)
		forget(tally, entry);
	tally->on_told(tally, key, amount);
}
