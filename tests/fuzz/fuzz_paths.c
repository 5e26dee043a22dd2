/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of paths in arguments. The first byte says what is known of the text, the rest is it. What must hold: nothing
 * behind it is read; what is inside is so in plain readings made here, which know nothing of the judge's own: as it is, with
 * percent-encodings decoded once or twice, and backslashes as slashes; and what lies behind a root's name is as good as
 * the same behind another's.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/text.h"
#include "policy/paths.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct slice root = SLICE("/r");
static const struct slice other = SLICE("/other/root");
static const struct path_rules rules = { { &root, 1 }, SLICE("") };
static const struct path_rules based = { { &root, 1 }, SLICE("/r/b") };
static const struct path_rules others = { { &other, 1 }, SLICE("") };

/* In place; returns the new length. */
static size_t unquote(char *text, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char byte;

		if (text[i] == '%' && n - i > 2 &&
		    text_from_hex(slice_of(text + i + 1, 2), &byte, 1) == 0) {
			text[to++] = (char)byte;
			i += 2;
		} else {
			text[to++] = text[i];
		}
	}
	return to;
}

/* Never above where it begins; what begins with a slash, never out of the root. */
static void check_stays(struct slice text, long depth)
{
	bool is_absolute = text.n > 0 && text.p[0] == '/';
	size_t parts = 0;

	if (is_absolute)
		depth = -1;
	while (text.p != NULL) {
		struct slice part = slice_cut(&text, '/');

		if (part.n == 0 || slice_is_equal(part, SLICE_LIT(".")))
			continue;
		if (is_absolute && parts++ == 0)
			CHECK(slice_is_equal(part, SLICE_LIT("r")));
		depth += slice_is_equal(part, SLICE_LIT("..")) ? -1 : 1;
		CHECK(depth >= 0);
	}
	CHECK(!is_absolute || parts > 0);
}

static void check_readings(struct slice text, long depth)
{
	while (text.n > 0 && strchr(" \t\r\n\v\f\"'`", text.p[0]) != NULL)
		text = slice_of(text.p + 1, text.n - 1);
	if (text.n >= 5 && slice_is_equal_nocase(slice_of(text.p, 5), SLICE_LIT("file:")))
		text = slice_of(text.p + 5, text.n - 5);
	for (int times = 0; times < 3; times++) {
		char *copy = malloc(text.n + 1);
		size_t n = text.n;

		memcpy(copy, text.p, n);
		for (int i = 0; i < times; i++)
			n = unquote(copy, n);
		check_stays(slice_of(copy, n), depth);
		for (size_t i = 0; i < n; i++)
			copy[i] = copy[i] == '\\' ? '/' : copy[i];
		check_stays(slice_of(copy, n), depth);
		free(copy);
	}
}

static void check_elsewhere(struct slice text, enum path_verdict verdict)
{
	struct buf moved = { 0 };

	buf_append_slice(&moved, other);
	buf_append(&moved, text.p + root.n, text.n - root.n);
	CHECK(path_judge(&others, buf_slice(&moved), false) == verdict);
	buf_fini(&moved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool is_one = size > 0 && (data[0] & 1) != 0;
	const struct path_rules *by = size > 0 && (data[0] & 2) != 0 ? &based : &rules;
	size_t n = size > 0 ? size - 1 : 0;
	char *copy = malloc(n > 0 ? n : 1); /* exact: a read behind it is seen */
	struct slice text = slice_of(copy, n);
	enum path_verdict verdict;

	if (n > 0)
		memcpy(copy, data + 1, n);
	if (text_is_utf8(text)) {
		verdict = path_judge(by, text, is_one);
		CHECK(!is_one || verdict != PATH_NONE);
		if (verdict == PATH_INSIDE) {
			CHECK(memchr(copy, '\0', n) == NULL);
			check_readings(text, by == &based ? 1 : -1);
		}
		if (slice_has_prefix(text, SLICE_LIT("/r/")))
			check_elsewhere(text, path_judge(&rules, text, false));
		CHECK(path_is_absolute(text) == false || copy[0] == '/');
	}
	free(copy);
	return 0;
}
