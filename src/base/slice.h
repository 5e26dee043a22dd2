/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A borrowed run of bytes. It is not NUL-terminated and may contain NUL bytes. A slice must not
 * outlive the memory it points into.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct slice {
	const char *p;
	size_t n;
};

/* A slice of a string literal; also valid in static initializers. */
#define SLICE(literal)                          \
	{                                       \
		"" literal, sizeof(literal) - 1 \
	}
#define SLICE_LIT(literal) ((struct slice)SLICE(literal))
/* For printf's "%.*s". */
#define SLICE_ARG(s) (int)(s).n, (s).p

static inline struct slice slice_of(const char *p, size_t n)
{
	return (struct slice){ p, n };
}

static inline struct slice slice_str(const char *text)
{
	return (struct slice){ text, strlen(text) };
}

/* NULL gives an empty slice. */
static inline struct slice slice_or_empty(const char *text)
{
	return slice_str(text != NULL ? text : "");
}

/* The bytes from `begin` up to, but not including, `end`. */
static inline struct slice slice_between(const char *begin, const char *end)
{
	return (struct slice){ begin, (size_t)(end - begin) };
}

static inline bool slice_is_equal(struct slice a, struct slice b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Ignores the case of ASCII letters. */
static inline bool slice_is_equal_nocase(struct slice a, struct slice b)
{
	return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

static inline bool slice_has_prefix(struct slice s, struct slice prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

/* Strips spaces and tabs at both ends. */
static inline struct slice slice_trim(struct slice s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

/*
 * Cuts the part before the next `separator` off the front of *rest_r and returns it. *rest_r
 * becomes what follows the separator, or {NULL, 0} after the last part.
 */
static inline struct slice slice_cut(struct slice *rest_r, char separator)
{
	struct slice part = *rest_r;
	const char *at = part.n > 0 ? memchr(part.p, separator, part.n) : NULL;

	if (at == NULL) {
		*rest_r = (struct slice){ NULL, 0 };
		return part;
	}
	part.n = (size_t)(at - part.p);
	*rest_r = slice_of(at + 1, rest_r->n - part.n - 1);
	return part;
}

/* Whether one of the parts, as slice_cut makes them, is this text. */
static inline bool slice_has_part(struct slice list, char separator, struct slice wanted)
{
	while (list.n > 0)
		if (slice_is_equal(slice_cut(&list, separator), wanted))
			return true;
	return false;
}

/* Whether it is made of ASCII letters, digits and these others, and not empty. */
static inline bool slice_is_name(struct slice s, const char *others)
{
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z') &&
		    !(s.p[i] >= '0' && s.p[i] <= '9') &&
		    (s.p[i] == '\0' || strchr(others, s.p[i]) == NULL))
			return false;
	return s.n > 0;
}

/* An array of slices; its creator defines who owns it. */
struct slices {
	const struct slice *items;
	size_t count;
};

/* An array of named lists. */
struct slice_map {
	const struct named_slices *items;
	size_t count;
};
struct named_slices {
	struct slice name;
	struct slices values;
};

static inline bool slices_has(struct slices slices, struct slice wanted)
{
	for (size_t i = 0; i < slices.count; i++)
		if (slice_is_equal(slices.items[i], wanted))
			return true;
	return false;
}

static inline bool slices_has_nocase(struct slices slices, struct slice wanted)
{
	for (size_t i = 0; i < slices.count; i++)
		if (slice_is_equal_nocase(slices.items[i], wanted))
			return true;
	return false;
}
