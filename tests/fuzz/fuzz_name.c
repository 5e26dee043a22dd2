/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the names of tools. What must hold: nothing behind the name is read; what is folded is UTF-8 without spaces,
 * bounded, and folds to itself; whatever a server makes of the name (case, normal forms, stripped spaces, and two of
 * these, one after the other) folds alike, so that what a pattern needs is needed for that as well.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/text.h"
#include "policy/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int forms[] = {
	UTF8PROC_COMPOSE,
	UTF8PROC_DECOMPOSE,
	UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
	UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
	UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD,
	UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD,
};

static utf8proc_int32_t (*const cases[])(utf8proc_int32_t) = { utf8proc_toupper, utf8proc_tolower };

enum { MAKES = ARRAY_LEN(forms) + ARRAY_LEN(cases) + 1 };

/* What a server makes of the text, in one of its ways. */
static void make(struct slice text, size_t how, struct buf *out)
{
	utf8proc_uint8_t *mapped = NULL;
	utf8proc_int32_t points[NAME_BYTES_MAX * 18];
	utf8proc_uint8_t bytes[4];
	utf8proc_ssize_t n;

	if (how < ARRAY_LEN(forms)) {
		n = utf8proc_map((const utf8proc_uint8_t *)text.p, (utf8proc_ssize_t)text.n,
				 &mapped, (utf8proc_option_t)forms[how]);
		CHECK(n >= 0);
		buf_append(out, mapped, (size_t)n);
		free(mapped);
		return;
	}
	n = utf8proc_decompose((const utf8proc_uint8_t *)text.p, (utf8proc_ssize_t)text.n, points,
			       ARRAY_LEN(points), (utf8proc_option_t)0);
	CHECK(n >= 0 && n <= (utf8proc_ssize_t)ARRAY_LEN(points));
	for (utf8proc_ssize_t i = 0; i < n; i++) {
		bool is_space = utf8proc_category(points[i]) == UTF8PROC_CATEGORY_ZS;

		if (how - ARRAY_LEN(forms) < ARRAY_LEN(cases))
			points[i] = cases[how - ARRAY_LEN(forms)](points[i]);
		else if (is_space)
			continue;
		buf_append(out, bytes, (size_t)utf8proc_encode_char(points[i], bytes));
	}
}

static void check_folds_alike(struct slice made, struct slice folded)
{
	struct buf again = { 0 };

	if (made.n <= NAME_BYTES_MAX && name_fold(made, &again) == NULL)
		CHECK(slice_is_equal(buf_slice(&again), folded));
	buf_fini(&again);
}

static void check_makes(struct slice name, struct slice folded)
{
	for (size_t i = 0; i < MAKES; i++) {
		struct buf first = { 0 };

		make(name, i, &first);
		check_folds_alike(buf_slice(&first), folded);
		for (size_t j = 0; j < MAKES && first.len <= NAME_BYTES_MAX; j++) {
			struct buf second = { 0 };

			make(buf_slice(&first), j, &second);
			check_folds_alike(buf_slice(&second), folded);
			buf_fini(&second);
		}
		buf_fini(&first);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size > 0 ? size : 1); /* exact: a read behind it is seen */
	struct slice name = slice_of(copy, size);
	struct buf folded = { 0 };

	memcpy(copy, data, size);
	if (name_fold(name, &folded) == NULL) {
		CHECK(size > 0 && size <= NAME_BYTES_MAX && text_is_utf8(name));
		CHECK(folded.len > 0 && text_is_utf8(buf_slice(&folded)));
		CHECK(memchr(folded.data, ' ', folded.len) == NULL);
		CHECK(memchr(folded.data, '\0', folded.len) == NULL);
		check_folds_alike(buf_slice(&folded), buf_slice(&folded));
		check_makes(name, buf_slice(&folded));
	} else {
		CHECK(folded.len == 0);
	}
	buf_fini(&folded);
	free(copy);
	return 0;
}
