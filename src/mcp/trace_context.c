/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/trace_context.h"

#define MEMBERS_MAX 32
#define KEY_BYTES_MAX 256
#define TENANT_BYTES_MAX 241 /* before the @ of a key */
#define SYSTEM_BYTES_MAX 14  /* behind it */
#define VALUE_BYTES_MAX 256

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_small(char c)
{
	return c >= 'a' && c <= 'z';
}

/* VERSION-TRACE-PARENT-FLAGS */
bool trace_parent_read(struct slice text, struct trace_parent *parent_r)
{
	static const char form[] = "00-00000000000000000000000000000000-0000000000000000-00";
	static const size_t length = sizeof(form) - 1;
	struct slice trace_id, span_id;
	char last;

	if (text.n < length || text.n > TRACE_PARENT_BYTES_MAX ||
	    (text.n > length && text.p[length] != '-'))
		return false;
	for (size_t i = 0; i < length; i++) {
		char c = text.p[i];

		if (form[i] == '-' ? c != '-' : !is_digit(c) && (c < 'a' || c > 'f'))
			return false;
	}
	trace_id = slice_of(text.p + 3, TRACE_ID_DIGITS);
	span_id = slice_of(text.p + 36, TRACE_SPAN_DIGITS);
	if (slice_has_prefix(text, SLICE_LIT("ff")) ||
	    (text.n > length && slice_has_prefix(text, SLICE_LIT("00"))) ||
	    slice_is_equal(trace_id, slice_of(form + 3, TRACE_ID_DIGITS)) ||
	    slice_is_equal(span_id, slice_of(form + 36, TRACE_SPAN_DIGITS)))
		return false;
	last = text.p[length - 1];
	*parent_r = (struct trace_parent){
		.trace_id = trace_id,
		.span_id = span_id,
		/* §3.2.2.5.1: the lowest bit of the flags. */
		.is_sampled = (is_digit(last) ? last - '0' : last - 'a' + 10) & 1,
	};
	return true;
}

/* A name, or one half of TENANT@SYSTEM: it begins with a letter, that of a tenant perhaps with a digit. */
static bool is_name(struct slice name, size_t bytes_max, bool may_begin_with_digit)
{
	if (name.n == 0 || name.n > bytes_max ||
	    !(is_small(name.p[0]) || (may_begin_with_digit && is_digit(name.p[0]))))
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (!is_small(name.p[i]) && !is_digit(name.p[i]) &&
		    memchr("_-*/", name.p[i], 4) == NULL)
			return false;
	return true;
}

static bool is_key(struct slice key)
{
	const char *at = key.n > 0 ? memchr(key.p, '@', key.n) : NULL;

	if (at == NULL)
		return is_name(key, KEY_BYTES_MAX, false);
	return is_name(slice_between(key.p, at), TENANT_BYTES_MAX, true) &&
	       is_name(slice_between(at + 1, key.p + key.n), SYSTEM_BYTES_MAX, false);
}

/* The spaces at its end are not part of it. */
static bool is_value(struct slice value)
{
	for (size_t i = 0; i < value.n; i++)
		if (value.p[i] < ' ' || value.p[i] > '~' || value.p[i] == ',' || value.p[i] == '=')
			return false;
	return value.n > 0 && value.n <= VALUE_BYTES_MAX;
}

bool trace_state_is_valid(struct slice text)
{
	struct slice keys[MEMBERS_MAX];
	size_t count = 0;

	if (text.n > TRACE_STATE_BYTES_MAX)
		return false;
	while (text.n > 0) {
		struct slice value = slice_trim(slice_cut(&text, ','));
		struct slice key;

		if (value.n == 0)
			continue; /* an empty member says nothing */
		key = slice_cut(&value, '=');
		if (count == MEMBERS_MAX || !is_key(key) || !is_value(value))
			return false;
		for (size_t i = 0; i < count; i++)
			if (slice_is_equal(keys[i], key))
				return false;
		keys[count++] = key;
	}
	return count > 0;
}
