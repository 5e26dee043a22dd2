/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers that the gateway has: those of the configuration in use, and those that a reload has put others in the place of, as
 * long as they have sessions. Each is where its number, which the keeper gave it, says. A configuration stays for as long as
 * any of them, or anything that was begun under it, may point into it. architecture.md, "Reload".
 */
#ifndef MCPGATED_SERVER_TABLE_H
#define MCPGATED_SERVER_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "config/config.h"
#include "endpoint/frontend.h"
#include "io/loop.h"
#include "keeper/gateway_entry.h"
#include "process/server.h"
#include "router/router.h"

/* Of one name so many that are retired are kept; then the sessions of the oldest end. */
#define SERVER_TABLE_RETIRED_MAX 8

struct generation;

struct server_row {
	char *name;                   /* NULL: there is none of this number */
	struct generation *processes; /* what it was made of */
	struct generation *rules;     /* and what changes without other processes */
	uint64_t retired_at_ms;
	uint64_t retired_number; /* the order in which they were */
	bool is_removed;         /* no other one has its name */
};

struct server_table {
	struct loop *loop;
	struct spawner *spawner;
	struct router *router;
	struct fleet fleet;
	int landlock;
	struct server *servers;     /* SERVERS_MAX, like the next; without a name: none */
	struct endpoint *endpoints; /* without a server: none */
	struct server_row *rows;
	size_t count; /* of those that there were so far */
	uint64_t retired;
	struct list generations; /* the one in use is the last */
	struct timer sweep;      /* frees what nobody refers to */
	uint64_t drain_ms;       /* what sessions of a removed server get */
	void (*on_change)(void); /* one was freed */
};

/* All are borrowed; the table must not move. */
void server_table_init(struct server_table *table, struct router *router, struct spawner *spawner,
		       int landlock, void (*on_change)(void));
/* Nobody refers to any of them. Frees the configurations. */
void server_table_fini(struct server_table *table);
/*
 * The servers of `config`, which is taken, are those that there are from now on; those that were there before and are not among
 * them are retired. `given` is for each of them. What runs before the first client comes is started.
 */
void server_table_use(struct server_table *table, struct config *config,
		      const struct gateway_server *given);
/* The processes of all. */
size_t server_table_count_children(const struct server_table *table);
void server_table_kill_children(struct server_table *table, enum reason reason);

#endif
