/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions are written as indented JSON, and compared line by line: what is the same at both ends is left out. */
#include "ctl/pins.h"

#include <stdlib.h>
#include <string.h>

#include "auth/document.h"
#include "base/mem.h"
#include "base/slice.h"
#include "ctl/escape.h"

#define CONTEXT_LINES 2

bool pins_is_wanted(const json_t *pin, const char *name)
{
	return document_text(pin, "digest").n > 0 &&
	       (name == NULL || slice_is_equal(document_text(pin, "name"), slice_str(name)));
}

/* ---- the difference ---- */

/* To be freed. NULL: it is not kept. */
static char *write_indented(struct slice definition)
{
	json_t *value =
		definition.n > 0 ?
			json_loadb(definition.p, definition.n,
				   JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES,
				   NULL) :
			NULL;
	char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY);

	json_decref(value);
	return text != NULL || definition.n == 0 ? text : mem_dup_slice(definition);
}

/* How many lines both begin with. */
static size_t count_same(struct slice a, struct slice b)
{
	size_t count = 0;

	while (a.p != NULL && b.p != NULL &&
	       slice_is_equal(slice_cut(&a, '\n'), slice_cut(&b, '\n')))
		count++;
	return count;
}

static size_t count_lines(struct slice text)
{
	size_t count = 0;

	for (; text.p != NULL; count++)
		slice_cut(&text, '\n');
	return count;
}

static struct slice skip_lines(struct slice text, size_t count)
{
	for (; count > 0; count--)
		slice_cut(&text, '\n');
	return text;
}

/* How many they end with, of those behind the first `from`. */
static size_t count_same_at_end(struct slice a, struct slice b, size_t from)
{
	size_t lines_a = count_lines(a), lines_b = count_lines(b);
	size_t most = (lines_a < lines_b ? lines_a : lines_b) - from;
	size_t same = 0;

	a = skip_lines(a, lines_a - most);
	b = skip_lines(b, lines_b - most);
	for (; most > 0; most--)
		same = slice_is_equal(slice_cut(&a, '\n'), slice_cut(&b, '\n')) ? same + 1 : 0;
	return same;
}

static void print_lines(const char *before, struct slice text, size_t from, size_t count)
{
	for (text = skip_lines(text, from); text.p != NULL && count > 0; count--)
		escape_print(stdout, before, slice_cut(&text, '\n'), "\t");
}

static void print_difference(struct slice old, struct slice new)
{
	size_t head = count_same(old, new);
	size_t tail = count_same_at_end(old, new, head);
	size_t context = head < CONTEXT_LINES ? head : CONTEXT_LINES;

	print_lines("      ", old, head - context, context);
	print_lines("    - ", old, head, count_lines(old) - head - tail);
	print_lines("    + ", new, head, count_lines(new) - head - tail);
	print_lines("      ", new, count_lines(new) - tail,
		    tail < CONTEXT_LINES ? tail : CONTEXT_LINES);
}

/* As they are, where no difference can be seen otherwise (in the last of many digits, say). */
static void write_both(const json_t *pin, char **old_r, char **new_r)
{
	*old_r = write_indented(document_text(pin, "approved"));
	*new_r = write_indented(document_text(pin, "waiting"));
	if (*old_r == NULL || *new_r == NULL || strcmp(*old_r, *new_r) != 0)
		return;
	free(*old_r);
	free(*new_r);
	*old_r = mem_dup_slice(document_text(pin, "approved"));
	*new_r = mem_dup_slice(document_text(pin, "waiting"));
}

void pins_show_difference(const json_t *pin)
{
	char *old, *new;
	bool is_new = slice_is_equal(document_text(pin, "state"), SLICE_LIT("new"));
	bool is_withheld =
		slice_is_equal(document_text(pin, "until_approved"), SLICE_LIT("withheld"));
	struct buf head = { 0 };

	write_both(pin, &old, &new);
	buf_printf(&head, "%.*s: the %.*s %.*s is %.*s, and %s",
		   SLICE_ARG(document_text(pin, "server")), SLICE_ARG(document_text(pin, "kind")),
		   SLICE_ARG(document_text(pin, "name")), SLICE_ARG(document_text(pin, "state")),
		   is_withheld ? "withheld until it is approved" : "passed on (pin: warn)");
	escape_print(stdout, "", buf_slice(&head), "");
	if (new == NULL)
		puts("    (its definition is too long to be kept: only its digest is)");
	else if (is_new)
		print_lines("    + ", slice_str(new), 0, SIZE_MAX);
	else if (old == NULL)
		print_lines("    ? ", slice_str(new), 0, SIZE_MAX);
	else
		print_difference(slice_str(old), slice_str(new));
	buf_fini(&head);
	free(old);
	free(new);
}

/* ---- the report ---- */

static bool is_gone(const json_t *pin)
{
	return json_is_true(json_object_get(pin, "gone"));
}

static void print_gone(const json_t *pin)
{
	struct buf text = { 0 };

	buf_printf(&text, "%.*s: the %.*s %.*s is gone", SLICE_ARG(document_text(pin, "server")),
		   SLICE_ARG(document_text(pin, "kind")), SLICE_ARG(document_text(pin, "name")));
	escape_print(stdout, "", buf_slice(&text), "");
	buf_fini(&text);
}

static void print_shadow(const json_t *shadow)
{
	bool is_mention = slice_is_equal(document_text(shadow, "by"), SLICE_LIT("description"));
	struct buf text = { 0 };

	buf_printf(&text, "%.*s: the %.*s %.*s %s the tool %.*s of %.*s",
		   SLICE_ARG(document_text(shadow, "server")),
		   SLICE_ARG(document_text(shadow, "kind")),
		   SLICE_ARG(document_text(shadow, "name")),
		   is_mention ? "has a description that names" : "has the name of",
		   SLICE_ARG(document_text(shadow, "tool")),
		   SLICE_ARG(document_text(shadow, "other")));
	escape_print(stdout, "", buf_slice(&text), "");
	buf_fini(&text);
}

void pins_show(const json_t *report)
{
	const json_t *shadows = json_object_get(report, "shadows");
	const json_t *pins = json_object_get(report, "pins");
	size_t waiting = 0;

	for (size_t i = 0; i < json_array_size(pins); i++) {
		const json_t *pin = json_array_get(pins, i);

		if (is_gone(pin))
			print_gone(pin);
		if (!pins_is_wanted(pin, NULL))
			continue;
		pins_show_difference(pin);
		waiting++;
	}
	for (size_t i = 0; i < json_array_size(shadows); i++)
		print_shadow(json_array_get(shadows, i));
	printf("%zu definition%s known; ", json_array_size(pins),
	       json_array_size(pins) == 1 ? " is" : "s are");
	if (waiting > 0)
		printf("%zu wait%s for: mcpgatectl pins approve SERVER NAME\n", waiting,
		       waiting == 1 ? "s" : "");
	else
		puts("none is waiting");
}
