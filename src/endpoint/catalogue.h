/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an endpoint over several servers shows, by the names that its clients see: which leg each
 * tool, prompt, resource and template belongs to. Names of tools and prompts get the leg's prefix;
 * those that would not fit [A-Za-z0-9_-]{1,64} are shortened, with a hash at the end. Two items with
 * one name: neither can be reached. Of two legs with the same URI, the first has it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

enum catalogue_kind {
	CATALOGUE_TOOLS,
	CATALOGUE_PROMPTS,
	CATALOGUE_RESOURCES,
	CATALOGUE_TEMPLATES,
	CATALOGUE_TASKS,
	CATALOGUE_KINDS
};

#define CATALOGUE_BYTES_MAX (12 * 1024 * 1024)
#define CATALOGUE_NAME_MAX 64 /* bytes of a name that is shown */

/* Those of all clients: they share a bound. */
struct catalogues {
	struct list all;
	size_t bytes;
};

/* All items of one kind. Zeroed, and then catalogue_clear, before its first use. */
struct catalogue {
	struct map by_name;
	struct list items;
	size_t doubles;            /* items that cannot be reached, or are left out */
	bool is_known;             /* it shows what the legs have now */
	bool is_forgotten;         /* to make room for others; cleared when it is kept again */
	struct catalogues *shared; /* NULL: it is not kept */
	struct list link;          /* of shared->all */
	size_t bytes;              /* counted there */
};

struct catalogue_item {
	struct map_link by_name;
	struct list link;
	size_t leg;
	bool is_double; /* there is another one of this name */
	bool is_plain;  /* the prefix, and its own name behind it */
	/* As its server wrote it, and where its name or URI is there; borrowed, for catalogue_append alone. */
	struct slice json, key;
	struct slice real; /* its name there, or its URI */
	struct slice shown;
	char text[];
};

/* Appends the name under which a tool or prompt of the leg with this prefix is shown. */
void catalogue_show_name(struct buf *out, struct slice prefix, struct slice name);

/* Whether it may be a name that was shortened, which only the list can tell. shown: NUL-terminated */
bool catalogue_may_be_short(struct slice shown);

void catalogues_init(struct catalogues *catalogues);
/* Forgets all items. */
void catalogue_clear(struct catalogue *catalogue);
/* Forgets those beyond CATALOGUE_BYTES_MAX, as catalogue_keep asks. */
void catalogue_trim(struct catalogue *catalogue);
/*
 * Replaces all items by those of `from`, which were appended and trimmed, and counts them among those of
 * all clients. If that is too much, the largest of the others are forgotten. So one list must not fill it:
 * what is beyond CATALOGUE_BYTES_MAX, some 80,000 items, is listed, but not found by its name or URI.
 * What it had, and what is forgotten, is then in `left`, for catalogue_clear: that may take long.
 */
void catalogue_keep(struct catalogue *catalogue, struct catalogue *from,
		    struct catalogues *catalogues, struct catalogue *left);
/*
 * Adds an item of a list (JSON text, which is borrowed until catalogue_append). One without a name
 * or URI, which nobody could use, is left out.
 */
void catalogue_add(struct catalogue *catalogue, enum catalogue_kind kind, size_t leg,
		   struct slice prefix, struct slice json);
/* Adds all items of a page of the list: a response, borrowed likewise. */
void catalogue_add_page(struct catalogue *catalogue, enum catalogue_kind kind, size_t leg,
			struct slice prefix, struct slice response);
/* Appends the items, without those left out, as the elements of an array, with their shown names. */
void catalogue_append(const struct catalogue *catalogue, enum catalogue_kind kind, struct buf *out);
/* Forgets what can be found out from the shown names alone. */
void catalogue_forget_plain(struct catalogue *catalogue);
/* The item with this shown name or URI, even if it cannot be reached; NULL: there is none. */
const struct catalogue_item *catalogue_find(const struct catalogue *catalogue, struct slice shown);
/*
 * The template that fits the URI: everything up to its first variable is the URI's beginning. Of
 * several the longest such text counts, and then the first. NULL: none.
 */
const struct catalogue_item *catalogue_find_template(const struct catalogue *catalogue,
						     struct slice uri);
/* The member of a list's result that has the items, like "tools". */
struct slice catalogue_member(enum catalogue_kind kind);
