/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of Mcp-Name and Mcp-Param-*. Whoever reads such a value before us must have read the
 * same: of the texts that other decoders map to the same bytes, only one is accepted. Streamable
 * HTTP §Value Encoding.
 */
#include "base/text.h"
#include "endpoint/modern.h"

static const struct slice prefix = SLICE("=?base64?");
static const struct slice suffix = SLICE("?=");

/* Visible ASCII, space and tab. MOD-HDR-03 */
bool modern_is_plain(struct slice value)
{
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if ((c < 0x20 && c != '\t') || c > 0x7e)
			return false;
	}
	return true;
}

/*
 * Whether both ends are marked, even if they share a question mark: then there is nothing between
 * them, not even an empty text.
 */
static bool is_marked(struct slice value)
{
	return value.n > prefix.n && slice_has_prefix(value, prefix) &&
	       slice_is_equal(slice_of(value.p + value.n - suffix.n, suffix.n), suffix);
}

/*
 * Base64 with padding, RFC 4648 §4. It differs from base64url only in two characters and the
 * padding.
 */
static bool decode_base64(struct slice text, struct buf *out)
{
	char *place;
	size_t size;

	if (text.n % 4 != 0)
		return false;
	for (int i = 0; i < 2 && text.n > 0 && text.p[text.n - 1] == '='; i++)
		text.n--;
	place = buf_reserve(out, text.n);
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c == '-' || c == '_')
			return false;
		place[i] = c == '+' ? '-' : c == '/' ? '_' : c;
	}
	/* Decoding in place is safe: it never writes beyond what it has read. */
	if (text_from_base64url(slice_of(place, text.n), place, &size) < 0 ||
	    !text_is_utf8(slice_of(place, size)))
		return false;
	out->len += size;
	return true;
}

bool modern_decode_value(struct slice value, struct buf *out)
{
	if (!modern_is_plain(value))
		return false;
	if (!is_marked(value)) {
		buf_append_slice(out, value);
		return true;
	}
	return value.n >= prefix.n + suffix.n &&
	       decode_base64(slice_of(value.p + prefix.n, value.n - prefix.n - suffix.n), out);
}

bool modern_is_equal(struct slice value, struct json string)
{
	struct buf said = { 0 };
	struct buf meant = { 0 };
	bool is_equal;

	if (!string.has_escape && !is_marked(value))
		return modern_is_plain(value) && string.type == JSON_STRING &&
		       slice_is_equal(value, scan_plain_string(string));
	is_equal = modern_decode_value(value, &said) && scan_decode_string(string, &meant) == 0 &&
		   slice_is_equal(buf_slice(&said), buf_slice(&meant));
	buf_fini(&said);
	buf_fini(&meant);
	return is_equal;
}
