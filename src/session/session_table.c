/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map keyed by the first 60 bits of the ids. By guessing, one learns at most whether there is an
 * id with these bits; the whole id is then compared in constant time. This file knows nothing else
 * about sessions.
 */
#include "session/session_table.h"

#include "base/check.h"
#include "base/random.h"
#include "base/text.h"

/* The first 10 characters of an id hold 60 bits: enough for a key. */
#define KEY_CHARACTERS 10

uint64_t session_id_key(const char *id)
{
	uint64_t key = 14695981039346656037u; /* FNV-1a */

	for (size_t i = 0; i < KEY_CHARACTERS; i++)
		key = (key ^ (unsigned char)id[i]) * 1099511628211u;
	return key;
}

void session_id_make(char *id_r)
{
	unsigned char bytes[SESSION_ID_BYTES];

	do {
		random_bytes(bytes, sizeof(bytes));
		CHECK(text_base64url(bytes, sizeof(bytes), id_r) == SESSION_ID_LENGTH);
	} while (id_r[0] == '-');
}

void session_table_add(struct session_table *table, struct session_entry *entry)
{
	do {
		session_id_make(entry->id);
		entry->key = session_id_key(entry->id);
	} while (map_find(&table->by_key, entry->key) != NULL);
	map_insert(&table->by_key, entry->key, entry);
}

bool session_table_add_known(struct session_table *table, struct session_entry *entry,
			     struct slice id)
{
	uint64_t key;

	CHECK(id.n == SESSION_ID_LENGTH);
	key = session_id_key(id.p);
	if (map_find(&table->by_key, key) != NULL)
		return false;
	memcpy(entry->id, id.p, SESSION_ID_LENGTH);
	entry->key = key;
	map_insert(&table->by_key, key, entry);
	return true;
}

void session_table_remove(struct session_table *table, const struct session_entry *entry)
{
	CHECK(map_remove(&table->by_key, entry->key) == entry);
}

struct session_entry *session_table_find(const struct session_table *table, struct slice id)
{
	struct session_entry *entry;

	if (id.n != SESSION_ID_LENGTH)
		return NULL;
	entry = map_find(&table->by_key, session_id_key(id.p));
	if (entry == NULL || !text_is_equal_secret(slice_of(entry->id, SESSION_ID_LENGTH), id))
		return NULL;
	return entry;
}

void session_table_fini(struct session_table *table)
{
	CHECK(table->by_key.count == 0);
	map_fini(&table->by_key);
}
