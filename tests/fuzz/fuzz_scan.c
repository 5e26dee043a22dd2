/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the scanner, with jansson as the second opinion. What must hold: the verdict does not
 * depend on bytes behind the text; every slice lies in it; both readers agree on what is JSON, but
 * for what jansson cannot hold; lookups find again what the envelope holds; splicing without edits
 * is the identity, and with edits gives a message that reads the same.
 */
/* Both readers name their types alike; jansson's are not needed here. */
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_ARRAY JANSSON_ARRAY
#define JSON_STRING JANSSON_STRING
#define JSON_TRUE JANSSON_TRUE
#define JSON_FALSE JANSSON_FALSE
#define JSON_NULL JANSSON_NULL
#include <jansson.h>
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_STRING
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct scan_limits limits = { .depth_max = SCAN_DEPTH_MAX, .id_max = 256 };

/* What jansson refuses though it is JSON. */
static bool is_beyond_jansson(const json_error_t *why)
{
	enum json_error_code code = json_error_code(why);

	return code == json_error_numeric_overflow || code == json_error_null_character ||
	       code == json_error_null_byte_in_key || code == json_error_stack_overflow ||
	       (code == json_error_invalid_syntax && strstr(why->text, "invalid Unicode") != NULL);
}

static void compare_with_jansson(struct slice text, enum error_kind kind)
{
	json_error_t why;
	json_t *tree = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);

	/* A raw NUL after a value is the end for jansson. */
	if (kind == ERROR_SYNTAX)
		CHECK(tree == NULL || memchr(text.p, '\0', text.n) != NULL);
	else if (kind != ERROR_LIMIT)
		CHECK(tree != NULL || is_beyond_jansson(&why));
	json_decref(tree);
}

static void check_inside(struct slice text, struct slice part)
{
	CHECK(part.n > 0 && part.p >= text.p && part.p + part.n <= text.p + text.n);
}

static void check_json(struct slice text, struct json value)
{
	if (value.type == JSON_ABSENT)
		return;
	check_inside(text, value.text);
	CHECK(scan_type(value.text) == value.type);
	if (value.type == JSON_STRING) {
		CHECK(value.has_escape == (memchr(value.text.p, '\\', value.text.n) != NULL));
		CHECK((scan_plain_string(value).p == NULL) == value.has_escape);
	}
}

static void check_same(struct slice object, struct slice name, struct json have)
{
	struct json again = scan_member(object, name);

	/* An empty member may count for nothing. */
	CHECK(again.type == have.type || (have.type == JSON_ABSENT && again.type == JSON_NULL));
	CHECK(have.type == JSON_ABSENT ||
	      (again.text.p == have.text.p && again.text.n == have.text.n &&
	       again.has_escape == have.has_escape));
}

static int count_member(struct slice name, struct json value, void *arg)
{
	size_t *count = arg;

	CHECK(name.p != NULL && value.type != JSON_ABSENT);
	++*count;
	return 0;
}

static void check_members(const struct envelope *envelope, unsigned int flags)
{
	struct slice text = envelope->text;
	size_t count = 0;

	check_json(text, envelope->id);
	check_json(text, envelope->params);
	check_json(text, envelope->result);
	check_json(text, envelope->error);
	check_json(text, envelope->name);
	check_json(text, envelope->uri);
	check_json(text, envelope->meta);
	check_json(text, envelope->progress_token);
	if ((flags & SCAN_LENIENT) == 0)
		check_same(text, SLICE_LIT("id"), envelope->id);
	check_same(text, SLICE_LIT("params"), envelope->params);
	check_same(text, SLICE_LIT("result"), envelope->result);
	check_same(text, SLICE_LIT("error"), envelope->error);
	check_same(envelope->params.text, SLICE_LIT("name"), envelope->name);
	check_same(envelope->params.text, SLICE_LIT("uri"), envelope->uri);
	check_same(envelope->params.text, SLICE_LIT("_meta"), envelope->meta);
	check_same(envelope->meta.text, SLICE_LIT("progressToken"), envelope->progress_token);
	scan_members(text, count_member, &count);
	CHECK(count > 0);
}

static void check_kind(const struct envelope *envelope)
{
	bool is_call =
		envelope->kind == ENVELOPE_REQUEST || envelope->kind == ENVELOPE_NOTIFICATION;

	CHECK(is_call == (envelope->method.p != NULL));
	CHECK((envelope->kind == ENVELOPE_RESULT) == (envelope->result.type != JSON_ABSENT));
	CHECK((envelope->kind == ENVELOPE_ERROR) == (envelope->error.type != JSON_ABSENT));
	if (envelope->kind == ENVELOPE_REQUEST || envelope->kind == ENVELOPE_RESULT)
		CHECK(envelope->id.type == JSON_NUMBER || envelope->id.type == JSON_STRING);
	if (envelope->kind == ENVELOPE_NOTIFICATION)
		CHECK(envelope->id.type == JSON_ABSENT);
}

static bool has_line_break(struct slice s)
{
	return memchr(s.p, '\n', s.n) != NULL || memchr(s.p, '\r', s.n) != NULL;
}

/* With the id replaced, and all that may end a line taken out: the same message to a reader. */
static void check_splice(const struct envelope *envelope, unsigned int flags)
{
	struct splice_edit edit = { envelope->id.text, SLICE("4711") };
	size_t edits = envelope->id.type != JSON_ABSENT;
	struct buf out = { NULL, 0, 0 };
	struct envelope again;
	struct error err;

	splice_append(&out, envelope->text, NULL, 0, 0);
	CHECK(slice_is_equal(buf_slice(&out), envelope->text));
	CHECK(has_line_break(envelope->text) == envelope->has_line_break);
	out.len = 0;
	splice_append(&out, envelope->text, &edit, edits,
		      SPLICE_ONE_LINE | SPLICE_ESCAPE_SEPARATORS);
	CHECK(!has_line_break(buf_slice(&out)));
	/* A name that held a raw separator is now written with an escape, and may be refused. */
	if (scan_envelope(buf_slice(&out), &limits, flags, &again, &err) == 0) {
		CHECK(!again.has_line_break && !again.has_separator &&
		      again.kind == envelope->kind);
		CHECK(edits == 0 || slice_is_equal(again.id.text, edit.with));
	} else {
		CHECK(envelope->has_separator && err.kind == ERROR_INVALID);
	}
	buf_fini(&out);
}

static enum error_kind scan_copy(struct slice text, unsigned int flags)
{
	char *copy = malloc(text.n > 0 ? text.n : 1);
	struct slice exact = slice_of(copy, text.n);
	struct error err = { .kind = ERROR_NONE };
	struct envelope envelope;

	if (text.n > 0)
		memcpy(copy, text.p, text.n);
	if (scan_envelope(exact, &limits, flags, &envelope, &err) == 0) {
		check_inside(exact, envelope.text);
		check_members(&envelope, flags);
		check_kind(&envelope);
		check_splice(&envelope, flags);
		err.kind = ERROR_NONE;
	} else {
		CHECK(err.kind == ERROR_SYNTAX || err.kind == ERROR_INVALID ||
		      err.kind == ERROR_LIMIT);
		CHECK(err.kind != ERROR_SYNTAX || envelope.id.type == JSON_ABSENT);
		check_json(exact, envelope.id);
	}
	free(copy);
	return err.kind;
}

/* The same text with something behind it that would go on. */
static void check_tail(struct slice text, enum error_kind kind)
{
	static const char *const tails[] = { "", "}", "\"", "0", "\xBF\xBF\xBF", "u0041" };
	struct buf longer = { NULL, 0, 0 };

	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		struct error err = { .kind = ERROR_NONE };
		struct envelope envelope;

		longer.len = 0;
		buf_append_slice(&longer, text);
		buf_append_str(&longer, tails[i]);
		buf_terminate(&longer);
		if (scan_envelope(slice_of(longer.data, text.n), &limits, 0, &envelope, &err) == 0)
			err.kind = ERROR_NONE;
		CHECK(err.kind == kind);
	}
	buf_fini(&longer);
}

struct elements {
	struct slice text;
	const char *end; /* of the last one */
	int count;
	bool is_json;
};

static int on_element(struct slice element, void *arg)
{
	struct elements *elements = arg;
	struct error err;
	struct envelope envelope;

	check_inside(elements->text, element);
	CHECK(element.p >= elements->end);
	elements->end = element.p + element.n;
	elements->count++;
	if (scan_envelope(element, &limits, 0, &envelope, &err) < 0 && err.kind == ERROR_SYNTAX)
		elements->is_json = false;
	return 0;
}

/* A text is a JSON array exactly if it splits and all its elements are JSON. */
static void check_array(struct slice text, enum error_kind kind)
{
	struct elements elements = { text, text.p, 0, true };
	struct error err;
	int count = scan_array(text, 1000000, on_element, &elements, &err);

	CHECK(count == (count < 0 ? -1 : elements.count));
	if (kind != ERROR_LIMIT && scan_type(text) == JSON_ARRAY)
		CHECK((count >= 0 && elements.is_json) == (kind != ERROR_SYNTAX));
}

/* The input as a value inside a message, so that its grammar is what decides. */
static void check_as_result(struct slice input)
{
	struct buf text = { NULL, 0, 0 };

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":");
	buf_append_slice(&text, input);
	buf_append_char(&text, '}');
	compare_with_jansson(buf_slice(&text), scan_copy(buf_slice(&text), 0));
	buf_fini(&text);
}

/* Whatever bytes: what we write is read again. */
static void check_write(struct slice input)
{
	struct buf text = { NULL, 0, 0 };

	write_error(&text, SLICE_LIT("1"), -32603, input, slice_of(NULL, 0));
	CHECK(scan_copy(buf_slice(&text), 0) == ERROR_NONE);
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of((const char *)data, size);
	enum error_kind kind = scan_copy(text, 0);
	enum error_kind lenient = scan_copy(text, SCAN_LENIENT);

	/* Leniency concerns rules, never the grammar. */
	CHECK((kind == ERROR_SYNTAX) == (lenient == ERROR_SYNTAX));
	CHECK(kind != ERROR_NONE || lenient == ERROR_NONE);
	compare_with_jansson(slice_of(size > 0 ? text.p : "", size), kind);
	check_tail(text, kind);
	if (size > 0)
		check_array(text, kind);
	check_as_result(text);
	check_write(text);
	scan_member(text, SLICE_LIT("params"));
	return 0;
}
