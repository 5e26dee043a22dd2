/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a message with edits. Does not look at what the text means: outside strings a valid text
 * has no separators, inside it has no raw line breaks, so bytes tell the places.
 *
 * bridging.md I6; RPC-04, BACK-FRAME-01.
 */
#include "jsonrpc/splice.h"

#include <string.h>

#include "base/check.h"

static void splice_escape_separators(struct buf *out, struct slice s)
{
	static const struct {
		struct slice raw;
		const char *escape;
	} separators[] = {
		{ SLICE("\xC2\x85"), "\\u0085" },
		{ SLICE("\xE2\x80\xA8"), "\\u2028" },
		{ SLICE("\xE2\x80\xA9"), "\\u2029" },
	};
	const char *end = s.p + s.n;
	const char *copied = s.p;
	bool may_have_one = memchr(s.p, '\xC2', s.n) != NULL || memchr(s.p, '\xE2', s.n) != NULL;

	for (const char *p = s.p; may_have_one && p < end; p++) {
		bool may_be_one = *p == '\xC2' || *p == '\xE2';

		for (size_t i = 0; may_be_one && i < ARRAY_LEN(separators); i++) {
			if (!slice_has_prefix(slice_between(p, end), separators[i].raw))
				continue;
			buf_append_slice(out, slice_between(copied, p));
			buf_append_str(out, separators[i].escape);
			copied = p + separators[i].raw.n;
		}
	}
	buf_append_slice(out, slice_between(copied, end));
}

static void splice_blank(struct buf *out, size_t from, char c)
{
	char *end = out->data + out->len;

	for (char *p = out->data + from; (p = memchr(p, c, (size_t)(end - p))) != NULL; p++)
		*p = ' ';
}

static void splice_copy(struct buf *out, struct slice s, unsigned int flags)
{
	size_t before = out->len;

	if (s.n == 0)
		return;
	if (flags & SPLICE_ESCAPE_SEPARATORS)
		splice_escape_separators(out, s);
	else
		buf_append_slice(out, s);
	if (flags & SPLICE_ONE_LINE) {
		splice_blank(out, before, '\n');
		splice_blank(out, before, '\r');
	}
}

void splice_append(struct buf *out, struct slice text, const struct splice_edit *edits,
		   size_t count, unsigned int flags)
{
	const char *p = text.p;
	const char *end = text.n > 0 ? text.p + text.n : text.p;

	CHECK(count == 0 || edits != NULL);
	for (size_t i = 0; i < count; i++) {
		const struct splice_edit *edit = &edits[i];

		CHECK(edit->span.p >= p && edit->span.p + edit->span.n <= end);
		splice_copy(out, slice_between(p, edit->span.p), flags);
		splice_copy(out, edit->with, flags);
		p = edit->span.p + edit->span.n;
	}
	splice_copy(out, slice_between(p, end), flags);
}
