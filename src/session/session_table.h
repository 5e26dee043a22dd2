/* SPDX-License-Identifier: Apache-2.0 */
/* Session ids, and the look-up by id. FRONT-SESS-02. */
#ifndef MCPGATED_SESSION_SESSION_TABLE_H
#define MCPGATED_SESSION_SESSION_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/map.h"
#include "base/slice.h"

/* 192 random bits as base64url. */
#define SESSION_ID_BYTES 24
#define SESSION_ID_LENGTH 32
/* The operator may be shown this many characters of an id; the rest stays secret. */
#define SESSION_ID_SHOWN 8

/*
 * Writes a new id. It does not begin with '-', so that it does not look like an option on a command
 * line.
 */
void session_id_make(char *id_r);
/*
 * The key of an id in a map. It is derived from the first 60 bits only, so compare the id of what
 * is found.
 */
uint64_t session_id_key(const char *id);

/* All zeros: an empty table. */
struct session_table {
	struct map by_key;
};

/* Embedded by whatever has the id. */
struct session_entry {
	uint64_t key; /* session_id_key of the id */
	char id[SESSION_ID_LENGTH];
};

/* Gives the entry a new id, by which it can be found until it is removed. */
void session_table_add(struct session_table *table, struct session_entry *entry);
/*
 * Likewise with this id, which has SESSION_ID_LENGTH bytes. Returns false if an id with the same key
 * is there.
 */
bool session_table_add_known(struct session_table *table, struct session_entry *entry,
			     struct slice id) must_check;
/* The entry must be in the table. */
void session_table_remove(struct session_table *table, const struct session_entry *entry);
/* The entry with this id, which may be any bytes from a client; NULL: none. */
struct session_entry *session_table_find(const struct session_table *table, struct slice id);
/* All entries must have been removed. */
void session_table_fini(struct session_table *table);

#endif
