/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names are compared in a folded form: if the server takes a name for another one, both have the same. Of the URIs of
 * resources it is not known whether the server tells letters by case: a deny fits both ways, an allow exactly.
 */
#include "policy/permissions.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/name.h"
#include "policy/uri.h"

/* ---- names ---- */

static bool is_uri(enum permission_kind kind)
{
	return kind == PERMISSION_RESOURCE || kind == PERMISSION_TEMPLATE;
}

const char *permission_fold(enum permission_kind kind, struct slice name, struct buf *folded)
{
	return is_uri(kind) ? uri_fold(name, folded) : name_fold(name, folded);
}

static void lower(struct buf *text)
{
	for (size_t i = 0; i < text->len; i++)
		if (text->data[i] >= 'A' && text->data[i] <= 'Z')
			text->data[i] |= 0x20;
}

static struct slices fold_all(enum permission_kind kind, struct slices patterns, bool is_deny)
{
	struct slice *items = mem_zalloc((patterns.count + 1) * sizeof(*items));
	size_t count = 0;

	for (size_t i = 0; i < patterns.count; i++) {
		struct buf folded = { 0 };

		if (permission_fold(kind, patterns.items[i], &folded) != NULL)
			continue;
		if (is_deny && is_uri(kind))
			lower(&folded);
		(void)buf_terminate(&folded);
		items[count++] = buf_slice(&folded);
	}
	return (struct slices){ items, count };
}

static bool allows_all(const struct permission_rules *rules)
{
	return rules->deny.count == 0 && rules->allow.count == 1 &&
	       slice_is_equal(rules->allow.items[0], SLICE_LIT("*"));
}

void permissions_finish(struct permissions *permissions)
{
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		struct permission_rules *rules = &permissions->kinds[kind];

		CHECK(rules->allow_folded.items == NULL && rules->deny_folded.items == NULL);
		rules->allow_folded = fold_all(kind, rules->allow, false);
		rules->deny_folded = fold_all(kind, rules->deny, true);
		permissions->has_rules |= !allows_all(rules);
	}
}

static void free_folded(struct slices *folded)
{
	for (size_t i = 0; i < folded->count; i++)
		free((char *)(uintptr_t)folded->items[i].p);
	free((struct slice *)(uintptr_t)folded->items);
	*folded = (struct slices){ NULL, 0 };
}

void permissions_free(struct permissions *permissions)
{
	for (size_t i = 0; i < PERMISSION_KINDS; i++) {
		free_folded(&permissions->kinds[i].allow_folded);
		free_folded(&permissions->kinds[i].deny_folded);
	}
}

/* ---- verdicts ---- */

static bool fits_any(struct slice name, struct slices patterns)
{
	for (size_t i = 0; i < patterns.count; i++)
		if (text_fits_pattern(name, patterns.items[i]))
			return true;
	return false;
}

/* A server may not look at what follows. */
static struct slice without_query(struct slice uri)
{
	size_t n = 0;

	while (n < uri.n && uri.p[n] != '?' && uri.p[n] != '#')
		n++;
	return slice_of(uri.p, n);
}

enum permission_verdict permissions_judge(const struct permissions *permissions,
					  enum permission_kind kind, struct slice name)
{
	const struct permission_rules *rules = &permissions->kinds[kind];
	enum permission_verdict verdict = PERMISSION_ALLOWED;
	struct buf folded = { 0 };

	if (!permissions->has_rules)
		return PERMISSION_ALLOWED;
	if (permission_fold(kind, name, &folded) != NULL ||
	    !fits_any(buf_slice(&folded), rules->allow_folded))
		verdict = PERMISSION_UNLISTED;
	else if (is_uri(kind))
		lower(&folded);
	if (verdict == PERMISSION_ALLOWED &&
	    (fits_any(buf_slice(&folded), rules->deny_folded) ||
	     (is_uri(kind) && fits_any(without_query(buf_slice(&folded)), rules->deny_folded))))
		verdict = PERMISSION_DENIED;
	buf_fini(&folded);
	return verdict;
}

bool permissions_allow(const struct permissions *permissions, enum permission_kind kind,
		       struct slice name)
{
	return permissions_judge(permissions, kind, name) == PERMISSION_ALLOWED;
}
