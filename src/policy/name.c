/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Characters are decomposed and stay so: of a text that fits `a*` the folded form begins with that of `a`, whatever
 * would compose with it. Two texts are the same in NFKD if and only if they are in NFKC.
 */
#include "policy/name.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/unicode.h"
#include "policy/paths.h"

#define POINTS_MAX 1024 /* of a folded name; some characters become 18 */
#define PASSES_MAX 8
#define DOTLESS_I 0x131
#define DOT_ABOVE 0x307
#define IOTA_SUBSCRIPT 0x345

static const char *check_name_characters(struct slice rest)
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

static uint64_t name_hash_of(struct slice name)
{
	uint64_t hash = name.n;

	for (size_t i = 0; i < name.n; i++)
		hash = (hash ^ (unsigned char)name.p[i]) * 0x100000001B3u;
	return hash ^ hash >> 29;
}

static const struct kept *name_find_kept(struct slice name, uint64_t hash)
{
	const struct kept *kept = kept_names[hash % KEPT_NAMES];

	return kept != NULL && kept->hash == hash &&
			       slice_is_equal(name, slice_of(kept->text, kept->name_length)) ?
		       kept :
		       NULL;
}

static void name_keep(struct slice name, uint64_t hash, struct slice form)
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
	at_end(buf_fini) struct buf form = { 0 };
	const struct kept *kept;
	const char *why;

	if (fold_ascii(name, folded))
		return NULL;
	hash = name.n <= NAME_BYTES_MAX ? name_hash_of(name) : 0;
	kept = name.n <= NAME_BYTES_MAX ? name_find_kept(name, hash) : NULL;
	if (kept != NULL) {
		buf_append(folded, kept->text + kept->name_length, kept->form_length);
		return NULL;
	}
	why = name.n > NAME_BYTES_MAX ? "is too long" : check_name_characters(name);

	if (why == NULL)
		why = fold(name, &form);
	if (why == NULL && form.len == 0)
		why = "is empty";
	if (why == NULL) {
		buf_append_slice(folded, buf_slice(&form));
		name_keep(name, hash, buf_slice(&form));
	}
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
	at_end(buf_fini) struct buf folded = { 0 };
	struct slice form = { NULL, 0 };

	if (name_fold(name, &folded) == NULL)
		form = slice_of(mem_dup_slice(buf_slice(&folded)), folded.len);
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

/* ---- URIs ---- */

/* Each step takes the whole text that the one before has made: what a step brings forth, the next one sees. */

#define DECODINGS_MAX 4

/* In place: it never writes what it has not read. Returns whether something was decoded. */
static bool decode_once(struct buf *text)
{
	size_t to = 0;

	for (size_t from = 0; from < text->len; to++) {
		const char *p = text->data + from;
		char byte = 0;
		bool is_encoded = from + 2 < text->len && *p == '%' &&
				  text_from_hex(slice_of(p + 1, 2), &byte, 1) == 0;

		text->data[to] = is_encoded ? byte : *p;
		from += is_encoded ? 3 : 1;
	}
	if (to == text->len)
		return false;
	text->len = to;
	return true;
}

static const char *check_uri_characters(struct slice rest)
{
	while (rest.n > 0) {
		size_t n = text_utf8_length(rest);

		if (n == 0)
			return "is not UTF-8 when it is decoded";
		if (unicode_is_hidden(unicode_decode(slice_of(rest.p, n))))
			return "has an invisible character";
		rest = slice_of(rest.p + n, rest.n - n);
	}
	return NULL;
}

/* Readers strip each end by itself. */
static bool is_wrapped(struct slice text)
{
	size_t first = text_utf8_length(text);
	size_t last = 1;

	CHECK(first > 0);
	while (last < text.n && ((unsigned char)text.p[text.n - last] & 0xC0) == 0x80)
		last++;
	return unicode_is_wrapping(unicode_decode(slice_of(text.p, first))) ||
	       unicode_is_wrapping(unicode_decode(slice_of(text.p + text.n - last, last)));
}

/* ---- the parts ---- */

static void append_lower(struct buf *out, struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		buf_append_char(out, c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c);
	}
}

/* Cuts what comes before the first of these characters; *rest_r begins with that character, or is empty. */
static struct slice name_cut_before(struct slice *rest_r, const char *characters)
{
	struct slice part = *rest_r;
	size_t n = 0;

	while (n < part.n && strchr(characters, part.p[n]) == NULL)
		n++;
	*rest_r = slice_of(part.p + n, part.n - n);
	part.n = n;
	return part;
}

static void append_scheme(struct buf *out, struct slice *rest_r)
{
	struct slice rest = *rest_r;
	struct slice scheme = name_cut_before(&rest, ":/?#");

	if (rest.n == 0 || rest.p[0] != ':')
		return;
	append_lower(out, scheme);
	buf_append_char(out, ':');
	*rest_r = slice_of(rest.p + 1, rest.n - 1);
}

/* Of these WHATWG URL reads a host, however many slashes are before it. */
static const struct slice web_schemes = SLICE("http: https: ws: wss: ftp:");

/* Some readers take another spelling for the same host: compatible letters, other dots, a dot at its end. UTS #46 */
static bool is_plain_host(struct slice host)
{
	for (size_t i = 0; i < host.n; i++)
		if ((unsigned char)host.p[i] >= 0x80 ||
		    (host.p[i] == '.' && (i + 1 == host.n || host.p[i + 1] == ':')))
			return false;
	return true;
}

/*
 * The host becomes the first segment of the path: of URIs that servers invent, nobody knows which it is. Of files there is
 * one host, which some servers do not look at.
 */
static const char *append_host(struct buf *out, struct slice *rest_r, bool *has_host_r)
{
	bool is_file = slice_is_equal(buf_slice(out), SLICE_LIT("file:"));
	bool is_of_web = slice_has_part(web_schemes, ' ', buf_slice(out));
	size_t slashes = 0;
	struct slice host;

	*has_host_r = false;
	while (slashes < rest_r->n && rest_r->p[slashes] == '/')
		slashes++;
	if (!is_of_web && slashes < 2)
		return NULL;
	slashes = is_of_web ? slashes : 2;
	*rest_r = slice_of(rest_r->p + slashes, rest_r->n - slashes);
	host = name_cut_before(rest_r, "/?#");
	if (is_file && host.n > 0 && !slice_is_equal_nocase(host, SLICE_LIT("localhost")))
		return "refers to a file on another machine";
	if (is_file || host.n == 0)
		return NULL;
	if (is_of_web && memchr(host.p, '@', host.n) != NULL)
		return "has a user name before its host";
	if (is_of_web && !is_plain_host(host))
		return "has a host that is not ASCII, or ends with a dot";
	*has_host_r = true;
	buf_append_char(out, '/');
	append_lower(out, host);
	return NULL;
}

/*
 * RFC 3986 §5.2.4; empty segments go as well. Above the host is nothing that could be meant. Of files WHATWG URL reads
 * every path as an absolute one.
 */
static const char *append_path(struct buf *out, struct slice path, bool has_host)
{
	size_t root = out->len;
	bool is_file = slice_is_equal(buf_slice(out), SLICE_LIT("file:"));
	bool is_rooted = has_host || is_file || (path.n > 0 && path.p[0] == '/');
	bool is_open = false; /* ends with a slash, or in what means one */
	bool has_slash = path.n > 0 && path.p[path.n - 1] == '/';

	while (path.n > 0) {
		struct slice segment = slice_cut(&path, '/');
		bool is_up = slice_is_equal(segment, SLICE_LIT(".."));

		is_open = segment.n == 0 || is_up || slice_is_equal(segment, SLICE_LIT("."));
		if (!is_up && path_is_parent(segment))
			return "has a segment that some servers read as ..";
		if (is_up && out->len == root && has_host)
			return "leads above the root of its host";
		while (is_up && out->len > root && out->data[--out->len] != '/')
			;
		if (is_open)
			continue;
		if (is_rooted || out->len > root)
			buf_append_char(out, '/');
		buf_append_slice(out, segment);
	}
	if ((is_open || has_slash) && (is_rooted || out->len > root))
		buf_append_char(out, '/');
	return NULL;
}

/* To some servers it is a part of the path. */
static const char *append_query(struct buf *out, struct slice query)
{
	struct slice rest = query;

	while (rest.n > 0)
		if (path_is_parent(slice_cut(&rest, '/')))
			return "has .. after its path";
	buf_append_slice(out, query);
	return NULL;
}

static const char *name_append_parts(struct buf *out, struct slice uri)
{
	struct slice path;
	bool has_host;
	const char *why;

	append_scheme(out, &uri);
	why = append_host(out, &uri, &has_host);
	path = name_cut_before(&uri, "?#");
	if (why == NULL)
		why = append_path(out, path, has_host);
	return why != NULL ? why : append_query(out, uri);
}

/* ---- all of it ---- */

const char *uri_fold(struct slice uri, struct buf *folded)
{
	at_end(buf_fini) struct buf text = { 0 }, made = { 0 };
	const char *why = NULL;
	int decodings = 0;

	if (uri.n == 0 || uri.n > URI_BYTES_MAX)
		return uri.n == 0 ? "is empty" : "is too long";
	buf_append_slice(&text, uri);
	while (why == NULL && decode_once(&text))
		if (++decodings > DECODINGS_MAX)
			why = "is encoded too many times";
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] == '\\')
			text.data[i] = '/';
	if (why == NULL)
		why = check_uri_characters(buf_slice(&text));
	if (why == NULL && is_wrapped(buf_slice(&text)))
		why = "begins or ends with a space or a quote, which many servers strip";
	if (why == NULL)
		why = name_append_parts(&made, buf_slice(&text));
	if (why == NULL)
		buf_append_slice(folded, buf_slice(&made));
	return why;
}
