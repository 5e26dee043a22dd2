/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every path has a reading in which all has been decoded, folded and left out. No other reading has a `..` that this one
 * has not: what is decoded never takes a dot or slash away. So a path in whose full reading there is no `..` only leads down,
 * in all readings; and where `..` is allowed, the full reading is the text itself.
 */
#include "policy/paths.h"

#include <utf8proc.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/unicode.h"

#define PASSES_MAX 8
#define POINTS_MAX 32 /* that one character becomes; 18 are the most */
#define OTHER 'x'     /* stands for a character that is not looked at */

/* A text with all decoded, folded and left out. */
struct reading {
	struct buf text;
	bool has_control;
};

enum path_kind { PATH_RELATIVE, PATH_ABSOLUTE, PATH_URI, PATH_HOME, PATH_DRIVE };

/* ---- the full reading ---- */

/* What is drawn like a slash or backslash, and taken for one by some conversion. */
static bool is_slash(uint32_t code)
{
	static const uint32_t slashes[] = { '/',    '\\',   0x2044, 0x2215,
					    0x2216, 0x29F5, 0x29F8, 0x29F9 };

	for (size_t i = 0; i < ARRAY_LEN(slashes); i++)
		if (code == slashes[i])
			return true;
	return false;
}

/*
 * The character at rest.p as careless decoders read it: overlong forms, surrogates and large numbers have a value, a byte
 * that belongs to none is one of no interest. Returns its length.
 */
static size_t decode_lenient(struct slice rest, uint32_t *code_r)
{
	unsigned char lead = (unsigned char)rest.p[0];
	size_t n = lead < 0x80 ? 1 : lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;

	if (lead >= 0xF8 || n == 0 || n > rest.n) {
		*code_r = OTHER;
		return 1;
	}
	for (size_t i = 1; i < n; i++) {
		if (((unsigned char)rest.p[i] & 0xC0) != 0x80) {
			*code_r = OTHER;
			return 1;
		}
	}
	*code_r = unicode_decode(slice_of(rest.p, n));
	return n;
}

static bool is_letter_or_digit(uint32_t code)
{
	return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
	       (code >= '0' && code <= '9');
}

/* Whether a character is to be taken apart: something in it means something in a path, or it is a form of ASCII. */
static bool is_compatible(const utf8proc_int32_t *points, utf8proc_ssize_t count)
{
	bool is_ascii = true;

	for (utf8proc_ssize_t i = 0; i < count; i++) {
		uint32_t code = (uint32_t)points[i];

		if (is_slash(code) || (code < 0x80 && !is_letter_or_digit(code)))
			return true;
		is_ascii = is_ascii && code < 0x80;
	}
	return is_ascii;
}

static void append_character(uint32_t code, struct slice written, struct reading *out)
{
	utf8proc_int32_t points[POINTS_MAX] = { OTHER };
	utf8proc_ssize_t count = 1;
	int last_class = 0;

	if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
		code = OTHER;
	out->has_control = out->has_control || code < 0x20 || (code >= 0x7F && code < 0xA0);
	if (unicode_is_hidden(code))
		return;
	if (code < 0x80)
		points[0] = (utf8proc_int32_t)code;
	else
		count = utf8proc_decompose_char((utf8proc_int32_t)code, points, POINTS_MAX,
						UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &last_class);
	CHECK(count >= 0 && count <= POINTS_MAX);
	if (!is_compatible(points, count)) {
		buf_append_slice(&out->text, written);
		return;
	}
	for (utf8proc_ssize_t i = 0; i < count; i++) {
		uint32_t point = (uint32_t)points[i];

		buf_append_char(&out->text, is_slash(point) ? '/' :
					    point < 0x80    ? (char)point :
							      OTHER);
	}
}

static void append_folded(struct slice text, struct reading *out)
{
	while (text.n > 0) {
		size_t n = text_plain_length(text); /* these stand for themselves, but for a `%` */
		uint32_t code;

		if (n > 0) {
			buf_append(&out->text, text.p, n);
		} else {
			n = decode_lenient(text, &code);
			append_character(code, slice_of(text.p, n), out);
		}
		text = slice_of(text.p + n, text.n - n);
	}
}

/* At a `%`: decodes %XX or %uXXXX. Returns how many bytes it was written in, 0: it is none. */
static size_t append_decoded(struct slice rest, struct buf *out)
{
	unsigned char bytes[2];
	utf8proc_uint8_t character[4];

	if (rest.n >= 3 && text_from_hex(slice_of(rest.p + 1, 2), bytes, 1) == 0) {
		buf_append(out, bytes, 1);
		return 3;
	}
	if (rest.n >= 6 && (rest.p[1] == 'u' || rest.p[1] == 'U') &&
	    text_from_hex(slice_of(rest.p + 2, 4), bytes, 2) == 0) {
		buf_append(out, character,
			   (size_t)utf8proc_encode_char(bytes[0] << 8 | bytes[1], character));
		return 6;
	}
	return 0;
}

/* Returns whether there was anything to decode; if not, nothing that counts is appended. */
static bool decode_percent(struct slice text, struct buf *out)
{
	const char *sign;
	bool has_any = false;

	while (text.n > 0 && (sign = memchr(text.p, '%', text.n)) != NULL) {
		size_t before = (size_t)(sign - text.p);
		size_t n;

		buf_append(out, text.p, before);
		text = slice_of(sign, text.n - before);
		n = append_decoded(text, out);
		has_any = has_any || n > 0;
		if (n == 0) {
			buf_append_char(out, '%');
			n = 1;
		}
		text = slice_of(text.p + n, text.n - n);
	}
	buf_append_slice(out, text);
	return has_any;
}

/* False: it was encoded more often than anybody does it. */
static bool read_fully(struct slice text, struct reading *reading)
{
	bool is_encoded = true;

	append_folded(text, reading);
	for (int pass = 0; is_encoded && pass < PASSES_MAX; pass++) {
		at_end(buf_fini) struct buf decoded = { 0 };

		is_encoded = decode_percent(buf_slice(&reading->text), &decoded);
		if (is_encoded) {
			reading->text.len = 0;
			append_folded(buf_slice(&decoded), reading);
		}
	}
	return !is_encoded;
}

/* ---- parts ---- */

/* Without what is stripped before it. What is behind it stays: it would be another name, beside the root. */
static struct slice strip(struct slice text)
{
	size_t n;

	while (text.n > 0 && (n = text_utf8_length(text)) > 0 &&
	       unicode_is_wrapping(unicode_decode(slice_of(text.p, n))))
		text = slice_of(text.p + n, text.n - n);
	return text;
}

static bool is_dots(struct slice part)
{
	return slice_is_equal(part, SLICE_LIT(".."));
}

/* A part that is nothing, or the directory itself. */
static bool is_nothing(struct slice part)
{
	return part.n == 0 || slice_is_equal(part, SLICE_LIT("."));
}

/*
 * Dots, spaces and quotes alone, or with something behind that is cut off where paths have parameters, queries, fragments or
 * streams: such a part may be nothing, or lead up. Returns its dots, 1 if there are none; 0: it is a name.
 */
static size_t dots_of(struct slice part)
{
	struct slice rest = part;
	size_t n, dots = 0;

	while (rest.n > 0 && (n = text_utf8_length(rest)) > 0) {
		uint32_t code = unicode_decode(slice_of(rest.p, n));

		if (code != '.' && !unicode_is_wrapping(code))
			break;
		dots += code == '.';
		rest = slice_of(rest.p + n, rest.n - n);
	}
	if (rest.n == part.n || (rest.n > 0 && memchr(";?#:", rest.p[0], 4) == NULL))
		return 0;
	return dots > 0 ? dots : 1;
}

bool path_is_parent(struct slice part)
{
	return dots_of(part) == 2;
}

/* In the full reading. What ends with an ellipsis is a sentence. */
static bool leads_up(struct slice reading)
{
	while (reading.p != NULL) {
		struct slice part = slice_cut(&reading, '/');

		if (path_is_parent(part) || (reading.p != NULL && dots_of(part) > 1))
			return true;
	}
	return false;
}

/* Of the full reading, and of the text itself: only where both are one is the text what it seems to be. */
static enum path_kind paths_kind_of(struct slice text)
{
	size_t name = 1;

	if (text.n >= 5 && slice_is_equal_nocase(slice_of(text.p, 5), SLICE_LIT("file:")))
		return PATH_URI;
	if (text.n >= 1 && text.p[0] == '/')
		return PATH_ABSOLUTE;
	if (text.n >= 3 && text.p[1] == ':' && text.p[2] == '/' &&
	    is_letter_or_digit((unsigned char)text.p[0]))
		return PATH_DRIVE;
	if (text.n == 0 || text.p[0] != '~')
		return PATH_RELATIVE;
	while (name < text.n && (is_letter_or_digit((unsigned char)text.p[name]) ||
				 memchr("+-._", text.p[name], 4) != NULL))
		name++;
	return name == text.n || text.p[name] == '/' ? PATH_HOME : PATH_RELATIVE;
}

static bool looks_like_path(struct slice reading)
{
	return paths_kind_of(reading) != PATH_RELATIVE ||
	       slice_has_prefix(reading, SLICE_LIT("./")) || leads_up(reading);
}

/* ---- inside ---- */

/* Cuts the next part that is something off; false: there is none. */
static bool cut_part(struct slice *rest, struct slice *part_r)
{
	do
		*part_r = rest->p != NULL ? slice_cut(rest, '/') : slice_of(NULL, 0);
	while (is_nothing(*part_r) && rest->p != NULL);
	return !is_nothing(*part_r);
}

/* Whether a path begins with the root; *rest_r is what follows. */
static bool strip_root(struct slice path, struct slice root, struct slice *rest_r)
{
	struct slice wanted, part;

	while (cut_part(&root, &wanted))
		if (!cut_part(&path, &part) || !slice_is_equal(part, wanted))
			return false;
	*rest_r = path;
	return true;
}

/* From a root on. */
static bool stays_below(struct slice rest)
{
	struct reading reading = { { 0 }, false };
	bool is_inside = read_fully(rest, &reading);
	struct slice left = buf_slice(&reading.text);
	bool is_plain = slice_is_equal(left, rest);
	size_t depth = 0;

	while (is_inside && left.p != NULL) {
		struct slice part = slice_cut(&left, '/');

		if (is_dots(part)) {
			is_inside = is_plain && depth > 0;
			depth -= is_inside;
		} else if (!is_nothing(part)) {
			is_inside = dots_of(part) == 0;
			depth++;
		}
	}
	buf_fini(&reading.text);
	return is_inside;
}

static bool is_below_a_root(const struct path_rules *rules, struct slice path)
{
	struct slice rest;

	for (size_t i = 0; i < rules->roots.count; i++)
		if (strip_root(path, rules->roots.items[i], &rest) && stays_below(rest))
			return true;
	return false;
}

/* RFC 3986 §3.3: what stands for itself needs no percent-encoding, and who encodes it all the same hides something. */
static bool needs_encoding(unsigned char byte)
{
	return !is_letter_or_digit(byte) &&
	       (byte == 0 || strchr("-._~!$&'()*+,;=:@/", byte) == NULL);
}

static void decode_uri(struct slice text, struct buf *out)
{
	unsigned char byte;

	while (text.n > 0) {
		size_t n = 1;

		if (text.p[0] == '%' && text.n >= 3 &&
		    text_from_hex(slice_of(text.p + 1, 2), &byte, 1) == 0 && needs_encoding(byte))
			n = 3;
		buf_append_char(out, n == 3 ? (char)byte : text.p[0]);
		text = slice_of(text.p + n, text.n - n);
	}
}

/* `file:///PATH` or `file:/PATH`: no host, not even this machine. RFC 8089. */
static bool is_uri_inside(const struct path_rules *rules, struct slice text)
{
	struct slice path = slice_of(text.p + strlen("file:"), text.n - strlen("file:"));
	at_end(buf_fini) struct buf whole = { 0 }, cut = { 0 };
	size_t end = 0;

	if (slice_has_prefix(path, SLICE_LIT("//")))
		path = slice_of(path.p + 2, path.n - 2);
	while (end < path.n && path.p[end] != '?' && path.p[end] != '#')
		end++;
	decode_uri(path, &whole);
	decode_uri(slice_of(path.p, end), &cut);
	return end > 0 && path.p[0] == '/' && is_below_a_root(rules, buf_slice(&whole)) &&
	       is_below_a_root(rules, buf_slice(&cut));
}

static bool is_relative_inside(const struct path_rules *rules, struct slice text)
{
	at_end(buf_fini) struct buf path = { 0 };
	bool is_inside = false;

	if (rules->base.n > 0) {
		buf_append_slice(&path, rules->base);
		buf_append_char(&path, '/');
		buf_append_slice(&path, text);
		is_inside = is_below_a_root(rules, buf_slice(&path));
	}
	return is_inside;
}

static bool is_inside(const struct path_rules *rules, struct slice text, enum path_kind kind)
{
	switch (kind) {
	case PATH_RELATIVE:
		return is_relative_inside(rules, text);
	case PATH_ABSOLUTE:
		return is_below_a_root(rules, text);
	case PATH_URI:
		return is_uri_inside(rules, text);
	case PATH_HOME:
	case PATH_DRIVE:
		break;
	}
	return false;
}

/* Most texts: there is one reading, and it is no path. */
static bool is_surely_none(struct slice text)
{
	return text_plain_length(text) == text.n &&
	       (text.n == 0 || memchr(text.p, '%', text.n) == NULL) &&
	       !looks_like_path(strip(text));
}

enum path_verdict path_judge(const struct path_rules *rules, struct slice text, bool is_one)
{
	struct reading reading = { { 0 }, false };
	enum path_verdict verdict = PATH_OUTSIDE;
	struct slice read;
	bool is_readable;

	if (!is_one && is_surely_none(text))
		return PATH_NONE;
	is_readable = read_fully(text, &reading);
	read = strip(buf_slice(&reading.text));
	text = strip(text);
	if (is_readable && !is_one && !looks_like_path(read))
		verdict = PATH_NONE;
	else if (is_readable && !reading.has_control &&
		 paths_kind_of(text) == paths_kind_of(read) &&
		 is_inside(rules, text, paths_kind_of(text)))
		verdict = PATH_INSIDE;
	buf_fini(&reading.text);
	return verdict;
}

bool path_is_absolute(struct slice path)
{
	bool is_good = path.n > 0 && path.p[0] == '/';

	for (size_t i = 0; i < path.n; i++)
		is_good = is_good && (unsigned char)path.p[i] >= ' ' && path.p[i] != 0x7F;
	while (is_good && path.p != NULL)
		is_good = !is_dots(slice_cut(&path, '/'));
	return is_good;
}
