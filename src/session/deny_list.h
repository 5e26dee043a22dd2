/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that are refused although they are good: entries that the operator has set, each of an issuer and
 * one name that its tokens bear, until a time. Whoever holds something open for a token joins; an entry that
 * names the token ends it at once. deny_snapshot.h keeps entries when the process fails. AUTH-SES-07
 */
#ifndef MCPGATED_SESSION_DENY_LIST_H
#define MCPGATED_SESSION_DENY_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

/* What an entry can name a token by: members of the token, and of what says so to us. */
enum denial_by {
	DENIAL_BY_SUB,
	DENIAL_BY_CLIENT_ID,
	DENIAL_BY_JTI,
	DENIAL_BY_SID, /* the issuer's session of the person, which many tokens can be of */
	DENIAL_BY_COUNT
};

/* The name of the member. */
const char *denial_by_name(enum denial_by by);

/* What a token says that an entry can name, compared byte for byte; what is missing is empty. */
struct denial_marks {
	struct slice issuer; /* empty: no token */
	struct slice names[DENIAL_BY_COUNT];
};

/* A copy of them in one piece, for free(). */
struct denial_marks *denial_marks_copy(const struct denial_marks *marks);

#define DENY_LIST_MAX 10000

struct denial {
	struct list link; /* of all, the oldest first */
	struct map_link by_key;
	uint64_t number;   /* by which the operator takes it away */
	uint64_t until_ms; /* wall clock; UINT64_MAX: for good */
	enum denial_by by;
	struct slice issuer; /* behind this struct, like the next */
	struct slice name;
};

struct deny_watcher;

struct deny_watcher_ops {
	/* What its token says; borrowed as long as the holder has that token. */
	void (*show)(const struct deny_watcher *holder, struct denial_marks *marks_r);
	/* It has left, and must end now. */
	void (*on_denied)(struct deny_watcher *holder);
};

/* Embedded by what is open for a token. */
struct deny_watcher {
	const struct deny_watcher_ops *ops;
	struct list link;
};

struct deny_list {
	struct map by_key;
	struct list entries;
	struct list holders;
	size_t count;
	uint64_t seed;
	uint64_t last_number;
};

void deny_list_init(struct deny_list *deny_list);
/* No holder may be left. */
void deny_list_fini(struct deny_list *deny_list);

/*
 * Tokens of this issuer with this name (neither is empty) are refused until then. An entry that names the same
 * gets the new time, and keeps its number. Then every holder of such a token is told. Returns the entry, borrowed until the next
 * change; NULL: DENY_LIST_MAX are there.
 */
const struct denial *deny_list_add(struct deny_list *deny_list, struct slice issuer,
				   enum denial_by by, struct slice name, uint64_t until_ms)
	must_check;
/* Adds a copy of an entry of another process, with its number, while there are no holders yet. */
void deny_list_restore(struct deny_list *deny_list, const struct denial *denial);
/* False: there is none of this number. */
bool deny_list_remove(struct deny_list *deny_list, uint64_t number);
/* Frees the entries whose time is over. */
void deny_list_sweep(struct deny_list *deny_list);
/* An entry that names this token; NULL: none does, or none any more. */
const struct denial *deny_list_find(const struct deny_list *deny_list,
				    const struct denial_marks *marks);

/* Joins with a token that deny_list_find has just let pass. */
void deny_list_watch(struct deny_list *deny_list, struct deny_watcher *holder);
/* Also for one that has left, or was never more than initialised. */
void deny_list_unwatch(struct deny_watcher *holder);
void deny_watcher_init(struct deny_watcher *holder, const struct deny_watcher_ops *ops);

#endif
