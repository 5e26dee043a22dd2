/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the rules of arguments: the input is what stands in `params.arguments`. What must hold: nothing behind the message
 * is read; what is taken is, read member by member instead of token by token, an object without a forbidden name, without a text
 * that a pattern fits, and without an absolute path outside the root, unless that stands where paths are ignored.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "jsonrpc/scan.h"
#include "policy/arguments.h"
#include "policy/pattern.h"
#include "policy/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct slice forbidden = SLICE("__proto__");
static const struct slice root = SLICE("/r");
static const struct slice ignored = SLICE("content");
static const struct slice member = SLICE("path");
static const struct slice expression = SLICE("<script");
static const struct named_slices patterns = { SLICE("*"), { &expression, 1 } };
static struct argument_rules rules = {
	.max_bytes = 4096,
	.deny_patterns = { &patterns, 1 },
	.forbidden_keys.written = { &forbidden, 1 },
	.paths.roots = { &root, 1 },
	.path_members.written = { &member, 1 },
	.paths_ignored.written = { &ignored, 1 },
};

static void check_text(struct slice text, struct slice name)
{
	bool is_root = slice_is_equal(text, root);

	CHECK(text.n == 0 || memmem(text.p, text.n, expression.p, expression.n) == NULL);
	if (slice_is_equal(name, ignored))
		return;
	CHECK(text.n == 0 || text.p[0] != '/' || is_root ||
	      memmem(text.p, text.n, "/r", 2) != NULL || memmem(text.p, text.n, "/./", 3) != NULL);
	CHECK(!slice_is_equal(name, member) || (text.n > 0 && memchr(text.p, '/', text.n) != NULL));
}

static void check_value(struct json value, struct slice name);

static int check_element(struct slice element, void *arg)
{
	const struct slice *name = arg;
	struct json value = {
		.type = scan_type(element),
		.has_escape = memchr(element.p, '\\', element.n) != NULL,
		.text = element,
	};

	check_value(value, *name);
	return 0;
}

static int check_member(struct slice written, struct json value, void *arg)
{
	const struct slice *outer = arg;
	struct json quoted = {
		.type = JSON_STRING,
		.has_escape = true,
		.text = slice_of(written.p - 1, written.n + 2),
	};
	struct buf name = { 0 };

	CHECK(scan_decode_string(quoted, &name) == 0); /* half a pair has been refused */
	CHECK(!slice_is_equal(buf_slice(&name), forbidden));
	check_text(buf_slice(&name), slice_is_equal(*outer, member) ? SLICE_LIT("") : *outer);
	check_value(value, buf_slice(&name));
	buf_fini(&name);
	return 0;
}

/* The depth is bounded by scan_envelope. */
static void check_value(struct json value, struct slice name)
{
	struct buf text = { 0 };
	struct error err;

	if (value.type == JSON_OBJECT) {
		scan_members(value.text, check_member, &name);
	} else if (value.type == JSON_ARRAY) {
		CHECK(scan_array(value.text, SIZE_MAX, check_element, &name, &err) >= 0);
	} else if (value.type == JSON_STRING) {
		CHECK(scan_decode_string(value, &text) == 0);
		check_text(buf_slice(&text), name);
	}
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct scan_limits limits = { .depth_max = 128, .id_max = 256 };
	struct buf message = { 0 };
	struct pattern_work work = { 0 };
	struct envelope env;
	struct error err;
	char *copy;

	if (rules.patterns == NULL)
		argument_rules_prepare(&rules);
	buf_append_str(&message, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
				 "\"params\":{\"name\":\"x\",\"arguments\":");
	buf_append(&message, data, size);
	buf_append_str(&message, "}}");
	copy = malloc(message.len); /* exact: a read behind it is seen */
	memcpy(copy, message.data, message.len);
	if (scan_envelope(slice_of(copy, message.len), &limits, 0, &env, &err) == 0 &&
	    env.arguments.type != JSON_ABSENT) {
		struct rule rule = { .key = RULE_NONE };
		const char *why = arguments_judge(&rules, &env, &work, &rule);

		CHECK(why == NULL || (strlen(why) > 0 && rule.key != RULE_NONE));
		if (why == NULL && env.arguments.type != JSON_NULL)
			check_value(env.arguments, SLICE_LIT(""));
	}
	free(copy);
	buf_fini(&message);
	return 0;
}
