/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers of the configuration in use, and of earlier ones that still have sessions, by number.
 * The keeper has one such table, of what may be started, and the gateway another one, of what has
 * sessions (server_table.h). Each ends what is old by itself. architecture.md, "Reload".
 *
 *	free -> current -> retiring -> over -> released -> free
 *
 * The keeper gives the numbers. One keeps its meaning as long as the gateway or a process may use
 * it: the gateway says when it no longer needs a server, and its number is not given again before.
 * But the keeper decides what may be started and for how long, whatever the gateway does: after
 * what the gateway grants it has a reserve.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "config/config.h"
#include "keeper/launch.h"

struct server_slots;

enum server_slot_state {
	SERVER_SLOT_FREE,
	SERVER_SLOT_CURRENT,
	SERVER_SLOT_RETIRING, /* of an earlier configuration; its processes may still be started */
	SERVER_SLOT_OVER,     /* they may not, whatever the gateway says */
	SERVER_SLOT_RELEASED, /* the gateway no longer needs it */
};

/* keeper/children: its processes, and how they started. */
struct server_starts {
	size_t processes; /* that exist, or that the gateway still knows */
	uint64_t second_began_ms;
	uint64_t count; /* of starts in that second */
	/* The failure of the last start that the log reports; 0: it did not fail. */
	struct launch_verdict failed;
	bool is_logged; /* its confinement was */
};

/* What the keeper and the gateway grant servers of earlier configurations. */
struct server_slots_conf {
	/* Kept of one name; the oldest beyond that are over. */
	size_t retiring_max;
	/* Time that is added to drain_timeout and to the times to stop. */
	uint64_t reserve_ms;
	/* How long a configuration stays after its last use. */
	uint64_t kept_ms;
	/* Whether it counts as kept; NULL: it does. */
	bool (*is_used)(const struct server_slots *slots, uint32_t number);
	/* It has just become over. */
	void (*on_over)(struct server_slots *slots, uint32_t number);
};

/* The keeper's: twice what the gateway keeps, as the last processes of some may be exiting. */
#define SERVER_SLOTS_RETIRING_MAX 16
#define SERVER_SLOTS_RESERVE_MS 10000
extern const struct server_slots_conf server_slots_keeper;

/* A configuration that something may point into. */
struct generation {
	struct list link;
	struct config *config;
	size_t users;            /* places that server_slots_hold has set */
	uint64_t replaced_at_ms; /* 0: it is in use */
};

/* All that the keeper knows of a server; it ends with server_slots_free_one. */
struct server_slot {
	enum server_slot_state state;
	struct generation
		*generation; /* of its record, which its processes are made of; NULL: free */
	bool is_known;       /* to gateways: it was enabled; false: free */
	uint64_t retired;    /* order of retirement */
	/* Retiring: it may be started; over or released: processes may live. 0: without a limit. */
	uint64_t until_ms;
	/* Since when its name has been gone, where that is what limits it; or 0. */
	uint64_t removed_at_ms;
	struct server_starts starts; /* the keeper's alone */
};

struct server_slots {
	/*
	 * The configuration in use, except that its servers are indexed by number. Free entries are
	 * not enabled and have no name. There is room for SERVERS_MAX; server_count grows and never
	 * shrinks.
	 */
	struct config table;
	struct server_slot *slots; /* by number as well, free ones all zeros */
	const struct server_slots_conf *conf;
	struct list generations; /* the last one is in use */
	uint32_t *numbers;       /* of the servers of the configuration in use, in its order */
	uint64_t retired;
};

/* There is no configuration yet. `conf` is borrowed. */
void server_slots_init(struct server_slots *slots, const struct server_slots_conf *conf);
/* Uses the first one, whose servers are numbered by position. Takes ownership. */
void server_slots_begin(struct server_slots *slots, struct config *config);
/* Frees everything except the configuration in use, which it returns; the caller owns it. */
struct config *server_slots_fini(struct server_slots *slots);
/*
 * Finds numbers for the servers of `next`; one whose processes need no change keeps its number. -1:
 * too many servers of earlier configurations are left. Changes nothing.
 */
int server_slots_plan(const struct server_slots *slots, const struct config *next,
		      uint32_t *numbers_r, struct error *err) must_check;
/*
 * Switches to it, with the numbers of server_slots_plan. Takes ownership. server_slots_bound
 * follows.
 */
void server_slots_use(struct server_slots *slots, struct config *next, const uint32_t *numbers);
/* Decides how long servers of earlier configurations stay. */
void server_slots_bound(struct server_slots *slots);
/* The number of the enabled server in use with this name; SERVERS_MAX: there is none. */
uint32_t server_slots_find_name(const struct server_slots *slots, const char *name);
/*
 * The same for the server of this number, which is retiring: that has its name, and is a server or an endpoint
 * as it is.
 */
uint32_t server_slots_find_successor(const struct server_slots *slots, uint32_t number);
/* The configuration in use. */
struct generation *server_slots_generation(const struct server_slots *slots);
struct config *server_slots_config(const struct server_slots *slots);
/* Makes *place refer to this generation, which stays for that; NULL: to none. */
void server_slots_hold(struct generation **place, struct generation *generation);
/*
 * The server that a gateway means by this number now. NULL: none, or one that it has released, so
 * that whatever it still says of it is void. Everything that a gateway says of a server must pass
 * through here.
 */
struct server_slot *server_slots_find(const struct server_slots *slots, uint32_t number);
/* Ends what is over. Returns when the next one will be; UINT64_MAX: none. */
uint64_t server_slots_do_due(struct server_slots *slots);
/* Whether its processes have also used up their time to exit. */
bool server_slots_is_overdue(const struct server_slots *slots, size_t number);
/* The gateway no longer needs it. False: not a server of an earlier configuration. */
bool server_slots_release(struct server_slots *slots, uint32_t number) must_check;
/* There is another gateway, which knows only the servers in use. */
void server_slots_release_all(struct server_slots *slots);
/* Whether it is released, and can be freed once it has no processes. */
bool server_slots_is_released(const struct server_slots *slots, size_t number);
/* It has no processes. Its number may be another server's from now on. */
void server_slots_free_one(struct server_slots *slots, size_t number);
