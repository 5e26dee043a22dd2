/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Characters are decomposed and stay so: of a text that fits `a*` the folded form begins with that of `a`, whatever
 * would compose with it. Two texts are the same in NFKD if and only if they are in NFKC.
 */
#include "policy/name.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/unicode.h"

#define POINTS_MAX 1024 /* of a folded name; some characters become 18 */
#define PASSES_MAX 8
#define DOTLESS_I 0x131
#define DOT_ABOVE 0x307
#define IOTA_SUBSCRIPT 0x345

static const char *check_characters(struct slice rest)
{
	while (rest.n > 0) {
		size_t n = text_utf8_length(rest);
		uint32_t code = n > 0 ? unicode_decode(slice_of(rest.p, n)) : 0;

		if (unicode_is_hidden(code) || unicode_is_unknown(code))
			return "has an invisible or unassigned character";
		rest = slice_of(rest.p + n, rest.n - n);
	}
	return NULL;
}

/*
 * Spaces fall away wherever they are: servers strip them, each in its own way. Turkish casing takes the dotless i for the
 * small letter of I, and I with a dot for the capital of i.
 */
static void append_points(const utf8proc_int32_t *points, size_t count, struct buf *out)
{
	utf8proc_int32_t base = 0; /* that marks belong to */

	for (size_t i = 0; i < count; i++) {
		utf8proc_int32_t point = points[i] == DOTLESS_I ? 'i' : points[i];
		const utf8proc_property_t *property = utf8proc_get_property(point);
		utf8proc_uint8_t bytes[4];

		if (unicode_is_space((uint32_t)point) || (point == DOT_ABOVE && base == 'i'))
			continue;
		buf_append(out, bytes, (size_t)utf8proc_encode_char(point, bytes));
		if (property->combining_class == 0)
			base = point;
	}
}

static const char *decompose(struct slice text, int options, struct buf *out)
{
	utf8proc_int32_t points[POINTS_MAX];
	utf8proc_ssize_t count =
		utf8proc_decompose((const utf8proc_uint8_t *)text.p, (utf8proc_ssize_t)text.n,
				   points, POINTS_MAX, (utf8proc_option_t)options);

	if (count < 0 || count > POINTS_MAX)
		return "is too long";
	for (utf8proc_ssize_t i = 0; i < count; i++)
		if (points[i] == IOTA_SUBSCRIPT)
			return "has an iota subscript, which is a mark or a letter";
	append_points(points, (size_t)count, out);
	return NULL;
}

/*
 * First without a change of case, which would make a letter of an iota subscript, before or after the marks beside it are
 * put in order. When a space has gone, marks may come into another order: again, until nothing changes.
 */
static const char *fold(struct slice name, struct buf *form)
{
	const int options = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
	const char *why = decompose(name, options, form);
	bool is_stable = false;

	for (int pass = 0; why == NULL && !is_stable; pass++) {
		struct buf next = { 0 };

		why = pass < PASSES_MAX ?
			      decompose(buf_slice(form), options | UTF8PROC_CASEFOLD, &next) :
			      "has no folded form";
		is_stable = slice_is_equal(buf_slice(&next), buf_slice(form));
		buf_fini(form);
		*form = next;
	}
	return why;
}

/* Most names: visible ASCII and spaces. False: it has something else, or nothing. */
static bool fold_ascii(struct slice name, struct buf *folded)
{
	char form[NAME_BYTES_MAX];
	size_t length = 0;

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (i == sizeof(form) || c < ' ' || c >= 0x7F)
			return false;
		if (c != ' ')
			form[length++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
	}
	buf_append(folded, form, length);
	return length > 0;
}

/* ---- what was folded lately ---- */

/*
 * Folding other names takes up to 0.1 ms, and the same names come again and again: in each request
 * that looks at a list, and several times in each.
 */
#define KEPT_NAMES 4096
#define KEPT_FORM_BYTES_MAX 1024

struct kept {
	uint64_t hash;
	size_t name_length, form_length;
	char text[]; /* the name, then its form */
};

static struct kept *kept_names[KEPT_NAMES];

static uint64_t hash_of(struct slice name)
{
	uint64_t hash = name.n;

	for (size_t i = 0; i < name.n; i++)
		hash = (hash ^ (unsigned char)name.p[i]) * 0x100000001B3u;
	return hash ^ hash >> 29;
}

static const struct kept *find_kept(struct slice name, uint64_t hash)
{
	const struct kept *kept = kept_names[hash % KEPT_NAMES];

	return kept != NULL && kept->hash == hash &&
			       slice_is_equal(name, slice_of(kept->text, kept->name_length)) ?
		       kept :
		       NULL;
}

static void keep(struct slice name, uint64_t hash, struct slice form)
{
	struct kept **at = &kept_names[hash % KEPT_NAMES];

	CHECK(name.n <= NAME_BYTES_MAX);
	if (form.n > KEPT_FORM_BYTES_MAX)
		return;
	free(*at);
	*at = mem_alloc(sizeof(**at) + name.n + form.n);
	**at = (struct kept){ .hash = hash, .name_length = name.n, .form_length = form.n };
	memcpy((*at)->text, name.p, name.n);
	memcpy((*at)->text + name.n, form.p, form.n);
}

/* ---- names ---- */

const char *name_fold(struct slice name, struct buf *folded)
{
	uint64_t hash;
	struct buf form = { 0 };
	const struct kept *kept;
	const char *why;

	if (fold_ascii(name, folded))
		return NULL;
	hash = name.n <= NAME_BYTES_MAX ? hash_of(name) : 0;
	kept = name.n <= NAME_BYTES_MAX ? find_kept(name, hash) : NULL;
	if (kept != NULL) {
		buf_append(folded, kept->text + kept->name_length, kept->form_length);
		return NULL;
	}
	why = name.n > NAME_BYTES_MAX ? "is too long" : check_characters(name);

	if (why == NULL)
		why = fold(name, &form);
	if (why == NULL && form.len == 0)
		why = "is empty";
	if (why == NULL) {
		buf_append_slice(folded, buf_slice(&form));
		keep(name, hash, buf_slice(&form));
	}
	buf_fini(&form);
	return why;
}

/* Most names: visible ASCII without capitals. */
static bool is_folded(struct slice name)
{
	if (name.n == 0 || name.n > NAME_BYTES_MAX)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (c <= ' ' || c >= 0x7F || (c >= 'A' && c <= 'Z'))
			return false;
	}
	return true;
}

const char *name_read_form(struct slice name, struct buf *room, struct slice *form_r)
{
	const char *why;

	*form_r = name;
	if (is_folded(name))
		return NULL;
	room->len = 0;
	why = name_fold(name, room);
	*form_r = why == NULL ? buf_slice(room) : slice_of(NULL, 0);
	return why;
}

struct slice name_fold_copy(struct slice name)
{
	struct buf folded = { 0 };
	struct slice form = { NULL, 0 };

	if (name_fold(name, &folded) == NULL)
		form = slice_of(mem_dup_slice(buf_slice(&folded)), folded.len);
	buf_fini(&folded);
	return form;
}

void names_finish(struct names *names)
{
	struct slice *folded = mem_zalloc((names->written.count + 1) * sizeof(*folded));

	CHECK(names->folded == NULL);
	for (size_t i = 0; i < names->written.count; i++)
		folded[i] = name_fold_copy(names->written.items[i]);
	names->folded = folded;
}

void names_free(struct names *names)
{
	struct slice *folded = (struct slice *)(uintptr_t)names->folded;

	for (size_t i = 0; folded != NULL && i < names->written.count; i++)
		free((char *)(uintptr_t)folded[i].p);
	free(folded);
	names->folded = NULL;
}

bool names_fit(const struct names *names, struct slice folded)
{
	for (size_t i = 0; i < names->written.count; i++)
		if (text_fits_pattern(folded, names->folded[i]))
			return true;
	return false;
}
