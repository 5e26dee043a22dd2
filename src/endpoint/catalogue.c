/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint/catalogue.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/pause.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "router/text_set.h"

#define HASH_DIGITS 8
#define CATALOGUES_BYTES_MAX (64 * 1024 * 1024)

static const struct {
	struct slice member;
	struct slice key; /* of each item: what it is asked for by */
	bool is_named;    /* by a name, which gets a prefix */
} kinds[] = {
	[CATALOGUE_TOOLS] = { SLICE("tools"), SLICE("name"), true },
	[CATALOGUE_PROMPTS] = { SLICE("prompts"), SLICE("name"), true },
	[CATALOGUE_RESOURCES] = { SLICE("resources"), SLICE("uri"), false },
	[CATALOGUE_TEMPLATES] = { SLICE("resourceTemplates"), SLICE("uriTemplate"), false },
	[CATALOGUE_TASKS] = { SLICE("tasks"), SLICE("taskId"), false },
};

struct slice catalogue_member(enum catalogue_kind kind)
{
	CHECK(kind < CATALOGUE_KINDS);
	return kinds[kind].member;
}

static bool catalogue_is_letter(char c)
{
	return slice_is_name(slice_of(&c, 1), "_-");
}

void catalogue_show_name(struct buf *out, struct slice prefix, struct slice name)
{
	size_t begin = out->len;
	char digits[2 * sizeof(uint64_t) + 1];
	bool is_other = name.n == 0;

	buf_append_slice(out, prefix);
	for (size_t i = 0; i < name.n; i++) {
		is_other = is_other || !catalogue_is_letter(name.p[i]);
		if (out->len - begin < CATALOGUE_NAME_MAX)
			buf_append_char(out, catalogue_is_letter(name.p[i]) ? name.p[i] : '_');
	}
	if (!is_other && prefix.n + name.n <= CATALOGUE_NAME_MAX)
		return;
	/* Of the whole name: another one that is shortened to the same has another hash. */
	text_format_hex(text_hash(0, name), sizeof(digits) - 1, digits);
	if (out->len - begin > CATALOGUE_NAME_MAX - HASH_DIGITS - 1)
		out->len = begin + CATALOGUE_NAME_MAX - HASH_DIGITS - 1;
	buf_append_char(out, '_');
	buf_append(out, digits, HASH_DIGITS);
	CHECK(out->len - begin <= CATALOGUE_NAME_MAX);
}

bool catalogue_may_be_short(struct slice shown)
{
	const size_t tail = HASH_DIGITS + 1;

	return shown.n > tail && shown.p[shown.n - tail] == '_' &&
	       strspn(shown.p + shown.n - HASH_DIGITS, "0123456789abcdef") >= HASH_DIGITS;
}

static void leave_shared(struct catalogue *catalogue)
{
	if (catalogue->shared == NULL)
		return;
	CHECK(catalogue->shared->bytes >= catalogue->bytes);
	catalogue->shared->bytes -= catalogue->bytes;
	list_remove(&catalogue->link);
	catalogue->shared = NULL;
}

void catalogue_clear(struct catalogue *catalogue)
{
	if (catalogue->items.next == NULL)
		list_init(&catalogue->items);
	LIST_DRAIN(struct catalogue_item, item, &catalogue->items, link) {
		pause_point();
		list_remove(&item->link);
		free(item);
	}
	map_fini(&catalogue->by_name);
	catalogue->by_name = (struct map){ 0 };
	catalogue->doubles = 0;
	catalogue->is_known = false;
	leave_shared(catalogue);
}

static struct catalogue_item *catalogue_find_item(const struct catalogue *catalogue,
						  struct slice shown)
{
	MAP_EACH(struct catalogue_item, item, &catalogue->by_name, text_set_key(shown), by_name)
		if (slice_is_equal(item->shown, shown))
			return item;
	return NULL;
}

static void forget_item(struct catalogue *catalogue, struct catalogue_item *item)
{
	if (catalogue_find_item(catalogue, item->shown) == item)
		map_remove_link(&catalogue->by_name, &item->by_name);
	list_remove(&item->link);
	free(item);
}

void catalogues_init(struct catalogues *catalogues)
{
	list_init(&catalogues->all);
	catalogues->bytes = 0;
}

static struct catalogue *find_largest(const struct catalogues *catalogues)
{
	struct catalogue *largest = NULL;

	LIST_EACH(struct catalogue, catalogue, &catalogues->all, link)
		if (largest == NULL || catalogue->bytes > largest->bytes)
			largest = catalogue;
	return largest;
}

void catalogue_trim(struct catalogue *catalogue)
{
	size_t bytes = 0;

	CHECK(catalogue->shared == NULL);
	LIST_EACH_SAFE(struct catalogue_item, item, &catalogue->items, link) {
		size_t size = sizeof(*item) + item->real.n + item->shown.n;

		pause_point();
		if (bytes + size <= CATALOGUE_BYTES_MAX)
			bytes += size;
		else
			forget_item(catalogue, item);
	}
	CHECK(bytes <= CATALOGUE_BYTES_MAX);
	catalogue->bytes = bytes;
}

/* `left` may have some already, and finds none of them. */
static void empty_into(struct catalogue *catalogue, struct catalogue *left)
{
	list_splice(&left->items, &catalogue->items);
	catalogue_clear(catalogue);
}

void catalogue_keep(struct catalogue *catalogue, struct catalogue *from,
		    struct catalogues *catalogues, struct catalogue *left)
{
	CHECK(from->shared == NULL && from->bytes <= CATALOGUE_BYTES_MAX);
	*left = (struct catalogue){ 0 };
	catalogue_clear(left);
	empty_into(catalogue, left);
	list_splice(&catalogue->items, &from->items);
	catalogue->by_name = from->by_name;
	catalogue->doubles = from->doubles;
	catalogue->bytes = from->bytes;
	from->by_name = (struct map){ 0 };
	catalogue_clear(from);
	while (catalogues->bytes + catalogue->bytes > CATALOGUES_BYTES_MAX &&
	       !list_is_empty(&catalogues->all)) {
		struct catalogue *largest = find_largest(catalogues);

		empty_into(largest, left);
		largest->is_forgotten = true;
	}
	catalogue->is_forgotten = false;
	catalogue->shared = catalogues;
	catalogues->bytes += catalogue->bytes;
	list_append(&catalogues->all, &catalogue->link);
}

const struct catalogue_item *catalogue_find(const struct catalogue *catalogue, struct slice shown)
{
	return catalogue_find_item(catalogue, shown);
}

static struct catalogue_item *item_new(size_t leg, struct slice real, struct slice shown)
{
	struct catalogue_item *item = mem_zalloc(sizeof(*item) + real.n + shown.n);

	item->leg = leg;
	memcpy(item->text, real.p, real.n);
	memcpy(item->text + real.n, shown.p, shown.n);
	item->real = slice_of(item->text, real.n);
	item->shown = slice_of(item->text + real.n, shown.n);
	return item;
}

void catalogue_add(struct catalogue *catalogue, enum catalogue_kind kind, size_t leg,
		   struct slice prefix, struct slice json)
{
	struct json key = scan_member(json, kinds[kind].key);
	at_end(buf_fini) struct buf real = { 0 }, shown = { 0 };
	struct catalogue_item *item, *other;

	if (scan_decode_string(key, &real) == 0 && real.len > 0) {
		if (kinds[kind].is_named)
			catalogue_show_name(&shown, prefix, buf_slice(&real));
		else
			buf_append_slice(&shown, buf_slice(&real));
		item = item_new(leg, buf_slice(&real), buf_slice(&shown));
		item->json = json;
		item->key = key.text;
		item->is_plain = kinds[kind].is_named && shown.len == prefix.n + real.len &&
				 memcmp(shown.data + prefix.n, real.data, real.len) == 0;
		list_append(&catalogue->items, &item->link);
		other = catalogue_find_item(catalogue, item->shown);
		if (other != NULL) {
			item->is_double = true;
			other->is_double = other->is_double || kinds[kind].is_named;
			catalogue->doubles++;
		} else {
			map_insert_link(&catalogue->by_name, text_set_key(item->shown),
					&item->by_name);
		}
	}
}

struct adding {
	struct catalogue *catalogue;
	enum catalogue_kind kind;
	size_t leg;
	struct slice prefix;
};

static int add_item(struct slice element, void *arg)
{
	const struct adding *adding = arg;

	if (scan_type(element) == JSON_OBJECT)
		catalogue_add(adding->catalogue, adding->kind, adding->leg, adding->prefix,
			      element);
	return 0;
}

void catalogue_add_page(struct catalogue *catalogue, enum catalogue_kind kind, size_t leg,
			struct slice prefix, struct slice response)
{
	struct adding adding = { catalogue, kind, leg, prefix };
	struct json result = scan_member(response, SLICE_LIT("result"));
	struct json items = scan_member(result.text, kinds[kind].member);

	if (items.type == JSON_ARRAY)
		(void)!scan_array(items.text, SIZE_MAX, add_item, &adding, NULL);
}

void catalogue_forget_plain(struct catalogue *catalogue)
{
	LIST_EACH_SAFE(struct catalogue_item, item, &catalogue->items, link) {
		pause_point();
		if (item->is_plain && !item->is_double)
			forget_item(catalogue, item);
	}
}

void catalogue_append(const struct catalogue *catalogue, enum catalogue_kind kind, struct buf *out)
{
	LIST_EACH(const struct catalogue_item, item, &catalogue->items, link) {
		at_end(buf_fini) struct buf shown = { 0 };
		struct splice_edit edit = { .span = item->key };

		if (item->is_double)
			continue;
		write_comma(out);
		write_string(&shown, item->shown);
		edit.with = buf_slice(&shown);
		splice_append(out, item->json, &edit, kinds[kind].is_named, 0);
	}
}

const struct catalogue_item *catalogue_find_template(const struct catalogue *catalogue,
						     struct slice uri)
{
	const struct catalogue_item *best = NULL;
	size_t longest = 0;

	LIST_EACH(const struct catalogue_item, item, &catalogue->items, link) {
		const char *variable = memchr(item->real.p, '{', item->real.n);
		size_t n = variable != NULL ? (size_t)(variable - item->real.p) : item->real.n;

		if (n > uri.n || memcmp(item->real.p, uri.p, n) != 0 ||
		    (best != NULL && n <= longest))
			continue;
		best = item;
		longest = n;
	}
	return best;
}
