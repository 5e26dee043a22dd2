/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What surrounds the items is taken from the first page, the items from all pages; byte for byte,
 * except for line breaks between tokens.
 */
#include "router/pages.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/pause.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/write.h"
#include "policy/name.h"
#include "router/text_set.h"

#define CURSOR_BYTES_MAX (64 * 1024)

static void pages_append(struct buf *out, struct slice text)
{
	splice_append(out, text, NULL, 0, SPLICE_ONE_LINE);
}

/* All of the first page but its items. */
static void take_frame(struct pages *pages, struct slice result)
{
	bool is_behind = false; /* behind the items */

	SCAN_MEMBERS(member, result) {
		bool is_items = slice_is_equal(member.name, pages->member);
		struct slice text = member.value.text;

		if (slice_is_equal(member.name, SLICE_LIT("nextCursor")) || (is_items && is_behind))
			continue;
		if (is_behind)
			buf_append_char(&pages->tail, ',');
		else
			buf_append_char(&pages->head, pages->head.len > 0 ? ',' : '{');
		pages_append(is_behind ? &pages->tail : &pages->head,
			     slice_between(member.name.p - 1,
					   is_items ? text.p + 1 : text.p + text.n));
		if (is_items)
			buf_append_char(&pages->tail, ']');
		is_behind |= is_items;
	}
}

/* The inside of an array, without white space around it. */
static struct slice pages_inside_of(struct slice array)
{
	const char *begin = array.p + 1;
	const char *end = array.p + array.n - 1;

	while (begin < end && strchr(" \t\r\n", *begin) != NULL)
		begin++;
	while (begin < end && strchr(" \t\r\n", end[-1]) != NULL)
		end--;
	return slice_between(begin, end);
}

static void take_items(struct pages *pages, struct slice items)
{
	struct buf *to = &pages->items[pages->filling];

	if (to->len > 0 && to->len + items.n > PAGES_JOINED_BYTES) {
		/* Any two neighbours together have more than PAGES_JOINED_BYTES. */
		CHECK(++pages->filling < PAGES_JOINED_MAX);
		pages->bytes += pages->head.len + pages->tail.len;
		to = &pages->items[pages->filling];
	}
	if (to->len > 0 && items.n > 0)
		buf_append_char(to, ',');
	pages_append(to, items);
	pages->bytes += items.n + 1;
}

enum pages_outcome pages_end(struct pages *pages)
{
	if (!pages->was_empty)
		return PAGES_UNFIT;
	CHECK(pages->whole_filling <= pages->filling);
	CHECK(pages->whole_length <= pages->items[pages->whole_filling].len);
	for (size_t i = pages->whole_filling + 1; i <= pages->filling; i++)
		buf_fini(&pages->items[i]);
	pages->filling = pages->whole_filling;
	pages->items[pages->filling].len = pages->whole_length;
	return PAGES_COMPLETE;
}

/*
 * A server that names the same page again and again would never come to an end. An empty cursor is
 * a cursor; but if what it leads to has one, too, the server meant that there is none, and has
 * begun from the start. UTIL-PAGE-01
 */
static enum pages_outcome take_cursor(struct pages *pages, struct json cursor)
{
	bool is_empty = cursor_is_empty(cursor);

	if (is_empty && pages->was_empty)
		return pages_end(pages);
	if (is_empty) {
		pages->was_empty = true;
		pages->whole_filling = pages->filling;
		pages->whole_length = pages->items[pages->filling].len;
	}
	if (cursor.type == JSON_ABSENT || cursor.type == JSON_NULL)
		return PAGES_COMPLETE;
	if (cursor.type != JSON_STRING || cursor.text.n > CURSOR_BYTES_MAX ||
	    (slice_is_equal(cursor.text, buf_slice(&pages->cursor)) && !pages->is_skipping) ||
	    pages->taken >= PAGES_TAKEN_MAX)
		return PAGES_UNFIT;
	pages->cursor.len = 0;
	buf_append_slice(&pages->cursor, cursor.text);
	return PAGES_MORE;
}

static void drop_items(struct pages *pages)
{
	for (size_t i = 0; i < PAGES_JOINED_MAX; i++)
		buf_fini(&pages->items[i]);
	buf_fini(&pages->head);
	buf_fini(&pages->tail);
	pages->bytes = 0;
}

enum pages_outcome pages_skip(struct pages *pages, struct slice result)
{
	drop_items(pages);
	pages->filling = pages->whole_filling = pages->whole_length = 0;
	pages->is_skipping = true;
	pages->taken += pages->taken == 0;
	return take_cursor(pages, scan_member(result, SLICE_LIT("nextCursor")));
}

enum pages_outcome pages_add(struct pages *pages, struct slice result)
{
	struct json items = scan_member(result, pages->member);

	if (pages->is_skipping) {
		pages->taken++;
		return take_cursor(pages, scan_member(result, SLICE_LIT("nextCursor")));
	}
	if (items.type != JSON_ARRAY || result.n > PAGES_BYTES_MAX ||
	    pages->bytes + items.text.n > PAGES_BYTES_MAX)
		return PAGES_UNFIT;
	if (pages->taken++ == 0) {
		take_frame(pages, result);
		pages->bytes = pages->head.len + pages->tail.len;
	}
	take_items(pages, pages_inside_of(items.text));
	if (pages->bytes > PAGES_BYTES_MAX)
		return PAGES_UNFIT;
	return take_cursor(pages, scan_member(result, SLICE_LIT("nextCursor")));
}

static uint64_t pages_number_of(const struct pages *pages)
{
	static uint64_t start;
	uint64_t number;

	if (start == 0)
		random_bytes(&start, sizeof(start));
	number = text_hash(start, buf_slice(&pages->head));
	for (size_t i = 0; i <= pages->filling; i++)
		number = text_hash(number, buf_slice(&pages->items[i]));
	return number;
}

/* NULL: it is not valid. */
static struct msg *page_new(struct slice text, const struct scan_limits *limits)
{
	struct envelope env;

	return scan_envelope(text, limits, SCAN_LENIENT, &env, NULL) == 0 ? msg_new_scanned(&env) :
									    NULL;
}

static struct msg *join(struct pages *pages, size_t i, const struct scan_limits *limits)
{
	at_end(buf_fini) struct buf text = { 0 };
	struct msg *msg;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":");
	buf_append_slice(&text, buf_slice(&pages->head));
	buf_append_slice(&text, buf_slice(&pages->items[i]));
	buf_fini(&pages->items[i]);
	buf_append_slice(&text, buf_slice(&pages->tail));
	if (i + 1 < pages->count) {
		buf_append_str(&text, ",\"nextCursor\":");
		cursor_append_page(&text, pages->number, i + 1);
	}
	buf_append_str(&text, "}}");
	msg = page_new(buf_slice(&text), limits);
	pages->bytes += text.len;
	return msg;
}

void pages_join(struct pages *pages, const struct scan_limits *limits)
{
	pages->count = pages->filling + 1;
	pages->bytes = pages->count * (sizeof(*pages->joined) + sizeof(struct envelope));
	pages->joined = mem_zalloc(pages->count * sizeof(*pages->joined));
	if (pages->count > 1)
		pages->number = pages_number_of(pages);
	for (size_t i = 0; i < pages->count; i++) {
		pages->joined[i] = join(pages, i, limits);
		pages->is_skipping |= pages->joined[i] == NULL;
	}
	buf_fini(&pages->head);
	buf_fini(&pages->tail);
	buf_fini(&pages->cursor);
}

int pages_set_error(struct pages *pages, struct slice text, const struct scan_limits *limits)
{
	pages_reset(pages);
	pages->count = 1;
	pages->joined = mem_zalloc(sizeof(*pages->joined));
	pages->joined[0] = page_new(text, limits);
	return pages->joined[0] != NULL ? 0 : -1;
}

/* ---- one item ---- */

struct naming {
	struct pages *pages;
	struct buf decoded;
	size_t room;
};

static int name_item(struct slice item, void *arg)
{
	struct naming *naming = arg;
	struct pages *pages = naming->pages;
	struct json written = scan_member(item, SLICE_LIT("name"));
	struct slice name;

	if (scan_read_string(written, &naming->decoded, &name) < 0)
		return 0;
	if (pages->named_count == naming->room) {
		naming->room = naming->room * 2 + 16;
		pages->named = mem_resize(pages->named, naming->room * sizeof(*pages->named));
	}
	pages->named[pages->named_count++] = (struct named_item){
		.by_name.key = text_set_key(name),
		.name = written,
		.schema = scan_member(item, SLICE_LIT("inputSchema")).text,
	};
	return pages->named_count < PAGES_NAMED_MAX ? 0 : -1;
}

/* Inserts the last item first, so that the first of several with one name is found. */
void pages_name_items(struct pages *pages)
{
	struct naming naming = { .pages = pages };

	CHECK(pages->named == NULL && pages->named_count == 0);
	for (size_t i = 0; i < pages->count; i++) {
		struct json items = scan_member(pages->joined[i]->env->result.text, pages->member);

		if (scan_array(items.text, SIZE_MAX, name_item, &naming, NULL) < 0)
			break;
	}
	for (size_t i = pages->named_count; i-- > 0; pause_point())
		map_insert_link(&pages->by_name, pages->named[i].by_name.key,
				&pages->named[i].by_name);
	pages->is_named = true;
	buf_fini(&naming.decoded);
}

struct named_item *pages_find(struct pages *pages, struct json name)
{
	struct slice wanted, has;
	at_end(buf_fini) struct buf wanted_room = { 0 }, has_room = { 0 };

	if (!pages->is_named)
		pages_name_items(pages);
	if (scan_read_string(name, &wanted_room, &wanted) < 0)
		return NULL;
	MAP_EACH(struct named_item, item, &pages->by_name, text_set_key(wanted), by_name) {
		CHECK(scan_read_string(item->name, &has_room, &has) == 0);
		if (slice_is_equal(has, wanted))
			return item;
	}
	return NULL;
}

void pages_reset(struct pages *pages)
{
	for (size_t i = 0; i < pages->count; i++)
		msg_unref(&pages->joined[i]);
	free(pages->joined);
	map_fini(&pages->by_name);
	free(pages->named);
	drop_items(pages);
	buf_fini(&pages->cursor);
	*pages = (struct pages){ .member = pages->member };
}

/* ---- cursor ---- */

/*
 * base64url of: a byte for the form, a number in eight bytes, and
 * 	CHILD   the number is the child's; its cursor as it wrote it
 * 	PAGE    the number is the list's; the page's number in eight bytes
 * It is neither secret nor signed: whoever makes one up asks their own child, or for their own
 * list, about something that is not known there. But the child's text becomes part of a line for
 * the child, so it must be the inside of a JSON string.
 */

enum form { FORM_CHILD = 1, FORM_PAGE = 2 };

#define HEAD_BYTES 9
#define PAGE_BYTES 8

static void pages_append_number(struct buf *out, uint64_t number)
{
	for (int shift = 56; shift >= 0; shift -= 8)
		buf_append_char(out, (char)(number >> shift & 0xff));
}

static uint64_t pages_read_number(const unsigned char *from)
{
	uint64_t number = 0;

	for (size_t i = 0; i < 8; i++)
		number = number << 8 | from[i];
	return number;
}

static void pages_append_string(struct buf *out, const struct buf *plain)
{
	char *to;

	buf_append_char(out, '"');
	to = buf_reserve(out, plain->len * 4 / 3 + 3);
	out->len += text_base64url(plain->data, plain->len, to);
	buf_append_char(out, '"');
}

bool cursor_is_empty(struct json cursor)
{
	return slice_is_equal(cursor.text, SLICE_LIT("\"\""));
}

void cursor_append_sealed(struct buf *out, uint64_t child, struct json cursor)
{
	at_end(buf_fini) struct buf plain = { 0 };

	if (cursor_is_empty(cursor)) {
		buf_append_slice(out, cursor.text);
		return;
	}
	buf_append_char(&plain, FORM_CHILD);
	pages_append_number(&plain, child);
	buf_append_slice(&plain, slice_of(cursor.text.p + 1, cursor.text.n - 2));
	pages_append_string(out, &plain);
}

void cursor_append_page(struct buf *out, uint64_t list, uint64_t page)
{
	at_end(buf_fini) struct buf plain = { 0 };

	buf_append_char(&plain, FORM_PAGE);
	pages_append_number(&plain, list);
	pages_append_number(&plain, page);
	pages_append_string(out, &plain);
}

/* Whether `text`, put in quotes, is exactly one JSON string. */
static bool is_inside_of_string(struct slice text)
{
	static const struct scan_limits limits = { .depth_max = 4, .id_max = 8 };
	at_end(buf_fini) struct buf message = { 0 };
	struct envelope env;

	buf_append_str(&message, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"uri\":\"");
	buf_append_slice(&message, text);
	buf_append_str(&message, "\"}}");
	return scan_envelope(buf_slice(&message), &limits, 0, &env, NULL) == 0 &&
	       env.uri.text.n == text.n + 2 && !env.has_separator;
}

int cursor_open(struct json sealed, uint64_t *child_r, struct buf *out)
{
	struct slice text = scan_plain_string(sealed);
	at_end(mem_free) unsigned char *plain = mem_alloc(text.n + 1);
	size_t n = 0;
	struct slice inside;

	if (text_from_base64url(text, plain, &n) < 0 || n < HEAD_BYTES || plain[0] != FORM_CHILD)
		return -1;
	inside = slice_of((const char *)plain + HEAD_BYTES, n - HEAD_BYTES);
	*child_r = pages_read_number(plain + 1);
	if (*child_r == 0 || !is_inside_of_string(inside))
		return -1;
	buf_append_char(out, '"');
	buf_append_slice(out, inside);
	buf_append_char(out, '"');
	return 0;
}

int cursor_open_page(struct json sealed, uint64_t *list_r, uint64_t *page_r)
{
	struct slice text = scan_plain_string(sealed);
	unsigned char plain[HEAD_BYTES + PAGE_BYTES];
	size_t n = 0;

	if (text.n != (sizeof(plain) * 4 + 2) / 3 || text_from_base64url(text, plain, &n) < 0 ||
	    plain[0] != FORM_PAGE)
		return -1;
	*list_r = pages_read_number(plain + 1);
	*page_r = pages_read_number(plain + HEAD_BYTES);
	return 0;
}

/* ---- listing kind ---- */

/* Some clients (those in Go) ignore the case of member names, and read the last of several. */

static const struct listing_kind kinds[PERMISSION_KINDS] = {
	[PERMISSION_TOOL] = { SLICE("tools/list"), SLICE("tools"), PERMISSION_TOOL, SLICE("name"),
			      OFFER_TOOLS },
	[PERMISSION_PROMPT] = { SLICE("prompts/list"), SLICE("prompts"), PERMISSION_PROMPT,
				SLICE("name"), OFFER_PROMPTS },
	[PERMISSION_RESOURCE] = { SLICE("resources/list"), SLICE("resources"), PERMISSION_RESOURCE,
				  SLICE("uri"), OFFER_RESOURCES },
	[PERMISSION_TEMPLATE] = { SLICE("resources/templates/list"), SLICE("resourceTemplates"),
				  PERMISSION_TEMPLATE, SLICE("uriTemplate"), OFFER_RESOURCES },
};

const struct listing_kind *listing_kind_find(const struct method *method)
{
	for (size_t i = 0; method->flags & METHOD_PAGED && i < ARRAY_LEN(kinds); i++)
		if (slice_is_equal(method->name, kinds[i].method))
			return &kinds[i];
	return NULL;
}

const struct listing_kind *listing_kind_of(enum permission_kind kind)
{
	CHECK((size_t)kind < ARRAY_LEN(kinds));
	return &kinds[kind];
}

/* ---- the items ---- */

#define FIRST_HASH 0x6d637067u /* for pages: only to tell them apart */

bool listing_kind_may_fold(struct slice written, size_t *folded)
{
	for (size_t i = 0; i < written.n; i++) {
		bool is_escape =
			written.p[i] == '\\' && i + 1 < written.n && written.p[i + 1] == 'u';

		if ((unsigned char)written.p[i] < 0x7F && !is_escape)
			continue;
		*folded += written.n;
		return *folded <= LISTING_FOLDED_BYTES_MAX;
	}
	return true;
}

static bool could_be(struct slice decoded, struct slice name)
{
	at_end(buf_fini) struct buf folded = { 0 };

	return name_fold(decoded, &folded) == NULL &&
	       slice_is_equal_nocase(buf_slice(&folded), name);
}

int listing_kind_find_items(const struct listing_kind *kind, struct slice result,
			    struct json *items_r)
{
	bool is_ambiguous = false, is_found = false;
	size_t folded = 0;

	SCAN_MEMBERS(member, result) {
		at_end(buf_fini) struct buf room = { 0 };
		struct slice meant;

		if (slice_is_equal(member.name, kind->member)) {
			is_ambiguous |= is_found;
			is_found = true;
		} else if (!listing_kind_may_fold(member.name, &folded)) {
			is_ambiguous = true;
		} else if (scan_read_name(member.name, &room, &meant) == 0) {
			is_ambiguous |= could_be(meant, kind->member);
		}
	}
	*items_r = scan_member(result, kind->member);
	return is_ambiguous ? -1 : 0;
}

uint64_t listing_kind_page(struct json cursor)
{
	at_end(buf_fini) struct buf decoded = { 0 };
	uint64_t page = 0;

	if (cursor.type != JSON_ABSENT) {
		if (scan_decode_string(cursor, &decoded) < 0)
			buf_append_slice(&decoded, cursor.text);
		page = text_hash(FIRST_HASH, buf_slice(&decoded)) | 1;
	}
	return page;
}
