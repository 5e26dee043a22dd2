/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that are refused although they are valid. Entries come from the operator's commands and
 * from the configuration. Each has an issuer, one name that its tokens bear, and an expiry.
 * Whatever is open for a token watches the list, and ends at once if an entry names the token.
 * deny_snapshot.h preserves entries if the process fails. AUTH-SES-07
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/halves.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

/*
 * What an entry can identify a token by: members of the token, or of its issuer's answer about it.
 */
enum denial_by {
	DENIAL_BY_SUB,
	DENIAL_BY_CLIENT_ID,
	DENIAL_BY_JTI,
	DENIAL_BY_SID, /* the person's session at the issuer, from which many tokens may come */
	DENIAL_BY_COUNT
};

/* The member's name. */
const char *denial_by_name(enum denial_by by);

/*
 * Who set an entry. Entries of one origin do not affect those of the other, even for the same name.
 */
enum denial_origin { DENIAL_ORDERED, DENIAL_CONFIGURED, DENIAL_ORIGIN_COUNT };

/* As used in reports. */
const char *denial_origin_name(enum denial_origin origin);

/*
 * What a token contains that an entry can name, compared byte for byte; missing members are empty.
 */
struct denial_marks {
	struct slice issuer; /* empty: no token */
	struct slice names[DENIAL_BY_COUNT];
};

/* Returns a copy in a single allocation; release it with free(). */
struct denial_marks *denial_marks_copy(const struct denial_marks *marks);

#define DENY_LIST_MAX 10000
#define DENY_LIST_OWN 1000 /* of those, left for the operator of this node and its configuration */

struct denial {
	struct list link; /* in the list of all entries, oldest first */
	struct map_link by_key;
	uint64_t number;   /* by which the operator removes it */
	uint64_t until_ms; /* wall clock; UINT64_MAX: never expires */
	enum denial_by by;
	enum denial_origin origin;
	/*
	 * A configured entry that the operator has removed: it has no effect until the
	 * configuration changes its time. Or an operator's entry of a shared list that was
	 * removed: it stays until it would have expired, so that no other node brings it back.
	 */
	bool is_lifted;
	bool is_untold; /* by a shared list: an operator's entry that has changed here */
	uint64_t
		changed_ms; /* in a shared list: when the operator has last said something about it */
	/* Private: its time in the configuration being applied; 0: not in it. */
	uint64_t configured_ms;
	struct slice issuer; /* stored behind this struct, as is the name */
	struct slice name;
};

struct deny_watcher;

struct deny_watcher_ops {
	/* The marks of the watcher's token; borrowed as long as it has that token. */
	void (*show)(const struct deny_watcher *watcher, struct denial_marks *marks_r);
	/* Its token is denied: it is off the list, and must end now. */
	void (*on_denied)(struct deny_watcher *watcher);
};

/* Embedded by whatever is open for a token. */
struct deny_watcher {
	const struct deny_watcher_ops *ops;
	struct list link;
};

/*
 * Told of each denial as it takes effect: to tokens of this issuer with this name or, if that is
 * empty, to all of them. For whoever has tokens without watching each.
 */
struct deny_observer {
	void (*on_denial)(struct deny_observer *observer, struct slice issuer, enum denial_by by,
			  struct slice name);
};

struct deny_list {
	struct map by_key;
	struct list entries;
	struct list watchers;
	struct deny_observer *observer; /* borrowed; NULL: none */
	size_t count;
	/* Private: configured entries not yet confirmed by the configuration being applied. */
	size_t unsure;
	uint64_t seed;
	uint64_t last_number;
	bool is_shared; /* with other nodes of a cluster (cluster/cluster.h) */
};

void deny_list_init(struct deny_list *deny_list);
/* There must be no watchers left. */
void deny_list_fini(struct deny_list *deny_list);

/*
 * The operator's command: refuses tokens of this issuer with this name (neither may be empty) until
 * that time. If there is an operator's entry for them already, it gets the new time and keeps its
 * number. Notifies every watcher with such a token. Returns the entry, borrowed until the next
 * change; NULL: there are DENY_LIST_MAX.
 */
const struct denial *deny_list_add(struct deny_list *deny_list, struct slice issuer,
				   enum denial_by by, struct slice name, uint64_t until_ms)
	must_check;
/*
 * Denies tokens of this issuer with this sub, or all of this issuer if sub is empty, once and
 * without adding an entry: notifies every watcher with such a token.
 */
void deny_list_tell(struct deny_list *deny_list, struct slice issuer, struct slice sub);
/*
 * Replaces the configured entries. Between begin and end pass all of them twice: first
 * deny_list_configure_keep for each, then deny_list_configure for each. New entries are added,
 * missing ones are removed (which makes room for new ones), and those whose time has changed get
 * it, even if the operator had removed them; the others stay as they are. The end notifies every
 * watcher with such a token. deny_list_configure returns false if there are DENY_LIST_MAX.
 */
void deny_list_configure_begin(struct deny_list *deny_list);
void deny_list_configure_keep(struct deny_list *deny_list, struct slice issuer, enum denial_by by,
			      struct slice name, uint64_t until_ms);
bool deny_list_configure(struct deny_list *deny_list, struct slice issuer, enum denial_by by,
			 struct slice name, uint64_t until_ms) must_check;
void deny_list_configure_end(struct deny_list *deny_list);
/* The operator removes an entry; see is_lifted. Returns false if none has this number. */
bool deny_list_remove(struct deny_list *deny_list, uint64_t number);

/*
 * For a shared list: what the operator of another node has said at order->changed_ms about tokens of
 * this issuer with this name: they are denied until until_ms, or not any more (is_lifted). What was
 * said last counts, on all nodes. Notifies like deny_list_add. Returns the entry if that changed it;
 * NULL: it did not, or *is_full_r: there is no room for what others say.
 */
const struct denial *deny_list_take(struct deny_list *deny_list, const struct denial *order,
				    bool *is_full_r) must_check;
/* A shared list: all of the operator's entries are to be told again. */
void deny_list_untell(struct deny_list *deny_list);
/* Frees expired entries. */
void deny_list_sweep(struct deny_list *deny_list);
/* An entry in force that names this token; NULL: none. */
const struct denial *deny_list_find(const struct deny_list *deny_list,
				    const struct denial_marks *marks);

/* Puts the watcher on the list; deny_list_find must just have returned NULL for its token. */
void deny_list_watch(struct deny_list *deny_list, struct deny_watcher *watcher);
/* Also valid if it is not on the list, provided it was initialized. */
void deny_list_unwatch(struct deny_watcher *watcher);
void deny_watcher_init(struct deny_watcher *watcher, const struct deny_watcher_ops *ops);

/* ---- for the next gateway ---- */

/*
 * Passes the denials of a gateway process that failed to the next one, in a memory file that the
 * keeper creates and all gateway processes share (base/halves). An attacker may have controlled the process that
 * wrote it, so it is validated like any input.
 */

#define DENY_SNAPSHOT_BYTES ((size_t)48 * 1024 * 1024)
/* Size of the keeper's memory file, which is zeroed initially; only written pages use memory. */
#define DENY_SNAPSHOT_FILE_BYTES HALVES_BYTES(DENY_SNAPSHOT_BYTES)

/* Maps the file for the life of the process. Returns NULL if that fails. */
struct halves *deny_snapshot_map(int fd);
/* Saves all entries. Accepts NULL. */
void deny_snapshot_save(struct halves *deny_snapshot, const struct deny_list *deny_list);
/*
 * Adds the entries that the previous gateway saved, with the same numbers. Returns false, and adds
 * nothing, if nothing was saved or the list is invalid, which is logged. Accepts NULL.
 */
bool deny_snapshot_load(const struct halves *deny_snapshot, struct deny_list *deny_list);
