/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that are refused although they are good: entries of the operator's orders and of the configuration, each with an
 * issuer and one name that its tokens bear, until a time. What is open for a token watches the list; an entry that names
 * the token ends it at once. deny_snapshot.h keeps entries when the process fails. AUTH-SES-07
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

/* What an entry can name a token by: members of the token, or of its issuer's answer about it. */
enum denial_by {
	DENIAL_BY_SUB,
	DENIAL_BY_CLIENT_ID,
	DENIAL_BY_JTI,
	DENIAL_BY_SID, /* the person's session at the issuer, from which many tokens can come */
	DENIAL_BY_COUNT
};

/* The name of the member. */
const char *denial_by_name(enum denial_by by);

/* Who has set an entry. What one of them says of a name does not touch what the other has said of it. */
enum denial_origin { DENIAL_ORDERED, DENIAL_CONFIGURED, DENIAL_ORIGIN_COUNT };

/* As reports have it. */
const char *denial_origin_name(enum denial_origin origin);

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
	uint64_t until_ms; /* wall clock; UINT64_MAX: without end */
	enum denial_by by;
	enum denial_origin origin;
	/* Of the configuration, but the operator has taken it away: nothing is refused, until the configuration says something else of it. */
	bool is_lifted;
	uint64_t
		configured_ms; /* private: its time in a configuration that is being taken; 0: it is not there */
	struct slice issuer; /* behind this struct, like the next */
	struct slice name;
};

struct deny_watcher;

struct deny_watcher_ops {
	/* What the watcher's token says; borrowed as long as it has that token. */
	void (*show)(const struct deny_watcher *watcher, struct denial_marks *marks_r);
	/* Its token is denied: it has been taken off the list, and must end now. */
	void (*on_denied)(struct deny_watcher *watcher);
};

/* Embedded by what is open for a token. */
struct deny_watcher {
	const struct deny_watcher_ops *ops;
	struct list link;
};

struct deny_list {
	struct map by_key;
	struct list entries;
	struct list watchers;
	size_t count;
	size_t unsure; /* private: of the configuration, and not kept so far by the one that is being taken */
	uint64_t seed;
	uint64_t last_number;
};

void deny_list_init(struct deny_list *deny_list);
/* No watcher may be left. */
void deny_list_fini(struct deny_list *deny_list);

/*
 * The operator's order: tokens of this issuer with this name (neither is empty) are refused until then. An order of his that is
 * there already gets the new time and keeps its number. Every watcher with such a token is told. Returns the entry, borrowed
 * until the next change; NULL: there are DENY_LIST_MAX.
 */
const struct denial *deny_list_add(struct deny_list *deny_list, struct slice issuer,
				   enum denial_by by, struct slice name, uint64_t until_ms)
	must_check;
/*
 * Tokens of this issuer with this sub, or, if that is empty, all of this issuer are refused at this moment, and no entry stays: every
 * watcher with such a token is told.
 */
void deny_list_tell(struct deny_list *deny_list, struct slice issuer, struct slice sub);
/*
 * The entries of the configuration, between begin and end, all of them twice: deny_list_configure_keep for each, then
 * deny_list_configure for each. Those that were not there are added, those that are not there any more go (the places of these are
 * free for the others), and those with another time get it, also if the operator had taken them away; the others are as they were.
 * With the end every watcher with such a token is told. deny_list_configure returns false if there are DENY_LIST_MAX.
 */
void deny_list_configure_begin(struct deny_list *deny_list);
void deny_list_configure_keep(struct deny_list *deny_list, struct slice issuer, enum denial_by by,
			      struct slice name, uint64_t until_ms);
bool deny_list_configure(struct deny_list *deny_list, struct slice issuer, enum denial_by by,
			 struct slice name, uint64_t until_ms) must_check;
void deny_list_configure_end(struct deny_list *deny_list);
/* Adds a copy of an entry of another process, with its number, while there are no watchers yet. */
void deny_list_restore(struct deny_list *deny_list, const struct denial *denial);
/* The operator takes it away; see is_lifted. False: there is none of this number. */
bool deny_list_remove(struct deny_list *deny_list, uint64_t number);
/* Frees the entries whose time is over. */
void deny_list_sweep(struct deny_list *deny_list);
/* An entry that names this token; NULL: none does, or none any more. */
const struct denial *deny_list_find(const struct deny_list *deny_list,
				    const struct denial_marks *marks);

/* Puts the watcher on the list; deny_list_find has just let its token pass. */
void deny_list_watch(struct deny_list *deny_list, struct deny_watcher *watcher);
/* Also for one that is not on the list, if it was initialised. */
void deny_list_unwatch(struct deny_watcher *watcher);
void deny_watcher_init(struct deny_watcher *watcher, const struct deny_watcher_ops *ops);

#endif
