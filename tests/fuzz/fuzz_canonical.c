/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the canonical form of JSON. What must hold: what the scanner reads as JSON has one, and nothing else has; it
 * is in one line, and its own canonical form; white space around tokens changes nothing.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEPTH 64

/* As the result of a response, whose inside the scanner checks by the grammar alone; all of it, but for space around. */
static bool is_json(struct slice text)
{
	static const struct scan_limits limits = { .depth_max = DEPTH + 1, .id_max = 8 };
	struct buf message = { 0 };
	struct envelope env;
	struct error err;
	size_t size = text.n;
	bool is_one;

	for (size_t i = 0; i < text.n && strchr(" \t\r\n", text.p[i]) != NULL && text.p[i] != '\0';
	     i++)
		size--;
	for (size_t i = text.n;
	     i > 0 && strchr(" \t\r\n", text.p[i - 1]) != NULL && text.p[i - 1] != '\0'; i--)
		size--;
	buf_append_str(&message, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":");
	buf_append_slice(&message, text);
	buf_append_char(&message, '}');
	is_one = scan_envelope(buf_slice(&message), &limits, 0, &env, &err) == 0 &&
		 env.result.text.n == size;
	buf_fini(&message);
	return is_one;
}

/* The same with a space before and behind each bracket, comma and colon. */
static void append_spaced(struct buf *out, struct slice text)
{
	bool is_in_string = false;

	for (size_t i = 0; i < text.n; i++) {
		bool is_token = !is_in_string && strchr("[]{},:", text.p[i]) != NULL;

		if (text.p[i] == '"')
			is_in_string = !is_in_string;
		buf_append_str(out, is_token ? "\t" : "");
		buf_append_char(out, text.p[i]);
		buf_append_str(out, is_token ? "\n " : "");
		if (is_in_string && text.p[i] == '\\')
			buf_append_char(out, text.p[++i]);
	}
}

static void check_form(struct slice form)
{
	struct buf spaced = { 0 };
	struct buf again = { 0 };

	CHECK(form.n > 0 && memchr(form.p, '\n', form.n) == NULL);
	CHECK(canonical_append(&again, form, DEPTH) == 0 &&
	      slice_is_equal(buf_slice(&again), form));
	again.len = 0;
	append_spaced(&spaced, form);
	CHECK(canonical_append(&again, buf_slice(&spaced), DEPTH) == 0);
	CHECK(slice_is_equal(buf_slice(&again), form));
	buf_fini(&spaced);
	buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of((const char *)data, size);
	struct buf form = { 0 };
	bool has_form = canonical_append(&form, text, DEPTH) == 0;

	CHECK(has_form == is_json(text));
	if (has_form)
		check_form(buf_slice(&form));
	buf_fini(&form);
	return 0;
}
