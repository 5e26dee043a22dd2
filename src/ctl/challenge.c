/* SPDX-License-Identifier: Apache-2.0 */
/* Word by word: one that is followed by `=` is a parameter of the scheme before it, any other is a scheme. */
#include "ctl/challenge.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"

static void skip(struct slice *rest, const char *bytes)
{
	while (rest->n > 0 && *rest->p != '\0' && strchr(bytes, *rest->p) != NULL)
		*rest = slice_of(rest->p + 1, rest->n - 1);
}

static struct slice cut_word(struct slice *rest)
{
	struct slice word = slice_of(rest->p, 0);

	while (word.n < rest->n &&
	       (rest->p[word.n] == '\0' || strchr(" \t,=\"", rest->p[word.n]) == NULL))
		word.n++;
	CHECK(word.n <= rest->n);
	*rest = slice_of(rest->p + word.n, rest->n - word.n);
	return word;
}

/* A token, or what is quoted; an end without a quote ends that as well. */
static char *cut_value(struct slice *rest)
{
	struct buf text = { 0 };
	char *value;
	size_t i = 1;

	skip(rest, " \t=");
	if (rest->n == 0 || *rest->p != '"')
		return mem_dup_slice(cut_word(rest));
	for (; i < rest->n && rest->p[i] != '"'; i++) {
		if (rest->p[i] == '\\' && i + 1 < rest->n)
			i++;
		buf_append_char(&text, rest->p[i]);
	}
	i += i < rest->n;
	CHECK(i <= rest->n);
	*rest = slice_of(rest->p + i, rest->n - i);
	value = mem_strdup(buf_terminate(&text));
	buf_fini(&text);
	return value;
}

/* Takes the value. The first of its name counts. */
static void take(struct challenge *challenge, struct slice name, char *value)
{
	const struct {
		const char *name;
		char **value;
	} known[] = {
		{ "resource_metadata", &challenge->resource_metadata },
		{ "scope", &challenge->scope },
		{ "error", &challenge->error },
		{ "error_description", &challenge->error_description },
	};

	CHECK(challenge->is_bearer && value != NULL);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (*known[i].value == NULL &&
		    slice_is_equal_nocase(name, slice_str(known[i].name))) {
			*known[i].value = value;
			return;
		}
	}
	free(value);
}

void challenge_parse(struct slice field, struct challenge *challenge_r)
{
	struct slice rest = field;
	bool is_ours = false;
	size_t count = 0;

	*challenge_r = (struct challenge){ .is_bearer = false };
	while (rest.n > 0) {
		struct slice word;
		struct slice after;

		skip(&rest, " \t,=\"");
		word = cut_word(&rest);
		after = rest;
		skip(&after, " \t");
		if (after.n > 0 && *after.p == '=') {
			char *value = cut_value(&rest);

			if (is_ours)
				take(challenge_r, word, value);
			else
				free(value);
		} else if (word.n > 0) {
			is_ours = slice_is_equal_nocase(word, SLICE_LIT("Bearer"));
			challenge_r->is_bearer |= is_ours;
			challenge_r->is_first |= is_ours && count == 0;
			count++;
		}
	}
	CHECK(challenge_r->is_bearer || !challenge_r->is_first);
}

void challenge_fini(struct challenge *challenge)
{
	free(challenge->resource_metadata);
	free(challenge->scope);
	free(challenge->error);
	free(challenge->error_description);
	*challenge = (struct challenge){ .is_bearer = false };
}
