/* SPDX-License-Identifier: Apache-2.0 */
/* A member that is not understood is an error: an entry that denies less than was meant is worse than none. */
#include "admin/order.h"

#include <string.h>

#include <jansson.h>

#include "auth/document.h"

/* What the rules of tokens let through: others would never be met. */
static int read_text(const json_t *value, const char *member, struct slice *text_r,
		     struct error *err)
{
	if (!json_is_string(value))
		return error_set(err, ERROR_INVALID, "'%s' must be a text", member);
	*text_r = slice_of(json_string_value(value), json_string_length(value));
	if (text_r->n == 0 || text_r->n > ORDER_NAME_BYTES_MAX)
		return error_set(err, ERROR_INVALID, "'%s' must have 1 to %d bytes", member,
				 ORDER_NAME_BYTES_MAX);
	for (size_t i = 0; i < text_r->n; i++)
		if ((unsigned char)text_r->p[i] < 0x20 || text_r->p[i] == 0x7F)
			return error_set(err, ERROR_INVALID, "'%s' has control characters", member);
	return 0;
}

static int read_name(const json_t *value, enum denial_by by, struct order *order, struct error *err)
{
	if (order->name.n > 0)
		return error_set(err, ERROR_INVALID,
				 "only one of sub, client_id, jti and sid can be denied at a time");
	order->by = by;
	return read_text(value, denial_by_name(by), &order->name, err);
}

static int read_member(const char *member, const json_t *value, struct order *order,
		       struct error *err)
{
	if (strcmp(member, "issuer") == 0)
		return read_text(value, member, &order->issuer, err);
	for (size_t i = 0; i < DENIAL_BY_COUNT; i++)
		if (strcmp(member, denial_by_name((enum denial_by)i)) == 0)
			return read_name(value, (enum denial_by)i, order, err);
	if (strcmp(member, "until_ms") != 0)
		return error_set(err, ERROR_INVALID, "the member '%.40s' is not known", member);
	if (!json_is_integer(value) || json_integer_value(value) <= 0)
		return error_set(err, ERROR_INVALID,
				 "'until_ms' must be milliseconds since 1970, as a whole number");
	order->until_ms = (uint64_t)json_integer_value(value);
	return 0;
}

int order_read(struct slice body, struct order *order_r, struct error *err)
{
	json_t *document = document_parse(body, err);
	const char *member;
	json_t *value;

	*order_r = (struct order){ .document = document };
	if (document == NULL)
		return -1;
	json_object_foreach(document, member, value)
	{
		if (read_member(member, value, order_r, err) < 0)
			goto failed;
	}
	if (order_r->name.n > 0)
		return 0;
	error_set(err, ERROR_INVALID, "one of sub, client_id, jti and sid must be there");
failed:
	order_fini(order_r);
	return -1;
}

void order_fini(struct order *order)
{
	json_decref(order->document);
	order->document = NULL;
}
