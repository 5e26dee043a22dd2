/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Characters are decomposed and stay so: of a text that fits `a*` the folded form begins with that of `a`, whatever
 * would compose with it. Two texts are the same in NFKD if and only if they are in NFKC.
 */
#include "endpoint/tool_name.h"

#include <utf8proc.h>

#include "base/text.h"
#include "base/unicode.h"

#define POINTS_MAX 1024 /* of a folded name; some characters become 18 */
#define DOTLESS_I 0x131
#define DOT_ABOVE 0x307

static const char *check_characters(struct slice rest)
{
	while (rest.n > 0) {
		size_t n = text_utf8_length(rest);
		uint32_t code = n > 0 ? unicode_decode(slice_of(rest.p, n)) : 0;

		if (unicode_is_hidden(code) || unicode_is_unknown(code))
			return "has a character that is not seen or has no meaning";
		rest = slice_of(rest.p + n, rest.n - n);
	}
	return NULL;
}

/*
 * Turkish casing takes the dotless i for the small letter of I, and I with a dot for the capital of i. Spaces fall
 * away wherever they are: some servers strip them, each in its own way.
 */
static void append_points(const utf8proc_int32_t *points, size_t count, struct buf *out)
{
	utf8proc_int32_t last = 0;

	for (size_t i = 0; i < count; i++) {
		utf8proc_int32_t point = points[i] == DOTLESS_I ? 'i' : points[i];
		utf8proc_uint8_t bytes[4];

		if (utf8proc_category(point) == UTF8PROC_CATEGORY_ZS ||
		    (point == DOT_ABOVE && last == 'i'))
			continue;
		buf_append(out, bytes, (size_t)utf8proc_encode_char(point, bytes));
		last = point;
	}
}

const char *tool_name_fold(struct slice name, struct buf *folded)
{
	const utf8proc_option_t options = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD;
	const size_t length_before = folded->len;
	utf8proc_int32_t points[POINTS_MAX];
	utf8proc_ssize_t count;
	const char *why;

	if (name.n > TOOL_NAME_BYTES_MAX)
		return "is too long";
	why = check_characters(name);
	if (why != NULL)
		return why;
	count = utf8proc_decompose((const utf8proc_uint8_t *)name.p, (utf8proc_ssize_t)name.n,
				   points, POINTS_MAX, options);
	if (count < 0 || count > POINTS_MAX)
		return "is too long";
	append_points(points, (size_t)count, folded);
	return folded->len > length_before ? NULL : "is empty";
}
