/* SPDX-License-Identifier: Apache-2.0 */
/* Some clients (those in Go) ignore the case of member names, and read the last of several. */
#include "router/listing_kind.h"

#include "base/buf.h"
#include "base/text.h"
#include "policy/name.h"

static const struct listing_kind kinds[PERMISSION_KINDS] = {
	[PERMISSION_TOOL] = { SLICE("tools/list"), SLICE("tools"), PERMISSION_TOOL, SLICE("name") },
	[PERMISSION_PROMPT] = { SLICE("prompts/list"), SLICE("prompts"), PERMISSION_PROMPT,
				SLICE("name") },
	[PERMISSION_RESOURCE] = { SLICE("resources/list"), SLICE("resources"), PERMISSION_RESOURCE,
				  SLICE("uri") },
	[PERMISSION_TEMPLATE] = { SLICE("resources/templates/list"), SLICE("resourceTemplates"),
				  PERMISSION_TEMPLATE, SLICE("uriTemplate") },
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

struct find {
	struct slice name;
	bool is_ambiguous;
	bool is_found;
	size_t folded;
};

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
	struct buf folded = { 0 };
	bool could = name_fold(decoded, &folded) == NULL &&
		     slice_is_equal_nocase(buf_slice(&folded), name);

	buf_fini(&folded);
	return could;
}

static int look_at_name(struct slice written, struct json value, void *arg)
{
	struct json quoted = { JSON_STRING, true, slice_of(written.p - 1, written.n + 2) };
	struct find *find = arg;
	struct buf decoded = { 0 };

	(void)value;
	if (slice_is_equal(written, find->name)) {
		find->is_ambiguous |= find->is_found;
		find->is_found = true;
	} else if (!listing_kind_may_fold(written, &find->folded)) {
		find->is_ambiguous = true;
	} else if (scan_decode_string(quoted, &decoded) == 0) {
		find->is_ambiguous |= could_be(buf_slice(&decoded), find->name);
	}
	buf_fini(&decoded);
	return 0;
}

int listing_kind_find_items(const struct listing_kind *kind, struct slice result,
			    struct json *items_r)
{
	struct find find = { .name = kind->member };

	scan_members(result, look_at_name, &find);
	*items_r = scan_member(result, kind->member);
	return find.is_ambiguous ? -1 : 0;
}

uint64_t listing_kind_page(struct json cursor)
{
	struct buf decoded = { 0 };
	uint64_t page = 0;

	if (cursor.type != JSON_ABSENT) {
		if (scan_decode_string(cursor, &decoded) < 0)
			buf_append_slice(&decoded, cursor.text);
		page = text_hash(FIRST_HASH, buf_slice(&decoded)) | 1;
	}
	buf_fini(&decoded);
	return page;
}
