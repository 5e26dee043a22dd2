/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table by the address, scrambled with a secret so that nobody can choose addresses that fall on one place; each
 * address has a number of its own, so equal numbers are equal addresses.
 */
#include "endpoint/failures.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "obs/log.h"

struct failing {
	struct list link;
	uint64_t key;
	uint64_t since_ms; /* clock_now_ms */
	uint64_t last_ms;
	uint64_t count; /* since then */
};

static uint64_t number_of(const unsigned char *bytes, size_t count)
{
	uint64_t number = 0;

	for (size_t i = 0; i < count; i++)
		number = number << 8 | bytes[i];
	return number;
}

/*
 * IPv4 addresses get numbers that, as prefixes of IPv6, are reserved and nobody's. RFC 4291 s2.4
 * Every step behind can be undone: no two numbers become one.
 */
static uint64_t key_of(const struct failures *failures, const struct peer *peer)
{
	uint64_t number = peer->family == AF_INET ?
				  (uint64_t)1 << 32 | number_of(peer->address, 4) :
				  number_of(peer->address, 8);

	number ^= failures->seed;
	number = (number ^ number >> 33) * 0xff51afd7ed558ccdu;
	number = (number ^ number >> 33) * 0xc4ceb9fe1a85ec53u;
	return number ^ number >> 33;
}

static bool is_counted(const struct failures *failures, const struct peer *peer)
{
	static const unsigned char loopback[16] = { [15] = 1 };

	if (failures->max == 0 || peer->family == 0)
		return false;
	if (peer->family == AF_INET)
		return peer->address[0] != 127;
	return memcmp(peer->address, loopback, sizeof(loopback)) != 0;
}

static void remove_entry(struct failures *failures, struct failing *failing)
{
	CHECK(failures->count > 0 && failures->count == failures->by_key.count);
	map_remove(&failures->by_key, failing->key);
	list_remove(&failing->link);
	failures->count--;
	free(failing);
}

static struct failing *longest_ago(const struct failures *failures)
{
	CHECK(!list_is_empty(&failures->entries));
	return container_of(failures->entries.next, struct failing, link);
}

static struct failing *get_entry(struct failures *failures, uint64_t key, uint64_t now_ms)
{
	struct failing *failing = map_find(&failures->by_key, key);

	if (failing == NULL) {
		while (failures->count > 0 &&
		       (failures->count >= FAILURES_ADDRESSES_MAX ||
			now_ms - longest_ago(failures)->last_ms >= FAILURES_WINDOW_MS))
			remove_entry(failures, longest_ago(failures));
		failing = mem_zalloc(sizeof(*failing));
		failing->key = key;
		failing->since_ms = now_ms;
		list_init(&failing->link);
		map_insert(&failures->by_key, key, failing);
		failures->count++;
	} else if (now_ms - failing->since_ms >= FAILURES_WINDOW_MS) {
		failing->since_ms = now_ms;
		failing->count = 0;
	}
	CHECK(failures->count <= FAILURES_ADDRESSES_MAX && failing->key == key);
	CHECK(now_ms >= failing->last_ms);
	failing->last_ms = now_ms;
	list_remove(&failing->link);
	list_append(&failures->entries, &failing->link);
	return failing;
}

unsigned int failures_note(struct failures *failures, const struct peer *peer)
{
	uint64_t now_ms = clock_now_ms();
	char client[PEER_TEXT_BYTES];
	struct failing *failing;

	if (!is_counted(failures, peer))
		return 0;
	failing = get_entry(failures, key_of(failures, peer), now_ms);
	if (++failing->count <= failures->max)
		return 0;
	if (failing->count == failures->max + 1) {
		peer_format(peer, client);
		LOG(CLIENT_SLOWED, LOG_STR("client", client));
	}
	return (unsigned int)((failing->since_ms + FAILURES_WINDOW_MS - now_ms + 999) / 1000);
}

static struct failing *find(const struct failures *failures, const struct peer *peer)
{
	if (failures->count == 0 || !is_counted(failures, peer))
		return NULL;
	return map_find(&failures->by_key, key_of(failures, peer));
}

bool failures_is_slowed(const struct failures *failures, const struct peer *peer)
{
	const struct failing *failing = find(failures, peer);

	return failing != NULL && failing->count >= failures->max &&
	       clock_now_ms() - failing->since_ms < FAILURES_WINDOW_MS;
}

void failures_forget(struct failures *failures, const struct peer *peer)
{
	struct failing *failing = find(failures, peer);

	if (failing != NULL)
		remove_entry(failures, failing);
}

void failures_init(struct failures *failures, uint64_t max)
{
	*failures = (struct failures){ .max = max };
	list_init(&failures->entries);
	random_bytes(&failures->seed, sizeof(failures->seed));
}

void failures_fini(struct failures *failures)
{
	while (failures->count > 0)
		remove_entry(failures, longest_ago(failures));
	CHECK(failures->by_key.count == 0 && list_is_empty(&failures->entries));
	map_fini(&failures->by_key);
}
