/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers that the gateway may have started, by number: those of the configuration in use, and those of configurations before
 * that still have sessions. A number means one thing for as long as a gateway, or a process, may mean that by it. The other
 * parts of the keeper see all of them as one configuration, `table`. architecture.md, "Reload".
 *
 *	free -> current -> retiring -> over -> released -> free
 *
 * The gateway says when it wants no more of one, and its number is not used anew before. But who may have it started, and for how
 * long, is not for the gateway to say: that of a name that has gone ends with its drain_timeout; of one name SERVER_SLOTS_RETIRING_MAX
 * are kept.
 */
#ifndef MCPGATED_KEEPER_SERVER_SLOTS_H
#define MCPGATED_KEEPER_SERVER_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"

struct generation;

enum server_slot_state {
	SERVER_SLOT_FREE,
	SERVER_SLOT_CURRENT,
	SERVER_SLOT_RETIRING, /* of an earlier configuration; processes of it may still be started */
	SERVER_SLOT_OVER,     /* they may not, whatever the gateway says */
	SERVER_SLOT_RELEASED, /* the gateway wants no more of them */
};

/* Beyond what it keeps itself (8 that have sessions), and some whose last processes are ending. */
#define SERVER_SLOTS_RETIRING_MAX 16
/* What the gateway gets beyond the times of the configuration. */
#define SERVER_SLOTS_RESERVE_MS 10000

struct server_slot {
	enum server_slot_state state;
	struct generation *generation; /* that its record is of; NULL: free */
	bool is_known;                 /* to gateways: it was enabled */
	uint64_t retired;              /* the order in which they were */
	uint64_t
		until_ms; /* retiring: it may be started; over or released: processes may live. 0: without a limit */
};

struct server_slots {
	/*
	 * The keys of the configuration in use, but for the servers: by number. Those that are free are not enabled and have no
	 * name. There is room for SERVERS_MAX; server_count grows and never shrinks.
	 */
	struct config table;
	struct server_slot slots[SERVERS_MAX];
	struct generation *current;
	uint32_t *numbers; /* of the servers of the configuration in use, in its order */
	uint64_t retired;
};

/* Takes the configuration; its servers have the numbers that they have there. */
void server_slots_init(struct server_slots *slots, struct config *config);
/* Frees all but the configuration in use, which it returns: the caller's. */
struct config *server_slots_fini(struct server_slots *slots);
/* The configuration in use. */
struct config *server_slots_config(const struct server_slots *slots);
/*
 * Finds numbers for the servers of `next`: one whose processes need nothing else than before keeps its own. -1: so many
 * of earlier configurations are still there that there are not enough. Changes nothing.
 */
int server_slots_plan(const struct server_slots *slots, const struct config *next,
		      uint32_t *numbers_r, struct error *err) must_check;
/* Uses it from now on, with the numbers of server_slots_plan. Takes it. */
void server_slots_use(struct server_slots *slots, struct config *next, const uint32_t *numbers);
/* Ends what is over. Returns when the next one will be; UINT64_MAX: none. */
uint64_t server_slots_do_due(struct server_slots *slots);
/* Whether its processes have had their time to end, too. */
bool server_slots_is_overdue(const struct server_slots *slots, size_t number);
/* The gateway wants no more of them. False: that is no server of an earlier configuration. */
bool server_slots_release(struct server_slots *slots, uint32_t number) must_check;
/* There is another gateway, which knows of none but those in use. */
void server_slots_release_all(struct server_slots *slots);
/* Whether it is released, so that it can be freed when no process of it is left. */
bool server_slots_is_released(const struct server_slots *slots, size_t number);
void server_slots_free_one(struct server_slots *slots, size_t number);

#endif
