/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of adopted servers, each conf.d/NAME.yaml of the user's own configuration: the server, and in a comment the entries that it
 * came from, as they were and as they are now. All that is secret of a server is here and nowhere else. So a file whose entries have all
 * been put back is not removed: it is called NAME.yaml.undone, and a client may still bring an entry back that it has kept in mind.
 */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "config/tree.h"
#include "ctl/edit_file.h"

struct adopted {
	char *path;
	struct edit_file file; /* as it was read; its path is NULL: there is none yet */
	struct buf head;       /* what is before the record, with its mark */
	json_t *record; /* server, definition, body, entries: [{client, file, list, name, was, is, undone}] */
	struct buf body; /* what the daemon reads */
	bool is_new;     /* made by this run */
};

struct adopted_list {
	struct adopted *items;
	size_t count;
	struct config_problems
		broken; /* files with a record that cannot be read, or the folder, each with the reason */
};

/* What the server is, whatever its name, in YAML: equal texts are the same server. The server is enabled. Appends to out. */
void adopted_define(const struct tree *server, struct buf *out);

/* All that are there. A file without a record is none. */
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
/* Forgets entry number i: no client's file has had it. */
void adopted_forget(struct adopted *server, size_t i);
/* Entry number i has been put back. */
void adopted_set_undone(struct adopted *server, size_t i);
bool adopted_is_undone(const struct adopted *server, size_t i);
/* Whether it has an entry that has not been put back. */
bool adopted_is_used(const struct adopted *server);
json_t *adopted_entries(const struct adopted *server); /* borrowed */
/*
 * Writes the file unless it is as it should be, under the name that its entries demand; a new one without any is removed. *kept_r: somebody has changed the server in it, so
 * that the daemon goes on serving it. Returns 0 or -1: it was changed meanwhile, there is another one of that name, or it failed.
 */
int adopted_save(struct adopted *server, bool *kept_r, struct error *err) must_check;
