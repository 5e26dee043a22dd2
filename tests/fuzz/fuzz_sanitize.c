/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of what changes the texts of servers, sanitize and redact. What must hold: what was JSON is JSON again, the same
 * outside of its strings; nothing that is meant is left, and what may stay of it stays alone; a second time nothing is
 * found; what was not changed had nothing.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/unicode.h"
#include "jsonrpc/scan.h"
#include "policy/sanitize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As the result of a response, all of it; `message` is what the result lies in. */
static bool is_json(struct slice text, struct buf *message, struct slice *result_r)
{
	static const struct scan_limits limits = { .depth_max = 65, .id_max = 8 };
	struct envelope env;
	struct error err;

	message->len = 0;
	buf_append_str(message, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":");
	buf_append_slice(message, text);
	buf_append_char(message, '}');
	if (scan_envelope(buf_slice(message), &limits, 0, &env, &err) < 0)
		return false;
	*result_r = env.result.text;
	return true;
}

/* What is outside of the strings, and a quote for each of them. */
static void append_skeleton(struct slice text, struct buf *out)
{
	const char *end = text.p + text.n;

	for (const char *p = text.p; p < end; p++) {
		buf_append_char(out, *p);
		if (*p == '"')
			p = characters_find_end(p + 1);
	}
}

static void check_is_same_outside(struct slice before, struct slice after)
{
	struct buf a = { 0 }, b = { 0 }, message = { 0 };
	struct slice result;

	CHECK(is_json(after, &message, &result) && result.n == after.n);
	append_skeleton(before, &a);
	append_skeleton(after, &b);
	CHECK(slice_is_equal(buf_slice(&a), buf_slice(&b)));
	buf_fini(&a);
	buf_fini(&b);
	buf_fini(&message);
}

static bool may_stay(uint32_t code)
{
	return code == 0x200C || code == 0x200D || (code >= 0x180B && code <= 0x180F) ||
	       (code >= 0xFE00 && code <= 0xFE0F) || (code >= 0xE0061 && code <= 0xE007F) ||
	       (code >= 0xE0100 && code <= 0xE01EF) || code == 0x2028 || code == 0x2029 ||
	       (code >= 0xD800 && code <= 0xDFFF) || (code >= 0x600 && code <= 0x605) ||
	       code == 0x6DD || code == 0x70F || code == 0x890 || code == 0x891 || code == 0x8E2 ||
	       code == 0x110BD || code == 0x110CD || (code >= 0x13430 && code <= 0x1345F);
}

static void check_string(const struct sanitize_rules *rules, struct slice between_quotes)
{
	const char *p = between_quotes.p, *end = p + between_quotes.n;
	unsigned int in_a_row = 0;

	while (p < end) {
		uint32_t code;
		bool is_control, is_hidden;

		p += characters_read(p, &code);
		is_control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
		is_hidden = !is_control && code != 0x2028 && code != 0x2029 &&
			    (code < 0xD800 || code > 0xDFFF) && unicode_is_hidden(code);
		if (rules->controls != SANITIZE_KEEP)
			CHECK(!is_control || code == '\t' || code == '\n' || code == '\r');
		if (rules->invisible == SANITIZE_KEEP)
			continue;
		CHECK(!is_hidden || may_stay(code));
		in_a_row = is_hidden && (code < 0x600 || code > 0x8E2) && code < 0x110BD ?
				   in_a_row + 1 :
				   0;
		CHECK(in_a_row <= 6); /* a flag's tags; a selector and a joiner */
	}
}

static void check_sanitized(const struct sanitize_rules *rules, struct slice text)
{
	struct sanitize_counts counts = { 0 };
	struct buf out = { 0 }, again = { 0 };
	bool is_changed = sanitize_text(rules, text, &out, &counts);
	struct slice after = is_changed ? buf_slice(&out) : text;
	const char *p = after.p, *end = after.p + after.n;

	CHECK(is_changed == (counts.controls + counts.invisible > 0));
	CHECK(after.n <= text.n + 12 * (size_t)(counts.controls + counts.invisible));
	check_is_same_outside(text, after);
	while (p < end && (p = memchr(p, '"', (size_t)(end - p))) != NULL) {
		struct slice string = slice_between(p + 1, characters_find_end(p + 1));

		check_string(rules, string);
		p = string.p + string.n + 1;
	}
	CHECK(!sanitize_text(rules, after, &again, &counts));
	buf_fini(&out);
	buf_fini(&again);
}

/* None of these fits what stands for what fits. */
static void check_redacted(struct slice text)
{
	static const char *const patterns[] = { "sk-[a-z0-9]+", "\\d{4}", "(?i)pass\\S*" };
	static struct redact_rules rules;
	struct redact_counts counts = { 0 };
	struct redact_pace pace = { 0 };
	struct buf out = { 0 }, again = { 0 };
	struct error err;

	for (size_t i = rules.count; i < ARRAY_LEN(patterns); i++)
		CHECK(redact_add(&rules, slice_str(patterns[i]), &err) == 0);
	if (redact_text(&rules, text, (struct slices){ NULL, 0 }, &pace, &out, &counts)) {
		CHECK(counts.found + counts.too_hard > 0);
		check_is_same_outside(text, buf_slice(&out));
		CHECK(!redact_text(&rules, buf_slice(&out), (struct slices){ NULL, 0 }, &pace,
				   &again, &counts));
	}
	buf_fini(&out);
	buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf message = { 0 };
	struct slice result;

	if (size > 0 && is_json(slice_of((const char *)data + 1, size - 1), &message, &result)) {
		const struct sanitize_rules rules = { data[0] % 3u, data[0] / 3u % 3u };
		char *copy = malloc(result.n); /* exact: a read behind it is seen */

		memcpy(copy, result.p, result.n);
		check_sanitized(&rules, slice_of(copy, result.n));
		check_redacted(slice_of(copy, result.n));
		free(copy);
	}
	buf_fini(&message);
	return 0;
}
