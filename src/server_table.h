/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All servers of the gateway: those of the configuration in use, and those that reloads have
 * replaced, as long as they have sessions. Each is at the index that the keeper assigned. A
 * configuration stays in memory as long as any of these servers, or anything begun under it, may
 * point into it. Which servers are in use, and how long the others stay, is keeper/server_slots:
 * here is what the gateway makes of them. architecture.md, "Reload".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "endpoint/frontend.h"
#include "io/loop.h"
#include "keeper/gateway_entry.h"
#include "keeper/server_slots.h"
#include "process/server.h"
#include "router/router.h"

/* Retired servers kept per name; beyond this, the sessions of the oldest end. */
#define SERVER_TABLE_RETIRED_MAX 8

struct server_row {
	char *name;               /* NULL: there is none at this index */
	struct generation *rules; /* the configuration that its rules come from */
};

struct server_table {
	struct loop *loop;
	struct spawner *spawner;
	struct router *router;
	struct fleet fleet;
	int landlock;
	struct server_slots slots;
	struct server *servers;     /* SERVERS_MAX, like the next; without a name: unused */
	struct endpoint *endpoints; /* without a server: unused */
	struct server_row *rows;
	size_t count;            /* indexes used so far */
	bool is_started;         /* server_table_start */
	struct timer sweep;      /* frees what is no longer referred to */
	void (*on_change)(void); /* a server was freed */
};

/* Everything is borrowed. The table must not move. */
void server_table_init(struct server_table *table, struct router *router, struct spawner *spawner,
		       int landlock, void (*on_change)(void));
/* Nobody may refer to any of them. Frees the configurations. */
void server_table_fini(struct server_table *table);
/*
 * Takes `config` and puts its servers into use; present servers that are not among them are
 * retired. `numbers` has the keeper's for each of them.
 */
void server_table_use(struct server_table *table, struct config *config, const uint32_t *numbers);
/*
 * All processes of the gateway before are known: starts what must run before the first client, from
 * now on also of servers that are put into use later.
 */
void server_table_start(struct server_table *table);
/* The number of processes of all servers. */
size_t server_table_count_children(const struct server_table *table);
/* Whether no message is on its way to or from one (child_is_quiet). */
bool server_table_is_quiet(const struct server_table *table);
void server_table_kill_children(struct server_table *table, enum reason reason);
