/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/shown.h"

#include "base/buf.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"

/* The value for this name; NULL: there is none. */
static const struct slice *find_value(const struct slice_map *map, struct slice name)
{
	for (size_t i = 0; i < map->count; i++)
		if (slice_is_equal(map->items[i].name, name))
			return map->items[i].values.items;
	return NULL;
}

bool shown_differs(const struct shown *shown, enum permission_kind kind)
{
	const struct shown_items *items = &shown->kinds[kind];

	CHECK(kind < PERMISSION_KINDS);
	return items->names.count > 0 || items->descriptions.count > 0 ||
	       items->annotations.count > 0;
}

/* ---- names ---- */

/* The real name of what is shown by this one; NULL: nothing is. */
static const struct slice *find_renamed(const struct shown *shown, enum permission_kind kind,
					struct slice name)
{
	const struct slice_map *names = &shown->kinds[kind].names;

	for (size_t i = 0; i < names->count; i++)
		if (slice_is_equal(names->items[i].values.items[0], name))
			return &names->items[i].name;
	return NULL;
}

/*
 * Whether a server that ignores case and spaces could take `name` for what is shown by another name, or a client for
 * what is shown.
 */
static bool is_taken(const struct shown *shown, enum permission_kind kind, struct slice name)
{
	const struct slice_map *names = &shown->kinds[kind].names;

	name = slice_trim(name);
	for (size_t i = 0; i < names->count; i++)
		if (slice_is_equal_nocase(names->items[i].name, name) ||
		    slice_is_equal_nocase(names->items[i].values.items[0], name))
			return true;
	return false;
}

bool shown_is_reachable(const struct shown *shown, enum permission_kind kind, struct slice name)
{
	return find_value(&shown->kinds[kind].names, name) != NULL || !is_taken(shown, kind, name);
}

bool shown_find_real(const struct shown *shown, enum permission_kind kind, struct slice name,
		     struct slice *real_r)
{
	const struct slice *real = find_renamed(shown, kind, name);

	*real_r = real != NULL ? *real : name;
	return real != NULL || !is_taken(shown, kind, name);
}

/* ---- lists ---- */

static void copy_member(struct buf *out, const struct scan_cursor *member)
{
	write_comma(out);
	buf_append_slice(out, slice_between(member->name.p - 1,
					    member->value.text.p + member->value.text.n));
}

/* The server's annotations, and the operator's in their place. */
static void append_annotations(struct buf *out, struct slice annotations, struct json own)
{
	write_member(out, SLICE_LIT("annotations"), SLICE_LIT("{"));
	SCAN_MEMBERS(member, own.text)
		if (scan_member(annotations, member.name).type == JSON_ABSENT)
			copy_member(out, &member);
	SCAN_MEMBERS(member, annotations)
		copy_member(out, &member);
	buf_append_char(out, '}');
}

bool shown_append(const struct shown *shown, enum permission_kind kind, struct slice text,
		  struct buf *out)
{
	const struct shown_items *items = &shown->kinds[kind];
	/* NULL: as it is */
	const struct slice *shown_name = NULL, *description = NULL, *annotations = NULL;
	at_end(buf_fini) struct buf room = { 0 };
	struct slice name;
	bool is_named = scan_read_string(scan_member(text, SLICE_LIT("name")), &room, &name) == 0;
	bool is_reachable = !is_named || shown_is_reachable(shown, kind, name);

	if (is_named) {
		shown_name = find_value(&items->names, name);
		description = find_value(&items->descriptions, name);
		annotations = find_value(&items->annotations, name);
	}
	if (!is_reachable)
		return false;
	if (shown_name == NULL && description == NULL && annotations == NULL) {
		buf_append_slice(out, text);
		return true;
	}
	buf_append_char(out, '{');
	if (shown_name != NULL) {
		write_name(out, SLICE_LIT("name"));
		write_string(out, *shown_name);
	}
	if (description != NULL) {
		write_name(out, SLICE_LIT("description"));
		write_string(out, *description);
	}
	if (annotations != NULL)
		append_annotations(out, *annotations, scan_member(text, SLICE_LIT("annotations")));
	SCAN_MEMBERS(member, text)
		if ((shown_name == NULL || !slice_is_equal(member.name, SLICE_LIT("name"))) &&
		    (description == NULL ||
		     !slice_is_equal(member.name, SLICE_LIT("description"))) &&
		    (annotations == NULL || !slice_is_equal(member.name, SLICE_LIT("annotations"))))
			copy_member(out, &member);
	buf_append_char(out, '}');
	return true;
}

/* ---- messages ---- */

struct taking {
	const struct shown *shown;
	struct buf *out;
	const char *done; /* the message is there up to here */
	bool is_unknown;  /* it has a name that nothing has */
};

static bool take_name(enum permission_kind kind, struct json name, void *arg)
{
	struct taking *taking = arg;
	at_end(buf_fini) struct buf room = { 0 };
	struct slice plain, real;

	if (scan_read_string(name, &room, &plain) < 0) {
		/* What a server makes of it is not known. */
		taking->is_unknown |= taking->shown->kinds[kind].names.count > 0;
	} else {
		taking->is_unknown |= !shown_find_real(taking->shown, kind, plain, &real);
		if (real.p != plain.p) {
			buf_append_slice(taking->out, slice_between(taking->done, name.text.p));
			write_string(taking->out, real);
			taking->done = name.text.p + name.text.n;
		}
	}
	return !taking->is_unknown;
}

const char *shown_take_message(const struct shown *shown, const struct envelope *env,
			       struct buf *out)
{
	struct taking taking = { shown, out, env->text.p, false };
	const char *what;

	if (!shown_differs(shown, PERMISSION_TOOL) && !shown_differs(shown, PERMISSION_PROMPT))
		return NULL;
	what = uses_visit(env, take_name, &taking);
	if (taking.done != env->text.p)
		buf_append_slice(out, slice_between(taking.done, env->text.p + env->text.n));
	return taking.is_unknown ? what : NULL;
}
