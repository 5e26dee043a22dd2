/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What surrounds the items is taken from the first page, the items from all pages; byte for byte,
 * except for line breaks between tokens.
 */
#include "router/pages.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/splice.h"
#include "router/cursor.h"
#include "router/text_set.h"

#define CURSOR_BYTES_MAX (64 * 1024)

static void append(struct buf *out, struct slice text)
{
	splice_append(out, text, NULL, 0, SPLICE_ONE_LINE);
}

struct frame {
	struct pages *pages;
	bool is_behind; /* behind the items */
};

static int take_member(struct slice name, struct json value, void *arg)
{
	struct frame *frame = arg;
	struct pages *pages = frame->pages;
	bool is_items = slice_is_equal(name, pages->member);

	if (slice_is_equal(name, SLICE_LIT("nextCursor")) || (is_items && frame->is_behind))
		return 0;
	if (frame->is_behind)
		buf_append_char(&pages->tail, ',');
	else
		buf_append_char(&pages->head, pages->head.len > 0 ? ',' : '{');
	append(frame->is_behind ? &pages->tail : &pages->head,
	       slice_between(name.p - 1,
			     is_items ? value.text.p + 1 : value.text.p + value.text.n));
	if (is_items) {
		buf_append_char(&pages->tail, ']');
		frame->is_behind = true;
	}
	return 0;
}

/* The inside of an array, without white space around it. */
static struct slice inside_of(struct slice array)
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
	append(to, items);
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
	    slice_is_equal(cursor.text, buf_slice(&pages->cursor)) ||
	    pages->taken >= PAGES_TAKEN_MAX)
		return PAGES_UNFIT;
	pages->cursor.len = 0;
	buf_append_slice(&pages->cursor, cursor.text);
	return PAGES_MORE;
}

enum pages_outcome pages_add(struct pages *pages, struct slice result)
{
	struct json items = scan_member(result, pages->member);
	struct frame frame = { .pages = pages };

	if (items.type != JSON_ARRAY || result.n > PAGES_BYTES_MAX ||
	    pages->bytes + items.text.n > PAGES_BYTES_MAX)
		return PAGES_UNFIT;
	if (pages->taken++ == 0) {
		scan_members(result, take_member, &frame);
		pages->bytes = pages->head.len + pages->tail.len;
	}
	take_items(pages, inside_of(items.text));
	if (pages->bytes > PAGES_BYTES_MAX)
		return PAGES_UNFIT;
	return take_cursor(pages, scan_member(result, SLICE_LIT("nextCursor")));
}

static uint64_t number_of(const struct pages *pages)
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

static int page_init(struct page *page, struct msg *msg, const struct scan_limits *limits)
{
	struct error err;

	page->msg = msg;
	return scan_envelope(msg->text, limits, SCAN_LENIENT, &page->env, &err);
}

static struct msg *join(struct pages *pages, size_t i)
{
	struct buf text = { 0 };
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
	msg = msg_new(buf_slice(&text)); /* allocates no more than is needed, because it is kept */
	buf_fini(&text);
	pages->bytes += msg->text.n;
	return msg;
}

int pages_join(struct pages *pages, const struct scan_limits *limits)
{
	int result = 0;

	pages->count = pages->filling + 1;
	pages->bytes = pages->count * sizeof(*pages->joined);
	pages->joined = mem_zalloc(pages->count * sizeof(*pages->joined));
	if (pages->count > 1)
		pages->number = number_of(pages);
	for (size_t i = 0; i < pages->count; i++) {
		if (page_init(&pages->joined[i], join(pages, i), limits) < 0)
			result = -1;
	}
	buf_fini(&pages->head);
	buf_fini(&pages->tail);
	buf_fini(&pages->cursor);
	return result;
}

int pages_set_error(struct pages *pages, struct slice text, const struct scan_limits *limits)
{
	pages_reset(pages);
	pages->count = 1;
	pages->joined = mem_zalloc(sizeof(*pages->joined));
	return page_init(pages->joined, msg_new(text), limits);
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
static void name_items(struct pages *pages)
{
	struct naming naming = { .pages = pages };
	struct error err;

	CHECK(pages->named == NULL && pages->named_count == 0);
	for (size_t i = 0; i < pages->count; i++) {
		struct json items = scan_member(pages->joined[i].env.result.text, pages->member);

		if (scan_array(items.text, SIZE_MAX, name_item, &naming, &err) < 0)
			break;
	}
	for (size_t i = pages->named_count; i-- > 0;)
		map_insert_link(&pages->by_name, pages->named[i].by_name.key,
				&pages->named[i].by_name);
	pages->is_named = true;
	buf_fini(&naming.decoded);
}

struct named_item *pages_find(struct pages *pages, struct json name)
{
	struct named_item *found = NULL;
	struct slice wanted, has;
	struct buf wanted_room = { 0 }, has_room = { 0 };
	struct map_link *link = NULL;

	if (!pages->is_named)
		name_items(pages);
	if (scan_read_string(name, &wanted_room, &wanted) == 0)
		link = map_find_link(&pages->by_name, text_set_key(wanted));
	for (; link != NULL && found == NULL; link = link->next) {
		struct named_item *item = container_of(link, struct named_item, by_name);

		CHECK(scan_read_string(item->name, &has_room, &has) == 0);
		if (slice_is_equal(has, wanted))
			found = item;
	}
	buf_fini(&has_room);
	buf_fini(&wanted_room);
	return found;
}

void pages_reset(struct pages *pages)
{
	for (size_t i = 0; i < pages->count; i++)
		msg_unref(&pages->joined[i].msg);
	free(pages->joined);
	map_fini(&pages->by_name);
	free(pages->named);
	for (size_t i = 0; i < PAGES_JOINED_MAX; i++)
		buf_fini(&pages->items[i]);
	buf_fini(&pages->head);
	buf_fini(&pages->tail);
	buf_fini(&pages->cursor);
	*pages = (struct pages){ .member = pages->member };
}
