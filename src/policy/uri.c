/* SPDX-License-Identifier: Apache-2.0 */
/* Each step takes the whole text that the one before has made: what a step brings forth, the next one sees. */
#include "policy/uri.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/unicode.h"
#include "policy/paths.h"

#define DECODINGS_MAX 4

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place: it never writes what it has not read. Returns whether something was decoded. */
static bool decode_once(struct buf *text)
{
	size_t to = 0;

	for (size_t from = 0; from < text->len; to++) {
		const char *p = text->data + from;
		bool is_encoded = from + 2 < text->len && p[0] == '%' && hex_value(p[1]) >= 0 &&
				  hex_value(p[2]) >= 0;

		text->data[to] = is_encoded ? (char)(hex_value(p[1]) << 4 | hex_value(p[2])) : *p;
		from += is_encoded ? 3 : 1;
	}
	if (to == text->len)
		return false;
	text->len = to;
	return true;
}

static const char *check_characters(struct slice rest)
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
static struct slice cut_before(struct slice *rest_r, const char *characters)
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
	struct slice scheme = cut_before(&rest, ":/?#");

	if (rest.n == 0 || rest.p[0] != ':')
		return;
	append_lower(out, scheme);
	buf_append_char(out, ':');
	*rest_r = slice_of(rest.p + 1, rest.n - 1);
}

/* Of these WHATWG URL reads a host, however many slashes are before it. */
static bool is_web(struct slice scheme)
{
	static const struct slice schemes[] = { SLICE("http:"), SLICE("https:"), SLICE("ws:"),
						SLICE("wss:"), SLICE("ftp:") };

	return slices_has((struct slices){ schemes, ARRAY_LEN(schemes) }, scheme);
}

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
	bool is_of_web = is_web(buf_slice(out));
	size_t slashes = 0;
	struct slice host;

	*has_host_r = false;
	while (slashes < rest_r->n && rest_r->p[slashes] == '/')
		slashes++;
	if (!is_of_web && slashes < 2)
		return NULL;
	slashes = is_of_web ? slashes : 2;
	*rest_r = slice_of(rest_r->p + slashes, rest_r->n - slashes);
	host = cut_before(rest_r, "/?#");
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

static const char *append_parts(struct buf *out, struct slice uri)
{
	struct slice path;
	bool has_host;
	const char *why;

	append_scheme(out, &uri);
	why = append_host(out, &uri, &has_host);
	path = cut_before(&uri, "?#");
	if (why == NULL)
		why = append_path(out, path, has_host);
	return why != NULL ? why : append_query(out, uri);
}

/* ---- all of it ---- */

const char *uri_fold(struct slice uri, struct buf *folded)
{
	struct buf text = { 0 }, made = { 0 };
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
		why = check_characters(buf_slice(&text));
	if (why == NULL && is_wrapped(buf_slice(&text)))
		why = "begins or ends with a space or a quote, which many servers strip";
	if (why == NULL)
		why = append_parts(&made, buf_slice(&text));
	if (why == NULL)
		buf_append_slice(folded, buf_slice(&made));
	buf_fini(&made);
	buf_fini(&text);
	return why;
}
