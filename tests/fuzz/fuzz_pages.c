/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the joining of lists. The input is what a server put into its results, with tabs between. What must hold: of
 * pages that are a list comes one valid response, in one line, with as many items as they had together, with
 * nothing of theirs twice, and not larger than they were.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "jsonrpc/scan.h"
#include "router/pages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ITEMS "tools"

static const struct scan_limits limits = { .depth_max = 64, .id_max = 256 };

static int count_item(struct slice item, void *arg)
{
	size_t *count = arg;

	(void)item;
	++*count;
	return 0;
}

static size_t count_items(struct slice result)
{
	struct json items = scan_member(result, SLICE_LIT(ITEMS));
	struct error err;
	size_t count = 0;

	CHECK(items.type == JSON_ARRAY);
	CHECK(scan_array(items.text, SIZE_MAX, count_item, &count, &err) >= 0);
	return count;
}

static void check_joined(struct pages *pages, size_t items, size_t input)
{
	struct slice text;

	pages_join(pages, &limits);
	CHECK(!pages->is_skipping && pages->count == 1);
	text = pages->joined[0]->text;
	CHECK(text.n <= input + 100);
	CHECK(memchr(text.p, '\n', text.n) == NULL && memchr(text.p, '\r', text.n) == NULL);
	CHECK(pages->joined[0]->env->kind == ENVELOPE_RESULT);
	CHECK(scan_member(pages->joined[0]->env->result.text, SLICE_LIT("nextCursor")).type ==
	      JSON_ABSENT);
	CHECK(count_items(pages->joined[0]->env->result.text) == items);
}

/* One of them as a response, copied so that no byte behind it is there to be read. */
static enum pages_outcome add(struct pages *pages, struct slice line, size_t *items)
{
	enum pages_outcome outcome = PAGES_UNFIT;
	struct buf text = { 0 };
	struct envelope env;
	struct error err;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":");
	buf_append_slice(&text, line);
	buf_append_char(&text, '}');
	if (scan_envelope(buf_slice(&text), &limits, SCAN_LENIENT, &env, &err) == 0 &&
	    env.kind == ENVELOPE_RESULT) {
		char *copy = malloc(env.result.text.n);
		size_t n = env.result.text.n;

		bool is_again =
			pages->was_empty &&
			cursor_is_empty(scan_member(env.result.text, SLICE_LIT("nextCursor")));

		memcpy(copy, env.result.text.p, n);
		outcome = pages_add(pages, slice_of(copy, n));
		if (outcome != PAGES_UNFIT &&
		    !is_again) /* what has begun from the start does not count */
			*items += count_items(slice_of(copy, n));
		free(copy);
	}
	buf_fini(&text);
	return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pages pages = { .member = SLICE_LIT(ITEMS) };
	struct slice rest = slice_of((const char *)data, size);
	enum pages_outcome outcome = PAGES_MORE;
	size_t items = 0;

	while (outcome == PAGES_MORE && rest.n > 0)
		outcome = add(&pages, slice_cut(&rest, '\t'), &items);
	if (outcome == PAGES_COMPLETE)
		check_joined(&pages, items, size);
	pages_reset(&pages);
	return 0;
}
