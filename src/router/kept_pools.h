/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the next gateway needs to go on with the processes of shared pools: a part of kept_sessions, which
 * writes it, reads it and holds the processes. One line of JSON for each pool that has a process:
 *
 *	{"pool":…,"server":…,"agreed":…,"described":{…}}
 *
 * `pool` is a digest of the server and of all that tells its pools apart: the keeper is told it as the owner
 * of each process. `described` is the message in which the server has described itself. Others may have
 * written the text: it is parsed like any untrusted input. bridging.md §4.2
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "router/digest.h"

struct pool;
struct revision;
struct server;
struct upstream;

#define KEPT_POOL_BEGIN "{\"pool\":"
#define KEPT_LINE_MAX (1024 * 1024) /* longer ones are neither written nor read */

/* The text for the next gateway, while it is written. */
struct kept_text {
	char *bytes;
	size_t at;  /* where it ends */
	size_t max; /* where it must end */
	bool lacks_some;
};

struct kept_pool {
	struct list link; /* of kept_pools.list */
	struct digest id;
	struct pool *pool; /* NULL: of the gateway before */
	struct buf line;
	struct list processes; /* of the gateway before, held for it: struct upstream.link */
};

struct kept_pools {
	struct list list;
	bool is_on; /* sessions are kept, and so are these */
	/* The text is another one. is_urgent: a gateway that reads the one before would go wrong. */
	void (*on_change)(struct kept_pools *pools, bool is_urgent);
};

/* A line that is kept, without its line end, if it is JSON; else empty. */
struct slice kept_line(const struct buf *line);
/* The digest with which a line begins, behind `begin`. False: it does not. */
bool kept_line_read_id(struct slice line, struct slice begin, struct digest *id_r);

/* The revision that was agreed on, by its name in a line; NULL: we know none of that name. */
const struct revision *kept_line_revision(struct json name);

/* Appends a line with its line end, unless it is too long. */
void kept_text_put(struct kept_text *text, const struct buf *line);
/* Appends the lines, short ones first. */
void kept_pools_put(const struct kept_pools *pools, struct kept_text *text);
/* Takes a line of the gateway before. False: it is none. */
bool kept_pools_take_line(struct kept_pools *pools, struct slice line);
/* With this id, of the gateway before, or of a pool of now that is for new clients; NULL: there is none. */
struct kept_pool *kept_pools_find(const struct kept_pools *pools, const struct digest *id);
/* Forgets those of the gateway before for which no process is held. */
void kept_pools_forget_idle(struct kept_pools *pools);
/* Forgets all, and stops the processes that are held. */
void kept_pools_drop_all(struct kept_pools *pools);

/* Whether a process of this number is held for a pool of this server. */
bool kept_pools_hold(const struct kept_pools *pools, const struct server *server, uint64_t child);

/*
 * A process of a shared pool serves: the next gateway can go on with it, unless it may ask clients and does
 * not say during which call, as it could ask one of that gateway's for a call of this one.
 */
void kept_pool_note_process(const struct upstream *upstream);
/* The same of all processes of these pools. */
void kept_pools_note_all(const struct list *all);
/* At an upgrade: also one that may ask clients for any call, if it is its pool's only one and has no call. */
void kept_pool_hand_over(const struct upstream *upstream);
/* The pool has no process any more. */
void kept_pool_end(struct pool *pool);
/*
 * A process that is held for this pool, for upstream_adopt, whose inherited_result is set to the message in
 * which its server has described itself; NULL: none.
 */
struct upstream *kept_pool_take_process(struct pool *pool);
/* Whether kept_pool_take_process has one. */
bool kept_pool_has_processes(const struct pool *pool);
