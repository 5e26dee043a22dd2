/* SPDX-License-Identifier: Apache-2.0 */
/* A table keyed by address. */
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

static bool is_counted(const struct failures *failures, const struct peer *peer)
{
	return failures->max > 0 && peer->family != 0 && !peer_is_loopback(*peer);
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
	failing = get_entry(failures, peer_key(peer, failures->seed), now_ms);
	if (++failing->count <= failures->max)
		return 0;
	if (failing->count == failures->max + 1) {
		peer_format(peer, client);
		LOG_BY(CLIENT_SLOWED, failing->key, LOG_STR("client", client));
	}
	return (unsigned int)((failing->since_ms + FAILURES_WINDOW_MS - now_ms + 999) / 1000);
}

static struct failing *find(const struct failures *failures, const struct peer *peer)
{
	if (failures->count == 0 || !is_counted(failures, peer))
		return NULL;
	return map_find(&failures->by_key, peer_key(peer, failures->seed));
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
