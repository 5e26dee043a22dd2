/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most texts have nothing that could be meant, and one quick look says so. Only then are strings walked through character by
 * character. What stays is decided by the character before that stays and the one behind as written, which stays itself: so
 * a second walk finds nothing more.
 */
#include "policy/sanitize.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/pause.h"
#include "base/text.h"
#include "base/unicode.h"
#include "jsonrpc/grammar.h"
#include "jsonrpc/write.h"
#include "policy/pattern.h"

/* ---- characters of JSON strings ---- */

/* Relies on what the scanner has checked: escapes are whole, the rest is UTF-8, and a quote ends the string. */

#define REPLACEMENT 0xFFFD

static uint32_t sanitize_hex_value(const char *digits)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++) {
		unsigned char c = (unsigned char)digits[i];

		value = value << 4 | (c <= '9' ? c - (unsigned int)'0' : (c | 0x20u) - 'a' + 10u);
	}
	return value;
}

static bool characters_is_high_half(uint32_t code)
{
	return (code & ~0x3FFu) == 0xD800;
}

static bool characters_is_low_half(uint32_t code)
{
	return (code & ~0x3FFu) == 0xDC00;
}

static size_t sanitize_read_escape(const char *p, uint32_t *code_r)
{
	static const char letters[] = "bfnrt";
	static const char meanings[] = "\b\f\n\r\t";
	const char *letter = strchr(letters, p[1]);
	uint32_t low;

	if (p[1] != 'u') {
		*code_r = (unsigned char)(letter != NULL ? meanings[letter - letters] : p[1]);
		return 2;
	}
	*code_r = sanitize_hex_value(p + 2);
	if (!characters_is_high_half(*code_r) || p[6] != '\\' || p[7] != 'u')
		return 6;
	low = sanitize_hex_value(p + 8);
	if (!characters_is_low_half(low))
		return 6;
	*code_r = 0x10000 + ((*code_r & 0x3FF) << 10) + (low & 0x3FF);
	return 12;
}

size_t characters_read(const char *p, uint32_t *code_r)
{
	unsigned char first = (unsigned char)*p;
	size_t n = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;

	if (first == '\\')
		return sanitize_read_escape(p, code_r);
	*code_r = n == 1 ? first : unicode_decode(slice_of(p, n));
	return n;
}

const char *characters_find_end(const char *p)
{
	const char *quote = rawmemchr(p, '"');
	const char *escape;

	/* The next quote ends the string, unless an escape before it is that quote. */
	while ((escape = memchr(p, '\\', (size_t)(quote - p))) != NULL) {
		p = escape + 2;
		if (p > quote)
			quote = rawmemchr(p, '"');
	}
	return quote;
}

/* Appends the decoded content of a string as UTF-8; a lone surrogate becomes U+FFFD. */
static void characters_decode(struct slice between_quotes, struct buf *out)
{
	const char *p = between_quotes.p, *end = p + between_quotes.n;

	while (p < end) {
		const char *escape = memchr(p, '\\', (size_t)(end - p));
		utf8proc_uint8_t bytes[4];
		uint32_t code;

		buf_append(out, p, (size_t)((escape != NULL ? escape : end) - p));
		if (escape == NULL)
			return;
		p = escape + characters_read(escape, &code);
		if (characters_is_high_half(code) || characters_is_low_half(code))
			code = REPLACEMENT;
		buf_append(out, bytes, (size_t)utf8proc_encode_char((utf8proc_int32_t)code, bytes));
	}
}

/* ---- sanitizing ---- */

#define ESCAPE 0x1B
#define BELL 0x07
#define ZWNJ 0x200C
#define ZWJ 0x200D
#define EMOJI_SELECTOR 0xFE0F
#define BLACK_FLAG 0x1F3F4

struct range {
	uint32_t first;
	uint32_t last;
};

static bool is_in(uint32_t code, const struct range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

/* ---- what a character is ---- */

static bool sanitize_is_control(uint32_t code)
{
	return (code < 0x20 && code != '\t' && code != '\n' && code != '\r') ||
	       (code >= 0x7F && code <= 0x9F);
}

/*
 * Most of what is written lies in these, and is not looked up: all formats there are seen (Arabic signs), and halves of
 * pairs have no meaning.
 */
static bool is_in_plain_block(uint32_t code)
{
	return code < 0xAD || (code >= 0x61D && code <= 0x115E) ||
	       (code >= 0x2070 && code <= 0x3163) || (code >= 0x3165 && code <= 0xFDFF) ||
	       (code >= 0x1F000 && code <= 0xDFFFF);
}

static bool is_invisible(uint32_t code)
{
	/* Formats that are seen, and the ends of lines and paragraphs. */
	static const struct range others[] = {
		{ 0x600, 0x605 },     { 0x2028, 0x2029 },   { 0x110BD, 0x110BD },
		{ 0x110CD, 0x110CD }, { 0x13430, 0x1345F },
	};

	return !is_in_plain_block(code) && unicode_is_hidden(code) &&
	       !is_in(code, others, ARRAY_LEN(others));
}

/* Scripts in which ZWJ and ZWNJ decide how letters are written. */
static bool is_of_joining_script(uint32_t code)
{
	static const struct range scripts[] = {
		{ 0x0620, 0x08FF }, /* Arabic, Syriac, Thaana, N'Ko, Mandaic */
		{ 0x0900, 0x0DFF }, /* Devanagari to Sinhala */
		{ 0x0F00, 0x109F }, /* Tibetan, Myanmar */
		{ 0x1780, 0x18AF }, /* Khmer, Mongolian */
		{ 0x1A20, 0x1C4F }, /* Tai Tham to Lepcha */
		{ 0xA800, 0xABFF }, /* Syloti Nagri to Meetei Mayek */
		{ 0xFB50, 0xFDFF }, /* forms of Arabic */
		{ 0xFE70, 0xFEFC },   { 0x10D00, 0x10D3F }, /* Hanifi Rohingya */
		{ 0x11000, 0x11FFF },                       /* Brahmi and its kin */
		{ 0x1E900, 0x1E95F },                       /* Adlam */
	};

	return is_in(code, scripts, ARRAY_LEN(scripts)) && !unicode_is_hidden(code);
}

static bool is_ideograph(uint32_t code)
{
	static const struct range blocks[] = {
		{ 0x3400, 0x4DBF },
		{ 0x4E00, 0x9FFF },
		{ 0xF900, 0xFAFF },
		{ 0x20000, 0x3FFFD },
	};

	return is_in(code, blocks, ARRAY_LEN(blocks));
}

static bool is_skin_tone(uint32_t code)
{
	return code >= 0x1F3FB && code <= 0x1F3FF;
}

/* ---- what stays, though it is invisible ---- */

static bool joins(uint32_t before, uint32_t code, uint32_t behind)
{
	if (before == ZWJ || before == ZWNJ)
		return false;
	if (is_of_joining_script(before) || is_of_joining_script(behind))
		return true;
	return code == ZWJ && unicode_is_pictograph(behind) &&
	       (unicode_is_pictograph(before) || is_skin_tone(before) || before == EMOJI_SELECTOR);
}

static bool selects(uint32_t before, uint32_t code)
{
	if (code == EMOJI_SELECTOR || code == EMOJI_SELECTOR - 1)
		return unicode_is_pictograph(before) || (before >= '0' && before <= '9') ||
		       before == '#' || before == '*';
	if (code >= 0x180B && code <= 0x180F)
		return (before >= 0x1820 && before <= 0x18AA) ||
		       (code == 0x180E && before >= 0x180B && before <= 0x180D);
	return ((code >= 0xFE00 && code <= 0xFE02) || (code >= 0xE0100 && code <= 0xE01EF)) &&
	       is_ideograph(before);
}

/* The length of the tags at p, if they make the flag before them that of England, Scotland or Wales; or 0. */
static size_t flag_length(const char *p)
{
	static const char regions[][6] = { "gbeng", "gbsct", "gbwls" };

	for (size_t i = 0; i < ARRAY_LEN(regions); i++) {
		const char *at = p;
		uint32_t code;
		size_t j = 0;

		for (; j < sizeof(regions[i]) && *at != '"'; j++) {
			size_t n = characters_read(at, &code);

			if (code != 0xE0000u + (j < 5 ? (unsigned char)regions[i][j] : 0x7F))
				break;
			at += n;
		}
		if (j == sizeof(regions[i]))
			return (size_t)(at - p);
	}
	return 0;
}

/* ---- terminals ---- */

static const char *skip_while(const char *p, uint32_t first, uint32_t last)
{
	while (*p != '"') {
		uint32_t code;
		size_t n = characters_read(p, &code);

		if (code < first || code > last)
			break;
		p += n;
	}
	return p;
}

/* ECMA-48 §5.4; without its end where that is missing. */
static const char *skip_parameters(const char *p)
{
	const char *final = skip_while(skip_while(p, 0x30, 0x3F), 0x20, 0x2F);
	uint32_t code = 0;
	size_t n = *final != '"' ? characters_read(final, &code) : 0;

	return code >= 0x40 && code <= 0x7E ? final + n : final;
}

/*
 * To behind the end of a control string (ECMA-48 §5.6). One that does not end, or has other controls in it, is none: p.
 */
static const char *sanitize_skip_string(const char *p)
{
	const char *at = p;

	while (*at != '"') {
		uint32_t code, next = 0;
		size_t n = characters_read(at, &code);

		if (code == BELL || code == 0x9C)
			return at + n;
		if (code == ESCAPE && at[n] != '"') {
			n += characters_read(at + n, &next);
			return next == '\\' ? at + n : p;
		}
		if (code < 0x20 || sanitize_is_control(code))
			return p;
		at += n;
	}
	return p;
}

/* Behind what belongs to the control `code`, which ends at p. */
static const char *skip_sequence(uint32_t code, const char *p)
{
	uint32_t next;
	size_t n;

	if (code == ESCAPE) {
		const char *final = skip_while(p, 0x20, 0x2F);

		if (*final == '"')
			return final;
		n = characters_read(final, &next);
		if (next < 0x30 || next > 0x7E)
			return final;
		if (final > p || next < 0x40 || next > 0x5F)
			return final + n;
		code = next + 0x40; /* as one character of C1 */
		p = final + n;
	}
	if (code == 0x9B)
		return skip_parameters(p);
	if (code == 0x90 || code == 0x98 || (code >= 0x9D && code <= 0x9F))
		return sanitize_skip_string(p);
	return p;
}

/* ---- walking ---- */

struct walk {
	const struct sanitize_rules *rules;
	struct sanitize_counts *counts;
	struct buf *out;
	const char *p;      /* what is read next */
	const char *copied; /* up to here the text is in `out` */
	uint32_t before;    /* the last character of this string that stays; 0: none */
	bool is_cut;        /* something was taken out behind it */
	bool is_changed;
	size_t marks;
};

static void copy(struct walk *walk, const char *upto)
{
	buf_append(walk->out, walk->copied, (size_t)(upto - walk->copied));
	walk->copied = upto;
}

/* From walk->p to `upto`. */
static void sanitize_replace(struct walk *walk, const char *upto, uint32_t code,
			     enum sanitize_mode mode)
{
	CHECK(upto > walk->p && mode != SANITIZE_KEEP);
	copy(walk, walk->p);
	walk->p = walk->copied = upto;
	walk->is_changed = true;
	if (mode == SANITIZE_MARK && walk->marks < SANITIZE_MARKS_MAX) {
		buf_printf(walk->out, "\\\\u{%x}", (unsigned int)code);
		walk->marks++;
		walk->before = '}';
		walk->is_cut = false;
	} else {
		walk->is_cut = true;
	}
}

/* How many bytes of the invisible character at walk->p, n bytes long, and behind it stay; or 0. */
static size_t needed_length(const struct walk *walk, uint32_t code, size_t n)
{
	size_t flag = walk->before == BLACK_FLAG ? flag_length(walk->p) : 0;
	uint32_t behind = 0;

	if (flag > 0)
		return flag;
	if (code != ZWJ && code != ZWNJ)
		return selects(walk->before, code) ? n : 0;
	if (walk->p[n] != '"')
		characters_read(walk->p + n, &behind);
	return joins(walk->before, code, behind) ? n : 0;
}

/* The halves of a pair are strangers as long as something stands between them. */
static bool would_pair(const struct walk *walk, uint32_t code)
{
	return walk->is_cut && characters_is_low_half(code) &&
	       characters_is_high_half(walk->before);
}

static void take_character(struct walk *walk)
{
	enum sanitize_mode controls = walk->rules->controls;
	uint32_t code;
	size_t n = characters_read(walk->p, &code);
	const char *end = walk->p + n;

	pause_point();
	if (controls != SANITIZE_KEEP && sanitize_is_control(code)) {
		walk->counts->controls++;
		sanitize_replace(walk, controls == SANITIZE_STRIP ? skip_sequence(code, end) : end,
				 code, controls);
		return;
	}
	if (walk->rules->invisible != SANITIZE_KEEP && is_invisible(code)) {
		size_t needed = needed_length(walk, code, n);

		if (needed == 0) {
			walk->counts->invisible++;
			sanitize_replace(walk, end, code, walk->rules->invisible);
			return;
		}
		end = walk->p + needed;
	} else if (would_pair(walk, code)) {
		sanitize_replace(walk, end, code, SANITIZE_STRIP);
		buf_append_str(walk->out, "\\ufffd");
		code = 0xFFFD;
	}
	walk->p = end;
	walk->before = code;
	walk->is_cut = false;
}

static void walk_strings(struct walk *walk, const char *end)
{
	while (walk->p < end && (walk->p = memchr(walk->p, '"', (size_t)(end - walk->p))) != NULL) {
		walk->p++;
		walk->before = 0;
		walk->is_cut = false;
		while (*walk->p != '"')
			take_character(walk);
		walk->p++;
	}
}

/* ---- the quick look ---- */

/* Whether a character beyond ASCII whose UTF-8 begins so may be one that is meant. */
static bool may_be_meant(unsigned char first)
{
	return first == 0xC2 || first == 0xCD || first == 0xD8 || first == 0xE1 || first == 0xE2 ||
	       first == 0xE3 || first == 0xEF || first == 0xF0 || first >= 0xF3;
}

/* Whether any character is one that the rules mean, wherever it stands. */
static bool is_doubtful(const struct sanitize_rules *rules, struct slice text)
{
	const char *p = text.p, *end = text.p + text.n;

	while (p < end) {
		uint32_t code;

		pause_point();
		p += text_plain_length(slice_between(p, end));
		if (p == end)
			break;
		if ((unsigned char)*p >= 0x80 && !may_be_meant((unsigned char)*p)) {
			p += (unsigned char)*p < 0xE0 ? 2 : (unsigned char)*p < 0xF0 ? 3 : 4;
			continue;
		}
		if ((unsigned char)*p < ' ') {
			p++; /* between tokens */
			continue;
		}
		p += characters_read(p, &code);
		if ((rules->controls != SANITIZE_KEEP && sanitize_is_control(code)) ||
		    (rules->invisible != SANITIZE_KEEP && is_invisible(code)))
			return true;
	}
	return false;
}

bool sanitize_text(const struct sanitize_rules *rules, struct slice text, struct buf *out,
		   struct sanitize_counts *counts)
{
	struct walk walk = {
		.rules = rules, .counts = counts, .out = out, .p = text.p, .copied = text.p
	};

	CHECK(out->len == 0);
	if ((rules->controls == SANITIZE_KEEP && rules->invisible == SANITIZE_KEEP) ||
	    !is_doubtful(rules, text))
		return false;
	walk_strings(&walk, text.p + text.n);
	if (walk.is_changed)
		copy(&walk, text.p + text.n);
	return walk.is_changed;
}

/* ---- redacting ---- */

/* One pattern after the other over each string; what one has replaced, the next does not see any more. */

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

static bool sanitize_is_exempt(struct slice name, struct slice value)
{
	if (slice_has_part(SLICE_LIT("data blob"), ' ', name))
		return value.n >= ENCODED_MIN && slice_is_name(value, "+/-_=");
	return slice_has_part(SLICE_LIT("nextCursor requestState"), ' ', name);
}

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && grammar_is_space(*p))
		p++;
	return p;
}

static bool sanitize_is_kept(struct slices kept, struct slice value)
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
	at_end(buf_wipe) struct buf decoded = { 0 };

	CHECK(out->len == 0);
	if (rules->count == 0 || is_surely_clean(rules, text))
		return false;
	while (p < end && (p = memchr(p, '"', (size_t)(end - p))) != NULL) {
		struct slice value = slice_between(p + 1, characters_find_end(p + 1));
		const char *behind = skip_space(value.p + value.n + 1, end);

		pause_point();
		if (behind < end && *behind == ':') {
			p = skip_space(behind + 1, end);
			name = *p == '"' ? value : (struct slice){ NULL, 0 };
			continue;
		}
		if (!sanitize_is_exempt(name, value) && !sanitize_is_kept(kept, value) &&
		    !is_clean(rules, value, &decoded, &work, counts)) {
			buf_append(out, copied, (size_t)(p - copied));
			write_string(out, buf_slice(&decoded));
			copied = value.p + value.n + 1;
		}
		decoded.len = 0;
		name = (struct slice){ NULL, 0 };
		p = value.p + value.n + 1;
	}
	note_pace(pace, &work);
	if (copied > text.p)
		buf_append(out, copied, (size_t)(end - copied));
	return copied > text.p;
}
