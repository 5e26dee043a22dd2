/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of sessions, and the look-up by id. FRONT-SESS-02. */
#ifndef MCPGATED_SESSION_SESSION_TABLE_H
#define MCPGATED_SESSION_SESSION_TABLE_H

#include <stdint.h>

#include "base/map.h"
#include "base/slice.h"

/* 192 random bits as base64url. */
#define SESSION_ID_BYTES 24
#define SESSION_ID_LENGTH 32
/* So much of an id may be shown to the operator; the rest stays a secret. */
#define SESSION_ID_SHOWN 8

/* A fresh one. It does not begin with '-': on a command line it would look like an option. */
void session_id_make(char *id_r);
/* The key of an id in a map. It is made of the first 60 bits alone, so what is found is to be compared. */
uint64_t session_id_key(const char *id);

/* All zeros is an empty one. */
struct session_table {
	struct map by_key;
};

/* Embedded by what has the id. */
struct session_entry {
	uint64_t key; /* session_id_key of the id */
	char id[SESSION_ID_LENGTH];
};

/* Gives the entry a fresh id, by which it is found until it is removed. */
void session_table_add(struct session_table *table, struct session_entry *entry);
/* It must be there. */
void session_table_remove(struct session_table *table, const struct session_entry *entry);
/* The entry of this id, whatever bytes a client sent as one; NULL: none. */
struct session_entry *session_table_find(const struct session_table *table, struct slice id);
/* All entries must have been removed. */
void session_table_fini(struct session_table *table);

#endif
