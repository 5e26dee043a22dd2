/* SPDX-License-Identifier: Apache-2.0 */
/* One pattern after the other over each string; what one has replaced, the next does not see any more. */
#include "policy/redact.h"

#include <stdlib.h>

#include "base/mem.h"
#include "jsonrpc/grammar.h"
#include "jsonrpc/write.h"
#include "policy/characters.h"
#include "policy/pattern.h"

#define SLOW_MS 1000
#define ENCODED_MIN 1024 /* bytes of base64 that is no text */

static const struct slice instead = SLICE("[redacted]");

int redact_add(struct redact_rules *rules, struct slice expression, struct error *err)
{
	struct pattern *pattern = pattern_new(expression, err);

	if (pattern == NULL)
		return -1;
	rules->patterns =
		mem_resize(rules->patterns, (rules->count + 1) * sizeof(*rules->patterns));
	rules->patterns[rules->count++] = pattern;
	return 0;
}

void redact_free(struct redact_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		pattern_free(&rules->patterns[i]);
	free(rules->patterns);
	*rules = (struct redact_rules){ NULL, 0 };
}

/* ---- one string ---- */

/*
 * Returns false: too hard. If something in `seen` fits, `text` becomes what it is without, and `seen` becomes that; else both
 * are left alone.
 */
static bool replace_all(struct pattern *pattern, struct slice *seen, struct buf *text,
			struct pattern_work *work, uint64_t *found)
{
	struct buf changed = { 0 };
	enum pattern_verdict verdict;
	struct slice place;
	size_t at = 0;

	while ((verdict = pattern_find(pattern, *seen, at, work, &place)) == PATTERN_FOUND &&
	       place.n > 0) {
		size_t begin = (size_t)(place.p - seen->p);

		buf_append(&changed, seen->p + at, begin - at);
		buf_append_slice(&changed, instead);
		at = begin + place.n;
		++*found;
	}
	if (at > 0) {
		buf_append(&changed, seen->p + at, seen->n - at);
		buf_fini(text);
		*text = changed;
		*seen = buf_slice(text);
	}
	/* An empty place has nothing that could be replaced. */
	return verdict == PATTERN_ABSENT;
}

/* Whether a string has nothing that fits; if it has, `text` becomes what it is without. */
static bool is_clean(const struct redact_rules *rules, struct slice between_quotes,
		     struct buf *text, struct pattern_work *work, struct redact_counts *counts)
{
	struct slice seen = between_quotes; /* what it means, too, if nothing in it is escaped */
	uint64_t found = 0;
	bool is_known = true;

	if (seen.n > 0 && memchr(seen.p, '\\', seen.n) != NULL) {
		characters_decode(between_quotes, text);
		seen = buf_slice(text);
	}
	for (size_t i = 0; i < rules->count && is_known; i++)
		is_known = replace_all(rules->patterns[i], &seen, text, work, &found);
	counts->found += found;
	if (!is_known) {
		counts->too_hard++;
		text->len = 0;
		buf_append_slice(text, instead);
	}
	return is_known && found == 0;
}

/* ---- all strings ---- */

static bool is_encoded(struct slice s)
{
	if (s.n < ENCODED_MIN)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
		bool is_digit = c >= '0' && c <= '9';

		if (!is_letter && !is_digit && (c == '\0' || strchr("+/-_=", c) == NULL))
			return false;
	}
	return true;
}

static bool is_exempt(struct slice name, struct slice value)
{
	if (slice_is_equal(name, SLICE_LIT("data")) || slice_is_equal(name, SLICE_LIT("blob")))
		return is_encoded(value);
	return slice_is_equal(name, SLICE_LIT("nextCursor")) ||
	       slice_is_equal(name, SLICE_LIT("requestState"));
}

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && grammar_is_space(*p))
		p++;
	return p;
}

static bool is_kept(struct slices kept, struct slice value)
{
	for (size_t i = 0; i < kept.count; i++)
		if (kept.items[i].n > 0 && value.p >= kept.items[i].p &&
		    value.p < kept.items[i].p + kept.items[i].n)
			return true;
	return false;
}

/* Most texts: no string in it has what a pattern begins with, and what is written there is what it means. */
static bool is_surely_clean(const struct redact_rules *rules, struct slice text)
{
	for (size_t i = 0; i < rules->count; i++)
		if (!pattern_is_absent(rules->patterns[i], text))
			return false;
	return text.n == 0 || memchr(text.p, '\\', text.n) == NULL;
}

static void note_pace(struct redact_pace *pace, const struct pattern_work *work)
{
	if (!work->is_spent)
		return;
	pace->most_ns = work->most_ns / 4 > REDACT_LEAST_NS ? work->most_ns / 4 : REDACT_LEAST_NS;
	pace->slow_until_ms = pace->now_ms + SLOW_MS;
}

bool redact_text(const struct redact_rules *rules, struct slice text, struct slices kept,
		 struct redact_pace *pace, struct buf *out, struct redact_counts *counts)
{
	struct pattern_work work = { .most_ns = pace->now_ms < pace->slow_until_ms ?
							pace->most_ns :
							PATTERN_WORK_MAX_NS };
	const char *end = text.p + text.n, *copied = text.p, *p = text.p;
	struct slice name = { NULL, 0 }; /* of the member whose value is at p */
	struct buf decoded = { 0 };

	CHECK(out->len == 0);
	if (rules->count == 0 || is_surely_clean(rules, text))
		return false;
	while (p < end && (p = memchr(p, '"', (size_t)(end - p))) != NULL) {
		struct slice value = slice_between(p + 1, characters_find_end(p + 1));
		const char *behind = skip_space(value.p + value.n + 1, end);

		if (behind < end && *behind == ':') {
			p = skip_space(behind + 1, end);
			name = *p == '"' ? value : (struct slice){ NULL, 0 };
			continue;
		}
		if (!is_exempt(name, value) && !is_kept(kept, value) &&
		    !is_clean(rules, value, &decoded, &work, counts)) {
			buf_append(out, copied, (size_t)(p - copied));
			write_string(out, buf_slice(&decoded));
			copied = value.p + value.n + 1;
		}
		decoded.len = 0;
		name = (struct slice){ NULL, 0 };
		p = value.p + value.n + 1;
	}
	buf_wipe(&decoded);
	note_pace(pace, &work);
	if (copied > text.p)
		buf_append(out, copied, (size_t)(end - copied));
	return copied > text.p;
}
