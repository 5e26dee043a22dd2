/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The approved definitions of the tools, prompts, resources and templates of one server, and of what
 * it says of itself. A
 * definition is approved by the operator, or by being part of the server's first complete list. A
 * definition that changes or appears later waits for the operator. It keeps waiting whatever other
 * lists contain, so what clients see does not depend on which list came last. Pure functions;
 * lists, logs and calls are handled by router/listing. mcpgated.yaml(5), SEC-65.
 *
 * 	first list: approved    later: new -> approved, or gone    approved -> changed -> approved
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "policy/permissions.h"

/* Besides the kinds of items: what a server says of itself, under the names of its members. */
#define PIN_SERVER ((enum permission_kind)PERMISSION_KINDS)
#define PIN_KINDS (PERMISSION_KINDS + 1)

#define PIN_DIGEST_BYTES 32
#define PIN_NAME_BYTES_MAX 1024 /* of a folded name, and of a name as written */
#define PIN_TEXT_BYTES_MAX \
	((size_t)16 * 1024)     /* of a definition; of a longer one only the digest is kept */
#define PINS_MAX 4096           /* per server */
#define PINS_WITH_TEXT_MAX 1024 /* per server; for further pins only the digest is kept */
#define PINS_TEXT_BYTES_MAX \
	((size_t)2 * 1024 * 1024)                /* of one server; beyond, only digests are kept */
#define PINS_NAME_BYTES_MAX ((size_t)512 * 1024) /* all names of one server, as written */
#define PINS_PAGES_MAX 256 /* pages after which an unfinished first list counts as complete */

/* The operator's setting. */
enum pin_mode { PIN_OFF, PIN_WARN, PIN_ENFORCE };

enum pin_state {
	PIN_UNSEEN,   /* it does not exist */
	PIN_NEW,      /* appeared after the first list; pending */
	PIN_CHANGED,  /* a different definition is pending */
	PIN_APPROVED, /* only the approved definition was seen */
};

struct pin_definition {
	unsigned char digest[PIN_DIGEST_BYTES];
	struct slice text; /* canonical JSON; empty: not kept */
};

struct pin {
	struct map_link by_name;
	struct list link;
	uint64_t number; /* of this process, for the operator */
	enum permission_kind kind;
	enum pin_state state;
	struct slice name;              /* as first written */
	struct slice folded;            /* as permission_fold */
	struct pin_definition approved; /* not for PIN_NEW */
	struct pin_definition waiting;  /* the last one seen, for PIN_NEW and PIN_CHANGED */
	uint64_t look;                  /* number of the look in which it was last seen */
	bool is_gone;                   /* missing from the last complete list */
};

/* All zeros except for what pins_init sets. */
struct pins {
	struct list all; /* in order of arrival */
	struct map by_name;
	uint64_t seed;
	uint64_t numbers;
	size_t count;
	size_t waiting; /* number of pins that are pending */
	size_t with_text;
	size_t text_bytes;
	size_t name_bytes;
	/* a list of this kind was seen completely: later items are new */
	bool is_known[PIN_KINDS];
	uint64_t next_page[PIN_KINDS]; /* until then: the page to continue with */
	/* until then: the number of pages that had a successor */
	unsigned int pages[PIN_KINDS];
	uint64_t look; /* number of the current look */
	/* number of the operator's decisions: cached lists are outdated after each */
	uint64_t decisions;
	/* Nobody decides: what was seen last is approved. */
	bool follows;
	uint64_t changes; /* number of changes that need to be saved */
};

/* An item of a list. */
struct pin_item {
	enum permission_kind kind;
	struct slice name;
	struct slice folded;
	struct pin_definition definition;
};

/* How an item relates to what was known. */
enum pin_news {
	PIN_SAME,      /* nothing new */
	PIN_FIRST,     /* part of the first list */
	PIN_CAME,      /* new */
	PIN_DIFFERS,   /* its definition differs from the last one seen */
	PIN_CAME_BACK, /* it was gone; its definition is the same */
	PIN_NO_ROOM,   /* too many pins or too long names: it is not remembered */
};

void pins_init(struct pins *pins);
void pins_fini(struct pins *pins);
/* Leaves them as after pins_init, but for the number of decisions. */
void pins_forget(struct pins *pins);

/*
 * Some of what was approved has been lost: no list is the first one any more, and whatever it shows
 * that is not known waits for the operator.
 */
void pins_lose(struct pins *pins);

/* A look at a list or a page of one: begin it, note each item, then end it. */
void pins_begin_look(struct pins *pins);
enum pin_news pins_note(struct pins *pins, const struct pin_item *item);
/*
 * Page `page` (0: the first) has ended and continues at `next`; 0: it was the last one, so later
 * items are new. Only pages that follow each other from the first one complete the list; other
 * pages that a client requests do not. If the complete list was in this look, pins_take_gone finds
 * the items that are missing now: the next one after `after` (NULL: the first), each once, then
 * NULL.
 */
void pins_end_page(struct pins *pins, enum permission_kind kind, uint64_t page, uint64_t next);
struct pin *pins_take_gone(struct pins *pins, enum permission_kind kind, const struct pin *after);

/* NULL if there is none. */
struct pin *pins_find(const struct pins *pins, enum permission_kind kind, struct slice folded);
/* The state of the pin with this name, given as JSON and folded here. */
enum pin_state pins_state_json(const struct pins *pins, enum permission_kind kind,
			       struct json name);

/*
 * The operator's decision on a pending pin. Rejecting a new one forgets it: it is new again when it
 * is seen again.
 */
void pins_approve(struct pins *pins, struct pin *pin);
void pins_reject(struct pins *pins, struct pin *pin);

/* For people: "tool", "new" and so on. */
const char *pin_kind_name(enum permission_kind kind);
const char *pin_state_name(enum pin_state state);

/* ---- pins as text ---- */

/*
 * Pins as text, for storage. Others may have written the text: it is parsed like any untrusted
 * input. SEC-68
 *
 * 	SERVER known tool
 * 	SERVER tool changed NAME DIGEST TEXT DIGEST TEXT
 *
 * Fields are separated by tabs. NAME and digests are hexadecimal. The first definition is the
 * approved one, the second the pending one; if one does not exist or its text is not kept, its
 * field is empty.
 */

/* Appends the lines of a server. */
void pin_record_write(const struct pins *pins, const char *server, bool with_texts,
		      struct buf *out);
/*
 * Reads such a line, without the name of its server and the first tab. Returns 0, or -1 if it is
 * invalid or there is no room.
 */
int pin_record_read(struct pins *pins, struct slice line) must_check;
