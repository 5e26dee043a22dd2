/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of adopted servers, each conf.d/NAME.yaml of the user's own configuration: the server, and in a comment the entries that it
 * came from, as they were and as they are now. All that is secret of a server is here and nowhere else.
 */
#ifndef MCPGATED_CTL_ADOPTED_H
#define MCPGATED_CTL_ADOPTED_H

#include <jansson.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "config/tree.h"

struct adopted {
	char *path;
	json_t *record;  /* server, definition, body, entries: [{file, list, name, was, is}] */
	struct buf body; /* what the daemon reads */
};

struct adopted_list {
	struct adopted *items;
	size_t count;
};

/* What the server is, whatever its name, in YAML: equal texts are the same server. Appends to out. */
void adopted_define(const struct tree *server, struct buf *out);

/* All that are there; one that cannot be read, or whose comment has been changed, is none. */
void adopted_read(struct adopted_list *list_r);
void adopted_fini(struct adopted_list *list);
/* With this definition; NULL: none. */
struct adopted *adopted_find(const struct adopted_list *list, struct slice definition);
bool adopted_has_name(const struct adopted_list *list, const char *name);
const char *adopted_name(const struct adopted *server);
/* A new one without entries, not written yet; borrowed until the next is added. isolation: a constant. */
struct adopted *adopted_add(struct adopted_list *list, const char *name, struct slice definition,
			    const char *isolation);
/* Adds an entry, in place of one with the same place. */
void adopted_remember(struct adopted *server, json_t *entry);
/* Forgets entry number i. */
void adopted_forget(struct adopted *server, size_t i);
json_t *adopted_entries(const struct adopted *server); /* borrowed */
/*
 * Writes the file; without an entry it is removed, unless somebody has changed the server in it: *kept_r. Returns 0 or -1.
 */
int adopted_save(const struct adopted *server, bool *kept_r, struct error *err) must_check;

#endif
