/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definitions of one server's tools, prompts, resources and templates as they were approved: by the operator, or by
 * being there when the server's list was first seen. What is another definition, or comes later, waits for the operator; that
 * stays so whatever other lists say, so what clients see does not depend on whose list came last. Pure: of lists, logs and
 * calls it knows nothing (router/pinning). product.md §5, SEC-65.
 *
 *	first list: approved      later: new -> approved, or gone      approved -> changed -> approved
 */
#ifndef MCPGATED_POLICY_PINS_H
#define MCPGATED_POLICY_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "policy/permissions.h"

struct json;

#define PIN_DIGEST_BYTES 32
#define PIN_NAME_BYTES_MAX 1024 /* of a folded name, and of one as it is written */
#define PIN_TEXT_BYTES_MAX \
	((size_t)16 * 1024)     /* of a definition; of a longer one the digest alone is kept */
#define PINS_MAX 4096           /* of one server */
#define PINS_WITH_TEXT_MAX 1024 /* of them; of the others the digest alone is kept */
#define PINS_TEXT_BYTES_MAX ((size_t)2 * 1024 * 1024) /* of all texts of one server, likewise */
#define PINS_NAME_BYTES_MAX \
	((size_t)512 * 1024) /* of all names of one server, as they are written */
#define PINS_PAGES_MAX \
	256 /* of lists that are not at their end: then the first one was long enough */

/* What the operator wants. */
enum pin_mode { PIN_OFF, PIN_WARN, PIN_ENFORCE };

enum pin_state {
	PIN_UNSEEN,   /* there is none */
	PIN_NEW,      /* it came after the first list, and waits */
	PIN_CHANGED,  /* another definition of it waits */
	PIN_APPROVED, /* none but the approved one was seen */
};

struct pin_definition {
	unsigned char digest[PIN_DIGEST_BYTES];
	struct slice text; /* canonical JSON; empty: it is not kept */
};

struct pin {
	struct map_link by_name;
	struct list link;
	uint64_t number; /* in this process, for the operator */
	enum permission_kind kind;
	enum pin_state state;
	struct slice name;              /* as it was written first */
	struct slice folded;            /* as permission_fold */
	struct pin_definition approved; /* not of PIN_NEW */
	struct pin_definition waiting;  /* the last that was seen; of PIN_NEW and PIN_CHANGED */
	uint64_t look;                  /* that it was seen in last */
	bool is_gone;                   /* the last whole list has not had it */
};

/* All zeros but what pins_init makes. */
struct pins {
	struct list all; /* in the order in which they came */
	struct map by_name;
	uint64_t seed;
	uint64_t numbers;
	size_t count;
	size_t waiting; /* of them, for the operator */
	size_t with_text;
	size_t text_bytes;
	size_t name_bytes;
	bool is_known
		[PERMISSION_KINDS]; /* a list of this kind was seen to its end: what comes now is new */
	uint64_t
		next_page[PERMISSION_KINDS]; /* until then: that goes on where the last has ended */
	unsigned int pages[PERMISSION_KINDS]; /* likewise: how many had another behind them */
	uint64_t look;                        /* the number of the present one */
	uint64_t decisions; /* of the operator: what was kept of lists is to be seen anew */
	uint64_t changes;   /* of anything that is to be remembered */
};

/* An item of a list. */
struct pin_item {
	enum permission_kind kind;
	struct slice name;
	struct slice folded;
	struct pin_definition definition;
};

/* What an item is, beside what was known. */
enum pin_news {
	PIN_SAME,      /* nothing that was not known */
	PIN_FIRST,     /* it belongs to the first list */
	PIN_CAME,      /* it is new */
	PIN_DIFFERS,   /* it has another definition than was seen before */
	PIN_CAME_BACK, /* it had gone; its definition is the same */
	PIN_NO_ROOM,   /* there are too many, or names are too long: it is not remembered */
};

void pins_init(struct pins *pins);
void pins_fini(struct pins *pins);

/* A list, or a page of one: begun, then each item, then its end. */
void pins_begin_look(struct pins *pins);
enum pin_news pins_note(struct pins *pins, const struct pin_item *item);
/*
 * `page` (0: the first) has ended, and the list goes on at `next`; 0: it goes no further, and what comes in later ones is new.
 * Only pages that follow each other from the first one lead to that end: another that a client has asked for does not. If the
 * whole list was in this look, pins_take_gone finds what is not in it any more: the next behind `after` (NULL: the first), each
 * once, and NULL at the end.
 */
void pins_end_page(struct pins *pins, enum permission_kind kind, uint64_t page, uint64_t next);
struct pin *pins_take_gone(struct pins *pins, enum permission_kind kind, const struct pin *after);

/* NULL: there is none. */
struct pin *pins_find(const struct pins *pins, enum permission_kind kind, struct slice folded);
/* The same by its name in a JSON value, as it is written, folded here. */
enum pin_state pins_state_json(const struct pins *pins, enum permission_kind kind,
			       struct json name);

/* The operator's word on one that waits. The second lets a new one be forgotten: it is new again when it is seen again. */
void pins_approve(struct pins *pins, struct pin *pin);
void pins_reject(struct pins *pins, struct pin *pin);
/* What was remembered, as it was. False: there is no room, or one of this name is there. */
bool pins_restore(struct pins *pins, const struct pin *pin) must_check;

/* For people: "tool", "new" and so on. */
const char *pin_kind_name(enum permission_kind kind);
const char *pin_state_name(enum pin_state state);

#endif
