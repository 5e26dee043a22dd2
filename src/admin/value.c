/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only ASCII is written, so that what a server has put into a text does nothing to the terminal that shows
 * it; bytes that are not UTF-8 become U+FFFD.
 */
#include "admin/value.h"

#include <jansson.h>

#include "base/check.h"

struct json_t *value_object(void)
{
	return json_object();
}

struct json_t *value_array(void)
{
	return json_array();
}

void value_set(struct json_t *object, const char *member, struct json_t *value)
{
	size_t size = json_object_size(object);

	CHECK(json_object_set_new(object, member, value != NULL ? value : json_null()) == 0);
	CHECK(json_object_size(object) == size + 1);
}

void value_set_flag(struct json_t *object, const char *member, bool flag)
{
	value_set(object, member, json_boolean(flag));
}

void value_set_number(struct json_t *object, const char *member, uint64_t number)
{
	CHECK(number <= INT64_MAX || number == VALUE_NONE);
	value_set(object, member, number != VALUE_NONE ? json_integer((json_int_t)number) : NULL);
}

struct json_t *value_number(uint64_t number)
{
	CHECK(number <= INT64_MAX);
	return json_integer((json_int_t)number);
}

struct json_t *value_text(struct slice text)
{
	struct json_t *value = text.n > 0 ? json_stringn(text.p, text.n) : NULL;
	struct buf mended = { 0 };

	if (value == NULL && text.n > 0) {
		buf_append_utf8(&mended, text);
		value = json_stringn_nocheck(mended.data, mended.len);
		buf_fini(&mended);
	}
	return value;
}

void value_set_text(struct json_t *object, const char *member, struct slice text)
{
	value_set(object, member, value_text(text));
}

void value_append(struct json_t *array, struct json_t *value)
{
	CHECK(json_array_append_new(array, value) == 0);
}

/* For json_dump_callback. */
static int append(const char *text, size_t size, void *arg)
{
	buf_append(arg, text, size);
	return 0;
}

void value_write(struct json_t *value, struct buf *out)
{
	CHECK(json_dump_callback(value, append, out, JSON_COMPACT | JSON_ENSURE_ASCII) == 0);
	json_decref(value);
}

void value_list_begin(struct buf *out, const char *member)
{
	CHECK(out->len == 0);
	buf_printf(out, "{\"%s\":[", member);
}

void value_list_add(struct buf *out, struct json_t *value)
{
	CHECK(out->len > 0);
	if (out->data[out->len - 1] != '[')
		buf_append_char(out, ',');
	value_write(value, out);
}

void value_list_next(struct buf *out, const char *member)
{
	CHECK(out->len > 0);
	buf_printf(out, "],\"%s\":[", member);
}

void value_list_end(struct buf *out)
{
	CHECK(out->len > 0);
	buf_append_str(out, "]}");
}
