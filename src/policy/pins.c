/* SPDX-License-Identifier: Apache-2.0 */
/* Names are compared as permission_fold makes them, so a call means the same item as the list, however it is spelled. */
#include "policy/pins.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/scan.h"

const char *pin_kind_name(enum permission_kind kind)
{
	static const char *const names[] = {
		[PERMISSION_TOOL] = "tool",
		[PERMISSION_PROMPT] = "prompt",
		[PERMISSION_RESOURCE] = "resource",
		[PERMISSION_TEMPLATE] = "template",
		[PIN_SERVER] = "server",
	};

	CHECK((size_t)kind < ARRAY_LEN(names));
	return names[kind];
}

const char *pin_state_name(enum pin_state state)
{
	static const char *const names[] = {
		[PIN_UNSEEN] = "unseen",
		[PIN_NEW] = "new",
		[PIN_CHANGED] = "changed",
		[PIN_APPROVED] = "approved",
	};

	CHECK((size_t)state < ARRAY_LEN(names));
	return names[state];
}

/* ---- one pin ---- */

static bool is_same(const struct pin_definition *a, const struct pin_definition *b)
{
	return memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

static bool has_text(const struct pin *pin)
{
	return pin->approved.text.n > 0 || pin->waiting.text.n > 0;
}

static void drop_definition(struct pins *pins, struct pin_definition *definition)
{
	CHECK(pins->text_bytes >= definition->text.n);
	pins->text_bytes -= definition->text.n;
	free((char *)(uintptr_t)definition->text.p);
	*definition = (struct pin_definition){ .text = { NULL, 0 } };
}

/* Its text is copied if there is room for it. */
static void take_definition(struct pins *pins, struct pin *pin, struct pin_definition *to,
			    const struct pin_definition *from)
{
	bool has_room = from->text.n <= PIN_TEXT_BYTES_MAX &&
			(has_text(pin) || pins->with_text < PINS_WITH_TEXT_MAX);
	bool had_text = has_text(pin);

	drop_definition(pins, to);
	memcpy(to->digest, from->digest, sizeof(to->digest));
	if (from->text.n > 0 && has_room &&
	    pins->text_bytes + from->text.n <= PINS_TEXT_BYTES_MAX) {
		to->text = slice_of(mem_dup_slice(from->text), from->text.n);
		pins->text_bytes += from->text.n;
	}
	pins->with_text += (size_t)has_text(pin) - (size_t)had_text;
}

/* Nothing else changes the state. */
static void pin_set_state(struct pins *pins, struct pin *pin, enum pin_state state)
{
	static const unsigned int next_states[] = {
		[PIN_UNSEEN] = 1u << PIN_NEW | 1u << PIN_CHANGED | 1u << PIN_APPROVED,
		[PIN_NEW] = 1u << PIN_APPROVED | 1u << PIN_UNSEEN,
		[PIN_CHANGED] = 1u << PIN_APPROVED | 1u << PIN_UNSEEN,
		[PIN_APPROVED] = 1u << PIN_CHANGED | 1u << PIN_UNSEEN,
	};
	bool waited = pin->state == PIN_NEW || pin->state == PIN_CHANGED;
	bool waits = state == PIN_NEW || state == PIN_CHANGED;

	CHECK(next_states[pin->state] & 1u << state);
	pins->waiting += (size_t)waits - (size_t)waited;
	pin->state = state;
	pins->changes++;
}

static uint64_t pins_key_of(const struct pins *pins, enum permission_kind kind, struct slice folded)
{
	return text_hash(pins->seed + (uint64_t)kind, folded);
}

static struct pin *pin_new(struct pins *pins, enum permission_kind kind, struct slice name,
			   struct slice folded)
{
	struct pin *pin;
	char *at;

	if (pins->count >= PINS_MAX || name.n > PIN_NAME_BYTES_MAX || folded.n == 0 ||
	    folded.n > PIN_NAME_BYTES_MAX || pins->name_bytes + name.n > PINS_NAME_BYTES_MAX)
		return NULL;
	pin = mem_zalloc(sizeof(*pin) + name.n + folded.n);
	at = (char *)(pin + 1);
	pin->number = ++pins->numbers;
	pin->kind = kind;
	pin->name = mem_put_slice(&at, name);
	pin->folded = mem_put_slice(&at, folded);
	map_insert_link(&pins->by_name, pins_key_of(pins, kind, folded), &pin->by_name);
	list_init(&pin->link);
	list_append(&pins->all, &pin->link);
	pins->count++;
	pins->name_bytes += name.n;
	return pin;
}

static void pin_free(struct pins *pins, struct pin *pin)
{
	pins->with_text -= has_text(pin);
	drop_definition(pins, &pin->approved);
	drop_definition(pins, &pin->waiting);
	pin_set_state(pins, pin, PIN_UNSEEN);
	map_remove_link(&pins->by_name, &pin->by_name);
	list_remove(&pin->link);
	pins->count--;
	pins->name_bytes -= pin->name.n;
	free(pin);
}

void pins_init(struct pins *pins)
{
	*pins = (struct pins){ .count = 0 };
	list_init(&pins->all);
	random_bytes(&pins->seed, sizeof(pins->seed));
}

void pins_fini(struct pins *pins)
{
	LIST_FOREACH_SAFE(node, &pins->all)
		pin_free(pins, container_of(node, struct pin, link));
	CHECK(pins->count == 0 && pins->waiting == 0 && pins->with_text == 0);
	CHECK(pins->text_bytes == 0 && pins->name_bytes == 0);
	map_fini(&pins->by_name);
}

void pins_lose(struct pins *pins)
{
	for (enum permission_kind kind = 0; kind < PIN_KINDS; kind++)
		pins->is_known[kind] = true;
}

void pins_forget(struct pins *pins)
{
	uint64_t decisions = pins->decisions;

	pins_fini(pins);
	pins_init(pins);
	pins->decisions = decisions;
}

/* ---- looking ---- */

struct pin *pins_find(const struct pins *pins, enum permission_kind kind, struct slice folded)
{
	for (struct map_link *at = map_find_link(&pins->by_name, pins_key_of(pins, kind, folded));
	     at != NULL; at = at->next) {
		struct pin *pin = container_of(at, struct pin, by_name);

		if (pin->kind == kind && slice_is_equal(pin->folded, folded))
			return pin;
	}
	return NULL;
}

enum pin_state pins_state_json(const struct pins *pins, enum permission_kind kind, struct json name)
{
	at_end(buf_fini) struct buf decoded = { 0 }, folded = { 0 };
	const struct pin *pin = NULL;
	struct slice plain, form;

	if (scan_read_string(name, &decoded, &plain) == 0 &&
	    permission_read_form(kind, plain, &folded, &form) == NULL)
		pin = pins_find(pins, kind, form);
	return pin != NULL ? pin->state : PIN_UNSEEN;
}

void pins_begin_look(struct pins *pins)
{
	pins->look++;
}

static enum pin_news note_first(struct pins *pins, const struct pin_item *item)
{
	bool is_new = pins->is_known[item->kind] && !pins->follows;
	struct pin *pin = pin_new(pins, item->kind, item->name, item->folded);

	if (pin == NULL)
		return PIN_NO_ROOM;
	pin->look = pins->look;
	take_definition(pins, pin, is_new ? &pin->waiting : &pin->approved, &item->definition);
	pin_set_state(pins, pin, is_new ? PIN_NEW : PIN_APPROVED);
	return is_new ? PIN_CAME : PIN_FIRST;
}

/* A definition that does not wait, and is not the approved one. */
static enum pin_news note_other(struct pins *pins, struct pin *pin,
				const struct pin_definition *definition)
{
	take_definition(pins, pin, &pin->waiting, definition);
	if (pin->state == PIN_APPROVED)
		pin_set_state(pins, pin, PIN_CHANGED);
	pins->changes++;
	return PIN_DIFFERS;
}

enum pin_news pins_note(struct pins *pins, const struct pin_item *item)
{
	const struct pin_definition *definition = &item->definition;
	struct pin *pin = pins_find(pins, item->kind, item->folded);
	bool was_gone;

	CHECK(item->kind < PIN_KINDS);
	if (pin == NULL)
		return note_first(pins, item);
	if (pins->follows)
		take_definition(pins, pin, &pin->approved, definition);
	was_gone = pin->is_gone;
	pin->look = pins->look;
	pin->is_gone = false;
	if ((pin->state == PIN_NEW || !is_same(definition, &pin->approved)) &&
	    (pin->state == PIN_APPROVED || !is_same(definition, &pin->waiting)))
		return note_other(pins, pin, definition);
	return was_gone ? PIN_CAME_BACK : PIN_SAME;
}

void pins_end_page(struct pins *pins, enum permission_kind kind, uint64_t page, uint64_t next)
{
	if (pins->is_known[kind] || (page != 0 && page != pins->next_page[kind]))
		return;
	pins->next_page[kind] = next;
	if (next != 0 && ++pins->pages[kind] < PINS_PAGES_MAX)
		return;
	pins->is_known[kind] = true;
	pins->changes++;
}

struct pin *pins_take_gone(struct pins *pins, enum permission_kind kind, const struct pin *after)
{
	struct list *node = after != NULL ? after->link.next : pins->all.next;

	for (; node != &pins->all; node = node->next) {
		struct pin *pin = container_of(node, struct pin, link);

		if (pin->kind != kind || pin->is_gone || pin->look == pins->look)
			continue;
		pin->is_gone = true;
		return pin;
	}
	return NULL;
}

/* ---- deciding ---- */

void pins_approve(struct pins *pins, struct pin *pin)
{
	CHECK(pin->state == PIN_NEW || pin->state == PIN_CHANGED);
	pins->with_text -= has_text(pin);
	drop_definition(pins, &pin->approved);
	pin->approved = pin->waiting;
	pin->waiting = (struct pin_definition){ .text = { NULL, 0 } };
	pins->with_text += has_text(pin);
	pin_set_state(pins, pin, PIN_APPROVED);
	pins->decisions++;
}

void pins_reject(struct pins *pins, struct pin *pin)
{
	CHECK(pin->state == PIN_NEW || pin->state == PIN_CHANGED);
	pins->decisions++;
	if (pin->state == PIN_NEW) {
		pin_free(pins, pin);
		return;
	}
	pins->with_text -= has_text(pin);
	drop_definition(pins, &pin->waiting);
	pins->with_text += has_text(pin);
	pin_set_state(pins, pin, PIN_APPROVED);
}

/* Adds a stored pin. Returns false if there is no room or the name exists already. */
static bool pins_restore(struct pins *pins, const struct pin *from)
{
	struct pin *pin = pins_find(pins, from->kind, from->folded) == NULL ?
				  pin_new(pins, from->kind, from->name, from->folded) :
				  NULL;

	if (pin == NULL)
		return false;
	if (from->state != PIN_NEW)
		take_definition(pins, pin, &pin->approved, &from->approved);
	if (from->state != PIN_APPROVED)
		take_definition(pins, pin, &pin->waiting, &from->waiting);
	pin_set_state(pins, pin, from->state);
	return true;
}

/* ---- pins as text ---- */

/* Canonical JSON has neither tabs nor line ends. */

#define KNOWN SLICE_LIT("known")

/* ---- writing ---- */

static void append_hex(struct buf *out, const void *data, size_t size)
{
	text_to_hex(data, size, buf_reserve(out, size * 2 + 1));
	out->len += size * 2;
}

static void append_definition(struct buf *out, const struct pin_definition *definition,
			      bool is_there, bool with_text)
{
	buf_append_char(out, '\t');
	if (is_there)
		append_hex(out, definition->digest, sizeof(definition->digest));
	buf_append_char(out, '\t');
	if (is_there && with_text)
		buf_append_slice(out, definition->text);
}

static void append_pin(struct buf *out, const char *server, const struct pin *pin, bool with_text)
{
	buf_printf(out, "%s\t%s\t%s\t", server, pin_kind_name(pin->kind),
		   pin_state_name(pin->state));
	append_hex(out, pin->name.p, pin->name.n);
	append_definition(out, &pin->approved, pin->state != PIN_NEW, with_text);
	append_definition(out, &pin->waiting, pin->state != PIN_APPROVED, with_text);
	buf_append_char(out, '\n');
}

void pin_record_write(const struct pins *pins, const char *server, bool with_texts, struct buf *out)
{
	for (enum permission_kind kind = 0; kind < PIN_KINDS; kind++)
		if (pins->is_known[kind])
			buf_printf(out, "%s\tknown\t%s\n", server, pin_kind_name(kind));
	LIST_FOREACH(node, &pins->all)
		append_pin(out, server, container_of(node, struct pin, link), with_texts);
}

/* ---- reading ---- */

static enum permission_kind read_kind(struct slice word)
{
	enum permission_kind kind = 0;

	while (kind < PIN_KINDS && !slice_is_equal(word, slice_str(pin_kind_name(kind))))
		kind++;
	return kind;
}

static enum pin_state pins_read_state(struct slice word)
{
	enum pin_state state = PIN_APPROVED;

	while (state > PIN_UNSEEN && !slice_is_equal(word, slice_str(pin_state_name(state))))
		state--;
	return state;
}

static int read_definition(struct slice *rest, bool is_there, struct pin_definition *definition_r)
{
	struct slice digest = slice_cut(rest, '\t');

	definition_r->text = slice_cut(rest, '\t');
	if (!is_there)
		return digest.n == 0 && definition_r->text.n == 0 ? 0 : -1;
	return text_from_hex(digest, definition_r->digest, sizeof(definition_r->digest));
}

static int read_pin(struct pins *pins, enum permission_kind kind, struct slice rest)
{
	struct pin pin = { .kind = kind, .state = pins_read_state(slice_cut(&rest, '\t')) };
	struct slice hex = slice_cut(&rest, '\t');
	char name[PIN_NAME_BYTES_MAX];
	at_end(buf_fini) struct buf folded = { 0 };
	int result = -1;

	pin.name = slice_of(name, hex.n / 2);
	if (pin.state != PIN_UNSEEN && pin.name.n <= sizeof(name) &&
	    text_from_hex(hex, name, pin.name.n) == 0 &&
	    permission_fold(kind, pin.name, &folded) == NULL &&
	    read_definition(&rest, pin.state != PIN_NEW, &pin.approved) == 0 &&
	    read_definition(&rest, pin.state != PIN_APPROVED, &pin.waiting) == 0 &&
	    rest.p == NULL) {
		pin.folded = buf_slice(&folded);
		result = pins_restore(pins, &pin) ? 0 : -1;
	}
	return result;
}

int pin_record_read(struct pins *pins, struct slice line)
{
	struct slice word = slice_cut(&line, '\t');
	bool is_known = slice_is_equal(word, KNOWN);
	enum permission_kind kind = read_kind(is_known ? line : word);

	if (kind == PIN_KINDS)
		return -1;
	if (!is_known)
		return read_pin(pins, kind, line);
	pins->is_known[kind] = true;
	return 0;
}
