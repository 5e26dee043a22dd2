/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical JSON has neither tabs nor line ends. */
#include "policy/pin_record.h"

#include "base/text.h"

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

static int read_kind(struct slice word, enum permission_kind *kind_r)
{
	for (enum permission_kind kind = 0; kind < PIN_KINDS; kind++) {
		if (!slice_is_equal(word, slice_str(pin_kind_name(kind))))
			continue;
		*kind_r = kind;
		return 0;
	}
	return -1;
}

static int read_state(struct slice word, enum pin_state *state_r)
{
	for (enum pin_state state = PIN_NEW; state <= PIN_APPROVED; state++) {
		if (!slice_is_equal(word, slice_str(pin_state_name(state))))
			continue;
		*state_r = state;
		return 0;
	}
	return -1;
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
	struct pin pin = { .kind = kind };
	struct slice state = slice_cut(&rest, '\t');
	struct slice hex = slice_cut(&rest, '\t');
	char name[PIN_NAME_BYTES_MAX];
	struct buf folded = { 0 };
	int result = -1;

	pin.name = slice_of(name, hex.n / 2);
	if (read_state(state, &pin.state) == 0 && pin.name.n <= sizeof(name) &&
	    text_from_hex(hex, name, pin.name.n) == 0 &&
	    permission_fold(kind, pin.name, &folded) == NULL &&
	    read_definition(&rest, pin.state != PIN_NEW, &pin.approved) == 0 &&
	    read_definition(&rest, pin.state != PIN_APPROVED, &pin.waiting) == 0 &&
	    rest.p == NULL) {
		pin.folded = buf_slice(&folded);
		result = pins_restore(pins, &pin) ? 0 : -1;
	}
	buf_fini(&folded);
	return result;
}

int pin_record_read(struct pins *pins, struct slice line)
{
	struct slice word = slice_cut(&line, '\t');
	bool is_known = slice_is_equal(word, KNOWN);
	enum permission_kind kind;

	if (read_kind(is_known ? line : word, &kind) < 0)
		return -1;
	if (!is_known)
		return read_pin(pins, kind, line);
	pins->is_known[kind] = true;
	return 0;
}
