/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of schemas and values: the input is a schema, a NUL, and a value. What must hold: nothing behind the texts is read;
 * what is refused has a reason, in one line of plain ASCII; the outcome is the same for the canonical forms, and a value of which is
 * known whether it fits S does not fit both {allOf:[S]} and {not:S}.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "jsonrpc/canonical.h"
#include "policy/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEPTH 64

static void check_reason(const struct error *err)
{
	size_t length = strlen(err->text);

	CHECK(length > 0 && length < sizeof(err->text) - 1);
	for (size_t i = 0; i < length; i++)
		CHECK(err->text[i] >= ' ' && err->text[i] < 0x7F);
}

static enum error_kind judge(struct slice schema_text, struct slice value, bool *is_usable_r)
{
	struct error err = { .kind = ERROR_NONE };
	struct schema *schema = schema_new(schema_text, &err);
	struct buf room = { 0 };
	struct canonical_form form;

	*is_usable_r = schema != NULL;
	if (schema == NULL) {
		check_reason(&err);
		return err.kind;
	}
	form = canonical_of(value, &room);
	if (schema_check(schema, &form, 1, &err) == 0)
		err.kind = ERROR_NONE;
	else
		check_reason(&err);
	schema_free(&schema);
	buf_fini(&room);
	return err.kind;
}

/* With the schema inside another one. */
static enum error_kind judge_wrapped(const char *head, struct slice schema, const char *tail,
				     struct slice value, bool *is_usable_r)
{
	struct buf text = { 0 };
	enum error_kind kind;

	buf_append_str(&text, head);
	buf_append_slice(&text, schema);
	buf_append_str(&text, tail);
	kind = judge(buf_slice(&text), value, is_usable_r);
	buf_fini(&text);
	return kind;
}

static void check(struct slice schema, struct slice value)
{
	bool is_usable, is_wrapped_usable, is_denied_usable;
	enum error_kind kind = judge(schema, value, &is_usable);
	enum error_kind wrapped =
		judge_wrapped("{\"allOf\":[", schema, "]}", value, &is_wrapped_usable);
	enum error_kind denied = judge_wrapped("{\"not\":", schema, "}", value, &is_denied_usable);

	CHECK(is_wrapped_usable == is_denied_usable);
	/* A reference leads to another place then. */
	if (memchr(schema.p, '$', schema.n) != NULL || memchr(schema.p, '\\', schema.n) != NULL)
		return;
	if (is_wrapped_usable && wrapped != ERROR_LIMIT && denied != ERROR_LIMIT)
		CHECK((wrapped == ERROR_NONE) != (denied == ERROR_NONE));
	/* A root may be what an inner schema may not. */
	if (is_usable && is_wrapped_usable && kind != ERROR_LIMIT && wrapped != ERROR_LIMIT)
		CHECK(kind == wrapped);
}

/* An exact copy of the canonical form; empty: it is no JSON. */
static struct slice take(struct slice text, struct buf *canonical)
{
	char *copy = NULL;

	if (canonical_append(canonical, text, DEPTH) == 0) {
		copy = malloc(canonical->len);
		memcpy(copy, canonical->data, canonical->len);
	}
	return slice_of(copy, canonical->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice value = slice_of((const char *)data, size);
	struct slice schema = slice_cut(&value, '\0');
	struct buf schema_form = { 0 };
	struct buf value_form = { 0 };
	struct slice schema_text = take(schema, &schema_form);
	struct slice value_text = value.p != NULL ? take(value, &value_form) : slice_of(NULL, 0);

	if (schema_text.n > 0 && value_text.n > 0) {
		bool is_usable, is_again_usable;
		enum error_kind kind = judge(schema, value, &is_usable);

		CHECK(judge(schema_text, value_text, &is_again_usable) == kind);
		CHECK(is_usable == is_again_usable);
		check(schema_text, value_text);
	}
	free((char *)(uintptr_t)schema_text.p);
	free((char *)(uintptr_t)value_text.p);
	buf_fini(&schema_form);
	buf_fini(&value_form);
	return 0;
}
